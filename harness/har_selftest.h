/* Faults of the oracle itself: would anybody notice if the comparator were broken?
 * Called by har_run.c; must not know how the oracle is built. */
#pragma once

#include "har_lab.h"

/* Replays stored traces (healthy, one with NaN, an empty one, one just above its bound, one that
 * lacks a sketch, one with the planted fault) through the judge with each oracle fault armed, and
 * stores whether any verdict changed. Listed apart; never part of the detection rate. */
HAR_CHECKED enum har_status har_selftest_run(struct har_lab *lab, struct har_error *error);

/* Makes variants of a trace. Lines of `in` (plain JSON Lines) go to `out`. Exposed for tests. */
enum har_warp {
    HAR_WARP_nan,    /* loss and one gradient projection not finite from the middle on */
    HAR_WARP_empty,  /* header only */
    HAR_WARP_loss,   /* loss of the last step times 1 + amount */
    HAR_WARP_sketch, /* projection 3 of one o_proj gradient turned round in the middle step */
    HAR_WARP_count,  /* one gradient counts a non-finite element in the middle step, all else as it
                        was */
    HAR_WARP_gone,   /* one gradient without a sketch in the middle step */
    HAR_WARP_COUNT
};
HAR_CHECKED enum har_status har_selftest_warp(const char *in, enum har_warp warp, double amount,
                                              const char *out, struct har_error *error);
