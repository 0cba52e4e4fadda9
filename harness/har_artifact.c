/* Makes cached files by running the program that owns each; stores their runs.
 * Called by the stages of a campaign; must not know faults. */
#include "har_artifact.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_outcome.h"

static const char *const kind_names[] = {
#define HAR_ROW_(name) #name,
    HAR_ARTIFACTS(HAR_ROW_)
#undef HAR_ROW_
};

char *har_artifact_path(const struct har_artifact *a)
{
    char *path = NULL;
    int result = -1;
    const char *const folder = a->bench->folder;
    const char *const suffix = a->bench->suffix;
    const char *const build = a->variant.also ? "-also" : "";
    switch (a->kind) {
    case HAR_ARTIFACT_text:
        result = asprintf(&path, "%s/text.jsonl", folder);
        break;
    case HAR_ARTIFACT_eval_text:
        result = asprintf(&path, "%s/eval_text.jsonl", folder);
        break;
    case HAR_ARTIFACT_weights:
        result = asprintf(&path, "%s/%" PRIu64 "-weights.safetensors", folder, a->seed);
        break;
    case HAR_ARTIFACT_reference:
        result = asprintf(&path, "%s/%" PRIu64 "-reference%s", folder, a->seed, suffix);
        break;
    case HAR_ARTIFACT_healthy:
        result = asprintf(&path, "%s/%" PRIu64 "-healthy-%s-%s%s%s", folder, a->seed,
                          har_schedule_name(a->variant.schedule),
                          a->variant.tasks ? "tasks" : "single", build, suffix);
        break;
    case HAR_ARTIFACT_followed:
    case HAR_ARTIFACT_lockstep:
    case HAR_ARTIFACT_production:
    case HAR_ARTIFACT_reach:
        result = asprintf(&path, "%s/%" PRIu64 "-%s%s%s", folder, a->seed, kind_names[a->kind],
                          build, suffix);
        break;
    case HAR_ARTIFACT_twin:
    case HAR_ARTIFACT_lanes:
        result =
            asprintf(&path, "%s/%" PRIu64 "-%s-%s%s", folder, a->seed, kind_names[a->kind],
                     strrchr(a->file, '/') != NULL ? strrchr(a->file, '/') + 1 : a->file, suffix);
        break;
    case HAR_ARTIFACT_COUNT:
        break;
    }
    return result < 0 ? NULL : path;
}

enum har_status har_artifact_read(const struct har_bench *bench, const char *path, orc_trace **out,
                                  struct har_error *error)
{
    struct orc_error cause = {{0}};
    const enum orc_status status = orc_trace_read(path, out, &cause);
    if (status != ORC_OK) {
        return har_fail(error,
                        status == ORC_EMEMORY ? HAR_EMEMORY
                        : bench->own          ? HAR_ECONTROL /* it was never a trace */
                                              : HAR_EIO,
                        "%s", cause.text);
    }
    if (!orc_trace_ended(*out) || orc_trace_last_step(*out) < bench->steps) {
        return har_fail(error, HAR_ECONTROL, "%s: a healthy run left no complete trace", path);
    }
    return HAR_OK;
}

/* kept[0] was asked for last; the one that nobody asked for longest makes room. */
static void keep_first(struct har_lab *lab, size_t from, struct har_kept first)
{
    memmove(&lab->kept[1], &lab->kept[0], from * sizeof lab->kept[0]);
    lab->kept[0] = first;
}

enum har_status har_artifact_borrow(struct har_lab *lab, const struct har_bench *bench,
                                    const char *path, const orc_trace **out,
                                    struct har_error *error)
{
    enum { LAST = HAR_KEPT_TRACES - 1 };
    for (size_t i = 0; i < HAR_KEPT_TRACES; i++) {
        if (lab->kept[i].path != NULL && strcmp(lab->kept[i].path, path) == 0) {
            keep_first(lab, i, lab->kept[i]);
            *out = lab->kept[0].trace;
            return HAR_OK;
        }
    }
    struct har_kept fresh = {.path = strdup(path)};
    if (fresh.path == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for a path");
    }
    const enum har_status status = har_artifact_read(bench, path, &fresh.trace, error);
    if (status != HAR_OK) {
        free(fresh.path);
        return status;
    }
    free(lab->kept[LAST].path);
    orc_trace_free(lab->kept[LAST].trace);
    keep_first(lab, LAST, fresh);
    *out = fresh.trace;
    return HAR_OK;
}

