/* Starts children by posix_spawn, each in its own process group; says how they ended.
 * Called by har_pool.c; must not know what a child computes. */
#include "har_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const end_names[] = {
#define HAR_ROW_(name, text) #name,
    HAR_ENDS(HAR_ROW_)
#undef HAR_ROW_
};
static const char *const end_texts[] = {
#define HAR_ROW_(name, text) text,
    HAR_ENDS(HAR_ROW_)
#undef HAR_ROW_
};

const char *har_end_name(enum har_end end)
{
    return end < HAR_END_COUNT ? end_names[end] : "?";
}

const char *har_end_text(enum har_end end)
{
    return end < HAR_END_COUNT ? end_texts[end] : "?";
}

bool har_end_find(const char *name, enum har_end *out)
{
    for (int i = 0; i < HAR_END_COUNT; i++) {
        if (strcmp(end_names[i], name) == 0) {
            *out = (enum har_end)i;
            return true;
        }
    }
    return false;
}

void har_command_fini(struct har_command *command)
{
    har_args_fini(&command->args);
    free(command->log_path);
    memset(command, 0, sizeof *command);
}

char *har_command_line(const struct har_command *command)
{
    struct har_text text = {0};
    for (size_t i = 0; i < command->args.count; i++) {
        har_text_add(&text, i > 0 ? " " : "");
        har_text_add_shell(&text, command->args.items[i]);
    }
    if (text.failed) {
        har_text_fini(&text);
    }
    return text.data;
}

enum har_end har_exit_classify(int wait_status, bool timed_out, bool started)
{
    if (!started) {
        return HAR_END_no_verdict;
    }
    if (timed_out) {
        return HAR_END_timed_out;
    }
    if (WIFSIGNALED(wait_status)) {
        /* Not our kill: the system or a person ended it, which says nothing about the fault. */
        return WTERMSIG(wait_status) == SIGKILL ? HAR_END_no_verdict : HAR_END_crashed;
    }
    switch (WEXITSTATUS(wait_status)) {
    case 0:
        return HAR_END_done;
    case 1:
        return HAR_END_rejected;
    case 8:
        return HAR_END_refused;
    case 9:
        return HAR_END_assertion;
    case 74:
    case 126:
    case 127:
    case 130:
        return HAR_END_no_verdict;
    default:
        return HAR_END_crashed;
    }
}

double har_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void limit_child(pid_t pid, const struct har_command *command)
{
    const struct rlimit no_core = {0, 0};
    (void)prlimit(pid, RLIMIT_CORE, &no_core, NULL);
    if (command->memory_mb > 0) {
        const rlim_t bytes = (rlim_t)command->memory_mb << 20;
        const struct rlimit memory = {bytes, bytes};
        (void)prlimit(pid, RLIMIT_DATA, &memory, NULL);
    }
}

static int spawn_process(const struct har_command *command, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t all;
    int result = posix_spawn_file_actions_init(&files);
    if (result != 0) {
        return result;
    }
    result = posix_spawnattr_init(&attributes);
    if (result != 0) {
        posix_spawn_file_actions_destroy(&files);
        return result;
    }
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    const char *const log = command->log_path != NULL ? command->log_path : "/dev/null";
    const int results[] = {
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0),
        posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0644),
        posix_spawn_file_actions_adddup2(&files, 1, 2),
        posix_spawnattr_setpgroup(&attributes, 0),
        posix_spawnattr_setsigmask(&attributes, &none),
        posix_spawnattr_setsigdefault(&attributes, &all),
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                  POSIX_SPAWN_SETSIGDEF),
    };
    for (size_t i = 0; result == 0 && i < sizeof results / sizeof results[0]; i++) {
        result = results[i];
    }
    if (result == 0) {
        result = posix_spawn(pid, command->args.items[0], &files, &attributes, command->args.items,
                             environ);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return result;
}

enum har_status har_child_start(const struct har_command *command, struct har_child *out,
                                struct har_error *error)
{
    pid_t pid = 0;
    if (command->args.failed || command->args.count == 0) {
        return har_fail(error, HAR_EMEMORY, "no memory for a command line");
    }
    const int result = spawn_process(command, &pid);
    if (result != 0) {
        return har_fail(error, HAR_EIO, "%s: cannot be started (log %s): %s",
                        command->args.items[0],
                        command->log_path != NULL ? command->log_path : "none", strerror(result));
    }
    limit_child(pid, command);
    out->pid = pid;
    out->timed_out = false;
    out->started_s = har_clock_s();
    out->deadline_s = out->started_s + command->timeout_s;
    return HAR_OK;
}

bool har_child_reap(struct har_child *child, struct har_exit *out)
{
    siginfo_t info = {.si_pid = 0};
    struct rusage usage = {0};
    int wait_status = 0;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
        return false;
    }
    /* The group is swept while the leader is still a zombie: its number cannot be another's. */
    kill(-child->pid, SIGKILL);
    if (wait4(child->pid, &wait_status, 0, &usage) != child->pid) {
        return false;
    }
    out->end = har_exit_classify(wait_status, child->timed_out, true);
    out->code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    out->signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    out->seconds = har_clock_s() - child->started_s;
    out->peak_kb = usage.ru_maxrss;
    child->pid = 0;
    return true;
}

void har_child_kill(struct har_child *child)
{
    if (child->pid > 0) {
        kill(-child->pid, SIGKILL);
    }
}

void har_child_stop(struct har_child *child)
{
    if (child->pid > 0) {
        har_child_kill(child);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        child->pid = 0;
    }
}
