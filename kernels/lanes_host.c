/* Lanes of programs that run rows on one thread: none. Used by the device runtime; knows nothing.
 */
#include "kernel.h"

bool k_lanes_emulated(void)
{
    return false;
}

void k_lanes_seed(uint64_t seed)
{
    (void)seed;
}
