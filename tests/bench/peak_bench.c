/* The machine's single-precision FMA rate: what achieved GFLOP/s are divided by.
 *   peak_bench THREADS
 * Prints GFLOP/s of independent fused multiply-adds in registers, all threads together. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fma_burst.h"

enum { THREADS_MAX = 16, STEPS = 1000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *burst(void *context)
{
    double *gflops = context;
    double best = 0.0;
    float sink = 0.0f;
    for (int round = 0; round < 20; round++) {
        const double begin = now();
        long steps = 0;
        do {
            sink += fma_burst(STEPS);
            steps += STEPS;
        } while (now() - begin < 0.02);
        const double rate = (double)FMA_STEP_FLOP * (double)steps / (now() - begin) * 1e-9;
        best = rate > best ? rate : best;
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