/* One artifact being made. */
struct making {
    struct har_lab *lab;
    const struct har_artifact *artifact;
    char *target, *fresh, *key, *log, *line, *scratch;
    struct followed { /* of kind lockstep: the run that the reference follows */
        char *target, *fresh, *states, *line;
        struct har_exit end;
        bool done;
    } followed;
};

static void text_args(const struct making *m, struct har_args *args)
{
    const struct har_recipe *const recipe = &m->artifact->bench->recipe;
    const bool eval = m->artifact->kind == HAR_ARTIFACT_eval_text;
    har_args_add(args, m->lab->programs.python);
    har_args_add(args, m->lab->programs.text_stage);
    har_args_add(args, "--template");
    har_args_add(args, recipe->template_path);
    har_args_add(args, "--tokenizer");
    har_args_add(args, recipe->tokenizer);
    har_args_add(args, "--data");
    for (size_t i = 0; i < (eval ? recipe->eval_count : recipe->train_count); i++) {
        har_args_add(args, eval ? recipe->eval[i] : recipe->train[i]);
    }
    har_args_add(args, "--mask");
    har_args_add(args, recipe->mask);
    har_args_add(args, "--format");
    har_args_add(args, recipe->format);
    if (recipe->checks_prefix) {
        har_args_add(args, "--prefix");
    }
    har_args_add(args, "--out");
    har_args_add(args, m->fresh);
}

static void add_path_of(const struct har_artifact *artifact, enum har_artifact_kind kind,
                        const char *option, struct har_args *args)
{
    struct har_artifact other = *artifact;
    other.kind = kind;
    char *const path = har_artifact_path(&other);
    if (path == NULL) {
        args->failed = true;
    } else {
        har_args_add(args, option);
        har_args_add(args, path);
    }
    free(path);
}

static void second_args(const struct har_lab *lab, const struct har_bench *bench,
                        const struct har_reference *reference, struct har_args *args)
{
    const struct har_artifact of = {
        .kind = HAR_ARTIFACT_weights, .bench = bench, .seed = reference->seed};
    char *const weights = har_artifact_path(&of);
    const struct har_train train = {
        .fault = "none", .weights = weights, .trace = reference->trace, .seed = reference->seed};
    har_lab_own_args(&lab->campaign.second, bench, &train, args);
    args->failed = args->failed || weights == NULL;
    free(weights);
}

void har_artifact_reference_args(const struct har_lab *lab, const struct har_bench *bench,
                                 const struct har_reference *reference, struct har_args *args)
{
    const struct har_artifact of = {.bench = bench, .seed = reference->seed};
    if (bench->reference == HAR_REFERENCE_command) {
        second_args(lab, bench, reference, args);
        return;
    }
    har_args_add(args, lab->programs.ref);
    har_args_add(args, "--recipe");
    har_args_add(args, bench->recipe.path);
    add_path_of(&of, HAR_ARTIFACT_weights, "--weights", args);
    har_args_add(args, "--seed");
    har_args_addf(args, "%" PRIu64, reference->seed);
    add_path_of(&of, HAR_ARTIFACT_text, "--text", args);
    if (bench->recipe.eval_count > 0) {
        add_path_of(&of, HAR_ARTIFACT_eval_text, "--eval-text", args);
    }
    if (lab->campaign.horizon > 0) {
        har_args_add(args, "--steps");
        har_args_addf(args, "%d", bench->steps);
    }
    if (reference->states != NULL) {
        har_args_add(args, "--follow");
        har_args_add(args, reference->states);
    }
    har_args_add(args, "--trace");
    har_args_add(args, reference->trace);
    har_args_add(args, "--level");
    har_args_add(args, "full");
    har_args_add(args, "--threads");
    har_args_add(args, "1");
}

