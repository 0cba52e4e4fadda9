/* The chat template of a model: one of the five layouts, or a Jinja template from a file.
 * Called by engine/data and engine/train; must not know tokens. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "layout.h"
#include "messages.h"

typedef struct eng_template eng_template;

/* Purpose: `name` is one of the five layouts, a file NAME.jinja, or a tokenizer_config.json whose
 * chat_template is taken (of several named ones the one called "default"; PATH#NAME takes another).
 * A file NAME.jinja gets its special tokens from a tokenizer_config.json beside it, if there is
 * one. EUSAGE: no layout has the name. EIO: the file cannot be read. EINPUT: it is no template. */
ENG_CHECKED enum eng_status eng_template_open(const char *name, eng_template **out,
                                              struct eng_error *error);
/* Purpose: what eng_template_open takes for the name in a recipe: a layout's name; a path, which is
 * relative to the recipe's file; else that of NAME.jinja beside the recipe's folder or in this
 * tree. The caller frees; NULL: no memory. */
char *eng_template_locate(const char *recipe_path, const char *name);
void eng_template_close(eng_template *template); /* accepts NULL */
/* ENG_FEATURE_dated, _by_prefix and _bos, as they hold for every chat. */
uint64_t eng_template_features(const eng_template *template);
/* The text that ends an answer; of a file, the eos_token of its configuration, or "". */
const char *eng_template_end_of_turn(const eng_template *template);

/* Purpose: whether the template's text names what the chat has (see eng_template_render): EINPUT
 * where it does not. `extras` is not NULL. */
ENG_CHECKED enum eng_status eng_template_accepts(const eng_template *template,
                                                 const struct eng_message *messages, size_t count,
                                                 const struct eng_extras *extras,
                                                 struct eng_error *error);

/* Purpose: renders a chat whose roles are in order; `extras` may be NULL. Replaces what `out` held.
 * What the chat has and the template's text does not name would be lost and is refused: tools,
 * documents, tool_calls, reasoning_content, messages of a tool. Answers are what
 * {% generation %} blocks wrote; in a template without one, answer i is what the chat up to it
 * renders to behind the rendering of the chat before it with a generation prompt, and both must
 * begin the whole rendering. EINPUT: the template fails, or does not begin so. One thread. */
ENG_CHECKED enum eng_status eng_template_render(eng_template *template,
                                                const struct eng_message *messages, size_t count,
                                                const struct eng_extras *extras,
                                                struct eng_rendered *out, struct eng_error *error);
