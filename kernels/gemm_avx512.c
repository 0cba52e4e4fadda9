/* Micro-kernel of 14 x 32 floats for AVX-512: 28 accumulators, 2 vectors of B, broadcasts of A.
 * Used by gemm_x86.c alone, on CPUs that have it. */
#include <immintrin.h>
#include <stdint.h>

#include "gemm_all.h"

enum { VEC_WIDTH = 16, ROWS = 14, COLS = 2 * VEC_WIDTH };

typedef __m512 vec;
typedef __mmask16 vec_part;

static inline vec vec_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline vec vec_all(float x)
{
    return _mm512_set1_ps(x);
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vec_part vec_part_first(int cols)
{
    return (vec_part)(cols >= VEC_WIDTH ? 0xFFFFu : cols <= 0 ? 0u : (1u << cols) - 1u);
}

static inline vec vec_part_load(const float *p, vec_part part)
{
    return _mm512_maskz_loadu_ps(part, p);
}

static inline void vec_part_store(float *p, vec_part part, vec v)
{
    _mm512_mask_storeu_ps(p, part, v);
}

#include "gemm_tile.h"

TILE(1, unit)
TILE(2, unit)
TILE(3, unit)
TILE(4, unit)
TILE(5, unit)
TILE(6, unit)
TILE(7, unit)
TILE(8, unit)
TILE(9, unit)
TILE(10, unit)
TILE(11, unit)
TILE(12, unit)
TILE(13, unit)
TILE(14, unit)
TILE(1, wide)
TILE(2, wide)
TILE(3, wide)
TILE(4, wide)
TILE(5, wide)
TILE(6, wide)
TILE(7, wide)
TILE(8, wide)
TILE(9, wide)
TILE(10, wide)
TILE(11, wide)
TILE(12, wide)
TILE(13, wide)
TILE(14, wide)

static void tile(const struct k_gemm_tile *t)
{
    static tile_fn *const unit[ROWS] = {tile_unit_1,  tile_unit_2,  tile_unit_3,  tile_unit_4,
                                        tile_unit_5,  tile_unit_6,  tile_unit_7,  tile_unit_8,
                                        tile_unit_9,  tile_unit_10, tile_unit_11, tile_unit_12,
                                        tile_unit_13, tile_unit_14};
    static tile_fn *const wide[ROWS] = {tile_wide_1,  tile_wide_2,  tile_wide_3,  tile_wide_4,
                                        tile_wide_5,  tile_wide_6,  tile_wide_7,  tile_wide_8,
                                        tile_wide_9,  tile_wide_10, tile_wide_11, tile_wide_12,
                                        tile_wide_13, tile_wide_14};
    (t->a_row == 1 ? unit : wide)[t->rows - 1](t);
}

/* Fetches what lies `floats` behind p; there may be nothing. */
static inline void fetch_ahead(const float *p, ptrdiff_t floats)
{
    _mm_prefetch((const char *)((uintptr_t)p + (uintptr_t)floats * sizeof *p), _MM_HINT_T0);
}

/* Transposes the 16 x 16 block r in registers: pairs, then fours, then lanes of four. */
static inline void transpose(vec r[VEC_WIDTH])
{
    vec s[VEC_WIDTH];
    for (int i = 0; i < VEC_WIDTH; i += 2) {
        s[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < VEC_WIDTH; i += 4) {
        for (int j = 0; j < 2; j++) {
            const __m512d low = _mm512_castps_pd(s[i + j]);
            const __m512d high = _mm512_castps_pd(s[i + j + 2]);
            r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
            r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
        }
    }
    for (int i = 0; i < 4; i++) {
        const vec even_low = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
        const vec odd_low = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xDD);
        const vec even_high = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
        const vec odd_high = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xDD);
        s[i] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
        s[4 + i] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
        s[8 + i] = _mm512_shuffle_f32x4(even_low, even_high, 0xDD);
        s[12 + i] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xDD);
    }
    for (int i = 0; i < VEC_WIDTH; i++) {
        r[i] = s[i];
    }
}

/* to[k * to_step + i] = from[i * from_row + k] for i < rows <= 16, zeros for rows <= i < 16. Writes
 * 16 floats for each k in increasing k, so that the next one replaces what the last wrote too far.
 */
static void pack_transposed(float *to, ptrdiff_t to_step, const float *from, ptrdiff_t from_row,
                            int rows, int depth)
{
    for (int k = 0; k < depth; k += VEC_WIDTH) {
        const vec_part part = vec_part_first(depth - k);
        vec r[VEC_WIDTH];
        for (int i = 0; i < VEC_WIDTH; i++) {
            const ptrdiff_t row = i < rows ? i : 0;
            r[i] = vec_part_load(from + row * from_row + k, i < rows ? part : (vec_part)0);
            fetch_ahead(from + row * from_row + k, rows * from_row); /* the next panel */
        }
        transpose(r);
        const int steps = depth - k < VEC_WIDTH ? depth - k : VEC_WIDTH;
        if (steps == VEC_WIDTH) {
            for (int i = 0; i < VEC_WIDTH; i++) {
                _mm512_storeu_ps(to + (k + i) * to_step, r[i]);
            }
        } else {
            for (int i = 0; i < steps; i++) {
                _mm512_storeu_ps(to + (k + i) * to_step, r[i]);
            }
        }
    }
}

static void pack_a(float *to, const float *a, ptrdiff_t a_row, ptrdiff_t a_step, int rows,
                   int depth)
{
    if (a_row != 1) {
        pack_transposed(to, rows, a, a_row, rows, depth);
        return;
    }
    const vec_part part = vec_part_first(rows);
    for (int k = 0; k < depth; k++) {
        vec_part_store(to + k * rows, part, vec_part_load(a + k * a_step, part));
    }
}

static void pack_b(float *to, const float *b, ptrdiff_t b_step, ptrdiff_t b_col, int cols,
                   int depth)
{
    if (b_col != 1) {
        for (int j = 0; j < COLS; j += VEC_WIDTH) {
            pack_transposed(to + j, COLS, cols > j ? b + j * b_col : b, b_col, cols - j, depth);
        }
        return;
    }
    const vec_part part0 = vec_part_first(cols);
    const vec_part part1 = vec_part_first(cols - VEC_WIDTH);
    for (int k = 0; k < depth; k++) {
        _mm512_storeu_ps(to + k * COLS, vec_part_load(b + k * b_step, part0));
        _mm512_storeu_ps(to + k * COLS + VEC_WIDTH,
                         vec_part_load(b + k * b_step + VEC_WIDTH, part1));
        fetch_ahead(b + k * b_step, COLS);
        fetch_ahead(b + k * b_step, COLS + VEC_WIDTH);
    }
}

const struct k_gemm_kernel k_gemm_avx512 = {"avx512", ROWS, COLS, tile, pack_a, pack_b};