static void reference_args(const struct making *m, struct har_args *args)
{
    const struct har_reference reference = {
        .seed = m->artifact->seed, .trace = m->fresh, .states = m->followed.states};
    har_artifact_reference_args(m->lab, m->artifact->bench, &reference, args);
}

static void trainer_args(const struct making *m, struct har_args *args)
{
    const struct har_artifact *const artifact = m->artifact;
    struct har_artifact other = *artifact;
    other.kind = HAR_ARTIFACT_weights;
    char *const weights = har_artifact_path(&other);
    char *twin = NULL;
    if (weights == NULL ||
        asprintf(&twin, "none:%s", artifact->file != NULL ? artifact->file : "all") < 0) {
        args->failed = true;
        free(weights);
        return;
    }
    const bool production = artifact->kind == HAR_ARTIFACT_production;
    const bool followed = artifact->kind == HAR_ARTIFACT_lockstep;
    const struct har_train train = {
        .program = production                             ? m->lab->programs.train_production
                   : artifact->kind == HAR_ARTIFACT_lanes ? m->lab->programs.train_lanes
                   : artifact->variant.also               ? m->lab->campaign.also_train
                                                          : m->lab->programs.train,
        .fault = production                                 ? NULL
                 : artifact->kind < HAR_ARTIFACT_production ? "none"
                                                            : twin,
        .weights = weights,
        .trace = followed ? m->followed.fresh : m->fresh,
        .states = m->followed.states,
        .checkpoints = artifact->bench->middle_checkpoint > 0 ? m->scratch : NULL,
        .seed = artifact->seed,
        .schedule_seed = artifact->seed,
        .variant = artifact->variant,
        .threads = 1,
        .steps = har_lab_steps(m->lab, artifact->bench),
        .full = true,
    };
    har_lab_train_args(m->lab, artifact->bench, &train, args);
    free(weights);
    free(twin);
}

static void fill_args(const struct making *m, struct har_args *args)
{
    switch (m->artifact->kind) {
    case HAR_ARTIFACT_text:
    case HAR_ARTIFACT_eval_text:
        text_args(m, args);
        break;
    case HAR_ARTIFACT_weights:
        har_args_add(args, m->lab->programs.init);
        har_args_add(args, "--recipe");
        har_args_add(args, m->artifact->bench->recipe.path);
        har_args_add(args, "--seed");
        har_args_addf(args, "%" PRIu64, m->artifact->seed);
        har_args_add(args, "--out");
        har_args_add(args, m->fresh);
        break;
    case HAR_ARTIFACT_reference:
        reference_args(m, args);
        break;
    case HAR_ARTIFACT_lockstep:
        if (m->followed.done) {
            reference_args(m, args);
        } else {
            trainer_args(m, args);
        }
        break;
    case HAR_ARTIFACT_healthy:
    case HAR_ARTIFACT_production:
    case HAR_ARTIFACT_reach:
    case HAR_ARTIFACT_twin:
    case HAR_ARTIFACT_lanes:
        trainer_args(m, args);
        break;
    case HAR_ARTIFACT_followed: /* made with lockstep */
    case HAR_ARTIFACT_COUNT:
        break;
    }
}

static enum har_status next_command(struct making *m, struct har_command *command,
                                    struct har_error *error)
{
    fill_args(m, &command->args);
    command->log_path = strdup(m->log);
    command->timeout_s = m->lab->campaign.reference_timeout_s;
    m->line = har_command_line(command);
    return m->line == NULL ? har_fail(error, HAR_EMEMORY, "no memory for a command") : HAR_OK;
}

