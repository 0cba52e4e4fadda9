/* Truncation, mask, packing and labels on hand-made documents. */
#include <criterion/criterion.h>
#include <string.h>

#include "packing.h"

enum { CONTEXT = 8, PAD = 99, NO = ENG_LABEL_IGNORED };

struct arrays {
    int32_t ids[CONTEXT], labels[CONTEXT], positions[CONTEXT], segments[CONTEXT], first[CONTEXT];
    uint8_t supervised[CONTEXT];
};

static struct eng_row row_over(struct arrays *a)
{
    return (struct eng_row){.context = CONTEXT,
                            .pad = PAD,
                            .ids = a->ids,
                            .labels = a->labels,
                            .positions = a->positions,
                            .segments = a->segments,
                            .first = a->first,
                            .supervised = a->supervised};
}

static void place(struct eng_row *row, const int32_t *ids, const uint8_t *supervised, size_t count)
{
    eng_packing_place(
        row, &(struct eng_piece){ids, supervised, .first = 0, .count = count, .total = count});
}

#define EXPECT(got, ...)                                                                           \
    do {                                                                                           \
        const int32_t wanted[CONTEXT] = {__VA_ARGS__};                                             \
        for (int c = 0; c < CONTEXT; c++) {                                                        \
            cr_assert_eq((got)[c], wanted[c], #got "[%d] is %d", c, (got)[c]);                     \
        }                                                                                          \
    } while (0)

Test(eng_data_rows, two_documents_and_padding)
{
    struct arrays a;
    struct eng_row row = row_over(&a);
    memset(&a, 0x5A, sizeof a);
    eng_packing_begin(&row);
    cr_assert(eng_packing_fits(&row, CONTEXT));
    cr_assert_not(eng_packing_fits(&row, CONTEXT + 1));
    place(&row, (const int32_t[]){1, 2, 3}, (const uint8_t[]){0, 1, 1}, 3);
    cr_assert(eng_packing_fits(&row, 5));
    cr_assert_not(eng_packing_fits(&row, 6));
    /* The first token of a document is never a label, learned or not. */
    place(&row, (const int32_t[]){4, 5, 6}, (const uint8_t[]){1, 0, 1}, 3);
    cr_assert_eq(eng_packing_finish(&row), 3);
    EXPECT(a.ids, 1, 2, 3, 4, 5, 6, PAD, PAD);
    EXPECT(a.labels, 2, 3, NO, NO, 6, NO, NO, NO);
    EXPECT(a.positions, 0, 1, 2, 0, 1, 2, 0, 1);
    EXPECT(a.segments, 0, 0, 0, 1, 1, 1, 2, 2);
    EXPECT(a.first, 0, 0, 0, 3, 3, 3, 6, 6);
}

Test(eng_data_rows, a_full_row_has_no_padding)
{
    struct arrays a;
    struct eng_row row = row_over(&a);
    memset(&a, 0x5A, sizeof a);
    eng_packing_begin(&row);
    place(&row, (const int32_t[]){1, 2, 3, 4, 5, 6, 7, 8},
          (const uint8_t[]){1, 1, 1, 1, 1, 1, 1, 1}, 8);
    cr_assert_not(eng_packing_fits(&row, 1));
    cr_assert_eq(eng_packing_finish(&row), 7);
    EXPECT(a.labels, 2, 3, 4, 5, 6, 7, 8, NO);
    EXPECT(a.segments, 0, 0, 0, 0, 0, 0, 0, 0);
}

Test(eng_data_rows, an_empty_row_is_all_padding)
{
    struct arrays a;
    struct eng_row row = row_over(&a);
    memset(&a, 0x5A, sizeof a);
    eng_packing_begin(&row);
    cr_assert_eq(eng_packing_finish(&row), 0);
    EXPECT(a.ids, PAD, PAD, PAD, PAD, PAD, PAD, PAD, PAD);
    EXPECT(a.labels, NO, NO, NO, NO, NO, NO, NO, NO);
    EXPECT(a.positions, 0, 1, 2, 3, 4, 5, 6, 7);
    EXPECT(a.segments, 0, 0, 0, 0, 0, 0, 0, 0);
    EXPECT(a.first, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* Padding by an id that is also learned: the label stays. */
Test(eng_data_rows, a_learned_token_with_the_pad_id_keeps_its_label)
{
    struct arrays a;
    struct eng_row row = row_over(&a);
    eng_packing_begin(&row);
    place(&row, (const int32_t[]){1, PAD}, (const uint8_t[]){0, 1}, 2);
    cr_assert_eq(eng_packing_finish(&row), 1);
    EXPECT(a.labels, PAD, NO, NO, NO, NO, NO, NO, NO);
}

static void expect_cut(size_t tokens, enum eng_truncate rule, size_t first, size_t count)
{
    const struct eng_cut cut = eng_packing_cut(tokens, CONTEXT, rule);
    cr_assert_eq(cut.first, first);
    cr_assert_eq(cut.count, count);
}

Test(eng_data_rows, cuts_the_side_that_the_rule_names)
{
    static const enum eng_truncate rules[] = {ENG_KEEP_START, ENG_KEEP_END, ENG_DROP};
    for (size_t i = 0; i < 3; i++) {
        expect_cut(CONTEXT - 1, rules[i], 0, CONTEXT - 1);
        expect_cut(CONTEXT, rules[i], 0, CONTEXT);
    }
    expect_cut(CONTEXT + 1, ENG_KEEP_START, 0, CONTEXT);
    expect_cut(CONTEXT + 1, ENG_KEEP_END, 1, CONTEXT);
    expect_cut(CONTEXT + 5, ENG_KEEP_END, 5, CONTEXT);
    expect_cut(CONTEXT + 1, ENG_DROP, 0, 0);
}

Test(eng_data_rows, a_document_needs_a_learned_token_behind_its_first)
{
    cr_assert_not(eng_packing_has_label((const uint8_t[]){1, 0, 0}, 3));
    cr_assert(eng_packing_has_label((const uint8_t[]){0, 0, 1}, 3));
    cr_assert_not(eng_packing_has_label((const uint8_t[]){1}, 1));
    cr_assert_not(eng_packing_has_label(NULL, 0));
}

Test(eng_data_rows, a_token_is_learned_when_its_first_byte_lies_in_an_answer)
{
    struct eng_span answers[] = {{4, 8}, {12, 14}};
    const struct eng_rendered text = {.size = 20, .answers = answers, .answer_count = 2};
    struct eng_token items[20];
    uint8_t supervised[20];
    size_t compared = 0;
    for (uint32_t i = 0; i < 20; i++) {
        items[i] = (struct eng_token){7, i};
    }
    const struct eng_tokens tokens = {.items = items, .count = 20};
    eng_labels_mark(&tokens, &text, ENG_MASK_ASSISTANT, supervised);
    for (size_t i = 0; i < 20; i++) {
        cr_assert_eq(supervised[i], (i >= 4 && i < 8) || (i >= 12 && i < 14), "byte %zu", i);
        compared++;
    }
    eng_labels_mark(&tokens, &text, ENG_MASK_ALL, supervised);
    for (size_t i = 0; i < 20; i++) {
        cr_assert_eq(supervised[i], 1);
    }
    cr_assert_eq(compared, 20);
}

Test(eng_data_rows, the_last_answer_or_all_behind_its_beginning_can_be_learned)
{
    struct eng_span answers[] = {{4, 8}, {12, 14}};
    const struct eng_rendered text = {.size = 20, .answers = answers, .answer_count = 2};
    const struct eng_rendered none = {.size = 20};
    struct eng_token items[20];
    uint8_t last[20];
    uint8_t completion[20];
    for (uint32_t i = 0; i < 20; i++) {
        items[i] = (struct eng_token){7, i};
    }
    const struct eng_tokens tokens = {.items = items, .count = 20};
    eng_labels_mark(&tokens, &text, ENG_MASK_LAST, last);
    eng_labels_mark(&tokens, &text, ENG_MASK_COMPLETION, completion);
    for (size_t i = 0; i < 20; i++) {
        cr_assert_eq(last[i], i >= 12 && i < 14, "byte %zu", i);
        cr_assert_eq(completion[i], i >= 12, "byte %zu", i);
    }
    eng_labels_mark(&tokens, &none, ENG_MASK_LAST, last);
    eng_labels_mark(&tokens, &none, ENG_MASK_COMPLETION, completion);
    for (size_t i = 0; i < 20; i++) {
        cr_assert_eq(last[i] + completion[i], 0, "there is no answer");
    }
}

/* A document over two rows: every label is there once, positions begin anew. */
Test(eng_data_rows, a_split_document_keeps_the_label_at_the_border)
{
    static const int32_t ids[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const uint8_t supervised[] = {0, 1, 1, 1, 1, 1, 1, 1, 1, 0};
    struct arrays a;
    struct eng_row row = row_over(&a);
    eng_packing_begin(&row);
    eng_packing_place(&row, &(struct eng_piece){ids, supervised, 0, 8, 10});
    cr_assert_eq(eng_packing_finish(&row), 8);
    EXPECT(a.labels, 2, 3, 4, 5, 6, 7, 8, 9);
    eng_packing_begin(&row);
    eng_packing_place(&row, &(struct eng_piece){ids, supervised, 8, 2, 10});
    cr_assert_eq(eng_packing_finish(&row), 0);
    EXPECT(a.ids, 9, 10, PAD, PAD, PAD, PAD, PAD, PAD);
    EXPECT(a.labels, NO, NO, NO, NO, NO, NO, NO, NO);
    EXPECT(a.positions, 0, 1, 0, 1, 2, 3, 4, 5);
    EXPECT(a.segments, 0, 0, 1, 1, 1, 1, 1, 1);
}

Test(eng_data_rows, the_first_row_with_room_is_chosen)
{
    struct eng_row rows[3] = {{.context = CONTEXT, .used = 6, .documents = 1},
                              {.context = CONTEXT, .used = 3, .documents = 1},
                              {.context = CONTEXT}};
    cr_assert_eq(eng_packing_first_fit(rows, 3, 2), 0);
    cr_assert_eq(eng_packing_first_fit(rows, 3, 3), 1);
    cr_assert_eq(eng_packing_first_fit(rows, 3, 6), 2);
    cr_assert_eq(eng_packing_first_fit(rows, 2, 6), 2, "none of the two");
}
