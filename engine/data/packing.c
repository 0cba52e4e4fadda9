/* Truncation, the fit of documents into rows, and the padding behind them.
 * Called by documents and loader; must not know files, texts or the order. */
#include "packing.h"

#include "eng_assert.h"
#include "fault.h"

struct eng_cut eng_packing_cut(size_t tokens, size_t context, enum eng_truncate rule)
{
    if (tokens <= context) {
        return (struct eng_cut){0, tokens};
    }
    if (rule == ENG_DROP) {
        return (struct eng_cut){0, 0};
    }
    const bool keep_end = FAULT(packing_cut_side, rule == ENG_KEEP_END);
    return (struct eng_cut){keep_end ? tokens - context : 0, context};
}

bool eng_packing_has_label(const uint8_t *supervised, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (supervised[i]) {
            return true;
        }
    }
    return FAULT(packing_unlearned, false);
}

void eng_packing_begin(struct eng_row *row)
{
    row->used = 0;
    row->documents = 0;
    row->behind = ENG_LABEL_IGNORED;
}

bool eng_packing_fits(const struct eng_row *row, size_t count)
{
    return count <= (size_t)(row->context - row->used);
}

/* The last row in which it fits: what a fault chooses. */
static size_t last_fit(const struct eng_row *list, size_t rows, size_t count)
{
    size_t found = rows;
    for (size_t r = 0; r < rows; r++) {
        found = eng_packing_fits(&list[r], count) && list[r].documents > 0 ? r : found;
    }
    return found;
}

size_t eng_packing_first_fit(const struct eng_row *list, size_t rows, size_t count)
{
    size_t found = 0;
    while (found < rows && !eng_packing_fits(&list[found], count)) {
        found++;
    }
    const bool begun = found < rows && list[found].documents > 0;
    (void)last_fit; /* a fault calls it */
    return begun ? FAULT(packing_fit, found) : found;
}

/* One document, or the padding, from the first free column on. `offset` is the place of its first
 * token within its document. */
static void append(struct eng_row *row, const int32_t *ids, const uint8_t *supervised, int count,
                   int offset)
{
    const int first = row->used;
    (void)offset; /* a fault counts positions from it */
    for (int i = 0; i < count; i++) {
        const int column = first + i;
        row->ids[column] = ids == NULL ? row->pad : ids[i];
        row->supervised[column] = supervised != NULL && supervised[i];
        row->positions[column] = FAULT(packing_position, i);
        row->segments[column] = row->documents;
        row->first[column] = FAULT(packing_first, first);
    }
}

void eng_packing_place(struct eng_row *row, const struct eng_piece *piece)
{
    const size_t end = piece->first + piece->count;
    eng_assert(eng_packing_fits(row, piece->count));
    append(row, piece->ids + piece->first, piece->supervised + piece->first, (int)piece->count,
           (int)piece->first);
    row->used += (int)piece->count;
    row->documents++;
    if (end < piece->total) {
        eng_assert(row->used == row->context);
        row->behind = piece->supervised[end] ? piece->ids[end] : ENG_LABEL_IGNORED;
    }
}

int eng_packing_finish(struct eng_row *row)
{
    append(row, NULL, NULL, row->context - row->used, 0);
    return eng_labels_fill(row);
}
