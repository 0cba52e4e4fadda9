/* Threads that share out numbered tasks. Used by the tape and the optimizer; knows nothing of
 * the tasks. Which thread takes which task is left to chance, so tasks must write to disjoint
 * places; then results do not depend on the number of threads. */
#pragma once

#include <stddef.h>

struct orc_ref_pool;

/* task < tasks, worker < orc_ref_pool_threads(). */
typedef void orc_ref_task(void *context, size_t task, size_t worker);

/* threads >= 1 counts the caller. NULL when threads cannot be made. */
struct orc_ref_pool *orc_ref_pool_create(size_t threads);

/* Accepts NULL. */
void orc_ref_pool_destroy(struct orc_ref_pool *pool);

size_t orc_ref_pool_threads(const struct orc_ref_pool *pool);

/* Runs all tasks and returns when they are done. Called from one thread only. */
void orc_ref_pool_run(struct orc_ref_pool *pool, size_t tasks, orc_ref_task *run, void *context);
