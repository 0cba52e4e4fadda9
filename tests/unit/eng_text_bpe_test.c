/* Merging against its definition. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "bpe.h"
#include "eng_text_fixture.h"

enum { LETTERS = 4, MERGES = 40, IDS = 256 + MERGES };

struct vocabulary {
    int32_t byte_ids[256];
    struct eng_bpe_merge merges[MERGES];
    int rank[IDS][IDS]; /* MERGES = no merge */
};

/* Letters 'a' to 'd'; each merge joins two tokens that exist by then and were not joined before. */
static void draw_vocabulary(struct vocabulary *v, uint64_t *state)
{
    for (int i = 0; i < 256; i++) {
        v->byte_ids[i] = i;
    }
    for (int i = 0; i < IDS; i++) {
        for (int j = 0; j < IDS; j++) {
            v->rank[i][j] = MERGES;
        }
    }
    for (int m = 0; m < MERGES;) {
        int32_t pair[2];
        for (int side = 0; side < 2; side++) {
            const int32_t drawn = (int32_t)(fixture_draw(state) % (uint64_t)(LETTERS + m));
            pair[side] = drawn < LETTERS ? 'a' + drawn : 256 + drawn - LETTERS;
        }
        if (v->rank[pair[0]][pair[1]] == MERGES) {
            v->rank[pair[0]][pair[1]] = m;
            v->merges[m] = (struct eng_bpe_merge){pair[0], pair[1], 256 + m, m};
            m++;
        }
    }
}

/* The definition: as long as some pair has a rank, join the leftmost pair of the lowest one. */
static size_t definition(const struct vocabulary *v, const char *piece, size_t size, int32_t *ids)
{
    for (size_t i = 0; i < size; i++) {
        ids[i] = v->byte_ids[(unsigned char)piece[i]];
    }
    for (;;) {
        size_t best = 0;
        int best_rank = MERGES;
        for (size_t i = 0; i + 1 < size; i++) {
            if (v->rank[ids[i]][ids[i + 1]] < best_rank) {
                best_rank = v->rank[ids[i]][ids[i + 1]];
                best = i;
            }
        }
        if (best_rank == MERGES) {
            return size;
        }
        ids[best] = v->merges[best_rank].result;
        memmove(ids + best + 1, ids + best + 2, (size - best - 2) * sizeof *ids);
        size--;
    }
}

static enum eng_status create(const int32_t *byte_ids, const struct eng_bpe_merge *merges,
                              size_t count, eng_bpe **out, struct eng_error *error)
{
    const struct eng_bpe_rules rules = {
        .byte_ids = byte_ids, .merges = merges, .merge_count = count};
    return eng_bpe_create(&rules, out, error);
}

static void compare(eng_bpe *bpe, const struct vocabulary *v, const char *piece, size_t size)
{
    int32_t *const wanted = calloc(size, sizeof *wanted);
    const int32_t *ids = NULL;
    size_t count = 0;
    const size_t wanted_count = definition(v, piece, size, wanted);
    for (int again = 0; again < 2; again++) { /* the second answer may come from the cache */
        cr_assert_eq(eng_bpe_encode(bpe, piece, size, &ids, &count, NULL), ENG_OK);
        cr_assert_eq(count, wanted_count);
        cr_assert_gt(count, 0);
        cr_assert_eq(memcmp(ids, wanted, count * sizeof *ids), 0);
    }
    free(wanted);
}

static void draw_piece(char *piece, size_t size, uint64_t *state)
{
    for (size_t i = 0; i < size; i++) {
        piece[i] = (char)('a' + fixture_draw(state) % LETTERS);
    }
}

Test(eng_text_bpe, merges_as_defined)
{
    static struct vocabulary v;
    uint64_t state = 3;
    for (int round = 0; round < 30; round++) {
        eng_bpe *bpe = NULL;
        char piece[80];
        draw_vocabulary(&v, &state);
        cr_assert_eq(create(v.byte_ids, v.merges, MERGES, &bpe, NULL), ENG_OK);
        for (int i = 0; i < 300; i++) {
            const size_t size = 1 + fixture_draw(&state) % sizeof piece;
            draw_piece(piece, size, &state);
            compare(bpe, &v, piece, size);
        }
        eng_bpe_destroy(bpe);
    }
}

Test(eng_text_bpe, merges_a_long_piece_as_defined)
{
    static struct vocabulary v;
    static char piece[10000];
    uint64_t state = 5;
    eng_bpe *bpe = NULL;
    draw_vocabulary(&v, &state);
    draw_piece(piece, sizeof piece, &state);
    cr_assert_eq(create(v.byte_ids, v.merges, MERGES, &bpe, NULL), ENG_OK);
    compare(bpe, &v, piece, sizeof piece);
    memset(piece, 'a', sizeof piece);
    compare(bpe, &v, piece, sizeof piece);
    eng_bpe_destroy(bpe);
}

/* Quadratic work on two million bytes would outlast the time limit of any test. */
Test(eng_text_bpe, takes_a_piece_of_megabytes)
{
    static struct vocabulary v;
    const size_t size = 2u << 20;
    char *const piece = malloc(size);
    uint64_t state = 11;
    eng_bpe *bpe = NULL;
    const int32_t *ids = NULL;
    size_t count = 0;
    draw_vocabulary(&v, &state);
    draw_piece(piece, size, &state);
    cr_assert_eq(create(v.byte_ids, v.merges, MERGES, &bpe, NULL), ENG_OK);
    cr_assert_eq(eng_bpe_encode(bpe, piece, size, &ids, &count, NULL), ENG_OK);
    cr_assert(count > 0 && count < size);
    eng_bpe_destroy(bpe);
    free(piece);
}

Test(eng_text_bpe, refuses_a_merge_that_stands_twice)
{
    int32_t byte_ids[256] = {0};
    const struct eng_bpe_merge merges[] = {{1, 2, 3, 0}, {2, 1, 4, 1}, {1, 2, 5, 2}};
    struct eng_error error = {""};
    eng_bpe *bpe = NULL;
    cr_assert_eq(create(byte_ids, merges, 3, &bpe, &error), ENG_EINPUT);
    cr_assert_str_eq(error.text, "merge 2 repeats merge 0");
}
