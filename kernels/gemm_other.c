/* Micro-kernels of CPUs for which there is no special one. Used by gemm.c. */
#include "gemm_all.h"

const struct k_gemm_kernel *const *k_gemm_kernels(size_t *count)
{
    static const struct k_gemm_kernel *const kernels[] = {&k_gemm_portable};
    *count = 1;
    return kernels;
}
