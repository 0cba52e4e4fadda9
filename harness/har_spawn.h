/* Child processes: start, limits, time-outs, and how each one ended.
 * Called by har_pool.c and small helpers; must not know what a child computes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "har_log.h"
#include "har_status.h"
#include "har_sweep.h"
#include "har_text.h"

/* How a child ended: name, meaning. */
#define HAR_ENDS(X)                                                                                \
    X(not_run, "was not run")                                                                      \
    X(done, "ended with exit code 0")                                                              \
    X(crashed, "died by a signal or an internal error")                                            \
    X(assertion, "failed an assertion of its own")                                                 \
    X(guarded, "touched memory that guard mode keeps out of reach")                                \
    X(refused, "refused cleanly: device memory")                                                   \
    X(rejected, "rejected its input")                                                              \
    X(timed_out, "ran past its time and was killed")                                               \
    X(no_verdict, "could not be run or could not write: says nothing about the fault")

enum har_end {
#define HAR_ROW_(name, text) HAR_END_##name,
    HAR_ENDS(HAR_ROW_)
#undef HAR_ROW_
        HAR_END_COUNT
};
const char *har_end_name(enum har_end end);
const char *har_end_text(enum har_end end);
bool har_end_find(const char *name, enum har_end *out);

struct har_command {
    struct har_args args;
    char *log_path; /* stdout and stderr go here, up to a size (har_log.h); owned */
    char
        *answer_path; /* stdout goes here instead, bounded like a log; NULL = into the log; owned */
    double timeout_s; /* > 0 */
    int memory_mb;    /* limit of private memory, 0 = none */
};
void har_command_fini(struct har_command *command);
/* The command as a line for /bin/sh; caller frees; NULL without memory. */
char *har_command_line(const struct har_command *command);

struct har_exit {
    enum har_end end;
    int code;   /* exit code, -1 when killed */
    int signal; /* 0 when it exited by itself */
    double seconds;
    double processor_s; /* user and system time, of what it waited for as well */
    long peak_kb;       /* largest resident memory */
};

/* Wait status and the harness's own knowledge -> how it ended. Exit codes are the trainer's. */
enum har_end har_exit_classify(int wait_status, bool timed_out, bool started);

struct har_child {
    pid_t pid;                    /* 0 = none; also its process group */
    double started_s, deadline_s; /* monotonic clock */
    bool timed_out;
    struct har_log log, answer; /* to be drained while the child runs */
    char mark[HAR_SWEEP_MARK_SIZE];
};

/* Starts a child in its own process group, stdin empty, signals as by default. A program that
 * cannot be started is HAR_EIO. */
HAR_CHECKED enum har_status har_child_start(const struct har_command *command,
                                            struct har_child *out, struct har_error *error);
/* Whether the child has ended; then its group and what left the group is killed, it is reaped and
 * *out is filled. */
bool har_child_reap(struct har_child *child, struct har_exit *out);
/* Takes what the child has printed so far without waiting. */
void har_child_drain(struct har_child *child);
/* Kills the child's process group; har_child_reap() must still be called. */
void har_child_kill(struct har_child *child);
/* Kills, waits, closes the log; what left the group stays for har_sweep_orphans(). */
void har_child_stop(struct har_child *child);

double har_clock_s(void);
