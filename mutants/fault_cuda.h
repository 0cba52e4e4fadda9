/* Fault state of kernels on a device: each block copies its launch's into shared memory, where
 * every function of the kernel finds it. Included by fault_armed.h alone, in twins compiled by
 * nvcc. */
#pragma once

#include "fault_launch.h"

extern __shared__ struct mut_launch mut_launch_[];

#define mut_selected (mut_launch_[0].selected)
#define mut_dose (mut_launch_[0].dose)
#define mut_step (mut_launch_[0].step)

static __device__ inline void mut_here(enum mut_site site)
{
    int32_t *first = &mut_launch_[0].first_step[site];
    if (*(volatile int32_t *)first == MUT_SITE_NOT_REACHED) {
        atomicCAS(first, (int)MUT_SITE_NOT_REACHED, mut_step);
    }
}

/* Parameter of a kernel, what it does first (all threads of the block come by), argument and bytes
 * of shared memory of its launch. */
#define MUT_LAUNCH_PARAMETER , const struct mut_launch mut_given_
#define MUT_LAUNCH_ENTER                                                                           \
    if (threadIdx.x == 0) {                                                                        \
        mut_launch_[0] = mut_given_;                                                               \
    }                                                                                              \
    __syncthreads();
#define MUT_LAUNCH_ARGUMENT(launch) , const_cast<struct mut_launch *>(launch)
#define MUT_LAUNCH_BYTES sizeof(struct mut_launch)
