/* Finding a stored run and running it again. Called by cmd_replay.c; must not know output. */
#include "har_replay.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_lab.h"
#include "har_replay_read.h"

void har_replay_fini(struct har_replay *r)
{
    free(r->run.key);
    free(r->run.role);
    free(r->run.recipe);
    free(r->run.ending);
    har_args_fini(&r->run.args);
    for (size_t i = 0; i < r->race_count; i++) {
        for (int s = 0; s < 2; s++) {
            struct har_replay_side *const side = &r->races[i].side[s];
            free(side->what);
            free(side->stream);
            free(side->mode);
            free(side->where);
        }
        free(r->races[i].buffer);
    }
    free(r->races);
    for (size_t i = 0; i < r->moment_count; i++) {
        free(r->moments[i].what);
        free(r->moments[i].stream);
    }
    free(r->moments);
    free(r->schedule);
    free(r->schedule_seed);
    memset(r, 0, sizeof *r);
}

/* ---- finding ---- */

struct finding {
    struct har_replay_run *run;
    size_t rows;
    bool failed;
};

static void take_row(void *context, int columns, char **v)
{
    struct finding *const f = context;
    if (f->rows++ > 0 || columns != 7) {
        return;
    }
    struct har_replay_run *const run = f->run;
    run->id = v[0] != NULL ? strtoll(v[0], NULL, 10) : 0;
    run->key = strdup(v[1] != NULL ? v[1] : "");
    run->role = strdup(v[2] != NULL ? v[2] : "");
    run->recipe = strdup(v[3] != NULL ? v[3] : "");
    run->ending = strdup(v[4] != NULL ? v[4] : "");
    run->seconds = v[5] != NULL ? strtod(v[5], NULL) : 0.0;
    f->failed = run->key == NULL || run->role == NULL || run->recipe == NULL ||
                run->ending == NULL || v[6] == NULL || !har_args_split(v[6], &run->args);
}

/* The condition that names the run: an id, a key or a key with a role. */
static enum har_status condition(const char *which, struct har_text *out, struct har_error *error)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_./:@+-";
    if (*which == '\0' || strspn(which, allowed) != strlen(which)) {
        return har_fail(error, HAR_EUSAGE,
                        "'%s' names no run: it takes the id of a run or FAULT/RECIPE/SEED", which);
    }
    if (strspn(which, "0123456789") == strlen(which)) {
        har_text_addf(out, "id = %s", which);
    } else {
        har_text_addf(out,
                      "(case_key || '/' || role) IN ('%s', '%s/subject', 'fault/%s', "
                      "'fault/%s/subject')",
                      which, which, which, which);
    }
    return out->failed ? har_fail(error, HAR_EMEMORY, "no memory") : HAR_OK;
}

static enum har_status find(har_store *store, const char *dir, const char *which,
                            struct har_replay_run *run, struct har_error *error)
{
    struct har_text query = {0};
    struct finding finding = {.run = run};
    har_text_add(&query, "SELECT id, case_key, role, recipe, ending, seconds, command FROM runs"
                         " WHERE ");
    enum har_status status = condition(which, &query, error);
    if (status == HAR_OK) {
        status = har_store_query(store, har_text_get(&query), take_row, &finding, error);
    }
    har_text_fini(&query);
    if (status != HAR_OK) {
        return status;
    }
    if (finding.rows == 0) {
        return har_fail(error, HAR_EUSAGE,
                        "%s: no run '%s' is stored; it takes the id of a run or FAULT/RECIPE/SEED",
                        dir, which);
    }
    return finding.failed
               ? har_fail(error, HAR_EUSAGE, "%s: the command of run %lld cannot be read", dir,
                          (long long)run->id)
               : HAR_OK;
}

/* ---- running ---- */

static const char *option_of(const struct har_args *args, const char *name)
{
    for (size_t i = 0; i + 1 < args->count; i++) {
        if (strcmp(args->items[i], name) == 0) {
            return args->items[i + 1];
        }
    }
    return NULL;
}

/* Options of the stored command that the replay gives itself. */
static bool is_replaced(const char *word, bool other_schedule)
{
    static const char *const always[] = {"--trace", "--timeline", "--weights", "--checkpoint-dir",
                                         "--states"};
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        if (strcmp(word, always[i]) == 0) {
            return true;
        }
    }
    return other_schedule && strcmp(word, "--schedule") == 0;
}

