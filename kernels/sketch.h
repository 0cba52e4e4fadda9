/* Statistics of tensors for the trace: sketches and hashes, computed where the data lives.
 * What a sketch is, is specified in oracles/TRACE.md; this is the trainer's implementation. */
#pragma once
#include <stdint.h>
#include "optimizer.h"

/* out[row] = sqrt(mean(x[row]^2)). x (rows, width). */
struct k_row_rms_args {
    const float *x;
    float *out;
    int width;
};

/* A sketch in device memory. sumsq, projection: as in TRACE.md. hash: of the bytes, our own, only
 * compared between runs of this trainer. */
enum { K_PROJECTIONS = 8 };
struct k_sketch {
    float sumsq;
    float projection[K_PROJECTIONS];
    uint32_t nonfinite;
    uint32_t hash_low;
    uint32_t hash_high;
};

/* Row = chunk. part (chunks) overwritten with the sketch of each chunk of x. With hash_only all but
 * the hash is 0. */
struct k_sketch_part_args {
    const float *x;
    const struct k_chunk *chunks;
    struct k_sketch *part;
    int hash_only;
};

/* Row = tensor. out (tensors): the chunks of each tensor folded in order.
 * first_chunk (tensors + 1): index of each tensor's first chunk; last entry = number of chunks. */
struct k_sketch_fold_args {
    const struct k_sketch *part;
    const int32_t *first_chunk;
    struct k_sketch *out;
};

/* One row. out[0..1]: 64-bit hash, low word first, of `count` 32-bit words. */
struct k_hash_words_args {
    const uint32_t *words;
    uint32_t *out;
    int64_t count;
};
