/* What a race detector that follows real accesses must be told of streams. Called by the host back
 * end and the allocator; must not know schedules. dev_fibers_none.c in every build but one: there a
 * tile is executed on the caller, and nobody listens. dev_fibers_tsan.c in builds with
 * ThreadSanitizer: a stream is a fiber of its own, and only what orders it is an edge. */
#pragma once

#include "dev_internal.h"

/* Whether streams are fibers: each then needs a workspace of its own, and an operation's memory,
 * which the host writes and a stream reads, serves once. */
bool dev_fibers_on(void);

bool dev_fibers_start(dev *d, dev_stream stream); /* false: host memory exhausted */
void dev_fibers_close(dev *d);

/* The host has issued op: it sees all that the host did before. */
void dev_fibers_issued(const struct dev_op *op);
/* Runs the next tile of a stream's first operation, or its wait. */
void dev_fibers_run(dev *d, dev_stream stream, const struct dev_op *op);
/* The host has waited for a point: it sees all that the stream did until there. */
void dev_fibers_waited(const dev *d, struct dev_point point);
/* Who touched these bytes so far has finished with them, as the allocator observed. */
void dev_fibers_forget(void *ptr, size_t bytes);
