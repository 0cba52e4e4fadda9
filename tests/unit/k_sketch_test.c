/* Sketches against TRACE.md and hashes against small changes. */
#include <criterion/criterion.h>
#include <string.h>

#include "k_close.h"
#include "kernel.h"
#include "sketch.h"

static void run(enum k_id id, const void *args, int rows)
{
    k_kernel_at(id)->rows(args, 0, rows);
}

/* h(i) of TRACE.md. */
static uint32_t sign_hash(uint32_t i)
{
    uint32_t h = i * 0x9E3779B1u;
    h = (h ^ (h >> 15)) * 0x85EBCA77u;
    h = (h ^ (h >> 13)) * 0xC2B2AE3Du;
    return h >> 24;
}

static struct k_sketch sketch_one(const float *x, int64_t index, int count)
{
    const struct k_chunk chunk = {0, index, count, 0, 0, 0};
    struct k_sketch part;
    const struct k_sketch_part_args a = {x, &chunk, &part, 0};
    run(K_ID_sketch_part, &a, 1);
    return part;
}

Test(k_sketch, signs_have_the_check_values_of_the_trace)
{
    static const struct {
        int64_t index;
        uint32_t h;
    } checks[] = {{0, 0},   {1, 10},  {2, 130}, {3, 211},   {4, 160},
                  {5, 100}, {6, 244}, {7, 192}, {4096, 54}, {1000003, 151}};
    const float one = 1.0f;
    for (size_t c = 0; c < sizeof checks / sizeof checks[0]; c++) {
        cr_assert(sign_hash((uint32_t)checks[c].index) == checks[c].h);
        const struct k_sketch s = sketch_one(&one, checks[c].index, 1);
        for (int j = 0; j < K_PROJECTIONS; j++) {
            cr_assert(s.projection[j] == ((checks[c].h >> j & 1) != 0 ? 1.0f : -1.0f));
        }
    }
}

Test(k_sketch, chunks_folded_give_the_sketch_of_the_tensor)
{
    enum { COUNT = 2 * K_CHUNK + 333, CHUNKS = 3 };
    static float x[COUNT];
    k_fill(x, COUNT, 1, 1.0f);
    struct k_chunk chunks[CHUNKS];
    for (int c = 0; c < CHUNKS; c++) {
        const int64_t offset = (int64_t)c * K_CHUNK;
        chunks[c] = (struct k_chunk){offset, offset, c < 2 ? K_CHUNK : 333, 0, 0, 0};
    }
    struct k_sketch part[CHUNKS], out;
    const struct k_sketch_part_args a = {x, chunks, part, 0};
    run(K_ID_sketch_part, &a, CHUNKS);
    const int32_t first[2] = {0, CHUNKS};
    const struct k_sketch_fold_args f = {part, first, &out};
    run(K_ID_sketch_fold, &f, 1);
    double sumsq = 0.0, magnitude = 0.0, projection[K_PROJECTIONS] = {0.0};
    for (uint32_t i = 0; i < COUNT; i++) {
        sumsq += (double)x[i] * (double)x[i];
        magnitude += fabs((double)x[i]);
        for (int j = 0; j < K_PROJECTIONS; j++) {
            projection[j] += (sign_hash(i) >> j & 1) != 0 ? (double)x[i] : -(double)x[i];
        }
    }
    k_assert_close(out.sumsq, sumsq, sumsq, COUNT, "sumsq", 0);
    for (int j = 0; j < K_PROJECTIONS; j++) {
        k_assert_close(out.projection[j], projection[j], magnitude, COUNT, "projection", j);
    }
    cr_assert(out.nonfinite == 0);
}

Test(k_sketch, counts_what_is_not_finite)
{
    enum { COUNT = 300 };
    float x[COUNT] = {0.0f};
    x[0] = NAN, x[31] = INFINITY, x[32] = -INFINITY, x[299] = -NAN;
    cr_assert(sketch_one(x, 0, COUNT).nonfinite == 4);
}

Test(k_sketch, hash_alone_is_the_hash_of_the_whole_sketch)
{
    enum { COUNT = 777 };
    static float x[COUNT];
    k_fill(x, COUNT, 3, 1.0f);
    x[500] = NAN;
    const struct k_chunk chunk = {0, 5, COUNT, 0, 0, 0};
    struct k_sketch part;
    const struct k_sketch_part_args a = {x, &chunk, &part, 1};
    run(K_ID_sketch_part, &a, 1);
    const struct k_sketch whole = sketch_one(x, 5, COUNT);
    cr_assert(part.hash_low == whole.hash_low && part.hash_high == whole.hash_high);
    cr_assert(part.sumsq == 0.0f && part.nonfinite == 0 && whole.nonfinite == 1);
    for (int j = 0; j < K_PROJECTIONS; j++) {
        cr_assert(part.projection[j] == 0.0f);
    }
}

