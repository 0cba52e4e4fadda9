/* Curves of healthy and faulty runs by healthy evaluation, and the ratio of their distances.
 * Called by cmd_effect.c; must not know output. */
#include "har_effect.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_artifact.h"

enum { BOOTSTRAP_DRAWS = 10000, BOOTSTRAP_SEED = 20261 };

double har_effect_area(const double *mutant, const double *healthy, size_t count, int every)
{
    double area = 0.0;
    double before = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double distance = fabs(mutant[i] - healthy[i]);
        if (!isfinite(distance)) {
            return (double)NAN;
        }
        area += 0.5 * (before + distance) * every;
        before = distance;
    }
    return area;
}

/* One curve: a training run, then one evaluation per checkpoint. */
struct curve {
    struct har_lab *lab;
    const struct har_bench *bench;
    const char *fault; /* "none" or an entry's id */
    struct har_variant variant;
    uint64_t seed;
    char *folder, *weights, *log;
    double *values;
    size_t count, done; /* evaluations wanted and made */
    bool trained;       /* the training run is over; evaluations follow */
    bool dead;
};

static void train_args(const struct curve *c, struct har_args *args)
{
    char path[2][4096];
    snprintf(path[0], sizeof path[0], "%s/trace.jsonl.zst", c->folder);
    snprintf(path[1], sizeof path[1], "%s/checkpoints", c->folder);
    const struct har_train train = {.program = c->lab->programs.train,
                                    .fault = c->fault,
                                    .weights = c->weights,
                                    .trace = path[0],
                                    .checkpoints = path[1],
                                    .seed = c->seed,
                                    .schedule_seed = c->seed,
                                    .variant = c->variant,
                                    .threads = 1,
                                    .full = false};
    har_lab_train_args(c->lab, c->bench, &train, args);
}

static void evaluate_args(const struct curve *c, struct har_args *args)
{
    har_args_add(args, c->lab->programs.train);
    har_args_add(args, "--recipe");
    har_args_add(args, c->bench->recipe.path);
    har_args_add(args, "--fault");
    har_args_add(args, "none");
    har_args_add(args, "--threads");
    har_args_add(args, "1");
    har_args_add(args, "--evaluate");
    har_args_addf(args, "%s/checkpoints/step-%zu", c->folder,
                  (c->done + 1) * (size_t)c->bench->recipe.checkpoint_every);
}

static double read_loss(const char *log)
{
    char line[512];
    double value = (double)NAN;
    har_lab_last_line(log, line, sizeof line);
    json_t *const object = json_loads(line, 0, NULL);
    const json_t *const loss = json_object_get(object, "eval_loss");
    if (json_is_number(loss)) {
        value = json_number_value(loss);
    }
    json_decref(object);
    return value;
}

static enum har_status curve_next(void *job, const struct har_exit *last,
                                  struct har_command *command, bool *more, struct har_error *error)
{
    struct curve *const c = job;
    *more = false;
    if (last == NULL) {
        const enum har_status status = har_lab_make_folder(c->folder, error);
        if (status != HAR_OK) {
            return status;
        }
        train_args(c, &command->args);
    } else {
        c->dead = c->dead || last->end != HAR_END_done;
        if (c->trained && !c->dead) {
            c->values[c->done++] = read_loss(c->log);
        }
        c->trained = true;
        if (c->dead || c->done == c->count) {
            har_lab_remove(c->lab->out, c->folder);
            return HAR_OK;
        }
        evaluate_args(c, &command->args);
    }
    command->log_path = strdup(c->log);
    command->timeout_s = c->lab->campaign.reference_timeout_s;
    command->memory_mb = c->lab->campaign.memory_mb;
    *more = true;
    return command->log_path == NULL ? har_fail(error, HAR_EMEMORY, "no memory") : HAR_OK;
}

static bool curve_init(struct har_lab *lab, const struct har_entry *entry, uint64_t seed,
                       struct curve *c)
{
    const struct har_bench *const bench = &lab->benches[0];
    const struct har_artifact weights = {
        .kind = HAR_ARTIFACT_weights, .bench = bench, .seed = seed};
    memset(c, 0, sizeof *c);
    c->lab = lab;
    c->bench = bench;
    c->fault = entry != NULL ? entry->id : "none";
    if (entry != NULL) {
        c->variant = entry->variant;
    }
    c->seed = seed;
    c->count = (size_t)(bench->steps / bench->recipe.checkpoint_every);
    c->values = calloc(c->count + 1, sizeof *c->values);
    c->weights = har_artifact_path(&weights);
    return c->values != NULL && c->weights != NULL &&
           asprintf(&c->folder, "%s/runs/effect-%s-%" PRIu64, lab->out, c->fault, seed) >= 0 &&
           asprintf(&c->log, "%s/log", c->folder) >= 0;
}

static void curve_fini(struct curve *c)
{
    free(c->values);
    free(c->weights);
    free(c->folder);
    free(c->log);
}

