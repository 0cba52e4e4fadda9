/* The table of row programs a device can launch.
 * Used by the device runtime and tests; must not know the engine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum k_id {
#define KERNEL(name, file) K_ID_##name,
#include "kernels.def"
#undef KERNEL
    K_ID_COUNT
};

/* Runs rows [row_begin, row_end) of a program on the calling host thread. Rows are independent: any
 * division of them over threads gives the same bits. */
typedef void k_rows_fn(const void *args, int row_begin, int row_end);

struct k_kernel {
    const char *name;  /* "rmsnorm_fwd" */
    const char *file;  /* "kernels/norm.cu" */
    size_t args_bytes; /* size of struct k_<name>_args */
    k_rows_fn *rows;
    k_rows_fn *rows_twin; /* mutable twin; NULL in the production build */
};

const struct k_kernel *k_kernel_at(enum k_id id);

/* Whether mutable twins run with emulated lanes in this program (faultline-train-lanes), and the
 * seed of the order in which lanes run; set before any row runs. */
bool k_lanes_emulated(void);
void k_lanes_seed(uint64_t seed);

/* Whether this process runs a program without fault sites: what relies on the healthy form of its
 * results, such as zeros that need not be multiplied, may do so only then. */
bool k_kernel_is_plain(enum k_id id);

/* The function to run in this process: the twin when mut_twin_wanted(file), else production. */
k_rows_fn *k_kernel_rows(enum k_id id);
