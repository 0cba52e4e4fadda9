/* Merging against its definition, and the split pattern against pieces written by hand. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "bpe.h"
#include "eng_text_fixture.h"
#include "text_split.h"

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
            v->merges[m] = (struct eng_bpe_merge){pair[0], pair[1], 256 + m};
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
        cr_assert_eq(eng_bpe_create(v.byte_ids, v.merges, MERGES, &bpe, NULL), ENG_OK);
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
    cr_assert_eq(eng_bpe_create(v.byte_ids, v.merges, MERGES, &bpe, NULL), ENG_OK);
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
    cr_assert_eq(eng_bpe_create(v.byte_ids, v.merges, MERGES, &bpe, NULL), ENG_OK);
    cr_assert_eq(eng_bpe_encode(bpe, piece, size, &ids, &count, NULL), ENG_OK);
    cr_assert(count > 0 && count < size);
    eng_bpe_destroy(bpe);
    free(piece);
}

Test(eng_text_bpe, refuses_a_merge_that_stands_twice)
{
    int32_t byte_ids[256] = {0};
    const struct eng_bpe_merge merges[] = {{1, 2, 3}, {2, 1, 4}, {1, 2, 5}};
    struct eng_error error = {""};
    eng_bpe *bpe = NULL;
    cr_assert_eq(eng_bpe_create(byte_ids, merges, 3, &bpe, &error), ENG_EINPUT);
    cr_assert_str_eq(error.text, "merge 2 repeats merge 0");
}

/* Pieces in the text separated by "|". */
static void expect_pieces(const char *wanted)
{
    char text[256];
    char shown[512];
    size_t size = 0;
    size_t used = 0;
    eng_splitter *splitter = NULL;
    for (const char *p = wanted; *p != '\0'; p++) {
        if (*p != '|') {
            text[size++] = *p;
        }
    }
    cr_assert_eq(eng_splitter_create(&splitter, NULL), ENG_OK);
    for (size_t at = 0; at < size;) {
        const size_t piece = eng_splitter_piece(splitter, text, size, at);
        cr_assert(piece > 0 && piece <= size - at);
        if (at > 0) {
            shown[used++] = '|';
        }
        memcpy(shown + used, text + at, piece);
        used += piece;
        at += piece;
    }
    shown[used] = '\0';
    cr_assert_str_eq(shown, wanted);
    eng_splitter_destroy(splitter);
}

Test(eng_text_bpe, splits_as_gpt2)
{
    expect_pieces("Hello| world|'s| 123| | x|\n\n| y");
    expect_pieces("I|'ll| don|'t| they|'re| '|S|!?...");
    expect_pieces("x|  ");
    expect_pieces("  ");
    expect_pieces("\r\n |\t|a");
    expect_pieces("12345|abc|67");
    expect_pieces("e|\xCC\x81| \xCC\x81");                 /* a combining mark is no letter */
    expect_pieces("a|\xE1\xA0\x8E|b| \xE1\xA0\x8E");       /* U+180E is no white space */
    expect_pieces("a|\xC2\xA0|\xC2\xA0|b|\xE3\x80\x80|c"); /* U+00A0 and U+3000 are */
    expect_pieces("\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xAC| \xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D");
    expect_pieces("\xD9\xA1\xD9\xA2\xC2\xBD| \xE4\xBD\xA0\xE5\xA5\xBD");
}
