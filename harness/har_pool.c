/* Event loop over children: start, wait, time out, hand over to the next step of a job.
 * Called by everything that needs children; must not know what the jobs are. */
#include "har_pool.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { STREAMS = 2 }; /* of a child: its log and its answer */

struct slot {
    struct har_child child;
    void *job; /* NULL = free */
};

struct loop {
    struct har_pool *pool;
    struct slot *slots;
    size_t slot_count;
    void *const *jobs;
    size_t job_count, started, finished;
    har_job_next *next;
    struct har_error *error;
    struct pollfd *waiting; /* the signals, then log and answer of each slot */
    double started_s;
};

int har_pool_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

enum har_status har_pool_open(int jobs_at_once, bool progress, struct har_pool *out,
                              struct har_error *error)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    /* A closed terminal interrupts like SIGTERM, unless nohup says that it must not. */
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
        sigaddset(&set, SIGHUP);
    }
    memset(out, 0, sizeof *out);
    out->signal_fd = -1;
    har_sweep_adopt();
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return har_fail(error, HAR_EINTERNAL, "signals cannot be blocked: %s", strerror(errno));
    }
    out->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (out->signal_fd < 0) {
        return har_fail(error, HAR_EINTERNAL, "no signal descriptor: %s", strerror(errno));
    }
    /* One more than cores: this process judges while its children run. */
    out->jobs_at_once = jobs_at_once > 0 ? jobs_at_once : har_pool_cores() + 1;
    out->progress.enabled = progress && isatty(STDERR_FILENO) == 1;
    return HAR_OK;
}

void har_pool_close(struct har_pool *pool)
{
    if (pool->signal_fd >= 0) {
        close(pool->signal_fd);
    }
    pool->signal_fd = -1;
}

static void show_progress(const struct loop *loop, bool last)
{
    const struct har_progress *const progress = &loop->pool->progress;
    if (!progress->enabled) {
        return;
    }
    if (last) {
        fputs("\r\033[K", stderr);
    } else {
        fprintf(stderr, "\r\033[K%s: %zu of %zu", progress->label, loop->finished, loop->job_count);
    }
    if (!last && loop->finished > 0) {
        const double each_s = (har_clock_s() - loop->started_s) / (double)loop->finished;
        fprintf(stderr, ", about %.0f s left", each_s * (double)(loop->job_count - loop->finished));
    }
    fflush(stderr);
}

static void read_signals(struct har_pool *pool)
{
    struct signalfd_siginfo info;
    while (read(pool->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            pool->interrupted = true;
        }
    }
}

/* Waits for a signal or for the nearest deadline. */
static void wait_for_event(struct loop *loop)
{
    double nearest = HUGE_VAL;
    for (size_t i = 0; i < loop->slot_count; i++) {
        if (loop->slots[i].job != NULL && loop->slots[i].child.deadline_s < nearest) {
            nearest = loop->slots[i].child.deadline_s;
        }
    }
    const double left_ms = (nearest - har_clock_s()) * 1000.0;
    const int timeout_ms = left_ms < 1.0 ? 1 : left_ms > 60000.0 ? 60000 : (int)left_ms + 1;
    loop->waiting[0] = (struct pollfd){.fd = loop->pool->signal_fd, .events = POLLIN};
    for (size_t i = 0; i < loop->slot_count; i++) {
        const struct har_child *const child = &loop->slots[i].child;
        const int fds[] = {child->log.read_fd, child->answer.read_fd};
        for (size_t k = 0; k < STREAMS; k++) {
            const bool open = loop->slots[i].job != NULL && fds[k] > 0;
            loop->waiting[1 + STREAMS * i + k] =
                (struct pollfd){.fd = open ? fds[k] : -1, .events = POLLIN};
        }
    }
    (void)poll(loop->waiting, 1 + STREAMS * loop->slot_count, timeout_ms);
    for (size_t i = 0; i < loop->slot_count; i++) {
        const struct pollfd *const streams = &loop->waiting[1 + STREAMS * i];
        if (streams[0].revents != 0 || streams[1].revents != 0) {
            har_child_drain(&loop->slots[i].child);
        }
    }
    read_signals(loop->pool);
}

/* Takes a job one step further in a slot; frees the slot when the job is done. */
static enum har_status advance(struct loop *loop, struct slot *slot, const struct har_exit *last)
{
    struct har_command command = {0};
    bool more = false;
    enum har_status status = loop->next(slot->job, last, &command, &more, loop->error);
    if (status == HAR_OK && more) {
        status = har_child_start(&command, &slot->child, loop->error);
    }
    if (status != HAR_OK || !more) {
        slot->job = NULL;
        loop->finished++;
        show_progress(loop, false);
    }
    har_command_fini(&command);
    return status;
}

