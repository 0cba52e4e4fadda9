/* The row programs of the CUDA library of a mutable trainer. Used through launch.h; must not know
 * what is armed. */
#include "launch.h"

#define KERNEL(name, file)                                                                         \
    k_launch_fn k_##name##_launch;                                                                 \
    k_launch_fn k_##name##_launch_twin;
#include "kernels.def"
#undef KERNEL

k_launch_fn *k_launch_at(enum k_id id, bool twin)
{
    static k_launch_fn *const plain[K_ID_COUNT] = {
#define KERNEL(name, file) k_##name##_launch,
#include "kernels.def"
#undef KERNEL
    };
    static k_launch_fn *const twins[K_ID_COUNT] = {
#define KERNEL(name, file) k_##name##_launch_twin,
#include "kernels.def"
#undef KERNEL
    };
    return twin ? twins[id] : plain[id];
}