/* Initial weights: the stored file, or made again. */
static enum har_status find_weights(const struct har_replay_run *run,
                                    const struct har_programs *programs, struct har_pool *pool,
                                    const char *dir, char *path, struct har_error *error)
{
    const char *const kept = option_of(&run->args, "--weights");
    const char *const recipe = option_of(&run->args, "--recipe");
    const char *const seed = option_of(&run->args, "--seed");
    if (kept != NULL && access(kept, R_OK) == 0) {
        return snprintf(path, PATH_MAX, "%s", kept) < PATH_MAX ? HAR_OK : HAR_EUSAGE;
    }
    if (recipe == NULL || seed == NULL) {
        return har_fail(error, HAR_EUSAGE, "run %lld is not a run of the trainer with weights",
                        (long long)run->id);
    }
    struct har_command command = {.timeout_s = 60.0};
    struct har_exit end = {0};
    char log[PATH_MAX + 32];
    snprintf(path, PATH_MAX, "%s/weights.safetensors", dir);
    snprintf(log, sizeof log, "%s/init.log", dir);
    const char *const words[] = {programs->init, "--recipe", recipe, "--seed", seed, "--out", path};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        har_args_add(&command.args, words[i]);
    }
    command.log_path = strdup(log);
    const enum har_status status = har_pool_run_one(pool, &command, &end, error);
    if (status != HAR_OK) {
        return status;
    }
    char line[512];
    har_lab_last_line(log, line, sizeof line);
    return end.end == HAR_END_done
               ? HAR_OK
               : har_fail(error, HAR_EUSAGE, "weights of run %lld: %s", (long long)run->id, line);
}

static void fill_args(const struct har_replay_run *run, const char *program, const char *weights,
                      const char *dir, const char *schedule, struct har_args *args)
{
    har_args_add(args, program);
    for (size_t i = 1; i < run->args.count; i++) {
        if (is_replaced(run->args.items[i], schedule != NULL)) {
            i++;
        } else {
            har_args_add(args, run->args.items[i]);
        }
    }
    if (option_of(&run->args, "--resume") == NULL) {
        har_args_add(args, "--weights");
        har_args_add(args, weights);
    }
    if (option_of(&run->args, "--checkpoint-dir") != NULL) {
        har_args_add(args, "--checkpoint-dir");
        har_args_addf(args, "%s/checkpoints", dir);
    }
    if (option_of(&run->args, "--states") != NULL) {
        /* What it adds are operations of the program; nobody reads them. */
        har_args_add(args, "--states");
        har_args_add(args, "/dev/null");
    }
    if (schedule != NULL) {
        har_args_add(args, "--schedule");
        har_args_add(args, schedule);
    }
    har_args_add(args, "--trace");
    har_args_addf(args, "%s/trace.jsonl", dir);
    har_args_add(args, "--timeline");
    har_args_addf(args, "%s/timeline.jsonl", dir);
}

static enum har_status run_again(const struct har_options *options,
                                 const struct har_programs *programs, struct har_pool *pool,
                                 const char *dir, struct har_replay *r, struct har_error *error)
{
    enum { TIMES = 20, LEAST_S = 60 };
    char weights[PATH_MAX] = "";
    struct har_command command = {.timeout_s = LEAST_S + TIMES * r->run.seconds};
    char log[PATH_MAX];
    const char *const resume = option_of(&r->run.args, "--resume");
    enum har_status status = HAR_OK;
    if (resume != NULL && access(resume, R_OK) != 0) {
        status = har_fail(error, HAR_EUSAGE,
                          "run %lld resumes from %s, which is gone; replay its subject",
                          (long long)r->run.id, resume);
    } else if (resume == NULL) {
        status = find_weights(&r->run, programs, pool, dir, weights, error);
    }
    if (status != HAR_OK) {
        return status;
    }
    const char *const stored = r->run.args.items[0];
    const char *const program = access(stored, X_OK) == 0 ? stored : programs->train;
    fill_args(&r->run, options->train != NULL ? options->train : program, weights, dir,
              options->schedule, &command.args);
    const char *const schedule = option_of(&command.args, "--schedule");
    const char *const seed = option_of(&command.args, "--schedule-seed");
    r->schedule = strdup(schedule != NULL ? schedule : "fifo");
    r->schedule_seed = strdup(seed != NULL ? seed : "1");
    snprintf(log, sizeof log, "%s/train.log", dir);
    command.log_path = strdup(log);
    status = har_pool_run_one(pool, &command, &r->end, error);
    if (status == HAR_OK && r->end.end == HAR_END_rejected) {
        char line[512];
        har_lab_last_line(log, line, sizeof line);
        status = har_fail(error, HAR_EUSAGE, "run %lld cannot be run again: %s",
                          (long long)r->run.id, line);
    }
    return status;
}

