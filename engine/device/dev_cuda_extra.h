/* Kernels of the CUDA library that are no row programs. Used inside the library. */
#pragma once

struct k_gemm_args;

/* Keeps a cudaStream_t busy. Both return the launch's own cudaError_t. */
int dev_cuda_launch_delay(void *stream, unsigned microseconds);
/* The product, each element a chain of fmaf over increasing k: the host's bits. At most 65535
 * problems and 524280 rows. */
int dev_cuda_launch_gemm(void *stream, const struct k_gemm_args *args);
