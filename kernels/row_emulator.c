/* Lanes as fibers in a seeded random order. Used by emulated row programs; must not know them.
 * The running row is thread-local state: a lane has no other way to find its group. */
#include "row_emulator.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* No power of two: equal places in the lanes' stacks must not share a set of the cache. */
enum { STACK_BYTES = 64 * 1024 + 4096 + 64 };

/* Exit codes of the process: a kernel broke a rule, which is a bug as a failed assertion is; or the
 * machine refused. */
enum { DIVERGED = 9, INTERNAL = 70 };

/* A lane is entered once with its own stack; from then on jumps, which need no system call, go from
 * lane to lane, and back home after the last one of a pass. */
struct lane {
    ucontext_t entry;
    jmp_buf at;
    int entered, ended, phase;
};

struct emulator {
    row_emulator_lane_fn *fn;
    const void *args;
    int lanes, row;
    int next; /* place in the order of the lane to run after this one */
    int ended;
    uint64_t random;
    jmp_buf home;
    struct lane lane[ROW_EMULATOR_LANES];
    int order[ROW_EMULATOR_LANES];
    uint32_t shared[2][ROW_EMULATOR_LANES];
    char *stacks;
};

static _Thread_local struct emulator *running;
static uint64_t order_seed = 1;

void row_emulator_seed(uint64_t seed)
{
    order_seed = seed;
}

/* A launch has no status to return. The exit codes are the trainer's. */
static _Noreturn void end_process(int code, const char *why)
{
    fprintf(stderr, "faultline-train: emulated lanes: %s\n", why);
    _exit(code);
}

/* SplitMix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Leaves for the next lane of this pass, or for home. Does not return. */
static void go_on(struct emulator *e)
{
    if (e->next == e->lanes) {
        _longjmp(e->home, 1);
    }
    struct lane *lane = &e->lane[e->order[e->next]];
    e->next++;
    if (lane->entered) {
        _longjmp(lane->at, 1);
    }
    lane->entered = 1;
    setcontext(&lane->entry);
    end_process(INTERNAL, "a lane cannot be entered");
}

void row_emulator_meet(void)
{
    struct emulator *e = running;
    struct lane *mine = &e->lane[e->order[e->next - 1]];
    if (_setjmp(mine->at) == 0) {
        go_on(e);
    }
}

const uint32_t *row_emulator_share(uint32_t bits, int lane)
{
    struct emulator *e = running;
    const int phase = e->lane[lane].phase ^= 1;
    e->shared[phase][lane] = bits;
    row_emulator_meet();
    return e->shared[phase];
}

/* A lane goes through one row after another. */
static void lane_main(int number)
{
    for (;;) {
        struct emulator *e = running;
        e->fn(e->args, e->row, number);
        e->ended++;
        row_emulator_meet();
    }
}

static void shuffle(struct emulator *e)
{
    for (int i = e->lanes - 1; i > 0; i--) {
        const int j = (int)(next_random(&e->random) % (uint64_t)(i + 1));
        const int swapped = e->order[i];
        e->order[i] = e->order[j];
        e->order[j] = swapped;
    }
}

static void run_row(struct emulator *e)
{
    e->random = order_seed ^ (uint64_t)(uint32_t)e->row << 32;
    for (int l = 0; l < e->lanes; l++) {
        e->order[l] = l;
        e->lane[l].phase = 0;
    }
    for (e->ended = 0; e->ended == 0;) {
        shuffle(e);
        e->next = 0;
        if (_setjmp(e->home) == 0) {
            go_on(e);
        }
        if (e->ended != 0 && e->ended != e->lanes) {
            end_process(DIVERGED, "some lanes of a row meet while others have ended");
        }
    }
}

static void make_lanes(struct emulator *e)
{
    for (int l = 0; l < e->lanes; l++) {
        ucontext_t *entry = &e->lane[l].entry;
        getcontext(entry);
        entry->uc_stack.ss_sp = e->stacks + (size_t)STACK_BYTES * (size_t)l;
        entry->uc_stack.ss_size = STACK_BYTES;
        entry->uc_link = NULL;
        makecontext(entry, (void (*)(void))lane_main, 1, l);
    }
}

void row_emulator_run(row_emulator_lane_fn *fn, int lanes, const void *args, int row_begin,
                      int row_end)
{
    struct emulator *e = (struct emulator *)calloc(1, sizeof *e);
    char *stacks = (char *)malloc((size_t)STACK_BYTES * (size_t)lanes);
    if (e == NULL || stacks == NULL) {
        end_process(INTERNAL, "host memory exhausted");
    }
    e->stacks = stacks;
    e->fn = fn;
    e->args = args;
    e->lanes = lanes;
    running = e;
    make_lanes(e);
    for (e->row = row_begin; e->row < row_end; e->row++) {
        run_row(e);
    }
    running = NULL;
    free(e->stacks);
    free(e);
}
