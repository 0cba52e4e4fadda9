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
}

bool eng_packing_fits(const struct eng_row *row, size_t count)
{
    return count <= (size_t)(row->context - row->used);
}

/* One document, or the padding, from the first free column on. */
static void append(struct eng_row *row, const int32_t *ids, const uint8_t *supervised, int count)
{
    const int first = row->used;
    for (int i = 0; i < count; i++) {
        const int column = first + i;
        row->ids[column] = ids == NULL ? row->pad : ids[i];
        row->supervised[column] = supervised != NULL && supervised[i];
        row->positions[column] = FAULT(packing_position, i);
        row->segments[column] = row->documents;
        row->first[column] = FAULT(packing_first, first);
    }
}

void eng_packing_place(struct eng_row *row, const int32_t *ids, const uint8_t *supervised,
                       size_t count)
{
    eng_assert(count <= (size_t)(row->context - row->used));
    append(row, ids, supervised, (int)count);
    row->used += (int)count;
    row->documents++;
}

int eng_packing_finish(struct eng_row *row)
{
    append(row, NULL, NULL, row->context - row->used);
    return eng_labels_fill(row);
}
