/* Tests of children: how each end is classified, time-outs, groups, logs, interruption. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "har_pool.h"
#include "har_sweep.h"

static struct har_command shell(const char *script)
{
    struct har_command command = {.timeout_s = 20.0};
    har_args_add(&command.args, "/bin/sh");
    har_args_add(&command.args, "-c");
    har_args_add(&command.args, script);
    return command;
}

static struct har_exit run(struct har_command *command)
{
    struct har_pool pool;
    struct har_exit end = {0};
    struct har_error error = {{0}};
    cr_assert_eq(har_pool_open(1, false, &pool, &error), HAR_OK, "%s", error.text);
    cr_assert_eq(har_pool_run_one(&pool, command, &end, &error), HAR_OK, "%s", error.text);
    har_pool_close(&pool);
    return end;
}

/* Killed before the question; whoever adopts it may not have reaped it yet. */
static bool is_gone_soon(pid_t pid)
{
    bool gone = false;
    for (int i = 0; i < 250 && !gone; i++) {
        char name[64];
        char state = '?';
        snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
        FILE *const file = fopen(name, "r");
        gone = file == NULL || (fscanf(file, "%*d %*s %c", &state) == 1 && state == 'Z');
        if (file != NULL) {
            fclose(file);
        }
        usleep(20000);
    }
    return gone;
}

Test(har_spawn, every_way_to_end_is_told_apart)
{
    static const struct {
        const char *script;
        enum har_end end;
        int code, signal;
    } rows[] = {
        {"exit 0", HAR_END_done, 0, 0},
        {"exit 1", HAR_END_rejected, 1, 0},
        {"exit 8", HAR_END_refused, 8, 0},
        {"exit 9", HAR_END_assertion, 9, 0},
        {"exit 10", HAR_END_guarded, 10, 0},
        {"exit 70", HAR_END_crashed, 70, 0},
        {"exit 74", HAR_END_no_verdict, 74, 0},
        {"exit 126", HAR_END_no_verdict, 126, 0},
        {"exit 127", HAR_END_no_verdict, 127, 0},
        {"exit 130", HAR_END_no_verdict, 130, 0},
        {"exit 3", HAR_END_crashed, 3, 0},
        {"kill -SEGV $$", HAR_END_crashed, -1, SIGSEGV},
        {"kill -ABRT $$", HAR_END_crashed, -1, SIGABRT},
        {"kill -KILL $$", HAR_END_no_verdict, -1, SIGKILL},
    };
    size_t compared = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct har_command command = shell(rows[i].script);
        const struct har_exit end = run(&command);
        cr_expect_eq(end.end, rows[i].end, "%s: %s", rows[i].script, har_end_name(end.end));
        cr_expect_eq(end.code, rows[i].code, "%s: %d", rows[i].script, end.code);
        cr_expect_eq(end.signal, rows[i].signal, "%s: %d", rows[i].script, end.signal);
        compared++;
    }
    cr_assert_gt(compared, 0);
    cr_expect_eq(har_exit_classify(0, false, false), HAR_END_no_verdict);
}

/* The harness blocks signals that it waits for, and ignores others; a child has neither. */
Test(har_spawn, a_child_starts_with_signals_as_by_default)
{
    (void)signal(SIGPIPE, SIG_IGN);
    struct har_command command = shell("kill -PIPE $$; exit 3");
    cr_expect_eq(run(&command).signal, SIGPIPE);
    command = shell("kill -TERM $$; exit 3");
    cr_expect_eq(run(&command).signal, SIGTERM);
    (void)signal(SIGPIPE, SIG_DFL);
}

Test(har_spawn, time_and_memory_of_a_child_are_told)
{
    enum { MIB = 64, LIMIT_MIB = 512 };
    struct har_command command =
        shell("sleep 0.2; exec head -c 64m /dev/zero | tail -c 64m | wc -c");
    const struct har_exit end = run(&command);
    cr_expect_eq(end.end, HAR_END_done);
    cr_expect_geq(end.seconds, 0.2);
    cr_expect_gt(end.peak_kb, MIB * 1024, "%ld", end.peak_kb); /* tail keeps what it prints */
    cr_expect_gt(end.processor_s, 0.0);
    command = shell("ulimit -c; ulimit -d");
    char path[] = "/tmp/har_spawn_XXXXXX";
    close(mkstemp(path));
    command.log_path = strdup(path);
    command.memory_mb = LIMIT_MIB;
    cr_expect_eq(run(&command).end, HAR_END_done);
    long core = -1;
    long data = -1;
    FILE *const log = fopen(path, "r");
    cr_assert_eq(fscanf(log, "%ld %ld", &core, &data), 2);
    fclose(log);
    unlink(path);
    cr_expect_eq(core, 0);
    cr_expect_eq(data, LIMIT_MIB * 1024);
}

