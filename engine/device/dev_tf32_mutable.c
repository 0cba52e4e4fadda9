/* Products in TF32. Called by the fault site of dev_host.c. */
#include "dev_tf32.h"

#include <stdlib.h>
#include <string.h>

#include "eng_assert.h"

static float rounded(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7F800000u) != 0x7F800000u) { /* NaN and infinities stay */
        bits = (bits + 0x1000u) & 0xFFFFE000u;
    }
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* An operand of a batch: `rows` rows of `cols`, `stride` apart, at `base` + i outer + j inner. */
struct operand {
    const float *base;
    int rows, cols, stride;
    size_t outer, inner;
};

/* Rounded copies of all problems' operands, one behind the other. */
static float *copy_of(const struct k_gemm_args *g, const struct operand *x)
{
    const size_t size = (size_t)x->rows * (size_t)x->cols;
    float *copy = malloc((size_t)g->batch_outer * (size_t)g->batch_inner * size * sizeof *copy);
    eng_assert(copy != NULL);
    float *to = copy;
    for (int i = 0; i < g->batch_outer; i++) {
        for (int j = 0; j < g->batch_inner; j++) {
            const float *from = x->base + (size_t)i * x->outer + (size_t)j * x->inner;
            for (int row = 0; row < x->rows; row++, from += x->stride) {
                for (int col = 0; col < x->cols; col++) {
                    *to++ = rounded(from[col]);
                }
            }
        }
    }
    return copy;
}

void dev_tf32_part(const struct k_gemm_args *args, int part, int parts, void *workspace)
{
    struct k_gemm_args g = *args;
    const struct operand a = {
        g.a, g.trans_a ? g.k : g.m, g.trans_a ? g.m : g.k, g.lda, g.a_outer, g.a_inner};
    const struct operand b = {
        g.b, g.trans_b ? g.n : g.k, g.trans_b ? g.k : g.n, g.ldb, g.b_outer, g.b_inner};
    float *const copy_a = copy_of(args, &a);
    float *const copy_b = copy_of(args, &b);
    g.a = copy_a;
    g.lda = a.cols;
    g.a_inner = (size_t)a.rows * (size_t)a.cols;
    g.a_outer = g.a_inner * (size_t)g.batch_inner;
    g.b = copy_b;
    g.ldb = b.cols;
    g.b_inner = (size_t)b.rows * (size_t)b.cols;
    g.b_outer = g.b_inner * (size_t)g.batch_inner;
    k_gemm_part(&g, part, parts, workspace);
    free(copy_a);
    free(copy_b);
}