/* Column 0 holds the healthy curves, column 1 + i those of plan entry i. */
static enum har_status run_curves(struct har_lab *lab, size_t seeds, struct curve *curves,
                                  struct har_error *error)
{
    const size_t columns = lab->plan.count + 1;
    void **const jobs = calloc(columns * seeds, sizeof *jobs);
    struct har_artifacts set = {0};
    bool memory = jobs != NULL;
    for (size_t i = 0; memory && i < columns * seeds; i++) {
        const size_t column = i / seeds;
        const uint64_t seed = lab->campaign.seed + i % seeds;
        memory =
            curve_init(lab, column > 0 ? &lab->plan.entries[column - 1] : NULL, seed, &curves[i]);
        jobs[i] = &curves[i];
        const struct har_artifact weights = {
            .kind = HAR_ARTIFACT_weights, .bench = &lab->benches[0], .seed = seed};
        har_artifacts_need_run(&set, &weights);
    }
    enum har_status status = memory ? har_artifacts_make(lab, &set, error)
                                    : har_fail(error, HAR_EMEMORY, "no memory for curves");
    if (status == HAR_OK) {
        status = har_pool_run(&lab->pool, jobs, columns * seeds, curve_next, "curves", error);
    }
    har_artifacts_fini(&set);
    free(jobs);
    return status;
}

static enum har_status fill_row(const struct har_lab *lab, const struct curve *curves,
                                size_t column, size_t seeds, struct har_effect_row *row,
                                struct har_error *error)
{
    row->entry = &lab->plan.entries[column - 1];
    row->areas = calloc(seeds, sizeof *row->areas);
    if (row->areas == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for effects");
    }
    row->area_count = seeds;
    row->finite = true;
    row->mean = 0.0;
    for (size_t s = 0; s < seeds; s++) {
        const struct curve *const mutant = &curves[column * seeds + s];
        const struct curve *const healthy = &curves[s];
        if (healthy->dead) {
            return har_fail(error, HAR_EINTERNAL, "a healthy run died (seed %" PRIu64 ")",
                            healthy->seed);
        }
        row->areas[s] = mutant->dead
                            ? (double)NAN
                            : har_effect_area(mutant->values, healthy->values, healthy->count,
                                              lab->benches[0].recipe.checkpoint_every);
        row->finite = row->finite && isfinite(row->areas[s]);
        row->mean += row->areas[s] / (double)seeds;
    }
    return HAR_OK;
}

static enum har_status make_ratio(struct har_effect *out, struct har_error *error)
{
    double *const below = calloc(out->seeds, sizeof *below);
    if (below == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for effects");
    }
    for (size_t i = 1; i < out->count; i++) {
        out->others += out->rows[i].finite;
    }
    for (size_t i = 1; i < out->count; i++) {
        for (size_t s = 0; out->rows[i].finite && s < out->seeds; s++) {
            below[s] += out->rows[i].areas[s] / (double)out->others;
        }
    }
    out->has_ratio = out->others > 0 && out->rows[0].finite &&
                     har_stats_ratio(out->rows[0].areas, below, out->seeds, BOOTSTRAP_DRAWS,
                                     BOOTSTRAP_SEED, &out->ratio);
    free(below);
    return HAR_OK;
}

/* Rows in the order of the plan, the template swap first. */
static enum har_status make_rows(const struct har_lab *lab, const struct curve *curves,
                                 const char *template_id, struct har_effect *out,
                                 struct har_error *error)
{
    enum har_status status = HAR_OK;
    size_t next = 1;
    out->count = lab->plan.count;
    out->rows = calloc(out->count + 1, sizeof *out->rows);
    if (out->rows == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for effects");
    }
    for (size_t i = 0; status == HAR_OK && i < lab->plan.count; i++) {
        const bool swap = strcmp(lab->plan.entries[i].fault->id, template_id) == 0;
        struct har_effect_row *const row = &out->rows[swap ? 0 : next];
        next += !swap;
        row->template_swap = swap;
        status = fill_row(lab, curves, i + 1, out->seeds, row, error);
    }
    return status == HAR_OK ? make_ratio(out, error) : status;
}

enum har_status har_effect_run(struct har_lab *lab, const char *template_id, size_t seeds,
                               struct har_effect *out, struct har_error *error)
{
    const size_t cells = (lab->plan.count + 1) * seeds;
    memset(out, 0, sizeof *out);
    out->seeds = seeds;
    if (lab->benches[0].recipe.checkpoint_every < 1 || lab->benches[0].recipe.eval_count == 0) {
        return har_fail(error, HAR_EUSAGE, "%s: needs checkpoint_every and evaluation files",
                        lab->benches[0].recipe.path);
    }
    struct curve *const curves = calloc(cells, sizeof *curves);
    if (curves == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for %zu curves", cells);
    }
    enum har_status status = run_curves(lab, seeds, curves, error);
    if (status == HAR_OK) {
        status = make_rows(lab, curves, template_id, out, error);
    }
    for (size_t i = 0; i < cells; i++) {
        curve_fini(&curves[i]);
    }
    free(curves);
    if (status != HAR_OK) {
        har_effect_fini(out);
    }
    return status;
}

void har_effect_fini(struct har_effect *effect)
{
    for (size_t i = 0; effect->rows != NULL && i < effect->count; i++) {
        free(effect->rows[i].areas);
    }
    free(effect->rows);
    memset(effect, 0, sizeof *effect);
}
