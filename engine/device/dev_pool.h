/* Worker threads that share one operation. Used by dev_host.c; knows no operations.
 *
 * A job is cut into parts; each part is run once by some thread, the caller's included, and
 * dev_pool_run returns when all are done. Workers spin for a moment, then sleep. A worker that is
 * late takes no part: the caller never waits for a thread to wake up. */
#pragma once

typedef struct dev_pool dev_pool;

/* `thread` is 0 for the caller and 1 ... threads - 1 for workers: an index for per-thread scratch.
 */
typedef void dev_part_fn(void *context, int part, int parts, int thread);

/* threads - 1 threads are started; none for 1. NULL when that fails. */
dev_pool *dev_pool_create(int threads);
void dev_pool_destroy(dev_pool *pool); /* accepts NULL */
int dev_pool_threads(const dev_pool *pool);

/* parts from 1 to DEV_POOL_PARTS_MAX. */
enum { DEV_POOL_PARTS_MAX = 4096, DEV_POOL_THREADS_MAX = 256 };
void dev_pool_run(dev_pool *pool, dev_part_fn *fn, void *context, int parts);
