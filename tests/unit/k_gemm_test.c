/* The matrix product equals, bit for bit, one chain of fmaf over increasing k for every element, in
 * every micro-kernel, shape, layout and division into parts. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_kernel.h"
#include "gemm_mask.h"

enum { GUARD = 3, PARTS_MAX = 3 };

static uint64_t state;

static float next_float(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(state >> 32) / 2147483648.0f;
}

static float *matrix(size_t floats)
{
    float *p = malloc(sizeof *p * (floats + GUARD));
    cr_assert(p != NULL);
    for (size_t i = 0; i < floats + GUARD; i++) {
        p[i] = next_float();
    }
    return p;
}

/* The definition in gemm.h, element by element. */
static void naive(const struct k_gemm_args *g, float *c)
{
    for (int o = 0; o < g->batch_outer; o++) {
        for (int i = 0; i < g->batch_inner; i++) {
            const float *a = g->a + (size_t)o * g->a_outer + (size_t)i * g->a_inner;
            const float *b = g->b + (size_t)o * g->b_outer + (size_t)i * g->b_inner;
            float *to = c + (size_t)o * g->c_outer + (size_t)i * g->c_inner;
            for (int row = 0; row < g->m; row++) {
                for (int col = 0; col < g->n; col++) {
                    float *at = to + (size_t)row * (size_t)g->ldc + col;
                    float acc = g->accumulate ? *at : 0.0f;
                    for (int k = 0; k < g->k; k++) {
                        acc = fmaf(g->trans_a ? a[(size_t)k * (size_t)g->lda + row]
                                              : a[(size_t)row * (size_t)g->lda + k],
                                   g->trans_b ? b[(size_t)col * (size_t)g->ldb + k]
                                              : b[(size_t)k * (size_t)g->ldb + col],
                                   acc);
                    }
                    *at = acc;
                }
            }
        }
    }
}

/* Whether mark number `at` says that the element of depth, column or row `other` counts. */
static bool is_seen(const int32_t *marks, int at, int other)
{
    return marks[at] <= other && other <= at;
}

/* What the mask says of element (row, k) of op(A). */
static bool is_zero(const struct k_gemm_args *g, const int32_t *marks, int row, int k)
{
    switch (g->mask) {
    case K_GEMM_SEEN_A:
        return !is_seen(marks, row, k);
    case K_GEMM_SEEN_A_TRANSPOSED:
        return !is_seen(marks, k, row);
    case K_GEMM_ROWS_ZERO:
        return marks[row] < 0;
    case K_GEMM_DEPTH_ZERO:
        return marks[k] < 0;
    default:
        return false;
    }
}

static bool is_wanted(const struct k_gemm_args *g, const int32_t *marks, int row, int col)
{
    return g->mask == K_GEMM_SEEN_C        ? is_seen(marks, row, col)
           : g->mask == K_GEMM_ROWS_WANTED ? marks[row] >= 0
                                           : true;
}

static void put_zeros(const struct k_gemm_args *g, float *a)
{
    for (int o = 0; o < g->batch_outer && g->mask != K_GEMM_DENSE; o++) {
        for (int i = 0; i < g->batch_inner; i++) {
            float *from = a + (size_t)o * g->a_outer + (size_t)i * g->a_inner;
            for (int row = 0; row < g->m; row++) {
                for (int k = 0; k < g->k; k++) {
                    float *at = g->trans_a ? &from[(size_t)k * (size_t)g->lda + row]
                                           : &from[(size_t)row * (size_t)g->lda + k];
                    *at = is_zero(g, g->marks + (size_t)o * g->marks_outer, row, k) ? 0.0f : *at;
                }
            }
        }
    }
}

/* Takes over what is undefined after a product; returns how many elements are defined. */
static size_t forgive(const struct k_gemm_args *g, float *got, const float *expected)
{
    size_t wanted = 0;
    for (int o = 0; o < g->batch_outer && g->mask != K_GEMM_DENSE; o++) {
        for (int i = 0; i < g->batch_inner; i++) {
            const size_t problem = (size_t)o * g->c_outer + (size_t)i * g->c_inner;
            for (int row = 0; row < g->m; row++) {
                for (int col = 0; col < g->n; col++) {
                    const size_t at = problem + (size_t)row * (size_t)g->ldc + (size_t)col;
                    const bool counts =
                        is_wanted(g, g->marks + (size_t)o * g->marks_outer, row, col);
                    got[at] = counts ? got[at] : expected[at];
                    wanted += counts;
                }
            }
        }
    }
    return wanted;
}

