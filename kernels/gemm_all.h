/* The micro-kernels there are; which of them a CPU runs is decided by k_gemm_kernels(). */
#pragma once

#include "gemm_kernel.h"

extern const struct k_gemm_kernel k_gemm_portable;
extern const struct k_gemm_kernel k_gemm_avx2;   /* x86 builds only */
extern const struct k_gemm_kernel k_gemm_avx512; /* x86 builds only */

/* Packing in plain C, for micro-kernels without their own. */
void k_gemm_portable_pack_a(float *to, const float *a, ptrdiff_t a_row, ptrdiff_t a_step, int rows,
                            int depth);
void k_gemm_portable_pack_b(float *to, int to_cols, const float *b, ptrdiff_t b_step,
                            ptrdiff_t b_col, int cols, int depth);
