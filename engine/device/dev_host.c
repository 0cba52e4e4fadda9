/* The host back end: executes one operation at a time, its rows shared by the pool's threads.
 * Called by dev_sched.c; must not know queues, events or blocks. */
#include <string.h>

#include "dev_internal.h"
#include "eng_assert.h"

enum {
    SHARE_FROM = 32768,  /* work below this is done faster than it is handed over */
    PARTS_PER_THREAD = 4 /* of the rows of a kernel, so that a slow thread holds nobody up */
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
    const struct dev_op *op = ((const struct part_context *)context)->op;
    const size_t rows = (size_t)op->u.launch.call->rows;
    op->u.launch.rows_fn(op->u.launch.call->args, (int)part_begin(rows, part, parts),
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
    if (op->kind != DEV_OP_LAUNCH) {
        return threads;
    }
    const int wanted = threads * PARTS_PER_THREAD;
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
