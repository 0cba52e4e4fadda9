/* The CUDA back end: streams, events and memory of a device behind the interface of dev.h.
 * Called by dev.c through dev_cuda_backend; must not know the allocator or the race checker.
 *
 * Operations are issued at once, in the order of the program; the device decides what overlaps. A
 * point of a stream becomes visible by a fence: an event recorded behind the operations issued so
 * far. Fences of a stream are passed in order, so the oldest one that is not done answers for all.
 * An event returns to use only after its fence was seen to be passed: no wait that was issued can
 * then still mean it.
 *
 * Schedules: fifo waits for each operation (launch-blocking), threads leaves the device alone; the
 * others perturb by kernels that keep a stream busy, drawn by the seed. What then happens is the
 * device's, and not replayable. */
#include "dev_cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "dev_cuda_load.h"
#include "dev_faults.h"
#include "dev_internal.h"
#include "eng_assert.h"
#include "fault.h"

enum {
    FENCES_MAX = 1 << 14, /* of one stream; more outstanding ones are waited for */
    DELAY_US = 300        /* long against an operation of a small model */
};

/* A place in a stream, and the event behind it. */
struct fence {
    uint64_t sequence;
    void *event;
};

/* Fences not yet seen to be passed, oldest first. */
struct fences {
    struct fence *ring;
    size_t head, count, capacity;
};

struct dev_cuda {
    void *library;
    const struct dev_cuda_driver *driver;
    dev_cuda_context *context;
    struct fences of[DEV_ACTORS];
    void **spare; /* events without a fence */
    size_t spare_count, spare_capacity;
    int32_t *first_step; /* one per fault site */
    uint64_t random;
    char device[128];
};

/* Every failure of the driver ends here: the first one breaks the device. */
static bool worked(dev *d, int result, const struct dev_cuda_error *error, const char *what)
{
    if (result != 0) {
        dev_break(d, result == DEV_CUDA_OOM ? DEV_EOOM : DEV_EDRIVER, "%s: %s", what, error->text);
    }
    return result == 0;
}

static struct fence *fence_at(const struct fences *f, size_t index)
{
    return &f->ring[(f->head + index) % f->capacity];
}

static bool grow_fences(struct fences *f)
{
    const size_t capacity = f->capacity == 0 ? 64 : 2 * f->capacity;
    struct fence *ring = malloc(capacity * sizeof *ring);
    if (ring == NULL) {
        return false;
    }
    for (size_t i = 0; i < f->count; i++) {
        ring[i] = *fence_at(f, i);
    }
    free(f->ring);
    *f = (struct fences){ring, 0, f->count, capacity};
    return true;
}

static bool keep_spare(struct dev_cuda *c, void *event)
{
    if (c->spare_count == c->spare_capacity) {
        const size_t capacity = c->spare_capacity == 0 ? 64 : 2 * c->spare_capacity;
        void **grown = realloc(c->spare, capacity * sizeof *grown);
        if (grown == NULL) {
            return false; /* the event stays with the context until it is closed */
        }
        c->spare = grown;
        c->spare_capacity = capacity;
    }
    c->spare[c->spare_count++] = event;
    return true;
}

/* The oldest fence of the stream was passed. */
static void retire(dev *d, dev_stream stream)
{
    struct fences *f = &d->cuda->of[stream];
    const struct fence *oldest = fence_at(f, 0);
    d->queue[stream].done = oldest->sequence;
    (void)keep_spare(d->cuda, oldest->event);
    f->head = (f->head + 1) % f->capacity;
    f->count--;
}

static bool take_event(dev *d, void **event)
{
    struct dev_cuda *c = d->cuda;
    struct dev_cuda_error error;
    if (c->spare_count > 0) {
        *event = c->spare[--c->spare_count];
        return true;
    }
    return worked(d, c->driver->event_create(c->context, event, &error), &error, "fence");
}

/* The host waits until the oldest fences up to this one are passed. */
static void wait_for(dev *d, dev_stream stream, size_t index)
{
    struct dev_cuda *c = d->cuda;
    struct dev_cuda_error error;
    const struct fence *fence = fence_at(&c->of[stream], index);
    if (worked(d, c->driver->event_sync(c->context, fence->event, &error), &error,
               d->queue[stream].name)) {
        for (size_t i = 0; i <= index; i++) {
            retire(d, stream);
        }
    }
}

