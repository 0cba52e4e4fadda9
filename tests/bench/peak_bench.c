/* The machine's single-precision FMA rate: what achieved GFLOP/s are divided by.
 *   peak_bench THREADS
 * Prints GFLOP/s of independent fused multiply-adds in registers, all threads together. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS_MAX = 16, CHAINS = 12, LANES = 16, INNER = 1000 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *burst(void *context)
{
    double *gflops = context;
    lanes acc[CHAINS];
    lanes factor, addend;
    for (int l = 0; l < LANES; l++) {
        factor[l] = 0.999999f;
        addend[l] = 1e-6f;
    }
    for (int i = 0; i < CHAINS; i++) {
        acc[i] = addend;
    }
    double best = 0.0;
    for (int round = 0; round < 20; round++) {
        const double begin = now();
        long steps = 0;
        do {
            for (int n = 0; n < INNER; n++) {
                for (int i = 0; i < CHAINS; i++) {
                    acc[i] = acc[i] * factor + addend; /* contracted: see tests/bench/bench.cmake */
                }
            }
            steps += INNER;
        } while (now() - begin < 0.02);
        const double rate = 2.0 * CHAINS * LANES * (double)steps / (now() - begin) * 1e-9;
        best = rate > best ? rate : best;
    }
    float sink = 0.0f;
    for (int i = 0; i < CHAINS; i++) {
        sink += acc[i][0];
    }
    *gflops = sink < 1e30f ? best : 0.0; /* the chains must not be optimised away */
    return NULL;
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    if (threads < 1 || threads > THREADS_MAX) {
        fprintf(stderr, "usage: peak_bench THREADS(1..%d)\n", THREADS_MAX);
        return 1;
    }
    pthread_t thread[THREADS_MAX];
    double gflops[THREADS_MAX];
    for (int t = 1; t < threads; t++) {
        pthread_create(&thread[t], NULL, burst, &gflops[t]);
    }
    burst(&gflops[0]);
    double sum = gflops[0];
    for (int t = 1; t < threads; t++) {
        pthread_join(thread[t], NULL);
        sum += gflops[t];
    }
    printf("%.1f\n", sum);
    return 0;
}
