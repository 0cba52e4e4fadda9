/* GPT-2 pre-tokenisation with PCRE2. Used by text_encode; must not know vocabularies. */
#pragma once

#include <stddef.h>

#include "eng_status.h"

typedef struct eng_splitter eng_splitter;

ENG_CHECKED enum eng_status eng_splitter_create(eng_splitter **out, struct eng_error *error);
void eng_splitter_destroy(eng_splitter *splitter); /* accepts NULL */

/* Purpose: the size of the piece that starts at bytes + at. The text is well-formed UTF-8 and its
 * end is a border that the pattern does not look across. at < size. Returns 0 only when PCRE2
 * itself fails. */
size_t eng_splitter_piece(const eng_splitter *splitter, const char *bytes, size_t size, size_t at);