static void mark(dev *d, dev_stream stream)
{
    struct dev_cuda *c = d->cuda;
    struct fences *f = &c->of[stream];
    const uint64_t sequence = d->queue[stream].issued;
    struct dev_cuda_error error;
    void *event = NULL;
    if (d->failed != DEV_OK || d->queue[stream].done >= sequence ||
        (f->count > 0 && fence_at(f, f->count - 1)->sequence >= sequence)) {
        return;
    }
    if (f->count == FENCES_MAX) {
        wait_for(d, stream, 0);
    }
    if (f->count == f->capacity && !grow_fences(f)) {
        dev_break(d, DEV_EHOSTMEM, "fence on '%s': host memory exhausted", d->queue[stream].name);
        return;
    }
    if (take_event(d, &event) &&
        worked(d, c->driver->event_record(c->context, event, stream, &error), &error,
               d->queue[stream].name)) {
        *fence_at(f, f->count) = (struct fence){sequence, event};
        f->count++;
    }
}

/* Looks how far the stream has come. */
static void poll(dev *d, dev_stream stream)
{
    struct dev_cuda *c = d->cuda;
    struct dev_cuda_error error;
    bool done = true;
    while (done && d->failed == DEV_OK && c->of[stream].count > 0) {
        void *const event = fence_at(&c->of[stream], 0)->event;
        if (worked(d, c->driver->event_query(c->context, event, &done, &error), &error,
                   d->queue[stream].name) &&
            done) {
            retire(d, stream);
        }
    }
}

/* Index of the oldest fence that covers the point; one is made when none does. Returns false when
 * the device is broken. */
static bool find_fence(dev *d, struct dev_point point, size_t *index)
{
    const struct fences *f = &d->cuda->of[point.stream];
    if (f->count == 0 || fence_at(f, f->count - 1)->sequence < point.sequence) {
        mark(d, point.stream);
    }
    *index = 0;
    while (*index < f->count && fence_at(f, *index)->sequence < point.sequence) {
        ++*index;
    }
    return *index < f->count;
}

static bool passed(dev *d, struct dev_point point)
{
    size_t index = 0;
    const struct dev_queue *q = &d->queue[point.stream];
    if (q->done < point.sequence && find_fence(d, point, &index)) {
        poll(d, point.stream);
    }
    return q->done >= point.sequence;
}

static void run_until(dev *d, struct dev_point point)
{
    size_t index = 0;
    if (!passed(d, point) && d->failed == DEV_OK && find_fence(d, point, &index)) {
        wait_for(d, point.stream, index);
    }
}

