/* Byte-pair merging against its definition, O(n^2). The input draws the merges, then gives a piece.
 * Called by libFuzzer and replay_main.c. */
#include <stdlib.h>
#include <string.h>

#include "bpe.h"
#include "fuzz.h"

enum { MERGES_MAX = 48, LETTERS = 4, PIECE_MAX = 600 };

struct merges {
    struct eng_bpe_merge list[MERGES_MAX];
    size_t count;
    bool repeated;
};

/* A half is one of the letters a, b, c, d or what an earlier merge made. */
static int32_t draw_half(struct fuzz_input *in, const struct merges *m)
{
    const unsigned choice = fuzz_byte(in) % (unsigned)(LETTERS + m->count);
    return choice < LETTERS ? 'a' + (int32_t)choice : m->list[choice - LETTERS].result;
}

static void draw_merges(struct fuzz_input *in, struct merges *m)
{
    const size_t wanted = fuzz_byte(in) % (MERGES_MAX + 1);
    while (m->count < wanted) {
        struct eng_bpe_merge merge = {draw_half(in, m), draw_half(in, m), 256 + (int32_t)m->count,
                                      (int32_t)m->count};
        for (size_t i = 0; i < m->count; i++) {
            const struct eng_bpe_merge *const other = &m->list[i];
            m->repeated = m->repeated || (other->left == merge.left && other->right == merge.right);
        }
        m->list[m->count++] = merge;
    }
}

/* Ranks of all pairs as a table; MERGES_MAX = no merge. */
static uint8_t ranks[256 + MERGES_MAX][256 + MERGES_MAX];

static void tabulate(const struct merges *m)
{
    memset(ranks, MERGES_MAX, sizeof ranks);
    for (size_t i = m->count; i-- > 0;) {
        ranks[m->list[i].left][m->list[i].right] = (uint8_t)i;
    }
}

/* Lowest rank first, leftmost among equals, one pair at a time. */
static size_t merge_by_definition(const struct merges *m, int32_t *ids, size_t count)
{
    for (;;) {
        size_t best = MERGES_MAX;
        size_t at = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            const size_t rank = ranks[ids[i]][ids[i + 1]];
            if (rank < best) {
                best = rank;
                at = i;
            }
        }
        if (best == MERGES_MAX) {
            return count;
        }
        ids[at] = m->list[best].result;
        memmove(&ids[at + 1], &ids[at + 2], (count - at - 2) * sizeof *ids);
        count--;
    }
}

static void check_piece(eng_bpe *bpe, const struct merges *m, const uint8_t *bytes, size_t size)
{
    static int32_t wanted[PIECE_MAX];
    char *const piece = fuzz_exact(bytes, size);
    const int32_t *ids = NULL;
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        wanted[i] = bytes[i];
    }
    const size_t wanted_count = merge_by_definition(m, wanted, size);
    fuzz_require(eng_bpe_encode(bpe, piece, size, &ids, &count, NULL) == ENG_OK);
    fuzz_require(count == wanted_count);
    fuzz_require(memcmp(ids, wanted, count * sizeof *ids) == 0);
    free(piece);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    struct merges m = {.count = 0};
    struct eng_error error = {""};
    int32_t byte_ids[256];
    eng_bpe *bpe = NULL;
    for (int i = 0; i < 256; i++) {
        byte_ids[i] = i;
    }
    draw_merges(&in, &m);
    const struct eng_bpe_rules rules = {
        .byte_ids = byte_ids, .merges = m.list, .merge_count = m.count};
    const enum eng_status status = eng_bpe_create(&rules, &bpe, &error);
    fuzz_require(status == (m.repeated ? ENG_EINPUT : ENG_OK));
    tabulate(&m);
    const size_t left = (size_t)(in.end - in.at);
    const size_t piece = left < PIECE_MAX ? left : PIECE_MAX;
    if (status == ENG_OK && piece > 0) {
        check_piece(bpe, &m, in.at, piece);
        check_piece(bpe, &m, in.at, (piece + 1) / 2);
        check_piece(bpe, &m, in.at, piece); /* perhaps kept from the first time */
    }
    eng_bpe_destroy(bpe);
    return 0;
}
