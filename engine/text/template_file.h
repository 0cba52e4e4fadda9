/* The text of a chat template and the special tokens that go with it, from files.
 * Used by template; must not know how a template is rendered. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "eng_status.h"

enum eng_special {
    ENG_SPECIAL_BOS,
    ENG_SPECIAL_EOS,
    ENG_SPECIAL_PAD,
    ENG_SPECIAL_UNK,
    ENG_SPECIAL_SEP,
    ENG_SPECIAL_CLS,
    ENG_SPECIAL_MASK,
    ENG_SPECIAL_COUNT
};
extern const char *const eng_special_names[ENG_SPECIAL_COUNT]; /* variables of templates */

struct eng_template_file {
    char *source;
    size_t size;
    char *tokens[ENG_SPECIAL_COUNT]; /* NULL: the configuration has none */
    char **more;                     /* its additional_special_tokens; NULL: it has none */
    size_t more_count;
};

/* Whether a template's name is that of a file: PATH.jinja, PATH.json or PATH.json#NAME. */
bool eng_template_is_file(const char *name);
/* How many bytes of such a name are the path. */
size_t eng_template_path_size(const char *name);
/* EIO: it cannot be read. EINPUT: it holds no template; the message names the file. */
ENG_CHECKED enum eng_status eng_template_file_read(const char *name, struct eng_template_file *out,
                                                   struct eng_error *error);
void eng_template_file_fini(struct eng_template_file *file);
