/* Truncation, labels and packing of drawn documents against a naive version of corpus/RECIPE.md.
 * The input draws context, rule or wrapping, then documents as lengths and masks. Called by
 * libFuzzer and replay_main.c. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "labels.h"
#include "packing.h"

enum { CONTEXT_MAX = 40, DOCUMENT_MAX = 64, PAD = 7 };

struct document {
    int32_t ids[DOCUMENT_MAX];
    uint8_t supervised[DOCUMENT_MAX];
    size_t count;
};

/* A token's bits: 0 = supervised; the rest is its id. */
static bool draw_document(struct fuzz_input *in, struct document *d)
{
    if (in->at >= in->end) {
        return false;
    }
    d->count = (size_t)fuzz_between(in, 1, DOCUMENT_MAX);
    for (size_t i = 0; i < d->count; i++) {
        const unsigned byte = fuzz_byte(in);
        d->ids[i] = (int32_t)(byte >> 1);
        d->supervised[i] = byte & 1;
    }
    return true;
}

/* The cut by definition, in place; count 0 = dropped. */
static void cut_by_definition(struct document *d, size_t context, enum eng_truncate rule)
{
    if (d->count <= context) {
        return;
    }
    if (rule == ENG_DROP) {
        d->count = 0;
        return;
    }
    const size_t first = rule == ENG_KEEP_END ? d->count - context : 0;
    memmove(d->ids, d->ids + first, context * sizeof *d->ids);
    memmove(d->supervised, d->supervised + first, context);
    d->count = context;
}

static bool learns_by_definition(const struct document *d)
{
    bool learns = false;
    for (size_t i = 1; i < d->count; i++) {
        learns = learns || d->supervised[i];
    }
    return learns;
}

/* What a row holds, column by column. */
struct naive {
    int32_t ids[CONTEXT_MAX], labels[CONTEXT_MAX], positions[CONTEXT_MAX], segments[CONTEXT_MAX];
    int32_t first[CONTEXT_MAX];
    int used, documents;
};

/* The tokens from .. end - 1 of a document; the label of the last one may stand in another row. */
static void place_by_definition(struct naive *row, const struct document *d, size_t from,
                                size_t end)
{
    const int first = row->used;
    for (size_t i = from; i < end; i++) {
        const int c = row->used++;
        row->ids[c] = d->ids[i];
        row->labels[c] = i + 1 < d->count && d->supervised[i + 1] ? d->ids[i + 1] : -100;
        row->positions[c] = (int32_t)(i - from);
        row->segments[c] = row->documents;
        row->first[c] = first;
    }
    row->documents++;
}

static int finish_by_definition(struct naive *row, int context)
{
    const int first = row->used;
    int labels = 0;
    for (int c = first; c < context; c++) {
        row->ids[c] = PAD;
        row->labels[c] = -100;
        row->positions[c] = c - first;
        row->segments[c] = row->documents;
        row->first[c] = first;
    }
    for (int c = 0; c < context; c++) {
        labels += row->labels[c] != -100;
    }
    return labels;
}

/* The row under test has arrays of exactly its size. */
static struct eng_row make_row(int context)
{
    struct eng_row row = {.context = context, .pad = PAD};
    const size_t bytes = (size_t)context * sizeof(int32_t);
    int32_t **const arrays[] = {&row.ids, &row.labels, &row.positions, &row.segments, &row.first};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        *arrays[i] = malloc(bytes);
        fuzz_require(*arrays[i] != NULL);
        memset(*arrays[i], 0x5A, bytes);
    }
    row.supervised = malloc((size_t)context);
    fuzz_require(row.supervised != NULL);
    memset(row.supervised, 1, (size_t)context);
    return row;
}

static void free_row(struct eng_row *row)
{
    free(row->ids);
    free(row->labels);
    free(row->positions);
    free(row->segments);
    free(row->first);
    free(row->supervised);
}

static void finish_row(struct eng_row *row, struct naive *wanted)
{
    const size_t bytes = (size_t)row->context * sizeof(int32_t);
    const int labels = finish_by_definition(wanted, row->context);
    fuzz_require(row->used == wanted->used && row->documents == wanted->documents);
    fuzz_require(eng_packing_finish(row) == labels);
    fuzz_require(memcmp(row->ids, wanted->ids, bytes) == 0);
    fuzz_require(memcmp(row->labels, wanted->labels, bytes) == 0);
    fuzz_require(memcmp(row->positions, wanted->positions, bytes) == 0);
    fuzz_require(memcmp(row->segments, wanted->segments, bytes) == 0);
    fuzz_require(memcmp(row->first, wanted->first, bytes) == 0);
    *wanted = (struct naive){.used = 0};
    eng_packing_begin(row);
}