/* Compares every kernel and number of parts with naive(), bytes outside C included. */
static size_t check(struct k_gemm_args *g, size_t a_floats, size_t b_floats, size_t c_floats)
{
    float *a = matrix(a_floats);
    float *b = matrix(b_floats);
    float *before = matrix(c_floats);
    float *expected = malloc(sizeof(float) * (c_floats + GUARD));
    float *got = malloc(sizeof(float) * (c_floats + GUARD));
    void *workspace = aligned_alloc(64, (k_gemm_workspace_bytes() + 63) / 64 * 64);
    cr_assert(expected != NULL && got != NULL && workspace != NULL);
    memset(workspace, 0xFF, k_gemm_workspace_bytes()); /* NaN */
    const size_t bytes = sizeof(float) * (c_floats + GUARD);
    g->a = a;
    g->b = b;
    put_zeros(g, a);
    memcpy(expected, before, bytes);
    naive(g, expected);
    g->c = got;
    size_t kernels;
    const struct k_gemm_kernel *const *kernel = k_gemm_kernels(&kernels);
    for (size_t i = 0; i < kernels; i++) {
        for (int parts = 1; parts <= PARTS_MAX; parts++) {
            memcpy(got, before, bytes);
            for (int part = parts - 1; part >= 0; part--) {
                k_gemm_part_with(kernel[i], g, part, parts, workspace);
            }
            cr_assert(g->mask == K_GEMM_DENSE || forgive(g, got, expected) > 0);
            cr_assert(
                memcmp(got, expected, bytes) == 0,
                "%s, %d parts: m %d n %d k %d trans %d %d accumulate %d batch %d x %d mask %d",
                kernel[i]->name, parts, g->m, g->n, g->k, g->trans_a, g->trans_b, g->accumulate,
                g->batch_outer, g->batch_inner, (int)g->mask);
        }
    }
    free(a);
    free(b);
    free(before);
    free(expected);
    free(got);
    free(workspace);
    return (size_t)g->m * (size_t)g->n * kernels * PARTS_MAX;
}

/* One product in all layouts, rows `slack` floats longer than needed. */
static size_t check_layouts(int m, int n, int k, int slack)
{
    size_t compared = 0;
    for (int layout = 0; layout < 8; layout++) {
        struct k_gemm_args g = {.m = m, .n = n, .k = k, .batch_outer = 1, .batch_inner = 1};
        g.trans_a = (layout & 1) != 0;
        g.trans_b = (layout & 2) != 0;
        g.accumulate = (layout & 4) != 0;
        g.lda = (g.trans_a ? m : k) + slack;
        g.ldb = (g.trans_b ? k : n) + slack;
        g.ldc = n + slack;
        compared += check(&g, (size_t)(g.trans_a ? k : m) * (size_t)g.lda,
                          (size_t)(g.trans_b ? n : k) * (size_t)g.ldb, (size_t)m * (size_t)g.ldc);
    }
    return compared;
}

Test(k_gemm, edges_of_tiles_in_all_layouts)
{
    static const int sizes[] = {1, 2, 7, 13, 14, 15, 16, 17, 31, 32, 33, 65};
    size_t compared = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            compared +=
                check_layouts(sizes[i], sizes[j], sizes[(i + 3 * j) % 12], (int)(i + j) % 3);
        }
    }
    cr_assert(compared > 0);
}

Test(k_gemm, blocks_of_rows_and_depth)
{
    size_t compared = 0;
    compared += check_layouts(171, 70, 257, 1);
    compared += check_layouts(29, 66, 513, 0);
    compared += check_layouts(340, 33, 300, 2);
    compared += check_layouts(3, 200, 600, 0);
    compared += check_layouts(180, 290, 400, 1); /* everything packed, several blocks each way */
    cr_assert(compared > 0);
}

Test(k_gemm, blocks_of_columns)
{
    cr_assert(check_layouts(30, 2100, 9, 0) > 0);
}

Test(k_gemm, empty_depth_clears_or_keeps_c)
{
    cr_assert(check_layouts(5, 40, 0, 1) > 0);
}

