/* The row programs of the CUDA library of the production trainer. Used through launch.h; must not
 * know the catalogue. */
#include <stddef.h>

#include "launch.h"

#define KERNEL(name, file) k_launch_fn k_##name##_launch;
#include "kernels.def"
#undef KERNEL

k_launch_fn *k_launch_at(enum k_id id, bool twin)
{
    static k_launch_fn *const plain[K_ID_COUNT] = {
#define KERNEL(name, file) k_##name##_launch,
#include "kernels.def"
#undef KERNEL
    };
    return twin ? NULL : plain[id];
}
