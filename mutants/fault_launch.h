/* The fault state of one launch of a mutable twin on a device. Shared by the twins compiled by nvcc
 * and by whoever launches them; knows no fault. */
#pragma once

#include <stdint.h>

enum { MUT_SITE_UNWATCHED = -2, MUT_SITE_NOT_REACHED = -1 };

/* By value, because kernels of two steps may run at the same time. */
struct mut_launch {
    uint32_t selected; /* number of the armed fault, 0 = none */
    float dose;        /* its magnitude */
    int32_t step;      /* the operation was issued in it */
    int32_t
        *first_step; /* device memory, one per site: MUT_SITE_... or the first step that ran it */
};
