/* Reverse-mode tape over primitive operations on matrices of doubles.
 *
 * Used by the model. An operation computes its result at once and is written down; backward()
 * visits what was written in reverse order and adds to the gradients. Every operation here is
 * primitive: norms, softmax, rotation, SiLU and the loss are compositions made in ref_model.c,
 * so their derivatives follow from the chain rule and from nothing that a person derived.
 *
 * Conventions: matrices are (rows, cols), row-major, with `ld` elements from row to row. `out` is
 * made by the caller, must not overlap the inputs (unless said so), and is overwritten. A failure
 * for lack of memory sticks: see orc_ref_tape_failed(). */
#pragma once

#include "ref_arena.h"
#include "ref_matmul.h"
#include "ref_pool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* grad is NULL when no gradient is kept. Memory belongs to the tape, or to whoever made a leaf. */
struct orc_ref_tensor {
    double *value, *grad;
    size_t rows, cols, ld;
};

struct orc_ref_tape;

/* Heap object; the pool must outlive it. NULL when there is no memory. */
struct orc_ref_tape *orc_ref_tape_create(struct orc_ref_pool *pool);

/* Accepts NULL. */
void orc_ref_tape_destroy(struct orc_ref_tape *tape);

/* Forgets all tensors and operations. With gradients off nothing is written down. */
void orc_ref_tape_reset(struct orc_ref_tape *tape, bool gradients);

/* True when memory ran out since the last reset; then results are void. */
bool orc_ref_tape_failed(const struct orc_ref_tape *tape);

/* Memory that lives until the next reset; NULL (and failed) when there is none. */
void *orc_ref_tape_take(struct orc_ref_tape *tape, size_t count, size_t size);

/* A new matrix, gradient zero. */
struct orc_ref_tensor orc_ref_tape_tensor(struct orc_ref_tape *tape, size_t rows, size_t cols);

/* A new matrix without a gradient, for constants. */
struct orc_ref_tensor orc_ref_tape_constant(struct orc_ref_tape *tape, size_t rows, size_t cols);

/* The columns [col, col + cols) of a matrix: the same memory, gradient included. */
struct orc_ref_tensor orc_ref_tape_columns(struct orc_ref_tensor x, size_t col, size_t cols);

/* Runs the tape backwards. The caller has put the seed into the gradient of the result. */
void orc_ref_tape_backward(struct orc_ref_tape *tape);

/* ---- operations ---- */

/* out = a + b, equal shapes. */
void orc_ref_tape_add(struct orc_ref_tape *tape, struct orc_ref_tensor a, struct orc_ref_tensor b,
                      struct orc_ref_tensor out);

/* out = a * b by elements; b may be (1, cols) or (rows, 1) and is then repeated. a may be b. */
void orc_ref_tape_mul(struct orc_ref_tape *tape, struct orc_ref_tensor a, struct orc_ref_tensor b,
                      struct orc_ref_tensor out);

/* out = scale * a + shift */
void orc_ref_tape_affine(struct orc_ref_tape *tape, struct orc_ref_tensor a, double scale,
                         double shift, struct orc_ref_tensor out);

/* out (rows, 1) = sum of each row */
void orc_ref_tape_row_sum(struct orc_ref_tape *tape, struct orc_ref_tensor a,
                          struct orc_ref_tensor out);

/* out = 1 / sqrt(a), 1 / a, log(a), 1 / (1 + exp(-a)) by elements */
void orc_ref_tape_rsqrt(struct orc_ref_tape *tape, struct orc_ref_tensor a,
                        struct orc_ref_tensor out);
void orc_ref_tape_reciprocal(struct orc_ref_tape *tape, struct orc_ref_tensor a,
                             struct orc_ref_tensor out);
void orc_ref_tape_log(struct orc_ref_tape *tape, struct orc_ref_tensor a,
                      struct orc_ref_tensor out);
void orc_ref_tape_sigmoid(struct orc_ref_tape *tape, struct orc_ref_tensor a,
                          struct orc_ref_tensor out);

/* Columns [first[r], end[r]) of row r become exp(a - shift[r]), the others 0, in place of a: no
 * later operation may read a, and no earlier one may need its value backwards (a product does not
 * need its result). shift (rows, 1), a constant, receives the largest allowed element of the row.
 * The gradient is that for a constant shift; results must therefore not depend on it. */
void orc_ref_tape_exp_range(struct orc_ref_tape *tape, struct orc_ref_tensor a,
                            const int32_t *first, const int32_t *end, struct orc_ref_tensor shift);

/* out row i = row index[i] of a */
void orc_ref_tape_gather(struct orc_ref_tape *tape, struct orc_ref_tensor a, const int32_t *index,
                         struct orc_ref_tensor out);

/* out (rows, 1) = element index[r] of row r of a */
void orc_ref_tape_pick(struct orc_ref_tape *tape, struct orc_ref_tensor a, const int32_t *index,
                       struct orc_ref_tensor out);

/* In each group of `size` columns the first half becomes minus the second, the second the first. */
void orc_ref_tape_rotate_half(struct orc_ref_tape *tape, struct orc_ref_tensor a, size_t size,
                              struct orc_ref_tensor out);

/* Each group of `size` columns is repeated `times` times, side by side. */
void orc_ref_tape_repeat(struct orc_ref_tape *tape, struct orc_ref_tensor a, size_t size,
                         size_t times, struct orc_ref_tensor out);

/* How a product walks through its matrices; steps in elements, see ref_matmul.h. */
struct orc_ref_blocks {
    size_t outer, inner, m, n, k;
    size_t a_outer, a_inner, b_outer, b_inner, c_outer, c_inner;
    bool b_transposed; /* block of b is (n, k) */
};

/* For each block: out = a b or a transpose(b). Blocks of one operand must not overlap. */
void orc_ref_tape_matmul(struct orc_ref_tape *tape, struct orc_ref_tensor a,
                         struct orc_ref_tensor b, const struct orc_ref_blocks *blocks,
                         struct orc_ref_tensor out);

/* out (rows, n) = x (rows, k) transpose(w (n, k)) */
void orc_ref_tape_linear(struct orc_ref_tape *tape, struct orc_ref_tensor x,
                         struct orc_ref_tensor w, struct orc_ref_tensor out);
