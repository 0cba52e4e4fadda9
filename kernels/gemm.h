/* The host matrix product. C = A B, or C += A B, row-major, fp32.
 * Every element of C is one chain acc = fmaf(a[k], b[k], acc) over increasing k, starting from 0
 * or, with accumulate, from the old C: blocking, vector width, threads and compiler never change
 * bits. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the caller knows to be zero or does not want, told by one mark a row. A product may leave it
 * out and need not: no bit of what is wanted depends on it, as long as the other operand is finite.
 * Attention: query q sees the keys marks[q] <= key <= q. Labels: a negative one is ignored. */
enum k_gemm_mask {
    K_GEMM_DENSE,
    K_GEMM_SEEN_C,            /* C (queries, keys): what is not seen is undefined afterwards */
    K_GEMM_SEEN_A,            /* op(A) (queries, keys) is +0 where not seen */
    K_GEMM_SEEN_A_TRANSPOSED, /* op(A) (keys, queries) is +0 where not seen */
    K_GEMM_ROWS_WANTED,       /* rows of C whose label is ignored are undefined afterwards */
    K_GEMM_ROWS_ZERO,         /* rows of op(A) whose label is ignored are +0 */
    K_GEMM_DEPTH_ZERO         /* columns of op(A) whose label is ignored are +0 */
};

/* One problem, or a batch of equal problems on strided operands.
 *   op(A) is (m, k): A is stored (m, k) with row stride lda, or (k, m) when trans_a.
 *   op(B) is (k, n): B is stored (k, n) with row stride ldb, or (n, k) when trans_b.
 *   C is (m, n) with row stride ldc; it must not alias A or B.
 * Problem (i, j), 0 <= i < batch_outer, 0 <= j < batch_inner, uses A + i * a_outer + j * a_inner
 * and so on (element strides; 0 repeats the operand). Two problems must not share elements of C. */
struct k_gemm_args {
    const float *a;
    const float *b;
    float *c;
    int m, n, k;
    int lda, ldb, ldc;
    bool trans_a, trans_b;
    bool accumulate;
    int batch_outer, batch_inner; /* 1, 1 for a single product */
    size_t a_outer, a_inner, b_outer, b_inner, c_outer, c_inner;
    enum k_gemm_mask mask;
    const int32_t *marks; /* one a query, row or step of depth; none when dense */
    size_t marks_outer;   /* to those of the next outer problem; inner ones share them */
};

/* Marks of one problem: the length of `marks`. */
static inline int k_gemm_marks(const struct k_gemm_args *args)
{
    const bool deep = args->mask == K_GEMM_SEEN_A_TRANSPOSED || args->mask == K_GEMM_DEPTH_ZERO;
    return args->mask == K_GEMM_DENSE ? 0 : deep ? args->k : args->m;
}

/* Bytes of scratch memory each caller of k_gemm_part needs; 64-byte aligned. */
size_t k_gemm_workspace_bytes(void);

/* Computes share `part` of `parts` of the product on the calling thread. All parts may run at once;
 * none waits for another. Together they write each element of every C exactly once. */
void k_gemm_part(const struct k_gemm_args *args, int part, int parts, void *workspace);

/* Name of the micro-kernel chosen for this CPU: "avx512", "avx2" or "portable". */
const char *k_gemm_kernel_name(void);
