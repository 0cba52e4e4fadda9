/* Micro-kernels of x86 CPUs, chosen by what the running one has. Used by gemm.c. */
#include "gemm_all.h"

const struct k_gemm_kernel *const *k_gemm_kernels(size_t *count)
{
    static const struct k_gemm_kernel *const kernels[] = {&k_gemm_avx512, &k_gemm_avx2,
                                                          &k_gemm_portable};
    size_t first = 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        first = 1;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
            first = 0;
        }
    }
    *count = 3 - first;
    return kernels + first;
}
