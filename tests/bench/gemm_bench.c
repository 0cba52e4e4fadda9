/* Our GEMM against OpenBLAS and oneDNN at the shapes of the recipes, in one interleaved run.
 * Run by tests/bench/run.sh; a peer whose library is absent is named and left out.
 *
 *   gemm_bench THREADS SECONDS_PER_PROBLEM
 * Prints for each shape the best of its rounds in percent of the best burst of fused multiply-adds
 * in the same rounds, then the ratios to the peers: paired within a round, the median of the
 * rounds, the geometric mean of the shapes. */
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dev_map.h"
#include "dev_pool.h"
#include "fma_burst.h"
#include "gemm.h"

/* Who runs in a round: PEAK is the machine's own rate. */
enum { OURS, OPENBLAS, DNNL, PEAK, PEERS };
enum { THREADS_MAX = 16, ROUNDS_MAX = 64, BURST_STEPS = 20000 };
static const double ROUND_SECONDS = 0.004;
/* Idle threads of OpenMP spin for a while: they must be asleep before another library is measured.
 */
static const long SETTLE_NANOSECONDS = 8000000;

typedef void cblas_sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c,
                            int ldc);
typedef int dnnl_sgemm_fn(char trans_a, char trans_b, long m, long n, long k, float alpha,
                          const float *a, long lda, const float *b, long ldb, float beta, float *c,
                          long ldc);

static struct {
    int threads;
    dev_pool *pool;
    void *workspace[THREADS_MAX];
    cblas_sgemm_fn *openblas;
    dnnl_sgemm_fn *dnnl;
    float sink[THREADS_MAX]; /* of the bursts, which must not be optimised away */
} bench;

struct problem {
    const char *recipe, *what;
    int m, n, k;
    bool trans_a, trans_b;
};

/* tokens x width x {qkv, ffn, vocabulary} of tiny and small: forward, input and weight gradients.
 */
static const struct problem problems[] = {
    {"tiny", "qkv forward", 512, 256, 128, false, true},
    {"tiny", "gate_up forward", 512, 704, 128, false, true},
    {"tiny", "down forward", 512, 128, 352, false, true},
    {"tiny", "lm_head forward", 512, 2048, 128, false, true},
    {"tiny", "lm_head dX", 512, 128, 2048, false, false},
    {"tiny", "lm_head dW", 2048, 128, 512, true, false},
    {"tiny", "one head's scores", 128, 128, 32, false, true},
    {"small", "qkv forward", 1024, 640, 384, false, true},
    {"small", "gate_up forward", 1024, 2048, 384, false, true},
    {"small", "gate_up dX", 1024, 384, 2048, false, false},
    {"small", "gate_up dW", 2048, 384, 1024, true, false},
    {"124M", "gate_up forward", 256, 4096, 768, false, true},
    {"124M", "down dW", 768, 2048, 256, true, false},
};

static void run_part(void *context, int part, int parts, int thread)
{
    k_gemm_part(context, part, parts, bench.workspace[thread]);
}

/* As the device runtime does it: one part for each thread of its pool. */
static void run_ours(const struct k_gemm_args *args)
{
    struct k_gemm_args copy = *args;
    dev_pool_run(bench.pool, run_part, &copy, bench.threads);
}

static void run_burst(void *context, int part, int parts, int thread)
{
    (void)context, (void)part, (void)parts;
    bench.sink[thread] += fma_burst(BURST_STEPS);
}

static void run_peer(int peer, const struct k_gemm_args *g)
{
    if (peer == OURS) {
        run_ours(g);
    } else if (peer == PEAK) {
        dev_pool_run(bench.pool, run_burst, NULL, bench.threads);
    } else if (peer == OPENBLAS) {
        bench.openblas(101, g->trans_a ? 112 : 111, g->trans_b ? 112 : 111, g->m, g->n, g->k, 1.0f,
                       g->a, g->lda, g->b, g->ldb, 0.0f, g->c, g->ldc);
    } else {
        bench.dnnl(g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', g->m, g->n, g->k, 1.0f, g->a,
                   g->lda, g->b, g->ldb, 0.0f, g->c, g->ldc);
    }
}

