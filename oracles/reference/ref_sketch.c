/* Sketches. See ref_sketch.h. */
#include "ref_sketch.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { PROJECTIONS = 8, CHAINS = 4, HASHES = 256 };

typedef double vector __attribute__((vector_size(PROJECTIONS * sizeof(double))));

static uint32_t index_hash(uint32_t i)
{
    uint32_t h = i * UINT32_C(0x9E3779B1);
    h = (h ^ h >> 15) * UINT32_C(0x85EBCA77);
    h = (h ^ h >> 13) * UINT32_C(0xC2B2AE3D);
    return h >> 24;
}

/* signs[h][j] = +1 when bit j of h is set, else -1 */
static void fill_signs(vector signs[HASHES])
{
    for (unsigned h = 0; h < HASHES; h++)
        for (unsigned j = 0; j < PROJECTIONS; j++)
            signs[h][j] = h >> j & 1U ? 1.0 : -1.0;
}

static size_t not_finite(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits >> 52 & 0x7FF) == 0x7FF;
}

static void compute(struct orc_ref_sketch *sketch, const vector *signs)
{
    const double *const x = sketch->data;
    vector sum[CHAINS] = {{0}};
    double square[CHAINS] = {0};
    size_t bad = 0;
    /* Whole rounds over the chains: their sums can stay in registers. */
    const size_t rounds = sketch->count / CHAINS * CHAINS;
    for (size_t i = 0; i < rounds; i += CHAINS)
        for (size_t c = 0; c < CHAINS; c++) {
            sum[c] += signs[index_hash((uint32_t)(i + c))] * x[i + c];
            square[c] += x[i + c] * x[i + c];
            bad += not_finite(x[i + c]);
        }
    for (size_t i = rounds; i < sketch->count; i++) {
        sum[i % CHAINS] += signs[index_hash((uint32_t)i)] * x[i];
        square[i % CHAINS] += x[i] * x[i];
        bad += not_finite(x[i]);
    }
    const vector total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    sketch->result[0] = sqrt((square[0] + square[1]) + (square[2] + square[3]));
    for (size_t j = 0; j < PROJECTIONS; j++)
        sketch->result[1 + j] = total[j];
    sketch->result[1 + PROJECTIONS] = (double)bad;
}

struct job {
    struct orc_ref_sketch *sketches;
    vector signs[HASHES];
};

static void compute_task(void *context, size_t task, size_t worker)
{
    (void)worker;
    struct job *const job = context;
    compute(&job->sketches[task], job->signs);
}

void orc_ref_sketch_all(struct orc_ref_sketch *sketches, size_t count, struct orc_ref_pool *pool)
{
    struct job job = {.sketches = sketches};
    fill_signs(job.signs);
    orc_ref_pool_run(pool, count, compute_task, &job);
}

void orc_ref_sketch_compute(struct orc_ref_sketch *sketch)
{
    vector signs[HASHES];
    fill_signs(signs);
    compute(sketch, signs);
}
