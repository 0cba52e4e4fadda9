/* What the driver of the matrix product asks of a micro-kernel. Used by gemm*.c and tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gemm.h"

/* One tile of C: for each element acc = fmaf(A(i, k), B(k, j), acc) over increasing k, starting
 * from C or from 0. A(i, k) = a[i * a_row + k * a_step], B(k, j) = b[k * b_step + j]; b may be read
 * up to the kernel's full tile width, c is touched inside (rows, cols) only. */
struct k_gemm_tile {
    const float *a;
    const float *b;
    float *c;
    ptrdiff_t a_row, a_step, b_step, c_row;
    int rows, cols, depth;
    bool load_c;
    /* Cache lines that later tiles need; fetching them meanwhile is worth it, but not needed. The
     * count is even. */
    const float *const *lines;
    int line_count;
};

/* Floats of a cache line. */
enum { K_GEMM_LINE = 16 };

struct k_gemm_kernel {
    const char *name;
    int tile_rows, tile_cols; /* largest tile */
    void (*tile)(const struct k_gemm_tile *t);
    /* Packs A(rows, depth), rows <= tile_rows, as to[k * rows + i]; may write 16 floats past the
     * end unless a_row is 1. */
    void (*pack_a)(float *to, const float *a, ptrdiff_t a_row, ptrdiff_t a_step, int rows,
                   int depth);
    /* Packs B(depth, cols), cols <= tile_cols, as to[k * tile_cols + j], zeros behind the last
     * column; B(k, j) = b[k * b_step + j * b_col], one of the two strides is 1. */
    void (*pack_b)(float *to, const float *b, ptrdiff_t b_step, ptrdiff_t b_col, int cols,
                   int depth);
};

/* The micro-kernels that this CPU can run, best first; the last one runs everywhere. */
const struct k_gemm_kernel *const *k_gemm_kernels(size_t *count);

/* k_gemm_part() with a given micro-kernel. */
void k_gemm_part_with(const struct k_gemm_kernel *kernel, const struct k_gemm_args *args, int part,
                      int parts, void *workspace);
