/* Micro-kernel in plain C for every CPU. Used by gemm_x86.c and gemm_other.c alone. */
#include <math.h>

#include "gemm_all.h"

enum { ROWS = 4, COLS = 16 };

static void tile(const struct k_gemm_tile *t)
{
    float acc[ROWS][COLS] = {{0.0f}};
    const int cols = t->cols < COLS ? t->cols : COLS;
    const int rows = t->rows < ROWS ? t->rows : ROWS;
    for (int i = 0; i < rows && t->load_c; i++) {
        for (int j = 0; j < cols; j++) {
            acc[i][j] = t->c[i * t->c_row + j];
        }
    }
    for (int k = 0; k < t->depth; k++) {
        const float *b = t->b + k * t->b_step;
        for (int i = 0; i < rows; i++) {
            const float a = t->a[i * t->a_row + k * t->a_step];
            for (int j = 0; j < COLS; j++) {
                acc[i][j] = fmaf(a, b[j], acc[i][j]);
            }
        }
    }
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < cols; j++) {
            t->c[i * t->c_row + j] = acc[i][j];
        }
    }
}

void k_gemm_portable_pack_a(float *to, const float *a, ptrdiff_t a_row, ptrdiff_t a_step, int rows,
                            int depth)
{
    for (int k = 0; k < depth; k++) {
        for (int i = 0; i < rows; i++) {
            to[k * rows + i] = a[i * a_row + k * a_step];
        }
    }
}

static void pack_b(float *to, const float *b, ptrdiff_t b_step, ptrdiff_t b_col, int cols,
                   int depth)
{
    k_gemm_portable_pack_b(to, COLS, b, b_step, b_col, cols, depth);
}

void k_gemm_portable_pack_b(float *to, int to_cols, const float *b, ptrdiff_t b_step,
                            ptrdiff_t b_col, int cols, int depth)
{
    for (int k = 0; k < depth; k++) {
        for (int j = 0; j < to_cols; j++) {
            to[k * to_cols + j] = j < cols ? b[k * b_step + j * b_col] : 0.0f;
        }
    }
}

const struct k_gemm_kernel k_gemm_portable = {"portable", ROWS, COLS, tile, k_gemm_portable_pack_a,
                                              pack_b};