static uint64_t next_random(struct dev_cuda *c)
{
    uint64_t z = (c->random += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* How long the stream is kept busy before its next operation. Under pct the least urgent stream is
 * late at each one. Under the others each stream falls behind now and then, the host with none. */
static unsigned delay_of(dev *d, dev_stream stream)
{
    enum { SELDOM = 16 };
    switch (d->conf.sched) {
    case DEV_SCHED_FIFO:
    case DEV_SCHED_THREADS:
        return 0;
    case DEV_SCHED_PCT:
        for (dev_stream s = 1; s <= d->stream_count; s++) {
            if (d->priority[s] < d->priority[stream]) {
                return 0;
            }
        }
        return DELAY_US;
    default:
        return next_random(d->cuda) % SELDOM == 0 ? DELAY_US * SELDOM : 0;
    }
}

static int issue_wait(dev *d, dev_stream stream, struct dev_point point,
                      struct dev_cuda_error *error)
{
    struct dev_cuda *c = d->cuda;
    size_t index = 0;
    if (d->queue[point.stream].done >= point.sequence || !find_fence(d, point, &index)) {
        return 0;
    }
    void *const event = fence_at(&c->of[point.stream], index)->event;
    return c->driver->stream_wait(c->context, stream, event, error);
}

static int issue(dev *d, dev_stream stream, const struct dev_op *op, struct dev_cuda_error *error)
{
    struct dev_cuda *c = d->cuda;
    switch (op->kind) {
    case DEV_OP_LAUNCH: {
        const enum k_id kernel = op->u.launch.kernel;
        const struct dev_cuda_launch launch = {
            .kernel = kernel,
            .twin = d->rows_fn[kernel] != k_kernel_at(kernel)->rows,
            .rows = op->u.launch.call->rows,
            .args = op->u.launch.call->args,
            .fault = dev_faults_launch(),
        };
        return c->driver->launch(c->context, stream, &launch, error);
    }
    case DEV_OP_GEMM:
        return c->driver->gemm(c->context, stream, &op->u.gemm, error);
    case DEV_OP_COPY:
        return c->driver->copy(c->context, stream, op->u.move.dst, op->u.move.src, op->u.move.bytes,
                               error);
    case DEV_OP_FILL:
        return c->driver->fill(c->context, stream, op->u.move.dst, op->u.move.byte,
                               op->u.move.bytes, error);
    case DEV_OP_WAIT:
        return issue_wait(d, stream, op->u.wait, error);
    default:
        eng_assert(false);
        return DEV_CUDA_FAILED;
    }
}

static void enqueue(dev *d, dev_stream stream, struct dev_op *op)
{
    struct dev_cuda *c = d->cuda;
    struct dev_cuda_error error;
    const unsigned delay = delay_of(d, stream);
    bool ok = d->failed == DEV_OK;
    if (ok && delay > 0) {
        ok = worked(d, c->driver->delay(c->context, stream, delay, &error), &error, "delay");
    }
    if (ok) {
        MUT_ENTER_STEP(op->step);
        (void)worked(d, issue(d, stream, op, &error), &error, op->what);
        MUT_ENTER_STEP(d->step);
    }
    d->queue[stream].issued++;
    d->issues++;
    d->calls++;
    d->schedule_hash = (d->schedule_hash ^ (uint64_t)stream) * 0x100000001B3u;
    dev_op_put(d, op);
    if (d->conf.sched == DEV_SCHED_FIFO) {
        run_until(d, (struct dev_point){stream, d->queue[stream].issued});
    }
}

static void yield(dev *d)
{
    d->calls++;
}

/* What the twins on the device have recorded since, for the trace. */
static void synced(dev *d)
{
    struct dev_cuda *c = d->cuda;
    struct dev_cuda_error error;
    const size_t sites = dev_faults_sites();
    if (c == NULL || c->first_step == NULL) {
        return; /* it did not open */
    }
    if (sites > 0 && d->failed == DEV_OK &&
        worked(d, c->driver->reached(c->context, c->first_step, &error), &error, "reach record")) {
        for (size_t i = 0; i < sites; i++) {
            if (c->first_step[i] >= 0) {
                dev_faults_reached(i, c->first_step[i]);
            }
        }
    }
}

static enum dev_status watch_sites(dev *d, struct dev_cuda_error *error)
{
    struct dev_cuda *c = d->cuda;
    const size_t sites = dev_faults_sites();
    c->first_step = calloc(sites + 1, sizeof *c->first_step);
    if (c->first_step == NULL) {
        return DEV_EHOSTMEM;
    }
    for (size_t i = 0; i < sites; i++) {
        c->first_step[i] = dev_faults_first_step(i);
    }
    return sites == 0 || c->driver->watch(c->context, c->first_step, error) == 0 ? DEV_OK
                                                                                 : DEV_EDRIVER;
}

static enum dev_status open_cuda(dev *d)
{
    struct dev_cuda_error error = {.text = ""};
    struct dev_cuda_memory memory = {NULL, NULL};
    const struct dev_cuda_request request = {.slab_bytes = d->slab_bytes,
                                             .pinned_bytes = d->pinned_mapped,
                                             .sites = dev_faults_sites(),
                                             .exact_products = d->conf.exact_products};
    struct dev_cuda *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return DEV_EHOSTMEM;
    }
    d->cuda = c;
    c->random = d->random = d->conf.seed;
    d->redraw_period = 1;
    c->driver = dev_cuda_load(dev_faults_library(), &c->library, &error);
    if (c->driver == NULL) {
        return dev_fail(d, DEV_ENODEVICE, "%s", error.text);
    }
    const int result =
        c->driver->open(&request, &c->context, &memory, c->device, sizeof c->device, &error);
    if (result != 0) {
        return dev_fail(d, result == DEV_CUDA_OOM ? DEV_EOOM : DEV_ENODEVICE, "%s", error.text);
    }
    d->slab = memory.slab;
    d->pinned = memory.pinned;
    const enum dev_status status = watch_sites(d, &error);
    return status == DEV_OK ? DEV_OK : dev_fail(d, status, "%s", error.text);
}

static void close_cuda(dev *d)
{
    struct dev_cuda *c = d->cuda;
    if (c == NULL) {
        return;
    }
    if (c->driver != NULL) {
        c->driver->close(c->context);
    }
    for (int s = 0; s < DEV_ACTORS; s++) {
        free(c->of[s].ring);
    }
    free(c->spare);
    free(c->first_step);
    /* The library stays loaded: the CUDA runtime has threads and exit handlers of its own. */
    free(c);
}

static enum dev_status stream_open(dev *d, dev_stream stream)
{
    struct dev_cuda_error error;
    return d->cuda->driver->stream_open(d->cuda->context, stream, &error) == 0
               ? DEV_OK
               : dev_fail(d, DEV_EDRIVER, "stream: %s", error.text);
}

const char *dev_cuda_device_name(const dev *d)
{
    return d->cuda->device;
}

const struct dev_backend dev_cuda_backend = {
    .name = "cuda",
    .open = open_cuda,
    .close = close_cuda,
    .stream_open = stream_open,
    .enqueue = enqueue,
    .mark = mark,
    .passed = passed,
    .run_until = run_until,
    .yield = yield,
    .synced = synced,
};
