/* The host matrix product. C = A B, or C += A B, row-major, fp32.
 * Every element of C is one chain acc = fmaf(a[k], b[k], acc) over increasing k, starting from 0
 * or, with accumulate, from the old C: blocking, vector width, threads and compiler never change
 * bits. */
#pragma once
#include <stddef.h>
#include <stdbool.h>

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
};

/* Bytes of scratch memory each caller of k_gemm_part needs; 64-byte aligned. */
size_t k_gemm_workspace_bytes(void);

/* Computes share `part` of `parts` of the product on the calling thread. All parts may run at once;
 * none waits for another. Together they write each element of every C exactly once. */
void k_gemm_part(const struct k_gemm_args *args, int part, int parts, void *workspace);

/* Name of the micro-kernel chosen for this CPU: "avx512", "avx2" or "portable". */
const char *k_gemm_kernel_name(void);