Test(k_gemm, batches_with_repeated_and_interleaved_operands)
{
    size_t compared = 0;
    for (int trans_b = 0; trans_b < 2; trans_b++) {
        /* heads of a packed row: operand of head h begins h * n floats into each row; B of a group
         * of query heads is repeated */
        struct k_gemm_args g = {.m = 37, .n = 24, .k = 24, .trans_b = trans_b != 0};
        g.batch_outer = 3;
        g.batch_inner = 2;
        g.lda = 2 * 24;
        g.a_outer = (size_t)g.m * 2 * 24;
        g.a_inner = 24;
        g.ldb = 24;
        g.b_outer = 24 * 24;
        g.b_inner = 0;
        g.ldc = 2 * 24;
        g.c_outer = g.a_outer;
        g.c_inner = 24;
        compared += check(&g, 3 * g.a_outer, 3 * g.b_outer, 3 * g.c_outer);
        g.accumulate = true;
        compared += check(&g, 3 * g.a_outer, 3 * g.b_outer, 3 * g.c_outer);
    }
    cr_assert(compared > 0);
}

/* Documents of a row: where the one of each token begins. */
static void set_documents(int32_t *marks, int count, int length)
{
    for (int i = 0; i < count; i++) {
        marks[i] = i / length * length;
    }
}

Test(k_gemm, what_attention_does_not_see_may_be_left_out)
{
    enum { TIME = 300, HEAD = 24, ROWS = 2 };
    static const int times[] = {1, 13, 70, TIME};
    static const int lengths[] = {1, 9, 45, TIME};
    int32_t marks[ROWS * TIME];
    size_t compared = 0;
    for (size_t i = 0; i < 16 * 6; i++) {
        const int time = times[i % 4];
        const enum k_gemm_mask mask = K_GEMM_SEEN_C + (enum k_gemm_mask)(i / 32);
        const bool scores = mask == K_GEMM_SEEN_C;
        struct k_gemm_args g = {.m = time,
                                .n = scores ? time : HEAD,
                                .k = scores ? HEAD : time,
                                .trans_a = mask == K_GEMM_SEEN_A_TRANSPOSED,
                                .trans_b = scores,
                                .accumulate = i / 16 % 2 != 0,
                                .batch_outer = ROWS,
                                .batch_inner = 1,
                                .mask = mask,
                                .marks = marks,
                                .marks_outer = (size_t)time};
        g.lda = g.trans_a ? g.m : g.k;
        g.ldb = g.trans_b ? g.k : g.n;
        g.ldc = g.n;
        g.a_outer = (size_t)g.m * (size_t)g.k;
        g.b_outer = (size_t)g.n * (size_t)g.k;
        g.c_outer = (size_t)g.m * (size_t)g.n;
        set_documents(marks, time, lengths[i / 4 % 4]);
        set_documents(marks + time, time, lengths[(i / 4 + 1) % 4]);
        compared += check(&g, ROWS * g.a_outer, ROWS * g.b_outer, ROWS * g.c_outer);
    }
    cr_assert(compared > 0);
}

Test(k_gemm, ignored_rows_and_depth_may_be_left_out)
{
    enum { TOKENS = 600 };
    int32_t labels[TOKENS];
    size_t compared = 0;
    for (int i = 0; i < 24; i++) {
        const enum k_gemm_mask mask = K_GEMM_ROWS_WANTED + (enum k_gemm_mask)(i % 3);
        const bool deep = mask == K_GEMM_DEPTH_ZERO;
        const int period = i < 12 ? 40 : 7; /* stretches of a few rows each, and long ones */
        for (int t = 0; t < TOKENS; t++) {
            labels[t] = t % period < period / 2 ? -100 : t;
        }
        struct k_gemm_args g = {.m = deep ? 70 : TOKENS,
                                .n = i % 2 != 0 ? 300 : 33,
                                .k = deep ? TOKENS : 50,
                                .trans_a = deep,
                                .trans_b = !deep,
                                .accumulate = i / 3 % 2 != 0,
                                .batch_outer = 1,
                                .batch_inner = 1,
                                .mask = mask,
                                .marks = labels};
        g.lda = g.trans_a ? g.m : g.k;
        g.ldb = g.trans_b ? g.k : g.n;
        g.ldc = g.n;
        compared += check(&g, (size_t)g.m * (size_t)g.k, (size_t)g.n * (size_t)g.k,
                          (size_t)g.m * (size_t)g.n);
    }
    cr_assert(compared > 0);
}

