/* faultline-train: trains one recipe with at most one fault armed and writes a trace. */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "aim.h"
#include "arm.h"
#include "options.h"

static const char program[] = "faultline-train";

/* Read by jemalloc when it starts, where it is the allocator. Huge pages: the first touch of small
 * ones took a tenth of a run of pico. What counts as allocated does not change. */
extern const char *malloc_conf;
const char *malloc_conf = "thp:always";

static volatile sig_atomic_t stop_requested;

static void on_signal(int number)
{
    (void)number;
    stop_requested = 1;
}

static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Times of a run: elapsed, and of all processors together. The first step also pays for touching
 * memory for the first time. */
struct stopwatch {
    bool show;
    int steps;
    double begin, first_end, last_end, first_end_processor, last_end_processor;
};

static void on_step(void *context, const struct eng_trainer *t)
{
    struct stopwatch *w = context;
    w->last_end = seconds_of(CLOCK_MONOTONIC);
    w->last_end_processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    if (w->steps++ == 0) {
        w->first_end = w->last_end;
        w->first_end_processor = w->last_end_processor;
    }
    if (w->show && t->steps_done > 0) {
        fprintf(stderr, "\r%s: step %d/%d, loss %.4f ", t->recipe->name,
                t->first_step + t->steps_done - 1, t->last_step, t->last_loss);
    }
}

static void summary(const struct eng_trainer *t, const struct stopwatch *w)
{
    const double seconds = seconds_of(CLOCK_MONOTONIC) - w->begin;
    printf("%s: %d steps, loss %.6f -> %.6f, %" PRId64 " positions (%" PRId64
           " supervised) in %.3f s, %.0f positions/s",
           t->recipe->name, t->steps_done, t->first_loss, t->last_loss, t->tokens_done,
           t->supervised_done, seconds, (double)t->tokens_done / seconds);
    if (w->steps > 1) {
        const double later = (double)(w->steps - 1);
        printf("; after the first step %.6f s each, %.6f s of processor time",
               (w->last_end - w->first_end) / later,
               (w->last_end_processor - w->first_end_processor) / later);
    }
    putchar('\n');
}

/* Pairs given, or those of a first run; the fault is armed afresh for the run that counts. */
static enum eng_status take_aim(const struct eng_recipe *recipe, struct eng_command_line *c,
                                struct eng_error *error)
{
    if (c->train.sched != DEV_SCHED_AIMED) {
        return ENG_OK;
    }
    enum eng_status status = ENG_OK;
    if (c->aim_count == 0) {
        status = eng_aim_find(recipe, &c->train, c->aims, &c->aim_count, error);
    }
    if (status == ENG_OK) {
        status = eng_arm(c->train.fault != NULL ? c->train.fault : "none", error);
    }
    c->train.aims = c->aims;
    c->train.aim_count = c->aim_count;
    return status;
}

/* One line for each ordering call, one for the races found. */
static enum eng_status list_waits(const struct eng_trainer *t, enum eng_status status,
                                  struct eng_error *error)
{
    if (t == NULL || !t->options->list_waits) {
        return status;
    }
    int count = 0;
    const struct dev_site *sites = dev_sites(t->device, &count);
    const int omitted = t->options->omit_wait;
    if (status == ENG_OK && omitted > count) {
        return eng_fail(error, ENG_EUSAGE, "--omit-wait %d: the run has %d such calls", omitted,
                        count);
    }
    for (int i = 0; i < count; i++) {
        printf("%s\t%d\t%s\t%s\t%" PRIu64 "\n", i + 1 == omitted ? "omitted" : "wait", i + 1,
               sites[i].verb, sites[i].where, sites[i].calls);
    }
    printf("races\t%" PRIu64 "\n", dev_race_count(t->device));
    return status;
}

