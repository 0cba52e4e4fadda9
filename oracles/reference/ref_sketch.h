/* Sketch of a tensor as oracles/TRACE.md defines it. Called by the training loop. */
#pragma once

#include "ref_pool.h"

#include <stddef.h>

enum { ORC_REF_SKETCH = 10 }; /* norm, eight projections, count of elements that are not finite */

struct orc_ref_sketch {
    const double *data;
    size_t count;
    double result[ORC_REF_SKETCH];
};

/* Fills the result of one sketch. */
void orc_ref_sketch_compute(struct orc_ref_sketch *sketch);

/* Fills many, shared out to the threads. */
void orc_ref_sketch_all(struct orc_ref_sketch *sketches, size_t count, struct orc_ref_pool *pool);
