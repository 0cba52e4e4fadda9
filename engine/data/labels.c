/* The mask of a document and the labels of a row.
 * Called by documents and packing; must not know files, layouts or vocabularies. */
#include "labels.h"

#include <stdbool.h>
#include <stddef.h>

#include "fault.h"

/* Answers come in order and do not overlap: bisection finds the only candidate. */
static bool in_answer(const struct eng_rendered *text, size_t byte)
{
    size_t low = 0;
    size_t high = text->answer_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (text->answers[middle].end <= byte) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < text->answer_count && text->answers[low].start <= byte;
}

/* Whether a byte lies at or behind the beginning of the last answer. */
static bool in_completion(const struct eng_rendered *text, size_t byte)
{
    return text->answer_count > 0 && byte >= text->answers[text->answer_count - 1].start;
}

static bool in_last_answer(const struct eng_rendered *text, size_t byte)
{
    return in_completion(text, byte) && byte < text->answers[text->answer_count - 1].end;
}

void eng_labels_mark(const struct eng_tokens *tokens, const struct eng_rendered *text,
                     enum eng_mask mask, uint8_t *supervised)
{
    const struct eng_token *const items = tokens->items;
    for (size_t i = 0; i < tokens->count; i++) {
        bool learned = true;
        switch (mask) {
        case ENG_MASK_ASSISTANT:
            learned = FAULT(labels_answer, in_answer(text, items[i].start));
            break;
        case ENG_MASK_LAST:
            learned = FAULT(labels_last, in_last_answer(text, items[i].start));
            break;
        case ENG_MASK_COMPLETION:
            learned = FAULT(labels_completion, in_completion(text, items[i].start));
            break;
        case ENG_MASK_ALL:
            break;
        }
        supervised[i] = learned;
    }
}

int eng_labels_fill(const struct eng_row *row)
{
    int count = 0;
    for (int c = 0; c < row->context; c++) {
        const bool inside = c + 1 < row->context && row->segments[c + 1] == row->segments[c];
        row->labels[c] = FAULT(labels_next, inside && row->supervised[c + 1] ? row->ids[c + 1]
                                                                             : ENG_LABEL_IGNORED);
        count += row->labels[c] != ENG_LABEL_IGNORED;
    }
    if (row->behind != ENG_LABEL_IGNORED) {
        row->labels[row->context - 1] = FAULT(labels_behind, row->behind);
        count += row->labels[row->context - 1] != ENG_LABEL_IGNORED;
    }
    return count;
}
