/* The CUDA library's products: cuBLAS through its C API, set up so that equal calls give equal
 * bits. Called through the driver's table; must not know what is multiplied. */
#include <stdio.h>
#include <string.h>

#include "dev_cuda_runtime.h"

enum { WORKSPACE_BYTES = 32 << 20 }; /* what cuBLAS would take by itself on recent devices */

#define CHECK(call) check_blas((call), #call, error)

static int check_blas(cublasStatus_t status, const char *call, struct dev_cuda_error *error)
{
    if (status == CUBLAS_STATUS_SUCCESS) {
        return 0;
    }
    const size_t name = strcspn(call, "(");
    snprintf(error->text, sizeof error->text, "%.*s: %s", (int)name, call,
             cublasGetStatusString(status));
    return status == CUBLAS_STATUS_ALLOC_FAILED ? DEV_CUDA_OOM : DEV_CUDA_FAILED;
}

/* The order matters: setting the stream gives a handle back its own workspace. */
static int open_handle(dev_cuda_context *c, int stream, struct dev_cuda_error *error)
{
    int result = dev_cuda_check(cudaMalloc(&c->workspace[stream], WORKSPACE_BYTES),
                                "cudaMalloc(workspace)", error);
    if (result == 0) {
        result = CHECK(cublasCreate(&c->blas[stream]));
    }
    if (result == 0) {
        result = CHECK(cublasSetStream(c->blas[stream], c->stream[stream]));
    }
    if (result == 0) {
        result = CHECK(cublasSetWorkspace(c->blas[stream], c->workspace[stream], WORKSPACE_BYTES));
    }
    if (result == 0) {
        result = CHECK(cublasSetMathMode(c->blas[stream], CUBLAS_PEDANTIC_MATH));
    }
    if (result == 0) {
        result = CHECK(cublasSetAtomicsMode(c->blas[stream], CUBLAS_ATOMICS_NOT_ALLOWED));
    }
    if (result == 0) {
        result = CHECK(cublasSetPointerMode(c->blas[stream], CUBLAS_POINTER_MODE_HOST));
    }
    return result;
}

/* `count` products at equal distances. A row-major matrix is the transpose of the column-major one
 * in the same place, and C^T = op(B)^T op(A)^T: operands change sides, nothing is moved. */
static int multiply(cublasHandle_t handle, const struct k_gemm_args *g, size_t outer,
                    struct dev_cuda_error *error)
{
    const float one = 1.0f;
    const float beta = g->accumulate ? 1.0f : 0.0f;
    return CHECK(cublasSgemmStridedBatched(
        handle, g->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, g->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N,
        g->n, g->m, g->k, &one, g->b + outer * g->b_outer, g->ldb, (long long)g->b_inner,
        g->a + outer * g->a_outer, g->lda, (long long)g->a_inner, &beta, g->c + outer * g->c_outer,
        g->ldc, (long long)g->c_inner, g->batch_inner));
}

int dev_cuda_gemm(dev_cuda_context *c, int stream, const struct k_gemm_args *g,
                  struct dev_cuda_error *error)
{
    int result = dev_cuda_enter(c, error);
    if (result == 0 && c->exact_products) {
        return dev_cuda_check((cudaError_t)dev_cuda_launch_gemm(c->stream[stream], g),
                              "cudaLaunchKernel(product)", error);
    }
    if (result == 0 && c->blas[stream] == NULL) {
        result = open_handle(c, stream, error);
    }
    for (int i = 0; result == 0 && i < g->batch_outer; i++) {
        result = multiply(c->blas[stream], g, (size_t)i, error);
    }
    return result;
}

void dev_cuda_blas_close(dev_cuda_context *c)
{
    for (int s = 0; s < DEV_CUDA_STREAMS; s++) {
        if (c->blas[s] != NULL) {
            (void)cublasDestroy(c->blas[s]);
        }
        (void)cudaFree(c->workspace[s]);
    }
}