/* The mask by definition, with a look at every span. */
static bool is_learned(const struct eng_rendered *text, size_t byte, enum eng_mask mask)
{
    const struct eng_span *last = NULL;
    bool inside = false;
    for (size_t s = 0; s < text->answer_count; s++) {
        last = &text->answers[s];
        inside = inside || (byte >= last->start && byte < last->end);
    }
    const bool behind = last != NULL && byte >= last->start;
    return mask == ENG_MASK_ALL || (mask == ENG_MASK_ASSISTANT && inside) ||
           (mask == ENG_MASK_COMPLETION && behind) ||
           (mask == ENG_MASK_LAST && behind && byte < last->end);
}

/* Marks against a look at every span for every byte. */
static void check_marks(struct fuzz_input *in)
{
    struct eng_span spans[8];
    struct eng_token items[16];
    uint8_t marks[16];
    struct eng_rendered text = {.answers = spans};
    struct eng_tokens tokens = {.items = items};
    size_t border = 0;
    const size_t span_count = fuzz_byte(in) % 9;
    for (; text.answer_count < span_count; text.answer_count++) {
        const size_t start = border + fuzz_byte(in) % 8;
        border = start + 1 + fuzz_byte(in) % 8;
        spans[text.answer_count] = (struct eng_span){start, border};
    }
    uint32_t start = 0;
    const size_t token_count = fuzz_byte(in) % 17;
    for (; tokens.count < token_count; start += 1 + fuzz_byte(in) % 8) {
        items[tokens.count++] = (struct eng_token){1, start};
    }
    for (int mask = ENG_MASK_ASSISTANT; mask <= ENG_MASK_ALL; mask++) {
        eng_labels_mark(&tokens, &text, (enum eng_mask)mask, marks);
        for (size_t t = 0; t < tokens.count; t++) {
            fuzz_require((marks[t] != 0) == is_learned(&text, items[t].start, (enum eng_mask)mask));
        }
    }
}

/* Wrapped packing: a document goes on in the next row. */
static void place_wrapped(struct eng_row *row, struct naive *wanted, const struct document *d)
{
    for (size_t from = 0; from < d->count;) {
        const size_t left = (size_t)(row->context - wanted->used);
        const size_t count = d->count - from < left ? d->count - from : left;
        eng_packing_place(row, &(struct eng_piece){.ids = d->ids,
                                                   .supervised = d->supervised,
                                                   .first = from,
                                                   .count = count,
                                                   .total = d->count});
        place_by_definition(wanted, d, from, from + count);
        from += count;
        if (wanted->used == row->context) {
            finish_row(row, wanted);
        }
    }
}

/* Cut to a row, or left out. */
static void place_cut(struct eng_row *row, struct naive *wanted, const struct document *drawn,
                      enum eng_truncate rule)
{
    const size_t context = (size_t)row->context;
    const struct eng_cut cut = eng_packing_cut(drawn->count, context, rule);
    struct document d = *drawn;
    cut_by_definition(&d, context, rule);
    fuzz_require(cut.count == d.count);
    fuzz_require(cut.first + cut.count <= drawn->count);
    fuzz_require(memcmp(drawn->ids + cut.first, d.ids, d.count * sizeof *d.ids) == 0);
    const uint8_t *const supervised = drawn->supervised + cut.first;
    fuzz_require(eng_packing_has_label(supervised, cut.count) == learns_by_definition(&d));
    if (!learns_by_definition(&d)) {
        return;
    }
    const bool fits = (int)d.count <= row->context - wanted->used;
    fuzz_require(eng_packing_fits(row, cut.count) == fits);
    if (!fits) {
        finish_row(row, wanted);
    }
    eng_packing_place(row, &(struct eng_piece){.ids = drawn->ids + cut.first,
                                               .supervised = supervised,
                                               .count = cut.count,
                                               .total = cut.count});
    place_by_definition(wanted, &d, 0, d.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    const int context = fuzz_between(&in, 2, CONTEXT_MAX);
    const unsigned choice = fuzz_byte(&in); /* 0x80: wrapped, else the rule of cutting */
    check_marks(&in);
    struct eng_row row = make_row(context);
    struct naive wanted = {.used = 0};
    struct document drawn;
    eng_packing_begin(&row);
    while (draw_document(&in, &drawn)) {
        if ((choice & 0x80) != 0) {
            place_wrapped(&row, &wanted, &drawn);
        } else {
            place_cut(&row, &wanted, &drawn, (enum eng_truncate)(choice % 3));
        }
    }
    finish_row(&row, &wanted);
    free_row(&row);
    return 0;
}
