/* A byte-pair tokenizer from a tokenizer.json or a file of ranks.
 * Used by engine/data; must not know records, masks or rows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "layout.h"
#include "text_encode.h"

typedef struct eng_tokenizer eng_tokenizer;

/* Purpose: reads a file of ranks when the name ends in ".tiktoken", else a tokenizer.json. EIO when
 * the file cannot be read, EINPUT when it says something this tokenizer would get wrong; messages
 * name the file. */
ENG_CHECKED enum eng_status eng_tokenizer_open(const char *path, eng_tokenizer **out,
                                               struct eng_error *error);
void eng_tokenizer_close(eng_tokenizer *tokenizer); /* accepts NULL */

/* Ids are 0 .. size - 1. */
int eng_tokenizer_size(const eng_tokenizer *tokenizer);
/* Id of the control token with this text, -1 when there is none. */
int32_t eng_tokenizer_control_id(const eng_tokenizer *tokenizer, const char *text);
/* Whether a control token's text stands somewhere in the given text. */
bool eng_tokenizer_sees_control(const eng_tokenizer *tokenizer, struct eng_text text);
/* Whether text is brought to Unicode's composed form first, whether numbers are split, and whether
 * some control token takes the white space beside it. */
bool eng_tokenizer_composes(const eng_tokenizer *tokenizer);
bool eng_tokenizer_splits_numbers(const eng_tokenizer *tokenizer);
bool eng_tokenizer_takes_space(const eng_tokenizer *tokenizer);

/* One thread at a time. The text is well-formed UTF-8. */
ENG_CHECKED enum eng_status eng_tokenizer_encode(eng_tokenizer *tokenizer,
                                                 const struct eng_rendered *text,
                                                 struct eng_tokens *out, struct eng_error *error);

enum eng_controls { ENG_CONTROLS_AS_TEXT, ENG_CONTROLS_SEEN };
/* The same of a plain text, in which control tokens are seen only when asked for. EINPUT when it is
 * not UTF-8: the message names the byte. */
ENG_CHECKED enum eng_status eng_tokenizer_encode_text(eng_tokenizer *tokenizer,
                                                      struct eng_text text,
                                                      enum eng_controls controls,
                                                      struct eng_tokens *out,
                                                      struct eng_error *error);

/* Zero-initialise; reused by every call; the caller frees bytes. */
struct eng_decoded {
    char *bytes;
    size_t size, capacity;
};
/* Purpose: the bytes that ids stand for, one after another; they need not be UTF-8. What a
 * normalizer put for blanks becomes blanks again, but the one it put before the text goes. EINPUT
 * for an id that is no token. */
ENG_CHECKED enum eng_status eng_tokenizer_decode(const eng_tokenizer *tokenizer, const int32_t *ids,
                                                 size_t count, struct eng_decoded *out,
                                                 struct eng_error *error);
