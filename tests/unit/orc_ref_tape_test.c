/* Tape of the second stack: each primitive against finite differences, products against the
 * definition, and results that do not depend on threads. */
#include "ref_tape.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum { INPUTS_MAX = 2, ELEMENTS_MAX = 4096 };

static double noise(size_t i)
{
    return sin(12.9898 * (double)(i + 1)) * 0.5 + cos(78.233 * (double)(i + 3)) * 0.5;
}

/* An operation under test: inputs are leaves, out is what it computes. */
struct probe {
    size_t inputs, rows[INPUTS_MAX], cols[INPUTS_MAX], out_rows, out_cols;
    double lift; /* added to the inputs: keeps them positive where that matters */
    void (*apply)(struct orc_ref_tape *tape, struct orc_ref_tensor *in, struct orc_ref_tensor out);
};

struct bench {
    struct orc_ref_pool *pool;
    struct orc_ref_tape *tape;
    double value[INPUTS_MAX][ELEMENTS_MAX], grad[INPUTS_MAX][ELEMENTS_MAX];
};

/* sum of out * weights, and the sum of absolute terms, a measure of its rounding. */
static double objective(struct bench *b, const struct probe *p, bool backward, double *magnitude)
{
    struct orc_ref_tensor in[INPUTS_MAX];
    orc_ref_tape_reset(b->tape, backward);
    for (size_t i = 0; i < p->inputs; i++)
        in[i] = (struct orc_ref_tensor){b->value[i], backward ? b->grad[i] : NULL, p->rows[i],
                                        p->cols[i], p->cols[i]};
    struct orc_ref_tensor out = orc_ref_tape_tensor(b->tape, p->out_rows, p->out_cols);
    p->apply(b->tape, in, out);
    cr_assert(!orc_ref_tape_failed(b->tape));
    double sum = 0.0;
    *magnitude = 0.0;
    for (size_t i = 0; i < p->out_rows * p->out_cols; i++) {
        sum += out.value[i] * noise(i + 1000);
        *magnitude += fabs(out.value[i] * noise(i + 1000));
        if (backward)
            out.grad[i] = noise(i + 1000);
    }
    if (backward)
        orc_ref_tape_backward(b->tape);
    return sum;
}

static double slope(struct bench *b, const struct probe *p, double *x, double h, double *magnitude)
{
    const double kept = *x;
    double m1, m2;
    *x = kept + h;
    const double up = objective(b, p, false, &m1);
    *x = kept - h;
    const double down = objective(b, p, false, &m2);
    *x = kept;
    *magnitude = m1 + m2;
    return (up - down) / (2.0 * h);
}

/* Central differences with h and 2h differ by about three times the error of the first, which is
 * h^2 f'''/6; rounding adds a few eps per term of the objective, over 2h. */
static void check(const struct probe *p)
{
    static struct bench b;
    size_t compared = 0;
    b.pool = orc_ref_pool_create(2);
    b.tape = orc_ref_tape_create(b.pool);
    for (size_t i = 0; i < p->inputs; i++)
        for (size_t j = 0; j < p->rows[i] * p->cols[i]; j++)
            b.value[i][j] = noise(i * 317 + j) + p->lift;
    memset(b.grad, 0, sizeof b.grad);
    double magnitude;
    (void)objective(&b, p, true, &magnitude);
    const double h = cbrt(DBL_EPSILON), terms = (double)(p->out_rows * p->out_cols);
    for (size_t i = 0; i < p->inputs; i++)
        for (size_t j = 0; j < p->rows[i] * p->cols[i]; j++) {
            const double near = slope(&b, p, &b.value[i][j], h, &magnitude);
            const double far = slope(&b, p, &b.value[i][j], 2.0 * h, &magnitude);
            const double tolerance =
                fabs(far - near) + terms * DBL_EPSILON * (magnitude + 1.0) / (2.0 * h);
            cr_assert(fabs(near - b.grad[i][j]) <= tolerance,
                      "input %zu element %zu: tape %.17g, differences %.17g, tolerance %g", i, j,
                      b.grad[i][j], near, tolerance);
            compared++;
        }
    cr_assert_gt(compared, 0);
    orc_ref_tape_destroy(b.tape);
    orc_ref_pool_destroy(b.pool);
}

typedef struct orc_ref_tape tape_of;
typedef struct orc_ref_tensor tensor;

static void apply_add(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_add(t, in[0], in[1], out);
}

static void apply_add_same(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_add(t, in[0], in[0], out);
}

