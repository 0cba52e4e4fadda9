/* What the device runtime adds to the work: an operation, an allocation, each with and without race
 * checker and poison, in one interleaved run. Run by tests/bench/run.sh.
 *
 *   dev_bench
 * Prints nanoseconds (median of the rounds, processor time) and what the limits are. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dev.h"
#include "norm.h"

enum { ROUNDS = 31, REPEATS = 2000, WIDTH = 64, BLOCKS = 64, VARIANTS = 2 };

/* A device in the shape of a trainer: many live blocks, three streams, an event between them. */
struct setting {
    dev *d;
    dev_stream compute, side;
    dev_event event;
    float *x, *weight, *out, *rstd;
    void *others[BLOCKS];
};

typedef bool measured_fn(struct setting *s);

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static bool open_setting(struct setting *s, bool checked, enum dev_sched sched)
{
    const struct dev_conf conf = {.heap_bytes = 64u << 20,
                                  .pinned_bytes = 1u << 16,
                                  .sched = sched,
                                  .seed = 1,
                                  .threads = 1,
                                  .check_races = checked,
                                  .poison = false};
    void *block[4] = {NULL};
    if (dev_open(&conf, &s->d) != DEV_OK ||
        dev_stream_create(s->d, "compute", &s->compute) != DEV_OK ||
        dev_stream_create(s->d, "side", &s->side) != DEV_OK ||
        dev_event_create(s->d, "done", &s->event) != DEV_OK) {
        return false;
    }
    bool ok = true;
    for (int i = 0; i < BLOCKS; i++) {
        ok = ok && dev_malloc(s->d, s->compute, 4096u * (unsigned)(i + 1), "other",
                              &s->others[i]) == DEV_OK;
    }
    for (int i = 0; i < 4; i++) {
        ok = ok &&
             dev_malloc(s->d, s->compute, WIDTH * sizeof(float), "operand", &block[i]) == DEV_OK;
        ok =
            ok && dev_fill(s->d, s->compute, block[i], 0, WIDTH * sizeof(float), "clear") == DEV_OK;
    }
    s->x = block[0];
    s->weight = block[1];
    s->out = block[2];
    s->rstd = block[3];
    return ok && dev_sync_all(s->d) == DEV_OK;
}

/* One row of 64 floats: the row itself takes some ten nanoseconds. */
static bool launch(struct setting *s)
{
    const struct k_rmsnorm_fwd_args args = {.x = s->x,
                                            .weight = s->weight,
                                            .out = s->out,
                                            .rstd = s->rstd,
                                            .width = WIDTH,
                                            .eps = 1e-5f};
    const struct dev_span spans[] = {{s->x, WIDTH * sizeof(float), DEV_READ},
                                     {s->weight, WIDTH * sizeof(float), DEV_READ},
                                     {s->out, WIDTH * sizeof(float), DEV_WRITE},
                                     {s->rstd, sizeof(float), DEV_WRITE}};
    return dev_launch(s->d, s->compute, K_ID_rmsnorm_fwd, 1, &args, spans, 4, "norm") == DEV_OK;
}

static bool record_and_wait(struct setting *s)
{
    return dev_record(s->d, s->event, s->compute) == DEV_OK &&
           dev_wait(s->d, s->side, s->event) == DEV_OK;
}

static bool allocate(struct setting *s)
{
    void *block = NULL;
    return dev_malloc(s->d, s->compute, 1u << 16, "temporary", &block) == DEV_OK &&
           dev_free(s->d, block) == DEV_OK;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median nanoseconds a call, of both settings, rounds interleaved. */
static bool measure(struct setting s[VARIANTS], measured_fn *fn, double out[VARIANTS])
{
    static double ns[VARIANTS][ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int v = 0; v < VARIANTS; v++) {
            const double begin = now_ns();
            for (int i = 0; i < REPEATS; i++) {
                if (!fn(&s[v])) {
                    return false;
                }
            }
            ns[v][round] = (now_ns() - begin) / REPEATS;
        }
    }
    for (int v = 0; v < VARIANTS; v++) {
        if (dev_sync_all(s[v].d) != DEV_OK) {
            return false;
        }
        qsort(ns[v], ROUNDS, sizeof ns[v][0], by_size);
        out[v] = ns[v][ROUNDS / 2];
    }
    return true;
}

int main(void)
{
    static const struct {
        const char *what;
        measured_fn *fn;
        double limit_ns;
    } rows[] = {{"kernel of one row, four spans", launch, 1000.0},
                {"event: record and wait", record_and_wait, 1000.0},
                {"allocation and free of a cached block", allocate, 200.0}};
    static struct setting s[VARIANTS];
    if (!open_setting(&s[0], false, DEV_SCHED_FIFO) || !open_setting(&s[1], true, DEV_SCHED_FIFO)) {
        fprintf(stderr, "dev_bench: the device cannot be opened\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double ns[VARIANTS];
        if (!measure(s, rows[i].fn, ns)) {
            fprintf(stderr, "dev_bench: %s: %s\n", rows[i].what, dev_error(s[0].d));
            return 1;
        }
        printf("%-38s %.2f of the limit of %.0f ns; with race checker %.2f (%.2f times as long)\n",
               rows[i].what, ns[0] / rows[i].limit_ns, rows[i].limit_ns, ns[1] / rows[i].limit_ns,
               ns[1] / ns[0]);
    }
    for (int v = 0; v < VARIANTS; v++) {
        dev_close(s[v].d);
    }
    return 0;
}
