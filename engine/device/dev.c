/* Opening and closing a device, its streams, errors and names.
 * Called by the engine through dev.h; must not know operations or blocks. */
#include "dev.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dev_internal.h"
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

enum dev_status dev_fail(dev *d, enum dev_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(d->error, sizeof d->error, format, args);
    va_end(args);
    return status;
}

const char *dev_error(const dev *d)
{
    return d->error;
}

static bool open_execution(dev *d)
{
    enum { ALIGN = 64 };
    const size_t bytes = (k_gemm_workspace_bytes() + ALIGN - 1) / ALIGN * ALIGN;
    d->pool = dev_pool_create(d->conf.threads);
    d->workspace = calloc((size_t)d->conf.threads, sizeof *d->workspace);
    if (d->pool == NULL || d->workspace == NULL) {
        return false;
    }
    for (int i = 0; i < d->conf.threads; i++) {
        d->workspace[i] = aligned_alloc(ALIGN, bytes > 0 ? bytes : ALIGN);
        if (d->workspace[i] == NULL) {
            return false;
        }
    }
    for (int i = 0; i < K_ID_COUNT; i++) {
        d->rows_fn[i] = k_kernel_rows((enum k_id)i);
        d->args_bytes[i] = k_kernel_at((enum k_id)i)->args_bytes;
    }
    return true;
}

static uint64_t time_stamp(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

enum dev_status dev_open(const struct dev_conf *conf, dev **out)
{
    if (conf->threads < 1 || conf->threads > DEV_POOL_THREADS_MAX ||
        conf->heap_bytes < DEV_GRANULE || conf->sched < DEV_SCHED_FIFO ||
        conf->sched > DEV_SCHED_PCT) {
        return DEV_EARG;
    }
    dev *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return DEV_EHOSTMEM;
    }
    d->conf = *conf;
    d->opened = time_stamp();
    dev_checker_init(&d->checker);
    dev_sched_open(d);
    enum dev_status status = dev_memory_open(d);
    if (status == DEV_OK && !open_execution(d)) {
        status = DEV_EHOSTMEM;
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
    dev_sync_all(d);
    for (int i = 0; d->workspace != NULL && i < d->conf.threads; i++) {
        free(d->workspace[i]);
    }
    free(d->workspace);
    dev_pool_destroy(d->pool);
    dev_memory_close(d);
    dev_sched_close(d);
    dev_checker_fini(&d->checker);
    free(d);
}

enum dev_status dev_stream_create(dev *d, const char *name, dev_stream *out)
{
    if (d->stream_count == DEV_STREAMS_MAX) {
        return dev_fail(d, DEV_ESTATE, "stream '%s': no more than %d streams", name,
                        DEV_STREAMS_MAX);
    }
    d->stream_count++;
    d->queue[d->stream_count].name = name;
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

uint64_t dev_race_count(const dev *d)
{
    return d->checker.total;
}
