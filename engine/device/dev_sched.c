/* Queues of operations. Part of the host back end (dev_host.c); must not know what operations do or
 * which stream goes on next.
 *
 * Waits bind to records that were already issued, so the operation issued first of all can always
 * run: no deadlock. */
#include <stdlib.h>

#include "dev_fibers.h"
#include "dev_sched.h"
#include "fault.h"

void dev_sched_close(dev *d)
{
    while (d->chunks != NULL) {
        struct dev_op_chunk *next = d->chunks->next;
        free(d->chunks);
        d->chunks = next;
    }
}

static bool add_ops(dev *d)
{
    struct dev_op_chunk *chunk = malloc(sizeof *chunk);
    if (chunk == NULL) {
        return false;
    }
    chunk->next = d->chunks;
    d->chunks = chunk;
    for (size_t i = 0; i < sizeof chunk->ops / sizeof *chunk->ops; i++) {
        chunk->ops[i].next = d->spare_ops;
        d->spare_ops = &chunk->ops[i];
    }
    return true;
}

struct dev_op *dev_op_take(dev *d, enum dev_op_kind kind, const char *what)
{
    dev_threads_lock(d);
    struct dev_op *op = d->spare_ops != NULL || add_ops(d) ? d->spare_ops : NULL;
    d->spare_ops = op != NULL ? op->next : NULL;
    dev_threads_unlock(d);
    if (op == NULL) {
        return NULL;
    }
    op->kind = kind;
    op->step = d->step;
    op->next = NULL;
    op->what = what;
    op->where = d->where;
    op->id = 0;
    op->spans = NULL;
    op->span_count = 0;
    op->tiles = 1;
    op->tile = 0;
    op->work = 0;
    return op;
}

void dev_op_put(dev *d, struct dev_op *op)
{
    free(op->spans);
    op->spans = NULL;
    if (!dev_fibers_on()) {
        op->next = d->spare_ops;
        d->spare_ops = op;
    }
}

bool dev_sched_passed(const dev *d, struct dev_point point)
{
    return atomic_load_explicit(&d->queue[point.stream].done, memory_order_acquire) >=
           point.sequence;
}

bool dev_ready(const dev *d, dev_stream stream)
{
    const struct dev_op *op = d->queue[stream].head;
    return op != NULL && (op->kind != DEV_OP_WAIT || dev_sched_passed(d, op->u.wait));
}

static void tell(const dev *d, const struct dev_op *op, const char *stream)
{
    if (d->conf.watch != NULL && op->kind != DEV_OP_WAIT) {
        const struct dev_moment moment = {.kind = DEV_MOMENT_RUN,
                                          .op = op->id,
                                          .what = op->what,
                                          .where = op->where,
                                          .stream = stream,
                                          .step = op->step};
        d->conf.watch(d->conf.watch_context, &moment);
    }
}

void dev_run_tile(dev *d, dev_stream stream)
{
    struct dev_queue *q = &d->queue[stream];
    struct dev_op *op = q->head;
    MUT_ENTER_STEP(op->step);
    dev_fibers_run(d, stream, op);
    MUT_ENTER_STEP(d->step);
    op->tile++;
    d->tiles_run++;
    d->schedule_hash = (d->schedule_hash ^ (uint64_t)stream) * 0x100000001B3u;
    if (op->tile < op->tiles) {
        return;
    }
    q->head = op->next;
    q->tail = q->head == NULL ? NULL : q->tail;
    const uint64_t done = atomic_load_explicit(&q->done, memory_order_relaxed) + 1;
    atomic_store_explicit(&q->done, done, memory_order_relaxed);
    d->schedule_hash = (d->schedule_hash ^ done ^ d->calls << 20) * 0x100000001B3u;
    tell(d, op, q->name);
    dev_aim_ran(d, op->id);
    dev_op_put(d, op);
}

void dev_sched_enqueue(dev *d, dev_stream stream, struct dev_op *op)
{
    struct dev_queue *q = &d->queue[stream];
    dev_threads_lock(d);
    if (q->tail != NULL) {
        q->tail->next = op;
    } else {
        q->head = op;
    }
    q->tail = op;
    q->issued++;
    op->order = ++d->issues;
    dev_threads_unlock(d);
    dev_fibers_issued(op);
    dev_policy_issued(d, stream, op);
}

void dev_step(dev *d, int step)
{
    if (step != d->step) {
        d->step = step;
        dev_policy_step(d);
    }
    MUT_ENTER_STEP(step);
    dev_yield(d);
}

uint64_t dev_schedule_hash(const dev *d)
{
    return d->schedule_hash;
}

dev *dev_at(dev *d, const char *where)
{
    d->where = where;
    d->number++;
    return d;
}