static bool peer_present(int peer)
{
    return peer == OPENBLAS ? bench.openblas != NULL : peer != DNNL || bench.dnnl != NULL;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* For all alike from where the trainer has its memory. */
static float *matrix(size_t elements, unsigned seed)
{
    float *x = dev_map_open(elements * sizeof *x);
    for (size_t i = 0; x != NULL && i < elements; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
    return x;
}

/* What the rounds of a shape say: best GFLOP/s of each, median of our rate over a peer's. */
struct outcome {
    double best[PEERS], ratio[PEERS];
};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return (values[(count - 1) / 2] + values[count / 2]) / 2.0;
}

/* GFLOP/s of one peer over a moment. */
static double rate(int peer, const struct k_gemm_args *args)
{
    const double flop = peer == PEAK ? (double)FMA_STEP_FLOP * BURST_STEPS * bench.threads
                                     : 2.0 * args->m * args->n * args->k;
    int repeats = 0;
    nanosleep(&(struct timespec){0, SETTLE_NANOSECONDS}, NULL);
    run_peer(peer, args);
    const double begin = now();
    double spent;
    do {
        run_peer(peer, args);
        repeats++;
        spent = now() - begin;
    } while (spent < ROUND_SECONDS);
    return flop * repeats / spent * 1e-9;
}

static struct outcome run_rounds(const struct k_gemm_args *args, double seconds)
{
    struct outcome out = {{0.0}, {0.0}};
    double ratios[PEERS][ROUNDS_MAX];
    const double end = now() + seconds;
    int rounds = 0;
    do {
        double rates[PEERS] = {0.0};
        for (int peer = 0; peer < PEERS; peer++) {
            rates[peer] = peer_present(peer) ? rate(peer, args) : 1.0;
            out.best[peer] = fmax(out.best[peer], rates[peer]);
            ratios[peer][rounds] = rates[OURS] / rates[peer];
        }
        rounds++;
    } while (now() < end && rounds < ROUNDS_MAX);
    for (int peer = 0; peer < PEERS; peer++) {
        out.ratio[peer] = median(ratios[peer], rounds);
    }
    return out;
}

static struct outcome measure(const struct problem *p, double seconds)
{
    float *a = matrix((size_t)p->m * (size_t)p->k, 1);
    float *b = matrix((size_t)p->k * (size_t)p->n, 2);
    float *c = matrix((size_t)p->m * (size_t)p->n, 3);
    const struct k_gemm_args args = {.a = a,
                                     .b = b,
                                     .c = c,
                                     .m = p->m,
                                     .n = p->n,
                                     .k = p->k,
                                     .lda = p->trans_a ? p->m : p->k,
                                     .ldb = p->trans_b ? p->k : p->n,
                                     .ldc = p->n,
                                     .trans_a = p->trans_a,
                                     .trans_b = p->trans_b,
                                     .batch_outer = 1,
                                     .batch_inner = 1};
    const struct outcome out = run_rounds(&args, seconds);
    dev_map_close(a, (size_t)p->m * (size_t)p->k * sizeof *a);
    dev_map_close(b, (size_t)p->k * (size_t)p->n * sizeof *b);
    dev_map_close(c, (size_t)p->m * (size_t)p->n * sizeof *c);
    return out;
}

static void load_peers(void)
{
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    char threads[16];
    snprintf(threads, sizeof threads, "%d", bench.threads);
    setenv("OPENBLAS_NUM_THREADS", threads, 1);
    setenv("OMP_NUM_THREADS", threads, 1);
    void *openblas = dlopen("libopenblas.so.0", RTLD_NOW);
    void *dnnl = dlopen("libdnnl.so.2", RTLD_NOW);
    if (openblas != NULL) {
        *(void **)&bench.openblas = dlsym(openblas, "cblas_sgemm");
    }
    if (dnnl != NULL) {
        *(void **)&bench.dnnl = dlsym(dnnl, "dnnl_sgemm");
    }
    printf("peers: OpenBLAS %s (core type %s), oneDNN %s; %d threads; our micro-kernel: %s\n",
           bench.openblas != NULL ? "present" : "absent", getenv("OPENBLAS_CORETYPE"),
           bench.dnnl != NULL ? "present" : "absent", bench.threads, k_gemm_kernel_name());
}

/* Geometric means over the shapes. */
struct means {
    double share, ratio[PEERS], least[PEERS], most[PEERS];
};

static void print_means(const struct means *m, int count)
{
    static const char *const names[] = {[OPENBLAS] = "OpenBLAS", [DNNL] = "oneDNN"};
    printf("geometric mean: ours %.0f %% of the peak", 100.0 * exp(m->share / count));
    for (int peer = OPENBLAS; peer < PEAK; peer++) {
        if (peer_present(peer)) {
            printf(", ours/%s %.2f [%.2f-%.2f]", names[peer], exp(m->ratio[peer] / count),
                   m->least[peer], m->most[peer]);
        }
    }
    printf("\n");
}

static void run_problems(double seconds)
{
    const size_t count = sizeof problems / sizeof problems[0];
    struct means m = {.share = 0.0};
    printf("%-6s %-20s %16s %9s %9s %9s\n", "recipe", "product", "m x n x k", "ours", "OpenBLAS",
           "oneDNN");
    for (size_t i = 0; i < count; i++) {
        const struct outcome o = measure(&problems[i], seconds);
        const double percent = 100.0 / o.best[PEAK];
        printf("%-6s %-20s %5dx%4dx%4d %8.0f%% %8.0f%% %8.0f%%\n", problems[i].recipe,
               problems[i].what, problems[i].m, problems[i].n, problems[i].k,
               percent * o.best[OURS], percent * o.best[OPENBLAS], percent * o.best[DNNL]);
        m.share += log(o.best[OURS] / o.best[PEAK]);
        for (int peer = 0; peer < PEERS; peer++) {
            m.ratio[peer] += log(o.ratio[peer]);
            m.least[peer] = i == 0 ? o.ratio[peer] : fmin(m.least[peer], o.ratio[peer]);
            m.most[peer] = fmax(m.most[peer], o.ratio[peer]);
        }
    }
    print_means(&m, (int)count);
}

int main(int argc, char **argv)
{
    if (argc != 3 || atoi(argv[1]) < 1 || atoi(argv[1]) > THREADS_MAX) {
        fprintf(stderr, "usage: gemm_bench THREADS(1..%d) SECONDS_PER_PROBLEM\n", THREADS_MAX);
        return 1;
    }
    bench.threads = atoi(argv[1]);
    const double seconds = atof(argv[2]);
    for (int t = 0; t < bench.threads; t++) {
        bench.workspace[t] = dev_map_open(k_gemm_workspace_bytes());
    }
    bench.pool = dev_pool_create(bench.threads);
    if (bench.pool == NULL) {
        return 1;
    }
    load_peers();
    run_problems(seconds);
    dev_pool_destroy(bench.pool);
    return 0;
}
