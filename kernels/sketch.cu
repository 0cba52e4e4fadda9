/* Sketches and hashes of tensors for the trace. Launched by the trace writer; must not know what a
 * tensor means.
 *
 * Hash of words w_0, w_1, ...: lane l of L walks w_l, w_(l+L), ... with two 32-bit states,
 *     low  = rotate(low ^ w, 13) * A,   high = rotate(high, 19) + w, times B;
 * a lane's end state, with its lane number mixed in, goes through a mixing bijection; the hash is
 * the two sums over all lanes. Every step is a bijection of the state, so one changed word always
 * changes both halves; rotation keeps flips of top bits (signs) from cancelling. */
#include "sketch.h"

#include "row.h"

ROW_FN uint32_t sketch_rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

ROW_FN uint32_t sketch_low(uint32_t low, uint32_t word)
{
    return sketch_rotate(low ^ word, 13) * 0x9E3779B1u;
}

ROW_FN uint32_t sketch_high(uint32_t high, uint32_t word)
{
    return (sketch_rotate(high, 19) + word) * 0x85EBCA77u;
}

ROW_FN uint32_t sketch_finish(uint32_t state, int lane)
{
    uint32_t h = state + (uint32_t)lane * 0xC2B2AE3Du;
    h = (h ^ h >> 16) * 0x85EBCA6Bu;
    h = (h ^ h >> 13) * 0xC2B2AE35u;
    return h ^ h >> 16;
}

/* TRACE.md's sign hash of an index, times SKETCH_SPREAD already, before its last shift: bit 24 + j
 * belongs to projection j. */
#define SKETCH_SPREAD 0x9E3779B1u
ROW_FN uint32_t sketch_signs(uint32_t spread)
{
    uint32_t h = spread;
    h = (h ^ h >> 15) * 0x85EBCA77u;
    return (h ^ h >> 13) * 0xC2B2AE3Du;
}

/* x, negated when bit 24 + j of signs is clear. */
ROW_FN float sketch_signed(float x, uint32_t signs, int j)
{
    return row_from_bits(row_bits(x) ^ (~(signs << (7 - j)) & 0x80000000u));
}

ROW_KERNEL(row_rms, 32)
{
    const float *ROW_RESTRICT x = a->x + (int64_t)row * a->width;
    float sumsq;
    ROW_DOT(sumsq, i, a->width, x[i], x[i]);
    ROW_ONE
    {
        a->out[row] = sqrtf(sumsq / (float)a->width);
    }
}

ROW_KERNEL(sketch_part, 32)
{
    const struct k_chunk chunk = a->chunks[row];
    const float *ROW_RESTRICT x = a->x + chunk.offset;
    const uint32_t index = (uint32_t)chunk.index;
    ROW_LANES(float, sumsq);
    ROW_LANES(float, projection[K_PROJECTIONS]);
    ROW_LANES(uint32_t, spread); /* of the index of the lane's next element */
    ROW_LANES(uint32_t, words[3]);
    ROW_EACH
    {
        sumsq[ROW_MINE] = 0.0f;
        for (int j = 0; j < K_PROJECTIONS; j++) {
            projection[j][ROW_MINE] = 0.0f;
        }
        spread[ROW_MINE] = (index + (uint32_t)ROW_LANE) * SKETCH_SPREAD;
        words[0][ROW_MINE] = words[1][ROW_MINE] = words[2][ROW_MINE] = 0;
    }
    if (a->hash_only != 0) {
        ROW_WALK(i, chunk.count, {
            words[1][ROW_MINE] = sketch_low(words[1][ROW_MINE], row_bits(x[i]));
            words[2][ROW_MINE] = sketch_high(words[2][ROW_MINE], row_bits(x[i]));
        })
    } else {
        ROW_WALK(i, chunk.count, {
            const float v = x[i];
            const uint32_t signs = sketch_signs(spread[ROW_MINE]);
            spread[ROW_MINE] += (uint32_t)ROW_L * SKETCH_SPREAD;
            sumsq[ROW_MINE] = fmaf(v, v, sumsq[ROW_MINE]);
            for (int j = 0; j < K_PROJECTIONS; j++) {
                projection[j][ROW_MINE] += sketch_signed(v, signs, j);
            }
            words[1][ROW_MINE] = sketch_low(words[1][ROW_MINE], row_bits(v));
            words[2][ROW_MINE] = sketch_high(words[2][ROW_MINE], row_bits(v));
        })
    }
    ROW_EACH
    {
        words[1][ROW_MINE] = sketch_finish(words[1][ROW_MINE], ROW_LANE);
        words[2][ROW_MINE] = sketch_finish(words[2][ROW_MINE], ROW_LANE);
    }
    struct k_sketch sum;
    ROW_FOLD_SUM(sum.sumsq, sumsq);
    for (int j = 0; j < K_PROJECTIONS; j++) {
        ROW_FOLD_SUM(sum.projection[j], projection[j]);
    }
    if (row_nonfinite(sum.sumsq) != 0) { /* the square of what is not finite is not finite */
        ROW_WALK(i, chunk.count, words[0][ROW_MINE] += row_nonfinite(x[i]))
    }
    ROW_FOLD_WORDS(sum.nonfinite, words[0]);
    ROW_FOLD_WORDS(sum.hash_low, words[1]);
    ROW_FOLD_WORDS(sum.hash_high, words[2]);
    ROW_ONE
    {
        a->part[row] = sum;
    }
}

