/* No race detector but our own: a tile is executed on the caller. Called as dev_fibers.h says; must
 * not know operations. */
#include "dev_fibers.h"

#include "dev_sched.h"

bool dev_fibers_on(void)
{
    return false;
}

bool dev_fibers_start(dev *d, dev_stream stream)
{
    (void)d;
    (void)stream;
    return true;
}

void dev_fibers_close(dev *d)
{
    (void)d;
}

void dev_fibers_issued(const struct dev_op *op)
{
    (void)op;
}

void dev_fibers_run(dev *d, dev_stream stream, const struct dev_op *op)
{
    (void)stream;
    if (op->kind != DEV_OP_WAIT) {
        dev_execute(d, op);
    }
}

void dev_fibers_waited(const dev *d, struct dev_point point)
{
    (void)d;
    (void)point;
}

void dev_fibers_forget(void *ptr, size_t bytes)
{
    (void)ptr;
    (void)bytes;
}
