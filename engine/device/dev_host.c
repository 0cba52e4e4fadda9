/* The host back end: memory of the process, one tile of an operation executed at a time, its rows
 * shared by the pool's threads. Called by dev.c and dev_sched.c; must not know queues, events or
 * blocks. */
#include <stdlib.h>
#include <string.h>

#include "dev_fibers.h"
#include "dev_guard.h"
#include "dev_internal.h"
#include "dev_map.h"
#include "dev_sched.h"
#include "dev_tf32.h"
#include "eng_assert.h"
#include "fault.h"

enum {
    SHARE_FROM = 32768,  /* work below this is done faster than it is handed over */
    PARTS_PER_THREAD = 4 /* of the rows of a kernel or the products of a batch, so that a slow
                          * thread holds nobody up */
};

struct part_context {
    const dev *d;
    const struct dev_op *op;
};

struct range {
    size_t begin, end;
};

static size_t share_begin(size_t count, int part, int parts)
{
    return count / (size_t)parts * (size_t)part +
           count % (size_t)parts * (size_t)part / (size_t)parts;
}

/* What one part of this tile covers of `count` things: an even share of the tile's share. */
static struct range range_of(const struct dev_op *op, size_t count, int part, int parts)
{
    const size_t begin = share_begin(count, op->tile, op->tiles);
    const size_t size = share_begin(count, op->tile + 1, op->tiles) - begin;
    return (struct range){begin + share_begin(size, part, parts),
                          begin + share_begin(size, part + 1, parts)};
}

static void launch_part(void *context, int part, int parts, int thread)
{
    (void)thread;
    const struct part_context *c = context;
    const struct dev_op *op = c->op;
    const struct range rows = range_of(op, (size_t)op->u.launch.call->rows, part, parts);
    if (rows.begin < rows.end) {
        c->d->rows_fn[op->u.launch.kernel](op->u.launch.call->args, (int)rows.begin, (int)rows.end);
    }
}

static void gemm_part(void *context, int part, int parts, int thread)
{
    const struct part_context *c = context;
    const struct dev_op *op = c->op;
    FAULT(dev_product, k_gemm_part(&op->u.gemm, op->tile * parts + part, op->tiles * parts,
                                   c->d->workspace[thread]));
}

static void copy_part(void *context, int part, int parts, int thread)
{
    (void)thread;
    const struct dev_op *op = ((const struct part_context *)context)->op;
    const struct range r = range_of(op, op->u.move.bytes, part, parts);
    memcpy(op->u.move.dst + r.begin, op->u.move.src + r.begin, r.end - r.begin);
}

static void fill_part(void *context, int part, int parts, int thread)
{
    (void)thread;
    const struct dev_op *op = ((const struct part_context *)context)->op;
    const struct range r = range_of(op, op->u.move.bytes, part, parts);
    memset(op->u.move.dst + r.begin, op->u.move.byte, r.end - r.begin);
}

static dev_part_fn *const part_fns[] = {
    [DEV_OP_LAUNCH] = launch_part,
    [DEV_OP_GEMM] = gemm_part,
    [DEV_OP_COPY] = copy_part,
    [DEV_OP_FILL] = fill_part,
};

static int parts_of(const dev *d, const struct dev_op *op)
{
    const int threads = dev_pool_threads(d->pool);
    if (threads == 1 || op->work < SHARE_FROM) {
        return 1;
    }
    const int wanted = threads * PARTS_PER_THREAD;
    if (op->kind == DEV_OP_GEMM) {
        const int problems = op->u.gemm.batch_outer * op->u.gemm.batch_inner;
        return problems < wanted ? threads : wanted;
    }
    if (op->kind != DEV_OP_LAUNCH) {
        return threads;
    }
    return op->u.launch.call->rows < wanted ? op->u.launch.call->rows : wanted;
}

void dev_execute(dev *d, const struct dev_op *op)
{
    struct part_context context = {d, op};
    eng_assert(op->kind != DEV_OP_WAIT);
    dev_guard_enter(d, op);
    dev_pool_run(d->pool, part_fns[op->kind], &context, parts_of(d, op));
    dev_guard_leave(d, op);
}

void dev_execute_alone(dev *d, const struct dev_op *op, int workspace)
{
    struct part_context context = {d, op};
    eng_assert(op->kind != DEV_OP_WAIT);
    part_fns[op->kind](&context, 0, 1, workspace);
}

static enum dev_status open_host(dev *d)
{
    d->slab = dev_map_open(d->slab_mapped);
    d->pinned = d->pinned_mapped > 0 ? dev_map_open(d->pinned_mapped) : NULL;
    const bool apart = d->conf.sched == DEV_SCHED_THREADS || dev_fibers_on();
    d->workspaces = apart ? DEV_ACTORS : d->conf.threads;
    d->pool = dev_pool_create(d->conf.sched == DEV_SCHED_THREADS ? 1 : d->conf.threads);
    d->workspace = calloc((size_t)d->workspaces, sizeof *d->workspace);
    if (d->slab == NULL || (d->pinned == NULL && d->pinned_mapped > 0) || d->pool == NULL ||
        d->workspace == NULL) {
        return DEV_EHOSTMEM;
    }
    for (int i = 0; i < d->workspaces; i++) {
        d->workspace[i] = dev_map_open(k_gemm_workspace_bytes());
        if (d->workspace[i] == NULL) {
            return DEV_EHOSTMEM;
        }
    }
    const enum dev_status status = d->conf.guard ? dev_guard_open(d) : DEV_OK;
    return status == DEV_OK ? dev_policy_open(d) : status;
}

static void close_host(dev *d)
{
    dev_policy_close(d);
    dev_fibers_close(d);
    dev_guard_close(d);
    for (int i = 0; d->workspace != NULL && i < d->workspaces; i++) {
        dev_map_close(d->workspace[i], k_gemm_workspace_bytes());
    }
    free(d->workspace);
    dev_pool_destroy(d->pool);
    dev_map_close(d->slab, d->slab_mapped);
    dev_map_close(d->pinned, d->pinned_mapped);
}

static enum dev_status stream_open(dev *d, dev_stream stream)
{
    if (!dev_threads_start(d, stream)) {
        return dev_fail(d, DEV_EHOSTMEM, "stream %d: a thread cannot be started", stream);
    }
    return dev_fibers_start(d, stream)
               ? DEV_OK
               : dev_fail(d, DEV_EHOSTMEM, "stream %d: host memory exhausted", stream);
}

/* Queues know what they have done. */
static void mark(dev *d, dev_stream stream)
{
    (void)d;
    (void)stream;
}

static bool passed(dev *d, struct dev_point point)
{
    return dev_sched_passed(d, point);
}

const struct dev_backend dev_host_backend = {
    .name = "host",
    .open = open_host,
    .close = close_host,
    .stream_open = stream_open,
    .enqueue = dev_sched_enqueue,
    .mark = mark,
    .passed = passed,
    .run_until = dev_policy_run_until,
    .yield = dev_policy_yield,
};