Test(har_spawn, a_program_that_is_missing_is_an_error)
{
    struct har_pool pool;
    struct har_exit end;
    struct har_error error = {{0}};
    struct har_command command = {.timeout_s = 5.0};
    har_args_add(&command.args, "/nonexistent/program");
    cr_assert_eq(har_pool_open(1, false, &pool, &error), HAR_OK);
    cr_expect_eq(har_pool_run_one(&pool, &command, &end, &error), HAR_EIO);
    cr_expect_not_null(strstr(error.text, "/nonexistent/program"));
    har_pool_close(&pool);
}

Test(har_spawn, a_child_past_its_time_dies_with_its_group)
{
    char path[] = "/tmp/har_spawn_XXXXXX";
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
    struct har_command command = shell("sleep 600 & echo $!; wait");
    command.timeout_s = 0.3;
    command.log_path = strdup(path);
    const struct har_exit end = run(&command);
    cr_expect_eq(end.end, HAR_END_timed_out);
    cr_expect_lt(end.seconds, 10.0);
    FILE *const log = fopen(path, "r");
    int grandchild = 0;
    cr_assert_eq(fscanf(log, "%d", &grandchild), 1);
    fclose(log);
    unlink(path);
    cr_assert_gt(grandchild, 1);
    cr_expect(is_gone_soon(grandchild), "the grandchild outlived its group");
}

/* Of a child alone, no pool; the script prints the number of a process it leaves behind. */
static void expect_gone_with_child(const char *script, bool stopped)
{
    char path[] = "/tmp/har_spawn_XXXXXX";
    close(mkstemp(path));
    struct har_command command = shell(script);
    struct har_child child = {0};
    struct har_exit end = {0};
    struct har_error error = {{0}};
    int grandchild = 0;
    command.log_path = strdup(path);
    cr_assert_eq(har_child_start(&command, &child, &error), HAR_OK, "%s", error.text);
    for (int wait = 0; wait < 250 && grandchild == 0; wait++) {
        har_child_drain(&child);
        FILE *const log = fopen(path, "r");
        if (fscanf(log, "%d", &grandchild) != 1) {
            grandchild = 0;
        }
        fclose(log);
        usleep(20000);
    }
    cr_assert_gt(grandchild, 1);
    if (stopped) {
        har_child_stop(&child);
    }
    for (int wait = 0; wait < 250 && child.pid > 0 && !har_child_reap(&child, &end); wait++) {
        usleep(20000);
    }
    cr_expect_eq(child.pid, 0);
    const bool gone = is_gone_soon(grandchild);
    cr_expect(gone, "%s", script);
    if (!gone) {
        kill(grandchild, SIGKILL);
    }
    har_command_fini(&command);
    unlink(path);
}

/* Its own child lacks the mark by which a sweep would find it. */
Test(har_spawn, a_group_dies_with_its_leader)
{
    expect_gone_with_child("env -i /bin/sleep 600 & echo $!", false);
    expect_gone_with_child("env -i /bin/sleep 600 & echo $!; wait", true);
}

Test(har_spawn, a_child_dies_with_a_killed_harness)
{
    int words[2];
    cr_assert_eq(pipe(words), 0);
    const pid_t harness = fork();
    if (harness == 0) {
        struct har_command command = shell("exec sleep 600");
        struct har_child child = {0};
        struct har_error error = {{0}};
        if (har_child_start(&command, &child, &error) == HAR_OK) {
            (void)!write(words[1], &child.pid, sizeof child.pid);
        }
        pause();
    }
    close(words[1]);
    pid_t child = 0;
    cr_assert_eq(read(words[0], &child, sizeof child), (ssize_t)sizeof child);
    close(words[0]);
    cr_assert_gt(child, 1);
    cr_expect_eq(kill(child, 0), 0, "the child is there");
    kill(harness, SIGKILL);
    cr_assert_eq(waitpid(harness, NULL, 0), harness);
    cr_expect(is_gone_soon(child), "the child outlived its harness");
}

