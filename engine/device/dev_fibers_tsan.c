/* Streams as fibers of ThreadSanitizer. Called as dev_fibers.h says; must not know schedules.
 *
 * One thread runs everything under the seeded scheduler, but ThreadSanitizer takes each stream for
 * a thread: what compiled kernels, copies and host code really touch is a race unless one of the
 * edges below orders it, in whatever order it ran. Declared spans play no part. The device's own
 * files are not instrumented: they are the machine.
 *
 * A fiber has a stack of its own, for a place of the stack that two streams use in turn would be a
 * race too. The place of a stream after n operations is an address that nobody touches. */
#include "dev_fibers.h"

#include <sanitizer/tsan_interface.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "dev_sched.h"

/* The runtime's interface for managed heaps: forgets the accesses to a block handed out afresh. */
void __tsan_java_alloc(uintptr_t ptr, uintptr_t bytes);
void __tsan_java_free(uintptr_t ptr, uintptr_t bytes);

enum { STACK_BYTES = 1 << 20, POINTS = 1 << 20, POINT_BYTES = 8 };

struct fiber {
    dev *d;
    dev_stream stream;
    void *state; /* ThreadSanitizer's */
    ucontext_t home, own;
    char *stack, *points;
    const struct dev_op *op;
};

struct dev_fibers {
    struct fiber at[DEV_ACTORS];
};

bool dev_fibers_on(void)
{
    return true;
}

/* Points repeat after POINTS operations; an old one then orders more than it should. */
static char *point_at(const struct fiber *f, uint64_t sequence)
{
    return f->points + sequence % POINTS * POINT_BYTES;
}

/* What the fiber does each time it is switched to. */
static void run_tile(const struct fiber *f)
{
    const struct dev_op *op = f->op;
    const uint64_t done = atomic_load_explicit(&f->d->queue[f->stream].done, memory_order_relaxed);
    __tsan_acquire((void *)op);
    if (op->kind == DEV_OP_WAIT) {
        const struct dev_point point = op->u.wait;
        __tsan_acquire(point_at(&f->d->fibers->at[point.stream], point.sequence));
    } else {
        dev_execute_alone(f->d, op, f->stream);
    }
    __tsan_release(point_at(f, done + 1));
}

static void fiber_main(unsigned high, unsigned low)
{
    struct fiber *f = (struct fiber *)((uintptr_t)high << 32 | low);
    for (;;) {
        run_tile(f);
        swapcontext(&f->own, &f->home);
    }
}

bool dev_fibers_start(dev *d, dev_stream stream)
{
    if (d->fibers == NULL) {
        d->fibers = calloc(1, sizeof *d->fibers);
    }
    if (d->fibers == NULL) {
        return false;
    }
    struct fiber *f = &d->fibers->at[stream];
    char *points = mmap(NULL, (size_t)POINTS * POINT_BYTES, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    f->points = points == MAP_FAILED ? NULL : points;
    f->stack = malloc(STACK_BYTES);
    f->state = __tsan_create_fiber(0);
    if (f->points == NULL || f->stack == NULL || f->state == NULL || getcontext(&f->own) != 0) {
        return false;
    }
    __tsan_set_fiber_name(f->state, d->queue[stream].name);
    f->d = d;
    f->stream = stream;
    f->own.uc_stack.ss_sp = f->stack;
    f->own.uc_stack.ss_size = STACK_BYTES;
    makecontext(&f->own, (void (*)(void))fiber_main, 2, (unsigned)((uintptr_t)f >> 32),
                (unsigned)(uintptr_t)f);
    return true;
}

void dev_fibers_close(dev *d)
{
    for (int s = 1; d->fibers != NULL && s < DEV_ACTORS; s++) {
        struct fiber *f = &d->fibers->at[s];
        if (f->state != NULL) {
            __tsan_destroy_fiber(f->state);
        }
        if (f->points != NULL) {
            (void)munmap(f->points, (size_t)POINTS * POINT_BYTES);
        }
        free(f->stack);
    }
    free(d->fibers);
    d->fibers = NULL;
}

void dev_fibers_issued(const struct dev_op *op)
{
    __tsan_release((void *)op);
}

void dev_fibers_run(dev *d, dev_stream stream, const struct dev_op *op)
{
    struct fiber *f = &d->fibers->at[stream];
    void *host = __tsan_get_current_fiber();
    f->op = op;
    __tsan_switch_to_fiber(f->state, __tsan_switch_to_fiber_no_sync);
    swapcontext(&f->home, &f->own);
    __tsan_switch_to_fiber(host, __tsan_switch_to_fiber_no_sync);
}

void dev_fibers_waited(const dev *d, struct dev_point point)
{
    if (point.stream != 0) {
        __tsan_acquire(point_at(&d->fibers->at[point.stream], point.sequence));
    }
}

void dev_fibers_forget(void *ptr, size_t bytes)
{
    __tsan_java_free((uintptr_t)ptr, bytes);
    __tsan_java_alloc((uintptr_t)ptr, bytes);
}
