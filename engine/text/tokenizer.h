/* A byte-level BPE tokenizer from a Hugging Face tokenizer.json.
 * Used by engine/data; must not know records, masks or rows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "layout.h"
#include "text_encode.h"

typedef struct eng_tokenizer eng_tokenizer;

/* Purpose: reads model.vocab, model.merges and added_tokens. EIO when the file cannot be read,
 * EINPUT when it says something this tokenizer would get wrong; messages name the file. */
ENG_CHECKED enum eng_status eng_tokenizer_open(const char *path, eng_tokenizer **out,
                                               struct eng_error *error);
void eng_tokenizer_close(eng_tokenizer *tokenizer); /* accepts NULL */

/* Ids are 0 .. size - 1. */
int eng_tokenizer_size(const eng_tokenizer *tokenizer);
/* Id of the control token with this text, -1 when there is none. */
int32_t eng_tokenizer_control_id(const eng_tokenizer *tokenizer, const char *text);
/* Whether a control token's text stands somewhere in the given text. */
bool eng_tokenizer_sees_control(const eng_tokenizer *tokenizer, struct eng_text text);
/* One thread at a time. */
ENG_CHECKED enum eng_status eng_tokenizer_encode(eng_tokenizer *tokenizer,
                                                 const struct eng_rendered *text,
                                                 struct eng_tokens *out, struct eng_error *error);