static void apply_mul(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_mul(t, in[0], in[1], out);
}

static void apply_square(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_mul(t, in[0], in[0], out);
}

static void apply_affine(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_affine(t, in[0], -1.75, 0.375, out);
}

static void apply_row_sum(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_row_sum(t, in[0], out);
}

static void apply_rsqrt(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_rsqrt(t, in[0], out);
}

static void apply_reciprocal(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_reciprocal(t, in[0], out);
}

static void apply_log(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_log(t, in[0], out);
}

static void apply_sigmoid(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_sigmoid(t, in[0], out);
}

static const int32_t rows_first[4] = {0, 2, 1, 3}, rows_end[4] = {5, 3, 4, 5};

/* Softmax as the model composes it: the shift cancels, so differences see the same function. */
static void apply_softmax(tape_of *t, tensor *in, tensor out)
{
    tensor scores = orc_ref_tape_tensor(t, in[0].rows, in[0].cols);
    tensor sum = orc_ref_tape_tensor(t, in[0].rows, 1), inverse = orc_ref_tape_tensor(t, in[0].rows, 1);
    orc_ref_tape_affine(t, in[0], 1.0, 0.0, scores);
    orc_ref_tape_exp_range(t, scores, rows_first, rows_end,
                           orc_ref_tape_constant(t, in[0].rows, 1));
    orc_ref_tape_row_sum(t, scores, sum);
    orc_ref_tape_reciprocal(t, sum, inverse);
    orc_ref_tape_mul(t, scores, inverse, out);
}

static const int32_t some_rows[6] = {3, 0, 3, 1, 1, 2};

static void apply_gather(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_gather(t, in[0], some_rows, out);
}

static void apply_pick(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_pick(t, in[0], some_rows, out);
}

static void apply_rotate(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_rotate_half(t, in[0], 6, out);
}

static void apply_repeat(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_repeat(t, in[0], 3, 4, out);
}

static void apply_linear(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_linear(t, in[0], in[1], out);
}

/* Two rows of two heads, a (2 * 3, 2 * 4) and b the same: scores, as in attention. */
static void apply_blocks_transposed(tape_of *t, tensor *in, tensor out)
{
    const struct orc_ref_blocks blocks = {
        .outer = 2, .inner = 2, .m = 3, .n = 3, .k = 4, .a_outer = 3 * 8, .a_inner = 4,
        .b_outer = 3 * 8, .b_inner = 4, .c_outer = 2 * 9, .c_inner = 9, .b_transposed = true};
    orc_ref_tape_matmul(t, in[0], in[1], &blocks, out);
}

/* The other product of attention: (2 * 2 * 3, 3) times (2 * 3, 2 * 4). */
static void apply_blocks(tape_of *t, tensor *in, tensor out)
{
    const struct orc_ref_blocks blocks = {
        .outer = 2, .inner = 2, .m = 3, .n = 4, .k = 3, .a_outer = 2 * 9, .a_inner = 9,
        .b_outer = 3 * 8, .b_inner = 4, .c_outer = 3 * 8, .c_inner = 4};
    orc_ref_tape_matmul(t, in[0], in[1], &blocks, out);
}

/* Writing into column ranges of a shared matrix. */
static void apply_columns(tape_of *t, tensor *in, tensor out)
{
    orc_ref_tape_affine(t, in[0], 2.0, 0.0, orc_ref_tape_columns(out, 3, in[0].cols));
    orc_ref_tape_sigmoid(t, in[1], orc_ref_tape_columns(out, 0, 3));
}

