/* Documents into rows. Used by loader; must not know files, texts or the order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "labels.h"
#include "loader.h"

/* The tokens first .. first + count - 1 of a document that are kept; count 0 = the document is
 * dropped. */
struct eng_cut {
    size_t first, count;
};
struct eng_cut eng_packing_cut(size_t tokens, size_t context, enum eng_truncate rule);

/* Whether some token but the first of a document is learned. */
bool eng_packing_has_label(const uint8_t *supervised, size_t count);

/* The tokens first .. first + count - 1 of a document of `total` tokens, for one row. */
struct eng_piece {
    const int32_t *ids;        /* of the whole document */
    const uint8_t *supervised; /* of the whole document */
    size_t first, count, total;
};

/* Begins an empty row in arrays that the caller has set. */
void eng_packing_begin(struct eng_row *row);
/* Whether a document of count tokens may stand in what is left. An empty row takes any cut one. */
bool eng_packing_fits(const struct eng_row *row, size_t count);
/* The first of the rows in which it may, `rows` when there is none. */
size_t eng_packing_first_fit(const struct eng_row *list, size_t rows, size_t count);
/* Appends a piece that fits; only one that fills the row may end before its document. */
void eng_packing_place(struct eng_row *row, const struct eng_piece *piece);
/* Fills the rest with padding, then the labels; returns the supervised labels of the row. */
int eng_packing_finish(struct eng_row *row);
