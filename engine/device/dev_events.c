/* Events and the host's waits. Called by the engine through dev.h; must not know how a back end
 * orders its streams.
 *
 * An event is a place in a stream, so that a wait needs no state of its own: it is passed when that
 * stream has done as many operations as had been issued at the record. */
#include <stdlib.h>

#include "dev_internal.h"
#include "fault.h"

void dev_tick(dev *d, dev_stream stream)
{
    struct dev_clock *clock = &d->checker.clock[stream];
    dev_clock_join(clock, &d->checker.clock[DEV_HOST]);
    clock->at[stream]++;
}

static enum dev_status check_event(dev *d, dev_event event, const char *what)
{
    if (event < 1 || event > d->event_count) {
        return dev_fail(d, DEV_EARG, "%s: %d is not an event", what, event);
    }
    return DEV_OK;
}

enum dev_status dev_event_create(dev *d, const char *name, dev_event *out)
{
    if (d->event_count == d->event_capacity) {
        const int capacity = d->event_capacity == 0 ? 32 : 2 * d->event_capacity;
        if (capacity > DEV_EVENTS_MAX) {
            return dev_fail(d, DEV_ESTATE, "event '%s': no more than %d events", name,
                            DEV_EVENTS_MAX);
        }
        struct dev_event_state *grown = realloc(d->events, (size_t)capacity * sizeof *grown);
        if (grown == NULL) {
            return dev_fail(d, DEV_EHOSTMEM, "event '%s': host memory exhausted", name);
        }
        d->events = grown;
        d->event_capacity = capacity;
    }
    d->events[d->event_count++] = (struct dev_event_state){.name = name};
    *out = d->event_count;
    return DEV_OK;
}

enum dev_status dev_record(dev *d, dev_event event, dev_stream stream)
{
    enum dev_status status = dev_resolve_stream(d, &stream, "record");
    if (status == DEV_OK) {
        status = check_event(d, event, "record");
    }
    if (status != DEV_OK || dev_site_omitted(d, "dev_record")) {
        return status;
    }
    struct dev_event_state *e = &d->events[event - 1];
    dev_tick(d, stream);
    e->previous = e->last;
    e->last.point = (struct dev_point){stream, d->queue[stream].issued};
    e->last.clock = d->checker.clock[stream];
    dev_mark(d, stream);
    dev_yield(d);
    return d->failed;
}

enum dev_status dev_wait(dev *d, dev_stream stream, dev_event event)
{
    enum dev_status status = dev_resolve_stream(d, &stream, "wait");
    if (status == DEV_OK) {
        status = check_event(d, event, "wait");
    }
    if (status != DEV_OK || dev_site_omitted(d, "dev_wait")) {
        return status;
    }
    const struct dev_event_state *e = &d->events[event - 1];
    const struct dev_mark *mark = FAULT(dev_wait_mark, &e->last);
    if (mark->point.stream == 0) {
        return DEV_OK;
    }
    struct dev_op *op = dev_op_take(d, DEV_OP_WAIT, e->name);
    if (op == NULL) {
        return dev_fail(d, DEV_EHOSTMEM, "wait for '%s': host memory exhausted", e->name);
    }
    op->u.wait = mark->point;
    dev_tick(d, stream);
    dev_clock_join(&d->checker.clock[stream], &mark->clock);
    dev_enqueue(d, stream, op);
    return d->failed;
}

enum dev_status dev_sync_event(dev *d, dev_event event)
{
    const enum dev_status status = check_event(d, event, "wait of the host");
    if (status != DEV_OK || dev_site_omitted(d, "dev_sync_event")) {
        return status;
    }
    const struct dev_mark *mark = &d->events[event - 1].last;
    if (mark->point.stream != 0) {
        dev_run_until(d, mark->point);
        dev_clock_join(&d->checker.clock[DEV_HOST], &mark->clock);
    }
    return d->failed;
}

static void sync_one(dev *d, dev_stream stream)
{
    dev_run_until(d, (struct dev_point){stream, d->queue[stream].issued});
    dev_clock_join(&d->checker.clock[DEV_HOST], &d->checker.clock[stream]);
}

enum dev_status dev_sync_stream(dev *d, dev_stream stream)
{
    const enum dev_status status = dev_resolve_stream(d, &stream, "wait of the host");
    if (status == DEV_OK && !dev_site_omitted(d, "dev_sync_stream")) {
        sync_one(d, stream);
    }
    return status == DEV_OK ? d->failed : status;
}

void dev_collect_reach(dev *d)
{
    if (d->backend->synced != NULL) {
        (void)dev_sync_all(d);
    }
}

enum dev_status dev_sync_all(dev *d)
{
    const bool omitted = dev_site_omitted(d, "dev_sync_all");
    for (dev_stream s = 1; !omitted && s <= d->stream_count; s++) {
        sync_one(d, s);
    }
    if (d->backend->synced != NULL) {
        d->backend->synced(d);
    }
    return d->failed;
}