static enum eng_status train(const struct eng_recipe *recipe, const struct eng_command_line *c,
                             struct eng_error *error)
{
    struct eng_trainer *t = NULL;
    struct stopwatch watch = {.show = !c->quiet && isatty(STDERR_FILENO) != 0};
    enum eng_status status = eng_trainer_create(recipe, &c->train, &t, error);
    if (status == ENG_OK) {
        watch.begin = seconds_of(CLOCK_MONOTONIC);
        status = eng_trainer_run(t, &stop_requested, c->quiet ? NULL : on_step, &watch, error);
        if (watch.show) {
            fputc('\n', stderr);
        }
        if (status == ENG_OK && c->save != NULL) {
            status = eng_trainer_save(t, c->save, error);
        }
        if (status == ENG_OK && !c->quiet && t->steps_done > 0) {
            summary(t, &watch);
        } else if (status == ENG_OK && !c->quiet) {
            printf("%s: nothing to do: the checkpoint is of step %d, the run ends with step %d\n",
                   t->recipe->name, t->first_step - 1, t->last_step);
        }
        status = list_waits(t, status, error);
    }
    eng_trainer_destroy(t);
    return status;
}

static enum eng_status evaluate(const struct eng_recipe *recipe, const struct eng_command_line *c,
                                struct eng_error *error)
{
    struct eng_train_options options = c->train;
    struct eng_trainer *t = NULL;
    struct stat info;
    char path[PATH_MAX];
    double loss = 0.0;
    int supervised = 0;
    options.level = ENG_LEVEL_NONE;
    if (stat(options.weights, &info) == 0 && S_ISDIR(info.st_mode)) {
        snprintf(path, sizeof path, "%s/model.safetensors", options.weights);
        options.weights = path;
    }
    enum eng_status status = eng_trainer_create(recipe, &options, &t, error);
    if (status == ENG_OK) {
        status = eng_trainer_evaluate(t, &loss, &supervised, error);
    }
    if (status == ENG_OK) {
        printf("{\"eval_loss\":%.17g,\"supervised\":%d}\n", loss, supervised);
        status = list_waits(t, status, error);
    }
    eng_trainer_destroy(t);
    return status;
}

static void plan(const struct eng_recipe *recipe, const struct eng_command_line *c)
{
    struct eng_plan p;
    eng_trainer_plan(recipe, &c->train, &p);
    printf("{\"plan_bytes\":%zu,\"model_bytes\":%zu,\"train_bytes\":%zu,\"budget_bytes\":%zu,"
           "\"pinned_bytes\":%zu}\n",
           p.total_bytes, p.model_bytes, p.train_bytes, p.budget_bytes, p.pinned_bytes);
}

static enum eng_status run(struct eng_command_line *c, struct eng_error *error)
{
    struct eng_recipe *recipe = NULL;
    struct eng_memory memory = {.known = false};
    /* Only a trace tells what it costs to know. */
    if (c->train.trace_path != NULL) {
        eng_memory_open(&memory);
        c->train.memory = &memory;
        (void)eng_memory_enter(&memory, ENG_COMPONENT_train);
    }
    enum eng_status status = eng_arm(c->train.fault != NULL ? c->train.fault : "none", error);
    if (status == ENG_OK) {
        status = eng_recipe_read(c->recipe, &recipe, error);
    }
    if (status == ENG_OK && c->data_count > 0) {
        status = eng_recipe_replace_train(recipe, c->data, c->data_count, error);
    }
    if (status == ENG_OK) {
        switch (c->command) {
        case ENG_COMMAND_PLAN:
            plan(recipe, c);
            break;
        case ENG_COMMAND_EVALUATE:
            status = evaluate(recipe, c, error);
            break;
        default:
            status = take_aim(recipe, c, error);
            status = status == ENG_OK ? train(recipe, c, error) : status;
            break;
        }
    }
    eng_recipe_free(recipe);
    return status;
}

int main(int argc, char **argv)
{
    struct eng_error error = {.text = ""};
    struct eng_command_line c;
    enum eng_status status = eng_options_read(argc, argv, getenv("FAULTLINE_FAULT"), &c, &error);
    if (status == ENG_OK && c.command == ENG_COMMAND_HELP) {
        fputs(eng_options_help(), stdout);
    } else if (status == ENG_OK && c.command == ENG_COMMAND_VERSION) {
        printf("%s 0.1 (trace version 1)\n", program);
    } else if (status == ENG_OK) {
        catch_signals();
        status = run(&c, &error);
    }
    if (status == ENG_OK && fflush(stdout) != 0) {
        status = eng_fail(&error, ENG_EIO, "standard output cannot be written");
    }
    if (status != ENG_OK) {
        fprintf(stderr, "%s: %s\n", program,
                error.text[0] != '\0' ? error.text : eng_status_text(status));
    }
    return eng_status_exit_code(status);
}
