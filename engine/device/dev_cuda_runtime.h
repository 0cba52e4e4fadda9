/* Inside the CUDA library: what its files share. Not for the engine. */
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "dev_cuda_driver.h"
#include "dev_cuda_extra.h"

struct dev_cuda_context {
    int device;
    void *slab, *pinned;
    cudaStream_t stream[DEV_CUDA_STREAMS];
    /* A handle for each stream that multiplies: a workspace of its own keeps bits the same however
     * streams overlap. */
    cublasHandle_t blas[DEV_CUDA_STREAMS];
    void *workspace[DEV_CUDA_STREAMS];
    int32_t *first_step; /* device memory, one per site; NULL without sites */
    size_t sites;
    bool exact_products;
    cudaEvent_t *events; /* all that were created, for closing */
    size_t event_count, event_capacity;
};

/* 0 when the call succeeded; else the sentence "call: name: text". Errors that are not sticky are
 * cleared, so that no later call is blamed for them. */
int dev_cuda_check(cudaError_t result, const char *call, struct dev_cuda_error *error);
/* The device must be current in the calling thread: CUDA keeps it per thread. */
int dev_cuda_enter(const dev_cuda_context *c, struct dev_cuda_error *error);

/* dev_cuda_blas.c */
int dev_cuda_gemm(dev_cuda_context *c, int stream, const struct k_gemm_args *args,
                  struct dev_cuda_error *error);
void dev_cuda_blas_close(dev_cuda_context *c);
