/* What a product may leave out: stretches of rows and depth, ranges of a panel. Used by gemm.c and
 * tests; knows no operands. */
#pragma once

#include "gemm.h"

/* Rows or steps of depth [begin, end). */
struct k_gemm_run {
    int begin, end;
};

/* Stretches of [begin, end) with marks that are not ignored, gaps of up to `bridge` included. When
 * there are more than `most`, the last one reaches to the end. Returns how many. */
int k_gemm_mask_runs(const int32_t *marks, int begin, int end, int bridge, struct k_gemm_run *runs,
                     int most);

/* Where part `part` of `parts` with equal numbers of marks that are not ignored begins in
 * [0, count). */
int k_gemm_mask_share(const int32_t *marks, int count, int part, int parts);

/* The columns of C or steps of depth, of `size`, that rows [begin, end) of an attention product
 * need. Marks that make no sense never lead outside [0, size). */
struct k_gemm_run k_gemm_mask_range(enum k_gemm_mask mask, const int32_t *marks, int begin, int end,
                                    int size);
