/* Micro-kernel of 6 x 16 floats for AVX2 with FMA: 12 accumulators, 2 vectors of B, broadcasts of
 * A. Used by gemm_x86.c alone, on CPUs that have it. */
#include <immintrin.h>

#include "gemm_all.h"

enum { VEC_WIDTH = 8, ROWS = 6, COLS = 2 * VEC_WIDTH };

typedef __m256 vec;
typedef __m256i vec_part;

static inline vec vec_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline vec vec_all(float x)
{
    return _mm256_set1_ps(x);
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vec_part vec_part_first(int cols)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(cols), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline vec vec_part_load(const float *p, vec_part part)
{
    return _mm256_maskload_ps(p, part);
}

static inline void vec_part_store(float *p, vec_part part, vec v)
{
    _mm256_maskstore_ps(p, part, v);
}

#include "gemm_tile.h"

TILE(1, unit)
TILE(2, unit)
TILE(3, unit)
TILE(4, unit)
TILE(5, unit)
TILE(6, unit)
TILE(1, wide)
TILE(2, wide)
TILE(3, wide)
TILE(4, wide)
TILE(5, wide)
TILE(6, wide)

static void tile(const struct k_gemm_tile *t)
{
    static tile_fn *const unit[ROWS] = {tile_unit_1, tile_unit_2, tile_unit_3,
                                        tile_unit_4, tile_unit_5, tile_unit_6};
    static tile_fn *const wide[ROWS] = {tile_wide_1, tile_wide_2, tile_wide_3,
                                        tile_wide_4, tile_wide_5, tile_wide_6};
    (t->a_row == 1 ? unit : wide)[t->rows - 1](t);
}

static void pack_b(float *to, const float *b, ptrdiff_t b_step, ptrdiff_t b_col, int cols,
                   int depth)
{
    k_gemm_portable_pack_b(to, COLS, b, b_step, b_col, cols, depth);
}

const struct k_gemm_kernel k_gemm_avx2 = {"avx2", ROWS, COLS, tile, k_gemm_portable_pack_a, pack_b};
