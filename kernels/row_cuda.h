/* Row programs on CUDA: up to 32 lanes are a warp, more are a block. Included by row.h alone.
 * ROW_SUFFIX, set by the build, names the entry k_<name><ROW_SUFFIX>, a k_launch_fn (launch.h):
 * _launch, or _launch_twin for the mutable twin. */
#pragma once

#include <cuda_runtime.h>

#include "launch.h"

#define ROW_FN static __device__ __forceinline__
#define ROW_RESTRICT __restrict__

#define ROW_PASTE2_(a, b) a##b
#define ROW_PASTE_(a, b) ROW_PASTE2_(a, b)
#define ROW_ENTRY_(name) ROW_PASTE_(k_##name, ROW_SUFFIX)

/* Threads of a block that holds several one-warp rows. */
enum { ROW_BLOCK_ = 256 };

/* cudaLaunchKernel answers for this launch; the thread's last error might be another call's. */
#define ROW_KERNEL(name, lanes)                                                                    \
    ROW_FN void name##_body(const struct k_##name##_args *a, const int row, const int lane_,       \
                            float *row_shared_, const char(*row_lanes_)[lanes]);                   \
    static __global__ void __launch_bounds__((lanes) > 32 ? (int)(lanes) : (int)ROW_BLOCK_)        \
        name##_global(const struct k_##name##_args args, int rows MUT_LAUNCH_PARAMETER)            \
    {                                                                                              \
        __shared__ float shared[32];                                                               \
        const int warp = (int)threadIdx.x / 32;                                                    \
        const int block = (int)blockIdx.x;                                                         \
        const int row = (lanes) > 32 ? block : block * (ROW_BLOCK_ / 32) + warp;                   \
        const int lane = (lanes) > 32 ? (int)threadIdx.x : (int)threadIdx.x % 32;                  \
        MUT_LAUNCH_ENTER                                                                           \
        if (row < rows) {                                                                          \
            name##_body(&args, row, lane, shared, 0);                                              \
        }                                                                                          \
    }                                                                                              \
    extern "C" int ROW_ENTRY_(name)(void *stream, int rows, const void *args,                      \
                                    ROW_UNUSED const struct mut_launch *launch)                    \
    {                                                                                              \
        const int per_block = (lanes) > 32 ? 1 : ROW_BLOCK_ / 32;                                  \
        const int blocks = (rows + per_block - 1) / per_block;                                     \
        const int threads = (lanes) > 32 ? (int)(lanes) : (int)ROW_BLOCK_;                         \
        struct k_##name##_args copy = *(const struct k_##name##_args *)args;                       \
        void *parameters[] = {&copy, &rows MUT_LAUNCH_ARGUMENT(launch)};                           \
        return (int)cudaLaunchKernel((const void *)name##_global, dim3((unsigned)blocks),          \
                                     dim3((unsigned)threads), parameters, MUT_LAUNCH_BYTES,        \
                                     (cudaStream_t)stream);                                        \
    }                                                                                              \
    ROW_FN void name##_body(const struct k_##name##_args *a, const int row, const int lane_,       \
                            float *row_shared_, const char(*row_lanes_)[lanes])

#define ROW_FOR(i, n) for (int i = lane_; i < (n); i += ROW_L)
#define ROW_ONE if (lane_ == 0)
#define ROW_SYNC() (ROW_L > 32 ? __syncthreads() : __syncwarp())
#define ROW_LANES(type, v) type v[1]
#define ROW_LANE lane_
#define ROW_MINE 0
#define ROW_EACH
#define ROW_WALK(i, n, ...)                                                                        \
    for (int i = lane_; i < (n); i += ROW_L) {                                                     \
        __VA_ARGS__;                                                                               \
    }
#define ROW_FOLD_SUM(out, v) ((out) = row_fold_sum((v)[0], row_shared_, ROW_L))
#define ROW_FOLD_MAX(out, v) ((out) = row_fold_max((v)[0], row_shared_, ROW_L))
#define ROW_FOLD_WORDS(out, v) ((out) = row_fold_words((v)[0], row_shared_, ROW_L))

ROW_FN float row_max(float x, float y)
{
    return x > y ? x : y;
}

/* The butterfly adds the same pairs as folding by halves; a + b and b + a have the same bits. */
ROW_FN float row_fold_sum(float v, float *shared, const int lanes)
{
    for (int half = 16; half > 0; half /= 2) {
        v += __shfl_xor_sync(0xffffffffu, v, half);
    }
    if (lanes > 32) {
        __syncthreads(); /* shared is free again */
        if (threadIdx.x % 32 == 0) {
            shared[threadIdx.x / 32] = v;
        }
        __syncthreads();
        v = shared[0];
        for (int warp = 1; warp < lanes / 32; warp++) {
            v += shared[warp];
        }
    }
    return v;
}

/* Folded downwards, not by butterfly: with NaN the order of row_max's operands matters. */
ROW_FN float row_fold_max(float v, float *shared, const int lanes)
{
    for (int half = 16; half > 0; half /= 2) {
        v = row_max(v, __shfl_down_sync(0xffffffffu, v, (unsigned)half));
    }
    v = __shfl_sync(0xffffffffu, v, 0);
    if (lanes > 32) {
        __syncthreads();
        if (threadIdx.x % 32 == 0) {
            shared[threadIdx.x / 32] = v;
        }
        __syncthreads();
        v = shared[0];
        for (int warp = 1; warp < lanes / 32; warp++) {
            v = row_max(v, shared[warp]);
        }
    }
    return v;
}

ROW_FN uint32_t row_fold_words(uint32_t v, float *shared, const int lanes)
{
    for (int half = 16; half > 0; half /= 2) {
        v += __shfl_xor_sync(0xffffffffu, v, half);
    }
    if (lanes > 32) {
        __syncthreads();
        if (threadIdx.x % 32 == 0) {
            shared[threadIdx.x / 32] = __uint_as_float(v);
        }
        __syncthreads();
        v = __float_as_uint(shared[0]);
        for (int warp = 1; warp < lanes / 32; warp++) {
            v += __float_as_uint(shared[warp]);
        }
    }
    return v;
}
