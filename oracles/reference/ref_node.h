/* What the tape writes down. Shared by ref_tape.c (order, memory, threads) and ref_ops.c (what
 * each operation computes); nobody else includes it. */
#pragma once

#include "ref_tape.h"

struct orc_ref_node;

/* Works on rows [begin, end) of out, or on columns. */
typedef void orc_ref_part(const struct orc_ref_node *node, size_t begin, size_t end);

/* forward and backward may run on disjoint row ranges at once. backward_columns takes what rows
 * share (a gradient that many rows add to) and may run on disjoint column ranges of out at once.
 * Each may be NULL. */
struct orc_ref_operation {
    orc_ref_part *forward, *backward, *backward_columns;
};

struct orc_ref_node {
    const struct orc_ref_operation *operation; /* NULL: a product, described by blocks */
    struct orc_ref_tensor a, b, out;
    const int32_t *first, *end; /* index arrays */
    double scale, shift;
    size_t size, times;
    struct orc_ref_blocks blocks;
};

/* Computes the node and writes it down. */
void orc_ref_tape_push(struct orc_ref_tape *tape, const struct orc_ref_node *node);