static uint64_t part_hash(const float *x, int count)
{
    const struct k_sketch s = sketch_one(x, 0, count);
    return (uint64_t)s.hash_high << 32 | s.hash_low;
}

static uint64_t words_hash(const float *x, int count)
{
    uint32_t out[2];
    const struct k_hash_words_args a = {(const uint32_t *)x, out, count};
    run(K_ID_hash_words, &a, 1);
    return (uint64_t)out[1] << 32 | out[0];
}

/* Both halves of the hash change with each small change. */
static void assert_sensitive(uint64_t (*hash)(const float *, int), int lanes)
{
    enum { COUNT = 1500 };
    static float x[COUNT + 1];
    k_fill(x, COUNT + 1, 1, 1.0f);
    const uint64_t before = hash(x, COUNT);
    cr_assert(hash(x, COUNT) == before);
    for (int i = 0; i + lanes < COUNT; i += 7) {
        const float kept = x[i], other = x[i + lanes];
        x[i] = -kept, x[i + lanes] = -other; /* top bits of one lane */
        const uint64_t flipped = hash(x, COUNT);
        x[i] = other, x[i + lanes] = kept;
        const uint64_t swapped = hash(x, COUNT);
        x[i] = nextafterf(kept, 2.0f), x[i + lanes] = other;
        const uint64_t nudged = hash(x, COUNT);
        x[i] = kept;
        cr_assert((uint32_t)flipped != (uint32_t)before && flipped >> 32 != before >> 32, "%d", i);
        cr_assert((uint32_t)swapped != (uint32_t)before && swapped >> 32 != before >> 32, "%d", i);
        cr_assert((uint32_t)nudged != (uint32_t)before && nudged >> 32 != before >> 32, "%d", i);
    }
    const float a = x[10], b = x[11]; /* neighbours lie in different lanes */
    x[10] = b, x[11] = a;
    cr_assert(hash(x, COUNT) != before);
    x[10] = a, x[11] = b;
    cr_assert(hash(x, COUNT + 1) != before);
    cr_assert(hash(x, COUNT) == before);
}

Test(k_sketch, hash_of_a_chunk_sees_flips_swaps_and_nudges)
{
    assert_sensitive(part_hash, 32);
}

Test(k_sketch, hash_of_words_sees_flips_swaps_and_nudges)
{
    assert_sensitive(words_hash, 256);
}

Test(k_sketch, hash_of_words_sees_length_of_zeros)
{
    float zeros[600] = {0.0f};
    cr_assert(words_hash(zeros, 600) != words_hash(zeros, 599));
    cr_assert(words_hash(zeros, 1) != words_hash(zeros, 0));
}

Test(k_sketch, fold_sees_the_order_of_chunks)
{
    struct k_sketch part[2], out[2];
    const float x[2] = {1.0f, 2.0f};
    part[0] = sketch_one(x, 0, 1), part[1] = sketch_one(x + 1, 0, 1);
    const int32_t first[2] = {0, 2};
    struct k_sketch_fold_args f = {part, first, &out[0]};
    run(K_ID_sketch_fold, &f, 1);
    const struct k_sketch swapped = part[0];
    part[0] = part[1], part[1] = swapped;
    f.out = &out[1];
    run(K_ID_sketch_fold, &f, 1);
    cr_assert(out[0].hash_low != out[1].hash_low && out[0].hash_high != out[1].hash_high);
}

Test(k_sketch, row_rms_is_the_root_of_the_mean_square)
{
    enum { ROWS = 3, WIDTH = 100 };
    float x[ROWS * WIDTH], out[ROWS];
    k_fill(x, ROWS * WIDTH, 1, 2.0f);
    const struct k_row_rms_args a = {x, out, WIDTH};
    run(K_ID_row_rms, &a, ROWS);
    for (int r = 0; r < ROWS; r++) {
        double sumsq = 0.0;
        for (int i = 0; i < WIDTH; i++) {
            sumsq += (double)x[r * WIDTH + i] * (double)x[r * WIDTH + i];
        }
        k_assert_close(out[r], sqrt(sumsq / WIDTH), sqrt(sumsq / WIDTH), WIDTH, "rms", r);
    }
}
