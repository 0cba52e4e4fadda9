/* Lanes as fibers in a seeded random order. Used by emulated row programs; must not know them.
 * The running row is thread-local state: a lane has no other way to find its group. */
#include "row_emulator.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK_BYTES = 64 * 1024 };

struct emulator {
    row_emulator_lane_fn *fn;
    const void *args;
    int lanes, row, current;
    uint64_t random;
    ucontext_t home;
    ucontext_t context[ROW_EMULATOR_LANES];
    int order[ROW_EMULATOR_LANES];
    int ended[ROW_EMULATOR_LANES];
    int phase[ROW_EMULATOR_LANES];
    uint32_t shared[2][ROW_EMULATOR_LANES];
    char *stacks;
};

static _Thread_local struct emulator *running;
static uint64_t order_seed = 1;

void row_emulator_seed(uint64_t seed)
{
    order_seed = seed;
}

/* SplitMix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void row_emulator_meet(void)
{
    struct emulator *e = running;
    swapcontext(&e->context[e->current], &e->home);
}

const uint32_t *row_emulator_share(uint32_t bits, int lane)
{
    struct emulator *e = running;
    const int phase = e->phase[lane] ^= 1;
    e->shared[phase][lane] = bits;
    row_emulator_meet();
    return e->shared[phase];
}

static void lane_main(void)
{
    struct emulator *e = running;
    const int lane = e->current;
    e->fn(e->args, e->row, lane);
    e->ended[lane] = 1;
    swapcontext(&e->context[lane], &e->home);
}

static void run_row(struct emulator *e)
{
    e->random = order_seed ^ (uint64_t)(uint32_t)e->row << 32;
    for (int l = 0; l < e->lanes; l++) {
        getcontext(&e->context[l]);
        e->context[l].uc_stack.ss_sp = e->stacks + (size_t)STACK_BYTES * (size_t)l;
        e->context[l].uc_stack.ss_size = STACK_BYTES;
        e->context[l].uc_link = NULL;
        makecontext(&e->context[l], lane_main, 0);
        e->order[l] = l;
        e->ended[l] = 0;
        e->phase[l] = 0;
    }
    for (int ended = 0; ended == 0;) {
        for (int i = e->lanes - 1; i > 0; i--) {
            const int j = (int)(next_random(&e->random) % (uint64_t)(i + 1));
            const int swapped = e->order[i];
            e->order[i] = e->order[j];
            e->order[j] = swapped;
        }
        for (int i = 0; i < e->lanes; i++) {
            e->current = e->order[i];
            swapcontext(&e->home, &e->context[e->current]);
            ended += e->ended[e->current];
        }
        if (ended != 0 && ended != e->lanes) {
            abort();
        }
    }
}

void row_emulator_run(row_emulator_lane_fn *fn, int lanes, const void *args, int row_begin,
                      int row_end)
{
    struct emulator *e = (struct emulator *)calloc(1, sizeof *e);
    if (e == NULL) {
        abort();
    }
    e->stacks = (char *)malloc((size_t)STACK_BYTES * (size_t)lanes);
    if (e->stacks == NULL) {
        abort();
    }
    e->fn = fn;
    e->args = args;
    e->lanes = lanes;
    running = e;
    for (e->row = row_begin; e->row < row_end; e->row++) {
        run_row(e);
    }
    running = NULL;
    free(e->stacks);
    free(e);
}
