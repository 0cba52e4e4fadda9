/* Lanes of faultline-train-lanes: fibers in a seeded order. Takes the place of lanes_host.c there;
 * must not know programs. */
#include "kernel.h"
#include "row_emulator.h"

bool k_lanes_emulated(void)
{
    return true;
}

void k_lanes_seed(uint64_t seed)
{
    row_emulator_seed(seed);
}
