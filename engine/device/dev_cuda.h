/* The CUDA back end. Included by dev.c; must not know what is enqueued. */
#pragma once

#include "dev_internal.h"

extern const struct dev_backend dev_cuda_backend;
/* "NVIDIA H200, CUDA 13.0" of an open device of this kind. */
const char *dev_cuda_device_name(const dev *d);
