/* Opening and closing a device, its streams, errors and names.
 * Called by the engine through dev.h; must not know operations or blocks. */
#include "dev.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dev_cuda.h"
#include "dev_guard.h"
#include "dev_internal.h"
#include "dev_sched.h"
#include "fault.h"

const char *dev_status_name(enum dev_status status)
{
    static const char *const names[] = {
#define DEV_ROW_(name, text) #name,
        DEV_STATUS(DEV_ROW_)
#undef DEV_ROW_
    };
    return names[status];
}

const char *dev_status_text(enum dev_status status)
{
    static const char *const texts[] = {
#define DEV_ROW_(name, text) text,
        DEV_STATUS(DEV_ROW_)
#undef DEV_ROW_
    };
    return texts[status];
}

const char *dev_sched_name(enum dev_sched sched)
{
    static const char *const names[] = {
#define DEV_ROW_(upper, lower) #lower,
        DEV_SCHEDS(DEV_ROW_)
#undef DEV_ROW_
    };
    return names[sched];
}

enum dev_status dev_fail(dev *d, enum dev_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(d->error, sizeof d->error, format, args);
    va_end(args);
    return status;
}

void dev_break(dev *d, enum dev_status status, const char *format, ...)
{
    if (d->failed != DEV_OK) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(d->error, sizeof d->error, format, args);
    va_end(args);
    d->failed = status;
}

const char *dev_error(const dev *d)
{
    return d->error;
}

static uint64_t time_stamp(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

_Static_assert((int)DEV_HEAP_BYTES_MIN == (int)DEV_GRANULE, "a heap holds a granule");

static bool makes_sense(const struct dev_conf *conf)
{
    return conf->threads >= 1 && conf->threads <= DEV_POOL_THREADS_MAX &&
           conf->heap_bytes >= DEV_HEAP_BYTES_MIN && conf->sched >= DEV_SCHED_FIFO &&
           conf->sched < DEV_SCHED_COUNT && !(conf->guard && conf->sched == DEV_SCHED_THREADS) &&
           (conf->kind == DEV_KIND_HOST ||
            (conf->kind == DEV_KIND_CUDA && !conf->guard && conf->sched != DEV_SCHED_AIMED));
}

static void set_up(dev *d, const struct dev_conf *conf)
{
    d->conf = *conf;
    d->backend = conf->kind == DEV_KIND_CUDA ? &dev_cuda_backend : &dev_host_backend;
    d->opened = time_stamp();
    d->slab_bytes = conf->heap_bytes / DEV_GRANULE * DEV_GRANULE;
    d->slab_mapped = d->slab_bytes * (conf->guard ? DEV_GUARD_STRETCH : 1);
    if (conf->pinned_bytes > 0) {
        /* Aligning each buffer takes room that the budget does not count. */
        d->pinned_mapped = conf->pinned_bytes + DEV_PINNED_MAX * DEV_PINNED_ALIGN;
    }
    k_lanes_seed(conf->seed);
    for (int i = 0; i < K_ID_COUNT; i++) {
        d->rows_fn[i] = k_kernel_rows((enum k_id)i);
        d->args_bytes[i] = k_kernel_at((enum k_id)i)->args_bytes;
    }
    dev_checker_init(&d->checker);
    d->where = "";
}

enum dev_status dev_open(const struct dev_conf *conf, dev **out)
{
    dev *d = NULL;
    enum dev_status status = makes_sense(conf) ? DEV_OK : DEV_EARG;
    if (status == DEV_OK) {
        d = calloc(1, sizeof *d);
        status = d == NULL ? DEV_EHOSTMEM : DEV_OK;
    }
    if (status == DEV_OK) {
        set_up(d, conf);
        status = d->backend->open(d);
    }
    if (status == DEV_OK) {
        status = dev_memory_open(d);
    }
    if (status != DEV_OK && conf->why != NULL) {
        const bool told = d != NULL && d->error[0] != '\0';
        snprintf(conf->why, conf->why_bytes, "%s%s%s", dev_status_text(status), told ? ": " : "",
                 told ? d->error : "");
    }
    if (status != DEV_OK) {
        dev_close(d);
        return status;
    }
    *out = d;
    return DEV_OK;
}

void dev_close(dev *d)
{
    if (d == NULL) {
        return;
    }
    d->conf.list_sites = false; /* this wait is nobody's */
    dev_sync_all(d);
    d->backend->close(d);
    dev_memory_close(d);
    dev_sched_close(d);
    dev_checker_fini(&d->checker);
    free(d->events);
    free(d);
}

enum dev_status dev_stream_create(dev *d, const char *name, dev_stream *out)
{
    if (d->stream_count == DEV_STREAMS_MAX) {
        return dev_fail(d, DEV_ESTATE, "stream '%s': no more than %d streams", name,
                        DEV_STREAMS_MAX);
    }
    d->queue[d->stream_count + 1].name = name;
    const enum dev_status status = d->backend->stream_open(d, d->stream_count + 1);
    if (status != DEV_OK) {
        return status;
    }
    d->stream_count++;
    d->checker.actor_name[d->stream_count] = name;
    dev_draw_priorities(d);
    *out = d->stream_count;
    return DEV_OK;
}

/* The current streams of this thread, one per device; the oldest binding makes way. */
enum { BINDINGS = 4 };
struct binding {
    const dev *d;
    uint64_t opened;
    dev_stream stream;
};
static _Thread_local struct binding bindings[BINDINGS];

static bool is_binding_of(const struct binding *b, const dev *d)
{
    return b->d == d && b->opened == d->opened;
}

void dev_bind(dev *d, dev_stream stream)
{
    int at = 0;
    while (at < BINDINGS - 1 && !is_binding_of(&bindings[at], d)) {
        at++;
    }
    for (; at > 0; at--) {
        bindings[at] = bindings[at - 1];
    }
    bindings[0] = (struct binding){d, d->opened, stream};
}

dev_stream dev_current(const dev *d)
{
    dev_stream bound = 0;
    for (int i = 0; i < BINDINGS; i++) {
        if (is_binding_of(&bindings[i], d)) {
            bound = bindings[i].stream;
            break;
        }
    }
    return FAULT(dev_current_bound, bound);
}

enum dev_status dev_resolve_stream(dev *d, dev_stream *stream, const char *what)
{
    dev_stream s = *stream;
    if (d->failed != DEV_OK) {
        return d->failed;
    }
    if (s == 0) {
        s = dev_current(d);
        s = s == 0 ? 1 : s;
    }
    if (s < 1 || s > d->stream_count) {
        return dev_fail(d, d->stream_count == 0 ? DEV_ESTATE : DEV_EARG,
                        "%s: %d is not a stream (the device has %d)", what, s, d->stream_count);
    }
    *stream = s;
    return DEV_OK;
}

const struct dev_race *dev_races(const dev *d, size_t *count)
{
    *count = d->checker.found_count;
    return d->checker.found;
}

const struct dev_aim *dev_race_aims(const dev *d, size_t *count)
{
    *count = d->checker.pair_count;
    return d->checker.pairs;
}

uint64_t dev_race_count(const dev *d)
{
    return d->checker.total;
}
