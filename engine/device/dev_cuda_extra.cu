/* Two kernels of the CUDA library that are no row programs: one keeps a stream busy, one multiplies
 * in the host's order. Called by dev_cuda_runtime.c and dev_cuda_blas.c; must not know why. */
#include <cuda_runtime.h>

#include "gemm.h"

extern "C" {
#include "dev_cuda_extra.h"
}

static __global__ void spin(unsigned long long nanoseconds)
{
    unsigned long long begin;
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do {
        __nanosleep(1000);
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
}

int dev_cuda_launch_delay(void *stream, unsigned microseconds)
{
    unsigned long long nanoseconds = 1000ull * microseconds;
    void *parameters[] = {&nanoseconds};
    return (int)cudaLaunchKernel((const void *)spin, dim3(1), dim3(1), parameters, 0,
                                 (cudaStream_t)stream);
}

/* One thread, one element: a chain of fmaf over increasing k, as gemm.h promises for the host. */
static __global__ void chain(const struct k_gemm_args g)
{
    const int column = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const int row = (int)(blockIdx.y * blockDim.y + threadIdx.y);
    const size_t outer = blockIdx.z / (unsigned)g.batch_inner;
    const size_t inner = blockIdx.z % (unsigned)g.batch_inner;
    if (row >= g.m || column >= g.n) {
        return;
    }
    const float *a = g.a + outer * g.a_outer + inner * g.a_inner;
    const float *b = g.b + outer * g.b_outer + inner * g.b_inner;
    float *c = g.c + outer * g.c_outer + inner * g.c_inner + (size_t)row * g.ldc + column;
    float sum = g.accumulate ? *c : 0.0f;
    for (int k = 0; k < g.k; k++) {
        const float left = g.trans_a ? a[(size_t)k * g.lda + row] : a[(size_t)row * g.lda + k];
        const float right =
            g.trans_b ? b[(size_t)column * g.ldb + k] : b[(size_t)k * g.ldb + column];
        sum = fmaf(left, right, sum);
    }
    *c = sum;
}

int dev_cuda_launch_gemm(void *stream, const struct k_gemm_args *args)
{
    enum { COLUMNS = 32, ROWS = 8 };
    struct k_gemm_args copy = *args;
    void *parameters[] = {&copy};
    const dim3 block(COLUMNS, ROWS);
    const dim3 grid((unsigned)(args->n + COLUMNS - 1) / COLUMNS,
                    (unsigned)(args->m + ROWS - 1) / ROWS,
                    (unsigned)(args->batch_outer * args->batch_inner));
    return (int)cudaLaunchKernel((const void *)chain, grid, block, parameters, 0,
                                 (cudaStream_t)stream);
}
