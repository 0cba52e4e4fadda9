/* Adopts, finds and kills what a child left behind.
 * Called by har_spawn.c and har_pool.c; must not know what a child computes. */
#include "har_sweep.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char mark_name[] = "FAULTLINE_CHILD=";

void har_sweep_adopt(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void har_sweep_mark(char mark[HAR_SWEEP_MARK_SIZE])
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(mark, HAR_SWEEP_MARK_SIZE, "%s%d-%lld-%ld", mark_name, (int)getpid(),
             (long long)now.tv_sec, now.tv_nsec);
}

char **har_sweep_environment(char *mark)
{
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **const out = calloc(count + 2, sizeof *out);
    if (out == NULL) {
        return NULL;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], mark_name, strlen(mark_name)) != 0) {
            out[used++] = environ[i];
        }
    }
    out[used] = mark;
    return out;
}

/* Whether the environment a process was started with holds the mark. A zombie has none. */
static bool has_mark(pid_t pid, const char *mark)
{
    char path[64];
    char *entry = NULL;
    size_t size = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *const file = fopen(path, "rbe");
    while (file != NULL && !found && getdelim(&entry, &size, '\0', file) > 0) {
        found = strcmp(entry, mark) == 0;
    }
    free(entry);
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* A dead orphan, which only waits to be reaped. The pool's own children lead groups of this session
 * and are reaped by the pool. */
static bool dead_orphan(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return (getpgid(pid) != pid || getsid(pid) != getsid(0)) &&
           waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* One pass over the children of this process; whether there was one to kill. What a killed one
 * leaves behind is adopted and found by the next pass. */
static bool sweep_once(const char *mark)
{
    bool found = false;
    int pid = 0;
    FILE *const file = fopen("/proc/thread-self/children", "rbe");
    while (file != NULL && fscanf(file, "%d", &pid) == 1) {
        if (mark == NULL || has_mark(pid, mark)) {
            kill(pid, SIGKILL);
            (void)waitpid(pid, NULL, WNOHANG);
            found = true;
        } else if (dead_orphan(pid)) {
            (void)waitpid(pid, NULL, WNOHANG);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

void har_sweep_orphans(const char *mark)
{
    enum { PASSES_MAX = 2000, PAUSE_NS = 500000 }; /* one second for what cannot die at once */
    const struct timespec pause = {0, PAUSE_NS};
    for (int i = 0; i < PASSES_MAX && sweep_once(mark); i++) {
        nanosleep(&pause, NULL);
    }
}
