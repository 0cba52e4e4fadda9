/* Queues and the seeded scheduler: which operation runs next, a function of (program, seed).
 * Part of the host back end (dev_host.c); must not know what operations do.
 *
 * Waits bind to records that were already issued, so the operation issued first of all can always
 * run: no deadlock. */
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

void dev_op_put(dev *d, struct dev_op *op)
{
    op->next = d->spare_ops;
    d->spare_ops = op;
}

bool dev_sched_passed(const dev *d, struct dev_point point)
{
    return d->queue[point.stream].done >= point.sequence;
}

static bool is_ready(const dev *d, dev_stream stream)
{
    const struct dev_op *op = d->queue[stream].head;
    return op != NULL && (op->kind != DEV_OP_WAIT || dev_sched_passed(d, op->u.wait));
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
    dev_op_put(d, op);
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

void dev_sched_yield(dev *d)
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
void dev_sched_run_until(dev *d, struct dev_point point)
{
    d->calls++;
    if (dev_sched_passed(d, point)) {
        return;
    }
    bool by_priority = d->conf.sched == DEV_SCHED_PCT;
    if (d->conf.sched == DEV_SCHED_LAZY && next_random(d) % 2 == 0) {
        dev_draw_priorities(d);
        by_priority = true;
    }
    while (!dev_sched_passed(d, point)) {
        const dev_stream s = by_priority ? most_urgent(d, -1) : blocker_of(d, point.stream);
        eng_assert(s != 0);
        run_one(d, s);
    }
}

void dev_sched_enqueue(dev *d, dev_stream stream, struct dev_op *op)
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
        dev_sched_yield(d);
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