static enum har_status replay_in(const struct har_options *options, const char *dir,
                                 struct har_replay *r, struct har_error *error)
{
    struct har_programs programs = {0};
    struct har_pool pool = {.signal_fd = -1};
    char path[PATH_MAX];
    enum har_status status = har_programs_find(options, &programs, error);
    if (status == HAR_OK) {
        status = har_pool_open(1, false, &pool, error);
    }
    if (status == HAR_OK) {
        status = run_again(options, &programs, &pool, dir, r, error);
        har_pool_close(&pool);
    }
    if (status == HAR_OK) {
        snprintf(path, sizeof path, "%s/trace.jsonl", dir);
        status = har_replay_read_trace(path, r, error);
    }
    if (status == HAR_OK) {
        snprintf(path, sizeof path, "%s/timeline.jsonl", dir);
        status = har_replay_read_timeline(path, r, error);
    }
    har_programs_fini(&programs);
    return status;
}

/* A trainer of the user, a reference, an oracle: none has a schedule that could be replayed. */
static enum har_status not_replayable(const struct har_replay_run *run, struct har_error *error)
{
    struct har_text words = {0};
    for (size_t i = 0; i < run->args.count; i++) {
        har_text_add(&words, i > 0 ? " " : "");
        har_text_add_shell(&words, run->args.items[i]);
    }
    const enum har_status status =
        har_fail(error, HAR_EUSAGE,
                 "run %lld (%s %s) is not a run of Faultline's trainer, and no other has a "
                 "schedule to replay; it was %.600s",
                 (long long)run->id, run->key, run->role, har_text_get(&words));
    har_text_fini(&words);
    return status;
}

enum har_status har_replay_do(const struct har_options *options, const char *which,
                              struct har_replay *out, struct har_error *error)
{
    const char *const results = options->out != NULL ? options->out : "faultline.out";
    const char *const temporary = getenv("TMPDIR");
    har_store *store = NULL;
    char dir[PATH_MAX - 64];
    memset(out, 0, sizeof *out);
    unsetenv("FAULTLINE_FAULT");
    enum har_status status = har_store_open(results, &store, error);
    if (status == HAR_OK) {
        status = find(store, results, which, &out->run, error);
        har_store_close(store);
    }
    if (status != HAR_OK) {
        return status;
    }
    if (strcmp(out->run.args.items[0], "/usr/bin/env") == 0 || /* har_lab_own_args */
        option_of(&out->run.args, "--schedule") == NULL) {
        return not_replayable(&out->run, error);
    }
    const char *const root = temporary != NULL ? temporary : "/tmp";
    snprintf(dir, sizeof dir, "%s/faultline-replay-XXXXXX", root);
    if (mkdtemp(dir) == NULL) {
        return har_fail(error, HAR_EIO, "%s: cannot be made", dir);
    }
    status = replay_in(options, dir, out, error);
    har_lab_remove(root, dir);
    return status;
}

struct har_replay_place har_replay_find(const struct har_replay *r,
                                        const struct har_replay_side *side)
{
    struct har_replay_place place = {r->moment_count, r->moment_count};
    const bool on_host = strcmp(side->stream, "host") == 0;
    for (size_t i = 0; i < r->moment_count; i++) {
        const struct har_replay_moment *const m = &r->moments[i];
        if (m->op == side->op && !m->ran) {
            place.issued = i;
            place.ran = on_host ? i : place.ran;
        } else if (m->op == side->op) {
            place.ran = i;
        }
    }
    return place;
}