ROW_KERNEL(sketch_fold, 32)
{
    const int first = a->first_chunk[row];
    const int chunks = a->first_chunk[row + 1] - first;
    const struct k_sketch *ROW_RESTRICT part = a->part + first;
    struct k_sketch sum;
    ROW_SUM(sum.sumsq, c, chunks, part[c].sumsq);
    for (int j = 0; j < K_PROJECTIONS; j++) {
        ROW_SUM(sum.projection[j], c, chunks, part[c].projection[j]);
    }
    ROW_LANES(uint32_t, words[3]);
    ROW_EACH
    {
        words[0][ROW_MINE] = words[1][ROW_MINE] = words[2][ROW_MINE] = 0;
    }
    ROW_WALK(c, chunks, {
        words[0][ROW_MINE] += part[c].nonfinite;
        words[1][ROW_MINE] = sketch_low(words[1][ROW_MINE], part[c].hash_low);
        words[2][ROW_MINE] = sketch_high(words[2][ROW_MINE], part[c].hash_high);
    })
    ROW_EACH
    {
        words[1][ROW_MINE] = sketch_finish(words[1][ROW_MINE], ROW_LANE);
        words[2][ROW_MINE] = sketch_finish(words[2][ROW_MINE], ROW_LANE);
    }
    ROW_FOLD_WORDS(sum.nonfinite, words[0]);
    ROW_FOLD_WORDS(sum.hash_low, words[1]);
    ROW_FOLD_WORDS(sum.hash_high, words[2]);
    ROW_ONE
    {
        a->out[row] = sum;
    }
}

/* Words per pass: ROW_WALK counts in int. A multiple of the lanes: passes continue each other. */
enum { HASH_PASS = 1 << 30 };

ROW_KERNEL(hash_words, 256)
{
    ROW_LANES(uint32_t, state[2]);
    ROW_EACH
    {
        state[0][ROW_MINE] = state[1][ROW_MINE] = 0;
    }
    for (int64_t done = 0; done < a->count; done += HASH_PASS) {
        const uint32_t *ROW_RESTRICT words = a->words + done;
        const int count = a->count - done < HASH_PASS ? (int)(a->count - done) : (int)HASH_PASS;
        ROW_WALK(i, count, {
            state[0][ROW_MINE] = sketch_low(state[0][ROW_MINE], words[i]);
            state[1][ROW_MINE] = sketch_high(state[1][ROW_MINE], words[i]);
        })
    }
    ROW_EACH
    {
        state[0][ROW_MINE] = sketch_finish(state[0][ROW_MINE] + (uint32_t)a->count, ROW_LANE);
        state[1][ROW_MINE] = sketch_finish(state[1][ROW_MINE] ^ (uint32_t)a->count, ROW_LANE);
    }
    uint32_t low;
    uint32_t high;
    ROW_FOLD_WORDS(low, state[0]);
    ROW_FOLD_WORDS(high, state[1]);
    ROW_ONE
    {
        a->out[0] = low;
        a->out[1] = high;
    }
}
