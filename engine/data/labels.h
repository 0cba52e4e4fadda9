/* Which tokens are learned. Used by documents and packing; must not know files or layouts. */
#pragma once

#include <stdint.h>

#include "layout.h"
#include "loader.h"
#include "text_encode.h"

enum { ENG_LABEL_IGNORED = -100 };

/* A row of `context` columns; arrays of that size, owned by whoever fills the row. */
struct eng_row {
    int context;
    int used;       /* columns taken by documents; padding behind them */
    int documents;  /* placed so far */
    int32_t pad;    /* id of the padding */
    int32_t behind; /* label of the last column when its document goes on in another row */
    int32_t *ids, *labels, *positions, *segments, *first;
    uint8_t *supervised; /* whether the token of this column is learned */
};

/* Purpose: per token of a whole document, before truncation, 1 when it is learned: with ASSISTANT
 * when its first byte lies in an answer, with LAST in the last one, with COMPLETION there or behind
 * it, with ALL always. supervised holds tokens->count bytes. */
void eng_labels_mark(const struct eng_tokens *tokens, const struct eng_rendered *text,
                     enum eng_mask mask, uint8_t *supervised);
/* Purpose: labels of a finished row from its ids, supervised and segments: the next token of the
 * same document when that is learned, also when it stands in another row. Returns how many are not
 * ignored. */
int eng_labels_fill(const struct eng_row *row);
