/* Finds the CUDA library. Called by dev_cuda.c and tests/gpu; must not know what is done with it.
 */
#pragma once

#include "dev_cuda_driver.h"

/* Loads $FAULTLINE_CUDA_LIBRARY, or else `name` beside the running program. NULL with a sentence in
 * *error when there is none or it belongs to another version. *library is for dlclose. */
const struct dev_cuda_driver *dev_cuda_load(const char *name, void **library,
                                            struct dev_cuda_error *error);
