/* The inner loop of the peak. Used by peak_bench.c and gemm_bench.c. */
#include "fma_burst.h"

typedef float lanes __attribute__((vector_size(FMA_LANES * sizeof(float))));

float fma_burst(long steps)
{
    lanes acc[FMA_CHAINS];
    const lanes factor = (lanes){0} + 0.999999f;
    const lanes addend = (lanes){0} + 1e-6f;
    for (int i = 0; i < FMA_CHAINS; i++) {
        acc[i] = addend;
    }
    for (long n = 0; n < steps; n++) {
        for (int i = 0; i < FMA_CHAINS; i++) {
            acc[i] = acc[i] * factor + addend; /* contracted: see bench.cmake */
        }
    }
    float sink = 0.0f;
    for (int i = 0; i < FMA_CHAINS; i++) {
        sink += acc[i][0];
    }
    return sink;
}
