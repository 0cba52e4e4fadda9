/* Which checks are enough: the smallest set that detects all, the cheapest one that reaches a
 * share; and which faults tell nothing that others do not (subsumption). Exact, no heuristics. Used
 * by the reports; must not know what a check or a fault is.
 *
 * A fault is the mask of the checks that detect it: bit i for check i, 0 for a fault that none
 * detects. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HAR_COVER_CHECKS_MAX = 24, HAR_COVER_INPUTS_MAX = 8 };

/* Number of masks that a set of checks meets. */
size_t har_stat_cover_count(const uint32_t *masks, size_t count, uint32_t checks);

/* The smallest subset of `allowed` that meets every mask which `allowed` meets; of equally small
 * ones the one with the lowest bits. A minimum hitting set (Karp 1972), by growing size, branching
 * on a mask not met yet. */
uint32_t har_stat_cover_all(const uint32_t *masks, size_t count, uint32_t allowed);
/* The smallest subset of `allowed` that meets at least `need` masks; false when `allowed` does not.
 */
bool har_stat_cover_reach(const uint32_t *masks, size_t count, uint32_t allowed, size_t need,
                          uint32_t *out);

/* What a check costs: the runs it looks at. A run that two checks share is paid once. */
struct har_cover_cost {
    uint32_t inputs[HAR_COVER_CHECKS_MAX]; /* mask over inputs that check i needs */
    double price[HAR_COVER_INPUTS_MAX];    /* of each input */
    size_t input_count;
};
double har_stat_cover_price(const struct har_cover_cost *cost, uint32_t checks);
/* The cheapest subset of `allowed` that meets at least `need` masks, of equally cheap ones the
 * smallest; false when there is none. */
bool har_stat_cover_cheapest(const uint32_t *masks, size_t count, uint32_t allowed,
                             const struct har_cover_cost *cost, size_t need, uint32_t *out);

/* Dynamic subsumption (Ammann, Delamaro and Offutt 2014): fault A subsumes B when every check that
 * detects A detects B. Equal masks are one class, represented by its first fault. root[i] is true
 * for the representatives that no other detected class strictly subsumes: who detects these detects
 * all detected ones. representative[i] = first fault with the same mask, i itself for undetected
 * ones. Returns the number of roots. Arrays of `count`. */
size_t har_stat_subsume(const uint32_t *masks, size_t count, size_t *representative, bool *root);
