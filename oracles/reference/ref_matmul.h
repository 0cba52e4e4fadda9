/* Matrix product in double precision, blocked and vectorised. Used by the tape only. */
#pragma once

#include "ref_pool.h"

#include <stdbool.h>
#include <stddef.h>

/* A family of equal matrices: element (row, col) of member (outer, inner) stands at
 * data[outer * outer_step + inner * inner_step + row * row_step + col * col_step]. */
struct orc_ref_operand {
    double *data;
    size_t row_step, col_step, outer_step, inner_step;
};

/* For each of outer x inner members: c (m, n) = or += a (m, k) b (k, n). The members of c must not
 * overlap each other nor a or b; c.col_step is 1. The order of each sum depends on k alone, so
 * results do not depend on threads. */
struct orc_ref_matmul {
    struct orc_ref_operand a, b, c;
    size_t m, n, k, outer, inner;
    bool accumulate;
};

/* Working memory of the products, one part for each thread. */
struct orc_ref_matmul_space;

/* NULL when there is no memory. */
struct orc_ref_matmul_space *orc_ref_matmul_space_create(size_t threads);

/* Accepts NULL. */
void orc_ref_matmul_space_destroy(struct orc_ref_matmul_space *space);

void orc_ref_matmul_run(const struct orc_ref_matmul *job, struct orc_ref_matmul_space *space,
                        struct orc_ref_pool *pool);
