/* Generates the tile functions of a register-blocked micro-kernel: TILE(count, kind) computes
 * `count` rows by two vectors of columns with every element of C in a register.
 * Included once by gemm_avx2.c and gemm_avx512.c, which define before it
 *   vec, VEC_WIDTH                     a vector of floats and their number
 *   vec_load(p), vec_all(x), vec_fma(a, b, c)
 *   vec_part, vec_part_first(cols)     which of VEC_WIDTH columns exist; none for cols <= 0
 *   vec_part_load(p, part), vec_part_store(p, part, v)    zeros, no access where there is none
 * kind `unit`: consecutive rows of A lie next to each other (packed, or A transposed);
 * kind `wide`: they lie a_row apart. */
#pragma once

#include "gemm_kernel.h"

#define EACH_1(X) X(0)
#define EACH_2(X) EACH_1(X) X(1)
#define EACH_3(X) EACH_2(X) X(2)
#define EACH_4(X) EACH_3(X) X(3)
#define EACH_5(X) EACH_4(X) X(4)
#define EACH_6(X) EACH_5(X) X(5)
#define EACH_7(X) EACH_6(X) X(6)
#define EACH_8(X) EACH_7(X) X(7)
#define EACH_9(X) EACH_8(X) X(8)
#define EACH_10(X) EACH_9(X) X(9)
#define EACH_11(X) EACH_10(X) X(10)
#define EACH_12(X) EACH_11(X) X(11)
#define EACH_13(X) EACH_12(X) X(12)
#define EACH_14(X) EACH_13(X) X(13)

#define TILE_BEGIN_(i)                                                                             \
    vec c##i##_0 = vec_part_load(c + i * c_row, old0);                                             \
    vec c##i##_1 = vec_part_load(c + i * c_row + VEC_WIDTH, old1);
#define TILE_STEP_(i, at)                                                                          \
    {                                                                                              \
        const vec x = vec_all(at);                                                                 \
        c##i##_0 = vec_fma(x, b0, c##i##_0);                                                       \
        c##i##_1 = vec_fma(x, b1, c##i##_1);                                                       \
    }
#define TILE_STEP_unit_(i) TILE_STEP_(i, a[i])
#define TILE_STEP_wide_(i) TILE_STEP_(i, a[i * a_row])
#define TILE_STEPS_(count, kind, steps)                                                            \
    for (int step = 0; step < (steps); step++) {                                                   \
        const vec b0 = vec_load(b);                                                                \
        const vec b1 = vec_load(b + VEC_WIDTH);                                                    \
        EACH_##count(TILE_STEP_##kind##_) a += a_step;                                             \
        b += b_step;                                                                               \
    }
#define TILE_END_(i)                                                                               \
    vec_part_store(c + i * c_row, part0, c##i##_0);                                                \
    vec_part_store(c + i * c_row + VEC_WIDTH, part1, c##i##_1);

/* Two lines are fetched every so many steps: often enough for what a tile is given, seldom enough
 * not to wait for memory. */
enum { STEPS_A_PAIR = 4 };

/* Where C is not to be read, no column of it "exists" and the chains begin with 0. */
#define TILE(count, kind)                                                                          \
    static void tile_##kind##_##count(const struct k_gemm_tile *t)                                 \
    {                                                                                              \
        const float *a = t->a;                                                                     \
        const float *b = t->b;                                                                     \
        float *const c = t->c;                                                                     \
        const ptrdiff_t a_step = t->a_step, b_step = t->b_step, c_row = t->c_row;                  \
        const ptrdiff_t a_row = t->a_row;                                                          \
        const vec_part part0 = vec_part_first(t->cols);                                            \
        const vec_part part1 = vec_part_first(t->cols - VEC_WIDTH);                                \
        const vec_part old0 = vec_part_first(t->load_c ? t->cols : 0);                             \
        const vec_part old1 = vec_part_first(t->load_c ? t->cols - VEC_WIDTH : 0);                 \
        (void)a_row;                                                                               \
        EACH_##count(TILE_BEGIN_) const float *const *line = t->lines;                             \
        int left = t->depth;                                                                       \
        for (int n = t->line_count; n > 0 && left >= STEPS_A_PAIR; n -= 2) {                       \
            __builtin_prefetch(line[0]);                                                           \
            __builtin_prefetch(line[1]);                                                           \
            line += 2;                                                                             \
            left -= STEPS_A_PAIR;                                                                  \
            TILE_STEPS_(count, kind, STEPS_A_PAIR)                                                 \
        }                                                                                          \
        TILE_STEPS_(count, kind, left)                                                             \
        EACH_##count(TILE_END_)                                                                    \
    }

typedef void tile_fn(const struct k_gemm_tile *t);