Test(har_spawn, output_goes_to_the_log_and_quoting_reads_back)
{
    char path[] = "/tmp/har_spawn_XXXXXX";
    close(mkstemp(path));
    struct har_command command = shell("echo out; echo 'err or' >&2; cat");
    command.log_path = strdup(path);
    char *const line = har_command_line(&command);
    cr_expect_str_eq(line, "/bin/sh -c 'echo out; echo '\\''err or'\\'' >&2; cat'");
    free(line);
    cr_expect_eq(run(&command).end, HAR_END_done);
    char text[64] = "";
    FILE *const log = fopen(path, "r");
    cr_assert_gt(fread(text, 1, sizeof text - 1, log), 0);
    fclose(log);
    unlink(path);
    cr_expect_str_eq(text, "out\nerr or\n");
}

Test(har_spawn, an_answer_is_kept_apart_from_messages_and_bounded)
{
    char path[2][32] = {"/tmp/har_spawn_XXXXXX", "/tmp/har_spawn_XXXXXX"};
    char text[2][64] = {"", ""};
    struct har_command command = shell("echo out; echo message >&2; echo end");
    for (int i = 0; i < 2; i++) {
        close(mkstemp(path[i]));
    }
    command.log_path = strdup(path[0]);
    command.answer_path = strdup(path[1]);
    cr_expect_eq(run(&command).end, HAR_END_done);
    for (int i = 0; i < 2; i++) {
        FILE *const file = fopen(path[i], "r");
        cr_assert_gt(fread(text[i], 1, sizeof text[i] - 1, file), 0);
        fclose(file);
    }
    cr_expect_str_eq(text[0], "message\n");
    cr_expect_str_eq(text[1], "out\nend\n");

    command = shell("yes >&2 & exec yes");
    command.timeout_s = 0.5;
    command.log_path = strdup(path[0]);
    command.answer_path = strdup(path[1]);
    cr_expect_eq(run(&command).end, HAR_END_timed_out);
    for (int i = 0; i < 2; i++) {
        FILE *const file = fopen(path[i], "r");
        fseek(file, 0, SEEK_END);
        cr_expect_gt(ftell(file), 1000);
        cr_expect_lt(ftell(file), HAR_LOG_BYTES_MAX + 2 * HAR_LOG_TAIL);
        fclose(file);
        unlink(path[i]);
    }
}

/* Runs a script that prints the number of a process it leaves behind; whether that one is gone. */
static void expect_nothing_left(const char *script, double timeout_s, enum har_end end)
{
    char path[] = "/tmp/har_spawn_XXXXXX";
    close(mkstemp(path));
    struct har_command command = shell(script);
    int left = 0;
    command.timeout_s = timeout_s;
    command.log_path = strdup(path);
    cr_expect_eq(run(&command).end, end, "%s", script);
    FILE *const log = fopen(path, "r");
    cr_assert_eq(fscanf(log, "%d", &left), 1, "%s", script);
    fclose(log);
    unlink(path);
    cr_assert_gt(left, 1);
    cr_expect(kill(left, 0) != 0 && errno == ESRCH, "%s: process %d is still there", script, left);
}

static void skip_without_children(void)
{
    FILE *const list = fopen("/proc/thread-self/children", "r");
    if (list == NULL) {
        cr_skip("this kernel lists no children (CONFIG_PROC_CHILDREN)");
    }
    fclose(list);
}

/* At its own end, not only at that of the last child of a pool. */
Test(har_spawn, what_left_the_group_dies_with_the_child_that_started_it)
{
    skip_without_children();
    har_sweep_adopt();
    expect_gone_with_child("setsid sleep 600 & echo $!", false);
}

Test(har_spawn, what_left_the_group_dies_as_well)
{
    skip_without_children();
    expect_nothing_left("setsid sleep 600 & echo $!; wait", 0.5, HAR_END_timed_out);
    expect_nothing_left("setsid sleep 600 & echo $!", 20.0, HAR_END_done);
    expect_nothing_left("(setsid sh -c 'echo $$; exec sleep 600' &); sleep 0.3", 20.0,
                        HAR_END_done);
    /* Without the mark it goes when no child runs any more. */
    expect_nothing_left("(env -i setsid /bin/sh -c 'echo $$; exec sleep 600' &); sleep 0.3", 20.0,
                        HAR_END_done);
    cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
}

