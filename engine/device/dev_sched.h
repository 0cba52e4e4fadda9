/* The scheduler of the host back end: queues, who goes on, operations held back, threads.
 * Included by dev_sched.c, dev_policy.c, dev_aim.c, dev_threads.c, dev_host.c and by what issues
 * operations; must not know what they do. */
#pragma once

#include "dev_internal.h"

/* dev_sched.c: the back end's calls. */
void dev_sched_enqueue(dev *d, dev_stream stream, struct dev_op *op);
bool dev_sched_passed(const dev *d, struct dev_point point);
/* Whether the first operation of a stream exists and waits for nothing. */
bool dev_ready(const dev *d, dev_stream stream);
/* Runs the next tile of a stream that is ready. */
void dev_run_tile(dev *d, dev_stream stream);

/* dev_policy.c: which stream goes on. */
enum dev_status dev_policy_open(dev *d);
void dev_policy_close(dev *d);
void dev_policy_run_until(dev *d, struct dev_point point);
void dev_policy_yield(dev *d);
void dev_policy_issued(dev *d, dev_stream stream, struct dev_op *op); /* op is its last one */
void dev_draw_priorities(dev *d);
void dev_policy_step(dev *d); /* a training step begins */

/* dev_aim.c: operations held until another one has run. */
enum dev_status dev_aim_open(dev *d);
void dev_aim_close(dev *d);
bool dev_aim_holds(const dev *d, const struct dev_op *op);
void dev_aim_release(dev *d, const struct dev_op *op); /* gives up on what holds it */
void dev_aim_ran(dev *d, uint64_t operation);
void dev_aim_settle(dev *d); /* the host is at a new call: the access before is over */

/* dev_threads.c: a thread per stream. */
enum dev_status dev_threads_open(dev *d);
void dev_threads_close(dev *d); /* the queues must be empty */
bool dev_threads_start(dev *d, dev_stream stream);
void dev_threads_lock(const dev *d);   /* guards queues and spare operations; nothing without */
void dev_threads_unlock(const dev *d); /* threads */
void dev_threads_wake(dev *d);
void dev_threads_wait(dev *d, struct dev_point point);

/* dev_host.c: executes one tile of an operation, on the pool. */
void dev_execute(dev *d, const struct dev_op *op);
/* Executes a whole operation on the calling thread with its own workspace. */
void dev_execute_alone(dev *d, const struct dev_op *op, int workspace);
