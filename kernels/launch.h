/* Row programs on a CUDA device. Used by the device's CUDA library; must not know what orders them.
 */
#pragma once

#include <stdbool.h>

#include "fault_launch.h"
#include "kernel.h"

/* Enqueues rows [0, rows), rows > 0, on a cudaStream_t. args: struct k_<name>_args, copied. launch:
 * the fault state, used by twins alone. Returns the launch's own cudaError_t. */
typedef int k_launch_fn(void *stream, int rows, const void *args, const struct mut_launch *launch);

/* NULL where there is no such twin: production. */
k_launch_fn *k_launch_at(enum k_id id, bool twin);
