/* Runs jobs, each a chain of child processes, several at once; Ctrl-C stops all of them.
 * Called by everything that needs children; must not know what the jobs are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "har_spawn.h"
#include "har_status.h"

/* Fills the next child of a job. last is NULL at the start, then how the previous child ended. Sets
 * *more to false when the job is done; command is then not used. command is released by the pool.
 * An error stops the whole pool. */
typedef enum har_status har_job_next(void *job, const struct har_exit *last,
                                     struct har_command *command, bool *more,
                                     struct har_error *error);

struct har_progress {
    bool enabled;      /* a line on stderr that rewrites itself */
    const char *label; /* what is being done */
};

/* Blocks SIGINT, SIGTERM and SIGCHLD in this process and receives them through a descriptor. */
struct har_pool {
    int jobs_at_once;
    int signal_fd;
    bool interrupted;
    struct har_progress progress;
};
HAR_CHECKED enum har_status har_pool_open(int jobs_at_once, bool progress, struct har_pool *out,
                                          struct har_error *error);
void har_pool_close(struct har_pool *pool);

/* Runs all jobs to their ends. HAR_EINTERRUPTED after SIGINT or SIGTERM: children are killed and
 * reaped, jobs under way are abandoned. */
HAR_CHECKED enum har_status har_pool_run(struct har_pool *pool, void *const *jobs, size_t count,
                                         har_job_next *next, const char *label,
                                         struct har_error *error);
/* Runs one command and waits for it. */
HAR_CHECKED enum har_status har_pool_run_one(struct har_pool *pool, struct har_command *command,
                                             struct har_exit *out, struct har_error *error);
/* Cores this process may use. */
int har_pool_cores(void);