static enum har_status fill_slots(struct loop *loop)
{
    enum har_status status = HAR_OK;
    for (size_t i = 0; i < loop->slot_count; i++) {
        /* A job may need no child at all, so one slot can take several. */
        while (status == HAR_OK && loop->slots[i].job == NULL && loop->started < loop->job_count) {
            loop->slots[i].job = loop->jobs[loop->started++];
            status = advance(loop, &loop->slots[i], NULL);
        }
    }
    return status;
}

/* Children that have ended are reaped before any deadline is looked at: the time this process spent
 * on judging is not theirs. */
static enum har_status collect(struct loop *loop)
{
    enum har_status status = HAR_OK;
    for (size_t i = 0; status == HAR_OK && i < loop->slot_count; i++) {
        struct slot *const slot = &loop->slots[i];
        struct har_exit exit_facts = {0};
        if (slot->job != NULL && har_child_reap(&slot->child, &exit_facts)) {
            status = advance(loop, slot, &exit_facts);
        }
    }
    const double now = har_clock_s();
    for (size_t i = 0; i < loop->slot_count; i++) {
        struct slot *const slot = &loop->slots[i];
        if (slot->job != NULL && slot->child.pid > 0 && now > slot->child.deadline_s &&
            !slot->child.timed_out) {
            slot->child.timed_out = true;
            har_child_kill(&slot->child);
        }
    }
    return status;
}

static bool any_running(const struct loop *loop)
{
    for (size_t i = 0; i < loop->slot_count; i++) {
        if (loop->slots[i].job != NULL) {
            return true;
        }
    }
    return false;
}

enum har_status har_pool_run(struct har_pool *pool, void *const *jobs, size_t count,
                             har_job_next *next, const char *label, struct har_error *error)
{
    struct loop loop = {.pool = pool,
                        .jobs = jobs,
                        .job_count = count,
                        .next = next,
                        .error = error,
                        .started_s = har_clock_s(),
                        .slot_count = (size_t)pool->jobs_at_once};
    loop.slots = calloc(loop.slot_count, sizeof *loop.slots);
    loop.waiting = calloc(1 + STREAMS * loop.slot_count, sizeof *loop.waiting);
    if (loop.slots == NULL || loop.waiting == NULL) {
        free(loop.slots);
        free(loop.waiting);
        return har_fail(error, HAR_EMEMORY, "no memory for %d jobs", pool->jobs_at_once);
    }
    pool->progress.label = label;
    show_progress(&loop, false);
    read_signals(pool);
    enum har_status status = pool->interrupted ? HAR_EINTERRUPTED : fill_slots(&loop);
    while (status == HAR_OK && any_running(&loop)) {
        wait_for_event(&loop);
        status = collect(&loop);
        if (status == HAR_OK && pool->interrupted) {
            status = HAR_EINTERRUPTED;
        }
        if (status == HAR_OK) {
            status = fill_slots(&loop);
        }
    }
    if (status == HAR_EINTERRUPTED) {
        (void)har_fail(error, status, "interrupted; the same command goes on from here");
    }
    for (size_t i = 0; i < loop.slot_count; i++) {
        har_child_stop(&loop.slots[i].child);
    }
    har_sweep_orphans(NULL);
    show_progress(&loop, true);
    free(loop.slots);
    free(loop.waiting);
    return status;
}

struct single {
    struct har_command *command;
    struct har_exit *out;
};

static enum har_status single_next(void *job, const struct har_exit *last,
                                   struct har_command *command, bool *more, struct har_error *error)
{
    struct single *const single = job;
    (void)error;
    *more = last == NULL;
    if (last != NULL) {
        *single->out = *last;
    } else {
        *command = *single->command; /* moves: the pool releases it */
        memset(single->command, 0, sizeof *single->command);
    }
    return HAR_OK;
}

enum har_status har_pool_run_one(struct har_pool *pool, struct har_command *command,
                                 struct har_exit *out, struct har_error *error)
{
    struct single single = {.command = command, .out = out};
    void *const jobs[] = {&single};
    const bool shown = pool->progress.enabled;
    pool->progress.enabled = false;
    const enum har_status status = har_pool_run(pool, jobs, 1, single_next, "", error);
    pool->progress.enabled = shown;
    har_command_fini(command);
    return status;
}
