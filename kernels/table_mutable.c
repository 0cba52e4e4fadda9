/* The table of row programs of a mutable build: each has a twin with fault sites. Used by the
 * device runtime; must not know what is armed, only which file must run its twin. */
#include "kernel.h"

#include "attention.h"
#include "embed.h"
#include "loss.h"
#include "mlp.h"
#include "norm.h"
#include "optimizer.h"
#include "rope.h"
#include "select.h"
#include "sketch.h"

#define KERNEL(name, file)                                                                         \
    k_rows_fn k_##name##_rows;                                                                     \
    k_rows_fn k_##name##_rows_twin;
#include "kernels.def"
#undef KERNEL

static const struct k_kernel table[K_ID_COUNT] = {
#define KERNEL(name, file)                                                                         \
    {#name, "kernels/" #file ".cu", sizeof(struct k_##name##_args), k_##name##_rows,               \
     k_##name##_rows_twin},
#include "kernels.def"
#undef KERNEL
};

const struct k_kernel *k_kernel_at(enum k_id id)
{
    return &table[id];
}

bool k_kernel_is_plain(enum k_id id)
{
    return !mut_twin_wanted(table[id].file);
}

k_rows_fn *k_kernel_rows(enum k_id id)
{
    return k_kernel_is_plain(id) ? table[id].rows : table[id].rows_twin;
}
