/* Starts children, each in its own process group; says how they ended.
 * Called by har_pool.c; must not know what a child computes. */
#include "har_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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
    free(command->answer_path);
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
    case 10:
        return HAR_END_guarded;
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

/* In the child: only async-signal-safe calls. */
static void limit_child(const struct har_command *command)
{
    const struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    if (command->memory_mb > 0) {
        const rlim_t bytes = (rlim_t)command->memory_mb << 20;
        const struct rlimit memory = {bytes, bytes};
        (void)setrlimit(RLIMIT_DATA, &memory);
    }
}

static bool redirect(int out, int messages)
{
    /* From 3 on: where the harness itself has no standard output, open() may give its number. */
    const int in = fcntl(open("/dev/null", O_RDONLY | O_CLOEXEC), F_DUPFD_CLOEXEC, 3);
    return in >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(messages, 2) >= 0;
}

/* What a child is started with. */
struct start {
    const struct har_command *command;
    char **environment;
    pid_t parent;
    int out_fd, log_fd; /* standard output and error */
};

/* Becomes the program, or says why not and ends. A harness that is killed takes its children along:
 * nobody else would end one that hangs. */
static _Noreturn void become(const struct start *start, int report_fd)
{
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++) {
        (void)signal(number, SIG_DFL);
    }
    errno = 0;
    if (setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == start->parent &&
        redirect(start->out_fd, start->log_fd) && sigprocmask(SIG_SETMASK, &none, NULL) == 0) {
        char **const words = start->command->args.items;
        limit_child(start->command);
        execve(words[0], words, start->environment);
    }
    const int cause = errno;
    (void)!write(report_fd, &cause, sizeof cause);
    _exit(127);
}

/* 0 once the program runs, else the error number. */
static int spawn_process(const struct start *start, pid_t *pid)
{
    int report[2];
    int cause = 0;
    if (pipe2(report, O_CLOEXEC) != 0) {
        return errno;
    }
    *pid = fork();
    if (*pid == 0) {
        become(start, report[1]);
    }
    cause = *pid < 0 ? errno : 0;
    close(report[1]);
    if (*pid > 0) {
        ssize_t got;
        do {
            got = read(report[0], &cause, sizeof cause);
        } while (got < 0 && errno == EINTR);
        if (got != 0) {
            while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR) {
            }
        }
    }
    close(report[0]);
    return cause;
}

static enum har_status open_logs(const struct har_command *command, struct har_child *out,
                                 struct har_error *error)
{
    memset(&out->answer, 0, sizeof out->answer);
    enum har_status status = har_log_open(command->log_path, &out->log, error);
    if (status == HAR_OK && command->answer_path != NULL) {
        status = har_log_open(command->answer_path, &out->answer, error);
        if (status != HAR_OK) {
            har_log_close(&out->log);
        }
    }
    return status;
}

static void close_logs(struct har_child *child)
{
    har_log_close(&child->log);
    har_log_close(&child->answer);
}

enum har_status har_child_start(const struct har_command *command, struct har_child *out,
                                struct har_error *error)
{
    pid_t pid = 0;
    if (command->args.failed || command->args.count == 0) {
        return har_fail(error, HAR_EMEMORY, "no memory for a command line");
    }
    const enum har_status status = open_logs(command, out, error);
    if (status != HAR_OK) {
        return status;
    }
    har_sweep_mark(out->mark);
    char **const environment = har_sweep_environment(out->mark);
    const struct start start = {.command = command,
                                .environment = environment,
                                .parent = getpid(),
                                .out_fd = out->answer.write_fd > 0 ? out->answer.write_fd
                                                                   : out->log.write_fd,
                                .log_fd = out->log.write_fd};
    const int result = environment != NULL ? spawn_process(&start, &pid) : ENOMEM;
    free(environment);
    har_log_close_writer(&out->log);
    har_log_close_writer(&out->answer);
    if (result != 0) {
        close_logs(out);
        return har_fail(error, HAR_EIO, "%s: cannot be started: %s", command->args.items[0],
                        strerror(result));
    }
    out->pid = pid;
    out->timed_out = false;
    out->started_s = har_clock_s();
    out->deadline_s = out->started_s + command->timeout_s;
    return HAR_OK;
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

void har_child_drain(struct har_child *child)
{
    har_log_drain(&child->log);
    har_log_drain(&child->answer);
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
    out->processor_s = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    out->peak_kb = usage.ru_maxrss;
    har_sweep_orphans(child->mark);
    close_logs(child);
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
        close_logs(child);
        child->pid = 0;
    }
}