Test(k_gemm, all_ignored_gives_zeros)
{
    enum { M = 9, N = 70, K = 5 };
    static float a[M * K], b[K * N], c[M * N];
    int32_t labels[M];
    memset(labels, 0xFF, sizeof labels); /* -1 */
    memset(b, 0x3F, sizeof b);
    memset(c, 0xFF, sizeof c); /* NaN */
    const struct k_gemm_args g = {.a = a,
                                  .b = b,
                                  .c = c,
                                  .m = M,
                                  .n = N,
                                  .k = K,
                                  .lda = K,
                                  .ldb = N,
                                  .ldc = N,
                                  .batch_outer = 1,
                                  .batch_inner = 1,
                                  .mask = K_GEMM_ROWS_ZERO,
                                  .marks = labels};
    void *workspace = aligned_alloc(64, (k_gemm_workspace_bytes() + 63) / 64 * 64);
    cr_assert(workspace != NULL);
    k_gemm_part(&g, 0, 1, workspace);
    for (int i = 0; i < M * N; i++) {
        cr_assert(c[i] == 0.0f);
    }
    free(workspace);
}

Test(k_gemm, marks_that_make_no_sense_lead_nowhere)
{
    enum { COUNT = 40 };
    int32_t marks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        marks[i] = i % 3 == 0 ? INT32_MIN : i % 3 == 1 ? INT32_MAX : -1;
    }
    for (int mask = K_GEMM_SEEN_C; mask <= K_GEMM_SEEN_A_TRANSPOSED; mask++) {
        for (int begin = 0; begin < COUNT; begin++) {
            const struct k_gemm_run range =
                k_gemm_mask_range((enum k_gemm_mask)mask, marks, begin, begin + 1, COUNT);
            cr_assert(range.begin >= 0 && range.begin <= begin);
            cr_assert(range.end > begin && range.end <= COUNT);
        }
    }
}

Test(k_gemm, too_many_stretches_end_in_a_long_one)
{
    enum { COUNT = 100, MOST = 4 };
    int32_t marks[COUNT];
    struct k_gemm_run runs[MOST];
    for (int i = 0; i < COUNT; i++) {
        marks[i] = i % 10 == 0 ? i : -1;
    }
    cr_assert_eq(k_gemm_mask_runs(marks, 0, COUNT, 0, runs, MOST), MOST);
    cr_assert_eq(runs[0].begin, 0);
    cr_assert_eq(runs[0].end, 1);
    cr_assert_eq(runs[MOST - 1].end, COUNT);
    cr_assert_eq(k_gemm_mask_runs(marks, 1, COUNT, 9, runs, MOST), 1);
    cr_assert_eq(k_gemm_mask_share(marks, COUNT, 0, 2), 0);
    cr_assert_eq(k_gemm_mask_share(marks, COUNT, 1, 2), 41);
    cr_assert_eq(k_gemm_mask_share(marks, COUNT, 2, 2), COUNT);
}

Test(k_gemm, not_a_number_reaches_c)
{
    const float a[2] = {NAN, 1.0f};
    const float b[2] = {0.0f, 0.0f};
    float c[1] = {0.0f};
    struct k_gemm_args g = {.a = a,
                            .b = b,
                            .c = c,
                            .m = 1,
                            .n = 1,
                            .k = 2,
                            .lda = 2,
                            .ldb = 1,
                            .ldc = 1,
                            .batch_outer = 1,
                            .batch_inner = 1};
    void *workspace = aligned_alloc(64, (k_gemm_workspace_bytes() + 63) / 64 * 64);
    cr_assert(workspace != NULL);
    k_gemm_part(&g, 0, 1, workspace);
    cr_assert(isnan(c[0]));
    free(workspace);
}

Test(k_gemm, the_best_kernel_is_named_and_the_last_one_is_portable)
{
    size_t kernels;
    const struct k_gemm_kernel *const *kernel = k_gemm_kernels(&kernels);
    cr_assert(kernels > 0);
    cr_assert_str_eq(kernel[0]->name, k_gemm_kernel_name());
    cr_assert_str_eq(kernel[kernels - 1]->name, "portable");
}