static enum har_status artifact_failed(const struct making *m, const struct har_exit *last,
                                       struct har_error *error)
{
    char line[300];
    har_lab_last_line(m->log, line, sizeof line);
    /* Runs of one recipe go side by side: whichever is first to reject the input says so. A twin
     * runs last, when the others have accepted it. */
    const enum har_artifact_kind kind = m->artifact->kind;
    const bool input =
        (last->end == HAR_END_rejected || last->end == HAR_END_refused) && kind < HAR_ARTIFACT_twin;
    const enum har_status status = last->code == 74                  ? HAR_EIO
                                   : input                           ? HAR_EUSAGE
                                   : kind >= HAR_ARTIFACT_production ? HAR_ECONTROL
                                                                     : HAR_EINTERNAL;
    return har_fail(error, status, "recipe %s: the unarmed %s run %s: %s (log %s; command: %.300s)",
                    m->artifact->bench->recipe.path, kind_names[m->artifact->kind],
                    har_end_text(last->end), line, m->log, m->line);
}

static enum har_status artifact_done(const struct making *m, const struct har_exit *last,
                                     struct har_error *error)
{
    if (last->end != HAR_END_done) {
        return artifact_failed(m, last, error);
    }
    if (access(m->fresh, F_OK) != 0) {
        return har_fail(error, HAR_ECONTROL,
                        "the unarmed %s run ended well but left no file: %.600s",
                        kind_names[m->artifact->kind], m->line);
    }
    const struct followed *const f = &m->followed;
    if ((f->done && rename(f->fresh, f->target) != 0) || rename(m->fresh, m->target) != 0) {
        return har_fail(error, HAR_EIO, "%s: %s", m->target, strerror(errno));
    }
    har_lab_remove(m->lab->out, m->scratch);
    if (f->done) {
        har_lab_remove(m->lab->out, f->states);
    }
    const struct har_run_record runs[] = {
        {.role = f->done ? har_role_name(HAR_ROLE_reference) : kind_names[m->artifact->kind],
         .command = m->line,
         .log = m->log,
         .end = *last},
        {.role = kind_names[HAR_ARTIFACT_followed],
         .command = f->line,
         .log = m->log,
         .end = f->end}};
    const struct har_case_record record = {
        .key = m->key,
        .kind = "artifact",
        .entry = "",
        .recipe = m->artifact->bench->recipe.name,
        .seed = m->artifact->seed,
        .outcome = "made",
        .first_check = "",
        .detail = "",
        .reproduce = m->line,
        .reached = -1,
        .seconds = last->seconds + f->end.seconds,
        .runs = runs,
        .run_count = f->done ? 2 : 1,
    };
    const double start_s = har_spent_clock_s();
    const enum har_status status = har_store_put_case(m->lab->store, &record, error);
    m->lab->spent.work_s[HAR_WORK_store] += har_spent_clock_s() - start_s;
    return status;
}

/* Of the command that has just ended. */
static enum har_work work_of(const struct making *m)
{
    const enum har_artifact_kind kind = m->artifact->kind;
    return kind <= HAR_ARTIFACT_weights                         ? HAR_WORK_inputs
           : kind == HAR_ARTIFACT_reference || m->followed.done ? HAR_WORK_reference
                                                                : HAR_WORK_trainer;
}

static enum har_status artifact_next(void *job, const struct har_exit *last,
                                     struct har_command *command, bool *more,
                                     struct har_error *error)
{
    struct making *const m = job;
    if (last != NULL) {
        m->lab->spent.work_s[work_of(m)] += last->processor_s;
    }
    if (last != NULL && m->artifact->kind == HAR_ARTIFACT_lockstep && !m->followed.done &&
        last->end == HAR_END_done) {
        m->followed.done = *more = true;
        m->followed.end = *last;
        m->followed.line = m->line;
        return next_command(m, command, error);
    }
    if (last != NULL) {
        *more = false;
        return artifact_done(m, last, error);
    }
    *more = true;
    return next_command(m, command, error);
}

/* Names for the run that a lockstep reference follows; other kinds have none. */
static bool followed_init(const struct har_artifact *artifact, struct followed *f)
{
    struct har_artifact subject = *artifact;
    subject.kind = HAR_ARTIFACT_followed;
    if (artifact->kind != HAR_ARTIFACT_lockstep) {
        return true;
    }
    f->target = har_artifact_path(&subject);
    const char *const name = f->target != NULL ? strrchr(f->target, '/') + 1 : "";
    return f->target != NULL &&
           asprintf(&f->fresh, "%s/new-%d-%s", artifact->bench->folder, (int)getpid(), name) >= 0 &&
           asprintf(&f->states, "%s.states", f->fresh) >= 0;
}

