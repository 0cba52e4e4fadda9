/* Pre-tokenisation: where one piece of text ends and the next begins. Used by text_encode; must not
 * know vocabularies. */
#pragma once

#include <stddef.h>

#include "eng_status.h"

/* The patterns of corpus/RECIPE.md, "Splitting". */
enum eng_split {
    ENG_SPLIT_GPT2,
    ENG_SPLIT_CL100K, /* also Llama 3 */
    ENG_SPLIT_QWEN2,
    ENG_SPLIT_O200K,
    ENG_SPLIT_NONE, /* the whole text is one piece */
    ENG_SPLIT_COUNT
};

typedef struct eng_splitter eng_splitter;

ENG_CHECKED enum eng_status eng_splitter_create(enum eng_split split, eng_splitter **out,
                                                struct eng_error *error);
void eng_splitter_destroy(eng_splitter *splitter); /* accepts NULL */

/* Purpose: the size of the piece that starts at bytes + at, at least 1. The text is well-formed
 * UTF-8, at < size is a border of pieces, and the pattern does not look across the text's end.
 * Letters, marks and numbers are those of utf8proc's Unicode version. */
size_t eng_splitter_piece(const eng_splitter *splitter, const char *bytes, size_t size, size_t at);
