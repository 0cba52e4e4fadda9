/* Shows that the CUDA form of every row program links with the CUDA runtime and cuBLAS. Built where
 * nvcc exists; without a device it names the driver's error and exits with 1. */
#include <cstdio>

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "kernel.h"

#define KERNEL(name, file)                                                                         \
    extern "C" int k_##name##_launch(void *stream, int rows, const void *args);
#include "kernels.def"
#undef KERNEL

typedef int launch_fn(void *stream, int rows, const void *args);

static const struct {
    const char *name;
    launch_fn *launch;
} launches[] = {
#define KERNEL(name, file) {"k_" #name "_launch", k_##name##_launch},
#include "kernels.def"
#undef KERNEL
};

int main()
{
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0) {
        std::fprintf(stderr, "k_cuda_link: no CUDA device: %s\n", cudaGetErrorName(error));
        return 1;
    }
    cublasHandle_t blas = nullptr;
    const cublasStatus_t status = cublasCreate(&blas);
    if (status != CUBLAS_STATUS_SUCCESS) {
        std::fprintf(stderr, "k_cuda_link: cuBLAS: status %d\n", (int)status);
        return 1;
    }
    cublasDestroy(blas);
    for (const auto &l : launches) {
        std::printf("%s %s\n", l.name, l.launch != nullptr ? "linked" : "missing");
    }
    return 0;
}
