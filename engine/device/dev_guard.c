/* Pages out of reach, and what is said when one is touched. Called by dev_host.c and dev_alloc.c;
 * must not know streams. */
#include "dev_guard.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dev_internal.h"
#include "dev_map.h"
#include "eng_assert.h"

enum { PAGE = 4096 };

/* A signal handler gets no context: the device it speaks for. */
static _Atomic(const dev *) guarded;
static struct sigaction before;

size_t dev_guard_offset(size_t offset, size_t bytes)
{
    return offset * DEV_GUARD_STRETCH + (PAGE - bytes % PAGE) % PAGE;
}

/* The access declared for an address by the operation at hand: 0 when none. */
static int declared_at(const struct dev_op *op, uintptr_t at)
{
    int mode = 0;
    for (size_t i = 0; op != NULL && i < op->span_count; i++) {
        const uintptr_t lo = (uintptr_t)op->spans[i].ptr;
        mode |= at >= lo && at - lo < op->spans[i].bytes ? (int)op->spans[i].mode : 0;
    }
    return mode;
}

/* The end of the process. Uses nothing that a signal handler must not. */
static _Noreturn void leave(const char *text)
{
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
    _exit(DEV_GUARD_EXIT);
}

static _Noreturn void say(const dev *d, uintptr_t at)
{
    char text[512];
    char who[160];
    const struct dev_op *op = d->running;
    const struct dev_place *place = dev_places_find(&d->live, (const void *)at);
    place = place != NULL ? place : dev_places_find(&d->pins, (const void *)at);
    if (op != NULL) {
        snprintf(who, sizeof who, "operation '%s' of step %d (%s)", op->what, op->step, op->where);
    } else {
        snprintf(who, sizeof who, "host code in step %d (last call %s)", d->step, d->where);
    }
    const char *how = op == NULL                        ? "touched device memory"
                      : declared_at(op, at) == DEV_READ ? "wrote what it declared as read"
                                                        : "touched what it did not declare";
    if (place != NULL) {
        snprintf(text, sizeof text, "faultline-train: guard: %s %s: byte %zu of '%s'\n", who, how,
                 (size_t)(at - place->lo), place->what);
    } else {
        snprintf(text, sizeof text, "faultline-train: guard: %s %s: an address in no live block\n",
                 who, how);
    }
    leave(text);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    const dev *d = atomic_load(&guarded);
    const uintptr_t at = (uintptr_t)info->si_addr;
    if (d != NULL && (at - (uintptr_t)d->slab < d->slab_mapped ||
                      at - (uintptr_t)d->pinned < d->pinned_mapped)) {
        say(d, at);
    }
    sigaction(number, &before, NULL); /* not ours: the access faults again */
}

enum dev_status dev_guard_open(dev *d)
{
    const dev *none = NULL;
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    if (!atomic_compare_exchange_strong(&guarded, &none, d)) {
        return dev_fail(d, DEV_ESTATE, "guard mode: one device at a time");
    }
    action.sa_sigaction = on_fault;
    sigemptyset(&action.sa_mask);
    if (mprotect(d->slab, dev_map_bytes(d->slab_mapped), PROT_NONE) != 0 ||
        sigaction(SIGSEGV, &action, &before) != 0) {
        return dev_fail(d, DEV_EDRIVER, "guard mode: pages cannot be protected");
    }
    return DEV_OK;
}

void dev_guard_close(dev *d)
{
    const dev *own = d;
    if (atomic_compare_exchange_strong(&guarded, &own, NULL)) {
        sigaction(SIGSEGV, &before, NULL);
    }
}

static void protect(const struct dev_span *span, int protection)
{
    const uintptr_t lo = (uintptr_t)span->ptr / PAGE * PAGE;
    const uintptr_t hi = ((uintptr_t)span->ptr + span->bytes + PAGE - 1) / PAGE * PAGE;
    if (span->bytes > 0) {
        const bool done = mprotect((void *)lo, hi - lo, protection) == 0;
        eng_assert(done);
    }
}

static void protect_pinned(const dev *d, int protection)
{
    if (d->pinned_mapped > 0) {
        const struct dev_span all = {d->pinned, d->pinned_mapped, DEV_READ};
        protect(&all, protection);
    }
}

/* A page that is read and written by different spans is opened for both: writes come last. */
void dev_guard_enter(dev *d, const struct dev_op *op)
{
    if (!d->conf.guard) {
        return;
    }
    protect_pinned(d, PROT_NONE);
    for (size_t i = 0; i < op->span_count; i++) {
        if (op->spans[i].mode == DEV_READ) {
            protect(&op->spans[i], PROT_READ);
        }
    }
    for (size_t i = 0; i < op->span_count; i++) {
        if (op->spans[i].mode != DEV_READ) {
            protect(&op->spans[i], PROT_READ | PROT_WRITE);
        }
    }
    d->running = op;
}

void dev_guard_leave(dev *d, const struct dev_op *op)
{
    if (!d->conf.guard) {
        return;
    }
    d->running = NULL;
    for (size_t i = 0; i < op->span_count; i++) {
        protect(&op->spans[i], PROT_NONE);
    }
    protect_pinned(d, PROT_READ | PROT_WRITE);
}

void dev_guard_handed_out(const dev *d, int block)
{
    const struct dev_block *b = &d->heap.blocks[block];
    for (size_t i = 0; d->conf.guard && i < d->live.count; i++) {
        const struct dev_block *other = &d->heap.blocks[d->live.items[i].block];
        if (other != b && other->offset < b->offset + b->bytes &&
            b->offset < other->offset + other->bytes) {
            char text[512];
            snprintf(text, sizeof text,
                     "faultline-train: guard: block '%s' of %zu bytes, handed out in step %d (%s), "
                     "overlaps '%s' of %zu bytes in the heap\n",
                     b->what, b->bytes, d->step, d->where, other->what, other->bytes);
            leave(text);
        }
    }
}