static bool making_init(struct har_lab *lab, const struct har_artifact *artifact, struct making *m)
{
    m->lab = lab;
    m->artifact = artifact;
    m->target = har_artifact_path(artifact);
    if (m->target == NULL || !followed_init(artifact, &m->followed)) {
        return false;
    }
    const char *const name = strrchr(m->target, '/') + 1;
    const char *const folder = artifact->bench->folder;
    const char *const mark = strrchr(folder, '/') + 1;
    return asprintf(&m->fresh, "%s/new-%d-%s", folder, (int)getpid(), name) >= 0 &&
           asprintf(&m->key, "artifact/%s/%s", mark, name) >= 0 &&
           asprintf(&m->log, "%s/%s.log", folder, name) >= 0 &&
           asprintf(&m->scratch, "%s/new-%d-%s.checkpoints", folder, (int)getpid(), name) >= 0;
}

static void making_fini(struct making *m)
{
    free(m->target);
    free(m->fresh);
    free(m->key);
    free(m->log);
    free(m->line);
    free(m->scratch);
    free(m->followed.target);
    free(m->followed.fresh);
    free(m->followed.states);
    free(m->followed.line);
}

/* Lists what is to be made of those whose kind lies in [first, last]. */
static enum har_status list_making(struct har_lab *lab, const struct har_artifacts *set,
                                   enum har_artifact_kind first, enum har_artifact_kind last,
                                   struct making *items, size_t *count, struct har_error *error)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct har_artifact *const artifact = &set->items[i];
        struct making *const m = &items[*count];
        bool stored = false;
        if (artifact->kind < first || artifact->kind > last) {
            continue;
        }
        ++*count;
        if (!making_init(lab, artifact, m)) {
            return har_fail(error, HAR_EMEMORY, "no memory for cached files");
        }
        const enum har_status status =
            har_store_find_case(lab->store, m->key, &stored, NULL, error);
        if (status != HAR_OK) {
            return status;
        }
        const char *const followed = m->followed.target;
        if (stored && access(m->target, R_OK) == 0 &&
            (followed == NULL || access(followed, R_OK) == 0)) {
            making_fini(m);
            memset(m, 0, sizeof *m);
            --*count;
        }
    }
    return HAR_OK;
}

/* Makes the artifacts whose kind lies in [first, last]. */
static enum har_status make_wave(struct har_lab *lab, const struct har_artifacts *set,
                                 enum har_artifact_kind first, enum har_artifact_kind last,
                                 struct har_error *error)
{
    struct making *const items = calloc(set->count + 1, sizeof *items);
    void **const jobs = calloc(set->count + 1, sizeof *jobs);
    size_t count = 0;
    enum har_status status = items != NULL && jobs != NULL
                                 ? list_making(lab, set, first, last, items, &count, error)
                                 : har_fail(error, HAR_EMEMORY, "no memory for cached files");
    for (size_t i = 0; status == HAR_OK && i < count; i++) {
        jobs[i] = &items[i];
    }
    if (status == HAR_OK) {
        status = har_pool_run(&lab->pool, jobs, count, artifact_next,
                              first < HAR_ARTIFACT_reference ? "texts and weights"
                                                             : "reference and healthy runs",
                              error);
    }
    for (size_t i = 0; items != NULL && i < count; i++) {
        making_fini(&items[i]);
    }
    free(items);
    free(jobs);
    return status;
}

enum har_status har_artifacts_make(struct har_lab *lab, struct har_artifacts *set,
                                   struct har_error *error)
{
    if (set->failed) {
        return har_fail(error, HAR_EMEMORY, "no memory for cached files");
    }
    enum har_status status = make_wave(lab, set, HAR_ARTIFACT_text, HAR_ARTIFACT_weights, error);
    if (status == HAR_OK) {
        status = make_wave(lab, set, HAR_ARTIFACT_reference, HAR_ARTIFACT_lanes, error);
    }
    return status;
}
