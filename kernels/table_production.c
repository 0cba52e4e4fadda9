/* The table of row programs of a build without fault sites. Used by the device runtime; must not
 * know the catalogue. */
#include "kernel.h"

#include "attention.h"
#include "embed.h"
#include "loss.h"
#include "mlp.h"
#include "norm.h"
#include "optimizer.h"
#include "rope.h"
#include "sketch.h"

#define KERNEL(name, file) k_rows_fn k_##name##_rows;
#include "kernels.def"
#undef KERNEL

static const struct k_kernel table[K_ID_COUNT] = {
#define KERNEL(name, file)                                                                         \
    {#name, "kernels/" #file ".cu", sizeof(struct k_##name##_args), k_##name##_rows, NULL},
#include "kernels.def"
#undef KERNEL
};

const struct k_kernel *k_kernel_at(enum k_id id)
{
    return &table[id];
}

bool k_kernel_is_plain(enum k_id id)
{
    (void)id;
    return true;
}

k_rows_fn *k_kernel_rows(enum k_id id)
{
    return table[id].rows;
}
