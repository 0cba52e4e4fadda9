/* The host back end: memory of the process, operations executed one at a time, their rows shared by
 * the pool's threads. Called by dev.c and dev_sched.c; must not know queues, events or blocks. */
#include <stdlib.h>
#include <string.h>

#include "dev_internal.h"
#include "dev_map.h"
#include "eng_assert.h"

enum {
    SHARE_FROM = 32768,  /* work below this is done faster than it is handed over */
    PARTS_PER_THREAD = 4 /* of the rows of a kernel or the products of a batch, so that a slow
                          * thread holds nobody up */
};

struct part_context {
    const dev *d;
    const struct dev_op *op;
};

static size_t part_begin(size_t count, int part, int parts)
{
    return count / (size_t)parts * (size_t)part +
           count % (size_t)parts * (size_t)part / (size_t)parts;
}

static void launch_part(void *context, int part, int parts, int thread)
{
    (void)thread;
    const struct part_context *c = context;
    const struct dev_op *op = c->op;
    const size_t rows = (size_t)op->u.launch.call->rows;
    c->d->rows_fn[op->u.launch.kernel](op->u.launch.call->args, (int)part_begin(rows, part, parts),
                                       (int)part_begin(rows, part + 1, parts));
}

static void gemm_part(void *context, int part, int parts, int thread)
{
    const struct part_context *c = context;
    k_gemm_part(&c->op->u.gemm, part, parts, c->d->workspace[thread]);
}

static void copy_part(void *context, int part, int parts, int thread)
{
    (void)thread;
    const struct dev_op *op = ((const struct part_context *)context)->op;
    const size_t begin = part_begin(op->u.move.bytes, part, parts);
    const size_t end = part_begin(op->u.move.bytes, part + 1, parts);
    memcpy(op->u.move.dst + begin, op->u.move.src + begin, end - begin);
}

static void fill_part(void *context, int part, int parts, int thread)
{
    (void)thread;
    const struct dev_op *op = ((const struct part_context *)context)->op;
    const size_t begin = part_begin(op->u.move.bytes, part, parts);
    const size_t end = part_begin(op->u.move.bytes, part + 1, parts);
    memset(op->u.move.dst + begin, op->u.move.byte, end - begin);
}

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
    static dev_part_fn *const part_fns[] = {
        [DEV_OP_LAUNCH] = launch_part,
        [DEV_OP_GEMM] = gemm_part,
        [DEV_OP_COPY] = copy_part,
        [DEV_OP_FILL] = fill_part,
    };
    struct part_context context = {d, op};
    eng_assert(op->kind != DEV_OP_WAIT);
    dev_pool_run(d->pool, part_fns[op->kind], &context, parts_of(d, op));
}

static enum dev_status open_host(dev *d)
{
    d->slab = dev_map_open(d->slab_bytes);
    d->pinned = d->pinned_mapped > 0 ? dev_map_open(d->pinned_mapped) : NULL;
    d->pool = dev_pool_create(d->conf.threads);
    d->workspace = calloc((size_t)d->conf.threads, sizeof *d->workspace);
    if (d->slab == NULL || (d->pinned == NULL && d->pinned_mapped > 0) || d->pool == NULL ||
        d->workspace == NULL) {
        return DEV_EHOSTMEM;
    }
    for (int i = 0; i < d->conf.threads; i++) {
        d->workspace[i] = dev_map_open(k_gemm_workspace_bytes());
        if (d->workspace[i] == NULL) {
            return DEV_EHOSTMEM;
        }
    }
    return DEV_OK;
}

static void close_host(dev *d)
{
    for (int i = 0; d->workspace != NULL && i < d->conf.threads; i++) {
        dev_map_close(d->workspace[i], k_gemm_workspace_bytes());
    }
    free(d->workspace);
    dev_pool_destroy(d->pool);
    dev_map_close(d->slab, d->slab_bytes);
    dev_map_close(d->pinned, d->pinned_mapped);
}

static enum dev_status stream_open(dev *d, dev_stream stream)
{
    (void)d;
    (void)stream;
    return DEV_OK;
}

/* Queues know what they have done. */
static void mark(dev *d, dev_stream stream)
{
    (void)d;
    (void)stream;
}

const struct dev_backend dev_host_backend = {
    .name = "host",
    .open = open_host,
    .close = close_host,
    .stream_open = stream_open,
    .enqueue = dev_sched_enqueue,
    .mark = mark,
    .passed = dev_sched_passed,
    .run_until = dev_sched_run_until,
    .yield = dev_sched_yield,
};
