/* The seeded order of an epoch. Used by loader; must not know records. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Purpose: fills order with the permutation of 0 .. count - 1 that corpus/RECIPE.md gives for this
 * seed and epoch. */
void eng_order_fill(uint32_t *order, size_t count, uint64_t seed, uint64_t epoch);