static const struct {
    const char *name;
    struct probe probe;
} probes[] = {
    {"add", {2, {4, 4}, {5, 5}, 4, 5, 0, apply_add}},
    {"add to itself", {1, {4}, {5}, 4, 5, 0, apply_add_same}},
    {"mul", {2, {4, 4}, {5, 5}, 4, 5, 0, apply_mul}},
    {"mul by a row", {2, {4, 1}, {5, 5}, 4, 5, 0, apply_mul}},
    {"mul by a column", {2, {4, 4}, {21, 1}, 4, 21, 0, apply_mul}},
    {"mul of one row", {2, {1, 1}, {5, 5}, 1, 5, 0, apply_mul}},
    {"square", {1, {4}, {5}, 4, 5, 0, apply_square}},
    {"affine", {1, {4}, {5}, 4, 5, 0, apply_affine}},
    {"row_sum", {1, {4}, {21}, 4, 1, 0, apply_row_sum}},
    {"rsqrt", {1, {4}, {5}, 4, 5, 2, apply_rsqrt}},
    {"reciprocal", {1, {4}, {5}, 4, 5, 2, apply_reciprocal}},
    {"log", {1, {4}, {5}, 4, 5, 2, apply_log}},
    {"sigmoid", {1, {4}, {5}, 4, 5, 0, apply_sigmoid}},
    {"exp_range in a softmax", {1, {4}, {5}, 4, 5, 0, apply_softmax}},
    {"gather", {1, {4}, {5}, 6, 5, 0, apply_gather}},
    {"pick", {1, {6}, {5}, 6, 1, 0, apply_pick}},
    {"rotate_half", {1, {3}, {12}, 3, 12, 0, apply_rotate}},
    {"repeat", {1, {3}, {6}, 3, 24, 0, apply_repeat}},
    {"linear", {2, {7, 9}, {5, 5}, 7, 9, 0, apply_linear}},
    {"product of blocks, transposed", {2, {6, 6}, {8, 8}, 12, 3, 0, apply_blocks_transposed}},
    {"product of blocks", {2, {12, 6}, {3, 8}, 6, 8, 0, apply_blocks}},
    {"columns", {2, {4, 4}, {4, 3}, 4, 7, 0, apply_columns}},
};

Test(ref_tape, gradients_match_finite_differences)
{
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        cr_log_info("%s", probes[i].name);
        check(&probes[i].probe);
    }
}

/* Sizes around the tiles and blocks, all four layouts. Exact values are small integers, so that
 * every order of summation gives the same double. */
static size_t check_product(struct orc_ref_pool *pool, struct orc_ref_matmul_space *space, size_t m,
                            size_t n, size_t k, bool a_flip, bool b_flip)
{
    double *const a = malloc(m * k * sizeof *a), *const b = malloc(k * n * sizeof *b);
    double *const c = malloc(m * n * sizeof *c);
    for (size_t i = 0; i < m * k; i++)
        a[i] = (double)(int)(i * 7 % 11) - 5.0;
    for (size_t i = 0; i < k * n; i++)
        b[i] = (double)(int)(i * 5 % 13) - 6.0;
    for (size_t i = 0; i < m * n; i++)
        c[i] = 1.0;
    const struct orc_ref_matmul job = {
        .a = {a, a_flip ? 1 : k, a_flip ? m : 1, 0, 0}, .b = {b, b_flip ? 1 : n, b_flip ? k : 1, 0, 0},
        .c = {c, n, 1, 0, 0}, .m = m, .n = n, .k = k, .outer = 1, .inner = 1, .accumulate = true};
    orc_ref_matmul_run(&job, space, pool);
    size_t compared = 0;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 1.0;
            for (size_t p = 0; p < k; p++)
                sum += (a_flip ? a[p * m + i] : a[i * k + p]) * (b_flip ? b[j * k + p] : b[p * n + j]);
            cr_assert(sum == c[i * n + j], "%zu x %zu x %zu at %zu, %zu", m, n, k, i, j);
            compared++;
        }
    free(a);
    free(b);
    free(c);
    return compared;
}

Test(ref_tape, products_match_the_definition)
{
    static const size_t sizes[][3] = {{1, 1, 1},   {6, 8, 4},     {7, 9, 3},      {5, 17, 300},
                                      {97, 200, 2}, {100, 193, 17}, {12, 400, 257}};
    struct orc_ref_pool *const pool = orc_ref_pool_create(3);
    struct orc_ref_matmul_space *const space = orc_ref_matmul_space_create(3);
    size_t compared = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t flips = 0; flips < 4; flips++)
            compared += check_product(pool, space, sizes[i][0], sizes[i][1], sizes[i][2],
                                      (flips & 1) != 0, (flips & 2) != 0);
    cr_assert_gt(compared, 0);
    orc_ref_matmul_space_destroy(space);
    orc_ref_pool_destroy(pool);
}

static void count_task(void *context, size_t task, size_t worker)
{
    cr_assert_lt(worker, 4);
    ((unsigned char *)context)[task]++;
}

Test(ref_tape, the_pool_runs_each_task_once)
{
    unsigned char done[1000] = {0};
    struct orc_ref_pool *const pool = orc_ref_pool_create(4);
    for (size_t round = 1; round <= 50; round++) {
        orc_ref_pool_run(pool, sizeof done, count_task, done);
        for (size_t i = 0; i < sizeof done; i++)
            cr_assert_eq(done[i], round);
    }
    orc_ref_pool_destroy(pool);
}
