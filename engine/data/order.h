/* The seeded order of an epoch. Used by loader; must not know records. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "loader.h"

/* Zero-initialise; set rule, seed and count, then open. */
struct eng_order_of_epoch {
    enum eng_order rule;
    uint64_t seed;
    size_t count;          /* items of an epoch */
    uint32_t *permutation; /* of `epoch`; NULL with the cipher */
    uint64_t epoch;        /* the one prepared */
    uint64_t keys[6];      /* of the cipher */
    unsigned half_bits;
};

/* EHOSTMEM; EUSAGE when a permutation of so many items cannot be held. */
ENG_CHECKED enum eng_status eng_order_open(struct eng_order_of_epoch *order,
                                           struct eng_error *error);
void eng_order_close(struct eng_order_of_epoch *order);
/* The nth item of an epoch; a change of epoch costs a new permutation. */
size_t eng_order_item(struct eng_order_of_epoch *order, uint64_t epoch, size_t nth);

/* Purpose: fills order with the permutation of 0 .. count - 1 that corpus/RECIPE.md gives for this
 * seed and epoch. */
void eng_order_fill(uint32_t *order, size_t count, uint64_t seed, uint64_t epoch);
