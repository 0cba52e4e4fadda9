/* Queues and the seeded scheduler: which operation runs next, a function of (program, seed).
 * Called by dev_*.c; must not know what operations do.
 *
 * An event is a place in a stream, so that a wait needs no state of its own: it is passed when that
 * stream has done as many operations as had been issued at the record. Waits bind to records that
 * were already issued, so the operation issued first of all can always run: no deadlock. */
#include <stdlib.h>

#include "dev_internal.h"
#include "eng_assert.h"
#include "fault.h"

static uint64_t next_random(dev *d)
{
    uint64_t z = (d->random += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void dev_draw_priorities(dev *d)
{
    const int actors = d->stream_count + 1;
    for (int i = 0; i < actors; i++) {
        d->priority[i] = i;
    }
    for (int i = actors - 1; i > 0; i--) {
        const int j = (int)(next_random(d) % (uint64_t)(i + 1));
        const int kept = d->priority[i];
        d->priority[i] = d->priority[j];
        d->priority[j] = kept;
    }
    d->steps_since_draw = 0;
}

void dev_sched_open(dev *d)
{
    static const int periods[] = {1, 3, 10, 0};
    d->random = d->conf.seed;
    d->redraw_period = periods[next_random(d) % (sizeof periods / sizeof *periods)];
    d->schedule_hash = 0xCBF29CE484222325u;
}

void dev_sched_close(dev *d)
{
    while (d->chunks != NULL) {
        struct dev_op_chunk *next = d->chunks->next;
        free(d->chunks);
        d->chunks = next;
    }
    free(d->events);
}

struct dev_op *dev_op_take(dev *d, enum dev_op_kind kind, const char *what)
{
    if (d->spare_ops == NULL) {
        struct dev_op_chunk *chunk = malloc(sizeof *chunk);
        if (chunk == NULL) {
            return NULL;
        }
        chunk->next = d->chunks;
        d->chunks = chunk;
        for (size_t i = 0; i < sizeof chunk->ops / sizeof *chunk->ops; i++) {
            chunk->ops[i].next = d->spare_ops;
            d->spare_ops = &chunk->ops[i];
        }
    }
    struct dev_op *op = d->spare_ops;
    d->spare_ops = op->next;
    op->kind = kind;
    op->step = d->step;
    op->next = NULL;
    op->what = what;
    op->work = 0;
    return op;
}

void dev_tick(dev *d, dev_stream stream)
{
    struct dev_clock *clock = &d->checker.clock[stream];
    dev_clock_join(clock, &d->checker.clock[DEV_HOST]);
    clock->at[stream]++;
}

bool dev_passed(const dev *d, struct dev_point point)
{
    return point.stream == 0 || d->queue[point.stream].done >= point.sequence;
}

static bool is_ready(const dev *d, dev_stream stream)
{
    const struct dev_op *op = d->queue[stream].head;
    return op != NULL && (op->kind != DEV_OP_WAIT || dev_passed(d, op->u.wait));
}

/* Runs the first operation of a stream that is ready. */
static void run_one(dev *d, dev_stream stream)
{
    struct dev_queue *q = &d->queue[stream];
    struct dev_op *op = q->head;
    if (op->kind != DEV_OP_WAIT) {
        MUT_ENTER_STEP(op->step);
        dev_execute(d, op);
        MUT_ENTER_STEP(d->step);
    }
    q->head = op->next;
    q->tail = q->head == NULL ? NULL : q->tail;
    q->done++;
    d->schedule_hash = (d->schedule_hash ^ (uint64_t)stream) * 0x100000001B3u;
    d->schedule_hash = (d->schedule_hash ^ q->done ^ d->calls << 20) * 0x100000001B3u;
    op->next = d->spare_ops;
    d->spare_ops = op;
}

/* The ready stream of highest priority above `floor`, 0 when there is none. */
static dev_stream most_urgent(const dev *d, int floor)
{
    dev_stream best = 0;
    for (dev_stream s = 1; s <= d->stream_count; s++) {
        if (d->priority[s] > floor && is_ready(d, s)) {
            best = s;
            floor = d->priority[s];
        }
    }
    return best;
}

void dev_yield(dev *d)
{
    d->calls++;
    if (d->conf.sched != DEV_SCHED_PCT) {
        return;
    }
    for (dev_stream s; (s = most_urgent(d, d->priority[DEV_HOST])) != 0;) {
        run_one(d, s);
    }
}

/* The stream whose next operation brings `stream` forward: itself, or one that it waits for. */
static dev_stream blocker_of(const dev *d, dev_stream stream)
{
    while (!is_ready(d, stream)) {
        eng_assert(d->queue[stream].head != NULL);
        stream = d->queue[stream].head->u.wait.stream;
    }
    return stream;
}

/* Under pct the most urgent stream runs. Under lazy a coin decides for each wait: either only what
 * is waited for, or streams in a fresh order, which lets some run far ahead. */
void dev_run_until(dev *d, struct dev_point point)
{
    d->calls++;
    if (dev_passed(d, point)) {
        return;
    }
    bool by_priority = d->conf.sched == DEV_SCHED_PCT;
    if (d->conf.sched == DEV_SCHED_LAZY && next_random(d) % 2 == 0) {
        dev_draw_priorities(d);
        by_priority = true;
    }
    while (!dev_passed(d, point)) {
        const dev_stream s = by_priority ? most_urgent(d, -1) : blocker_of(d, point.stream);
        eng_assert(s != 0);
        run_one(d, s);
    }
}

void dev_enqueue(dev *d, dev_stream stream, struct dev_op *op)
{
    struct dev_queue *q = &d->queue[stream];
    if (q->tail != NULL) {
        q->tail->next = op;
    } else {
        q->head = op;
    }
    q->tail = op;
    q->issued++;
    if (d->conf.sched == DEV_SCHED_FIFO) {
        d->calls++;
        run_one(d, stream);
    } else {
        dev_yield(d);
    }
}

void dev_step(dev *d, int step)
{
    if (step != d->step) {
        d->step = step;
        d->steps_since_draw++;
        if (d->redraw_period > 0 && d->steps_since_draw >= d->redraw_period) {
            dev_draw_priorities(d);
        }
    }
    MUT_ENTER_STEP(step);
    dev_yield(d);
}

uint64_t dev_schedule_hash(const dev *d)
{
    return d->schedule_hash;
}

/* Events. */

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
    if (status != DEV_OK) {
        return status;
    }
    struct dev_event_state *e = &d->events[event - 1];
    dev_tick(d, stream);
    e->previous = e->last;
    e->last.point = (struct dev_point){stream, d->queue[stream].issued};
    e->last.clock = d->checker.clock[stream];
    dev_yield(d);
    return DEV_OK;
}

enum dev_status dev_wait(dev *d, dev_stream stream, dev_event event)
{
    enum dev_status status = dev_resolve_stream(d, &stream, "wait");
    if (status == DEV_OK) {
        status = check_event(d, event, "wait");
    }
    if (status != DEV_OK) {
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
    return DEV_OK;
}

enum dev_status dev_sync_event(dev *d, dev_event event)
{
    const enum dev_status status = check_event(d, event, "wait of the host");
    if (status != DEV_OK) {
        return status;
    }
    const struct dev_mark *mark = &d->events[event - 1].last;
    if (mark->point.stream != 0) {
        dev_run_until(d, mark->point);
        dev_clock_join(&d->checker.clock[DEV_HOST], &mark->clock);
    }
    return DEV_OK;
}

static void sync_one(dev *d, dev_stream stream)
{
    dev_run_until(d, (struct dev_point){stream, d->queue[stream].issued});
    dev_clock_join(&d->checker.clock[DEV_HOST], &d->checker.clock[stream]);
}

enum dev_status dev_sync_stream(dev *d, dev_stream stream)
{
    const enum dev_status status = dev_resolve_stream(d, &stream, "wait of the host");
    if (status == DEV_OK) {
        sync_one(d, stream);
    }
    return status;
}

enum dev_status dev_sync_all(dev *d)
{
    for (dev_stream s = 1; s <= d->stream_count; s++) {
        sync_one(d, s);
    }
    return DEV_OK;
}