Test(har_spawn, a_log_is_bounded_and_keeps_its_last_line)
{
    char path[] = "/tmp/har_spawn_XXXXXX";
    char line[256] = "";
    char last[256] = "";
    bool said = false;
    close(mkstemp(path));
    struct har_command command =
        shell("echo first; head -c 40000000 /dev/zero | tr '\\0' x; echo; echo the cause");
    command.log_path = strdup(path);
    cr_expect_eq(run(&command).end, HAR_END_done);
    FILE *const log = fopen(path, "r");
    cr_assert_not_null(fgets(line, sizeof line, log));
    cr_expect_str_eq(line, "first\n");
    while (fgets(line, sizeof line, log) != NULL) {
        said = said || strstr(line, "bytes left out") != NULL;
        snprintf(last, sizeof last, "%s", line);
    }
    cr_expect(said, "nothing says that something is left out");
    cr_expect_str_eq(last, "the cause\n");
    cr_expect_lt(ftell(log), HAR_LOG_BYTES_MAX + 2 * HAR_LOG_TAIL);
    fclose(log);
    unlink(path);
}

Test(har_spawn, a_log_that_never_ends_fills_no_disk)
{
    char path[] = "/tmp/har_spawn_XXXXXX";
    close(mkstemp(path));
    struct har_command command = shell("exec yes");
    command.timeout_s = 0.5;
    command.log_path = strdup(path);
    cr_expect_eq(run(&command).end, HAR_END_timed_out);
    FILE *const log = fopen(path, "r");
    fseek(log, 0, SEEK_END);
    cr_expect_gt(ftell(log), 1000);
    cr_expect_lt(ftell(log), HAR_LOG_BYTES_MAX + 2 * HAR_LOG_TAIL);
    fclose(log);
    unlink(path);
}

/* A job of `left` children, each of which takes a moment. */
struct chain {
    int left, ran;
};

static enum har_status chain_next(void *job, const struct har_exit *last,
                                  struct har_command *command, bool *more, struct har_error *error)
{
    struct chain *const chain = job;
    (void)error;
    chain->ran += last != NULL && last->end == HAR_END_done;
    *more = chain->left-- > 0;
    if (*more) {
        *command = shell("sleep 0.02");
    }
    return HAR_OK;
}

Test(har_pool, every_job_runs_to_its_end)
{
    enum { JOBS = 12 };
    struct chain chains[JOBS];
    void *jobs[JOBS];
    struct har_pool pool;
    struct har_error error = {{0}};
    for (int i = 0; i < JOBS; i++) {
        chains[i] = (struct chain){.left = i % 4};
        jobs[i] = &chains[i];
    }
    cr_assert_eq(har_pool_open(3, false, &pool, &error), HAR_OK);
    cr_assert_eq(har_pool_run(&pool, jobs, JOBS, chain_next, "test", &error), HAR_OK);
    for (int i = 0; i < JOBS; i++) {
        cr_expect_eq(chains[i].ran, i % 4);
    }
    har_pool_close(&pool);
}

static enum har_status endless_next(void *job, const struct har_exit *last,
                                    struct har_command *command, bool *more,
                                    struct har_error *error)
{
    pid_t *const self = job;
    (void)last;
    (void)error;
    *command = shell("sleep 600");
    *more = true;
    kill(*self, SIGTERM); /* arrives while the child runs */
    return HAR_OK;
}

Test(har_pool, an_interruption_stops_all_children)
{
    struct har_pool pool;
    struct har_error error = {{0}};
    pid_t self = getpid();
    void *jobs[] = {&self, &self};
    cr_assert_eq(har_pool_open(2, false, &pool, &error), HAR_OK);
    const double start = har_clock_s();
    cr_expect_eq(har_pool_run(&pool, jobs, 2, endless_next, "test", &error), HAR_EINTERRUPTED);
    cr_expect_lt(har_clock_s() - start, 20.0);
    cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
    cr_expect_eq(errno, ECHILD);
    har_pool_close(&pool);
}
