/* Replays traces through the judge with a fault of the oracle armed.
 * Called by har_run.c; must not know how the oracle is built. */
#include "har_selftest.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_artifact.h"
#include "har_control.h"

/* Sets loss and the first gradient's first projection to "nan". */
static void warp_nan(json_t *step)
{
    json_object_set_new(step, "loss", json_string("nan"));
    json_t *const gradients = json_object_get(json_object_get(step, "sketch"), "gradients");
    const char *name;
    json_t *sketch;
    json_object_foreach(gradients, name, sketch)
    {
        json_array_set_new(sketch, 1, json_string("nan"));
        break;
    }
}

static void warp_sketch(json_t *step)
{
    json_t *const gradients = json_object_get(json_object_get(step, "sketch"), "gradients");
    const char *name;
    json_t *sketch;
    json_object_foreach(gradients, name, sketch)
    {
        if (strstr(name, "o_proj") != NULL) {
            const double value = json_number_value(json_array_get(sketch, 4));
            json_array_set_new(sketch, 4, json_real(-value));
            break;
        }
    }
}

static void warp_count(json_t *step)
{
    enum { NONFINITE = 9 }; /* place of the count in a sketch, oracles/TRACE.md */
    json_t *const gradients = json_object_get(json_object_get(step, "sketch"), "gradients");
    const char *name;
    json_t *sketch;
    json_object_foreach(gradients, name, sketch)
    {
        json_array_set_new(sketch, NONFINITE, json_integer(1));
        break;
    }
}

/* One gradient has no sketch. */
static void warp_gone(json_t *step)
{
    json_t *const gradients = json_object_get(json_object_get(step, "sketch"), "gradients");
    const char *const name = json_object_iter_key(json_object_iter(gradients));
    if (name != NULL) {
        char *const copy = strdup(name);
        json_object_del(gradients, copy != NULL ? copy : "");
        free(copy);
    }
}

/* Changes one step as the warp says; middle and last are step numbers. */
static void warp_step(json_t *step, enum har_warp warp, double amount, int middle, int last)
{
    const int number = (int)json_integer_value(json_object_get(step, "step"));
    if (warp == HAR_WARP_nan && number >= middle) {
        warp_nan(step);
    } else if (warp == HAR_WARP_sketch && number == middle) {
        warp_sketch(step);
    } else if (warp == HAR_WARP_count && number == middle) {
        warp_count(step);
    } else if (warp == HAR_WARP_gone && number == middle) {
        warp_gone(step);
    } else if (warp == HAR_WARP_loss && number == last) {
        const double loss = json_number_value(json_object_get(step, "loss"));
        json_object_set_new(step, "loss", json_real(loss * (1.0 + amount)));
    }
}

static enum har_status warp_line(const char *line, enum har_warp warp, double amount, FILE *to,
                                 int *steps, struct har_error *error)
{
    json_error_t cause;
    json_t *const object = json_loads(line, 0, &cause);
    if (object == NULL) {
        return har_fail(error, HAR_EINTERNAL, "a stored trace holds no JSON: %s", cause.text);
    }
    const char *const type = json_string_value(json_object_get(object, "type"));
    const bool header = type != NULL && strcmp(type, "header") == 0;
    if (header) {
        *steps = (int)json_integer_value(json_object_get(object, "steps"));
    } else if (type != NULL && strcmp(type, "step") == 0) {
        warp_step(object, warp, amount, *steps / 2, *steps);
    }
    if (header || warp != HAR_WARP_empty) {
        json_dumpf(object, to, JSON_COMPACT | JSON_REAL_PRECISION(17));
        fputc('\n', to);
    }
    json_decref(object);
    return HAR_OK;
}

enum har_status har_selftest_warp(const char *in, enum har_warp warp, double amount,
                                  const char *out, struct har_error *error)
{
    FILE *const from = fopen(in, "rbe");
    FILE *const to = from != NULL ? fopen(out, "wbe") : NULL;
    char *line = NULL;
    size_t size = 0;
    int steps = 0;
    enum har_status status = HAR_OK;
    if (to == NULL) {
        status = har_fail(error, HAR_EIO, "%s: %s", from == NULL ? in : out, strerror(errno));
    }
    while (status == HAR_OK && getline(&line, &size, from) > 0) {
        status = warp_line(line, warp, amount, to, &steps, error);
    }
    free(line);
    if (from != NULL) {
        fclose(from);
    }
    if (to != NULL && fclose(to) != 0 && status == HAR_OK) {
        status = har_fail(error, HAR_EIO, "%s: %s", out, strerror(errno));
    }
    return status;
}

enum { REPLAY_MAX = HAR_WARP_COUNT + 2 };

/* The traces that are replayed, and what the sound oracle says of each. */
struct replay {
    const struct har_bench *bench;
    orc_trace *reference; /* of healthy runs */
    orc_trace *planted;   /* the reference that followed the planted run; NULL = the same one */
    orc_trace *subjects[REPLAY_MAX];
    const char *names[REPLAY_MAX];
    size_t count;
    struct orc_verdict sound[REPLAY_MAX][ORC_CHECK_COUNT];
};

static enum orc_status judge_one(const struct replay *r, size_t index, struct orc_verdict *verdicts)
{
    const bool own = index == 0 && r->planted != NULL; /* the planted trace comes first */
    const struct orc_case c = {.subject = r->subjects[index],
                               .reference = own ? r->planted : r->reference};
    struct orc_error cause = {{0}};
    return orc_judge(&c, r->bench->bounds, verdicts, &cause);
}

static enum har_status add_trace(struct replay *r, const char *path, const char *name,
                                 struct har_error *error)
{
    struct orc_error cause = {{0}};
    if (orc_trace_read(path, &r->subjects[r->count], &cause) != ORC_OK) {
        return har_fail(error, HAR_EIO, "%s", cause.text);
    }
    r->names[r->count++] = name;
    return HAR_OK;
}

/* Grows the amount until the loss checks just fire: a deviation between one and two bounds. */
static enum har_status add_marginal(struct replay *r, const char *plain_path, const char *path,
                                    struct har_error *error)
{
    enum har_status status = HAR_OK;
    for (double amount = DBL_EPSILON; status == HAR_OK && amount < 1.0; amount *= 2.0) {
        struct orc_verdict verdicts[ORC_CHECK_COUNT];
        status = har_selftest_warp(plain_path, HAR_WARP_loss, amount, path, error);
        if (status == HAR_OK) {
            status = add_trace(r, path, "marginal", error);
        }
        if (status != HAR_OK || (judge_one(r, r->count - 1, verdicts) == ORC_OK &&
                                 verdicts[ORC_CHECK_loss_only].fired)) {
            return status;
        }
        orc_trace_free(r->subjects[--r->count]);
        r->subjects[r->count] = NULL;
    }
    return status;
}

/* A plain-text healthy trace to make variants of. */
static enum har_status make_plain(struct har_lab *lab, const struct har_bench *bench,
                                  const char *path, struct har_error *error)
{
    const struct har_artifact weights = {
        .kind = HAR_ARTIFACT_weights, .bench = bench, .seed = lab->campaign.seed};
    char *const weights_path = har_artifact_path(&weights);
    const struct har_train train = {.program = lab->programs.train,
                                    .fault = "none",
                                    .weights = weights_path,
                                    .trace = path,
                                    .seed = lab->campaign.seed,
                                    .schedule_seed = lab->campaign.seed,
                                    .threads = 1,
                                    .steps = har_lab_steps(lab, bench),
                                    .full = true};
    struct har_command command = {.timeout_s = lab->campaign.reference_timeout_s};
    struct har_exit end = {0};
    if (weights_path == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for a path");
    }
    har_lab_train_args(lab, bench, &train, &command.args);
    enum har_status status = har_pool_run_one(&lab->pool, &command, &end, error);
    lab->spent.work_s[HAR_WORK_trainer] += end.processor_s;
    if (status == HAR_OK && end.end != HAR_END_done) {
        status = har_fail(error, HAR_EINTERNAL, "a healthy run for the self-test %s",
                          har_end_text(end.end));
    }
    free(weights_path);
    return status;
}

/* The reference of a healthy run with the planted case's seed, made where it is not there. */
static enum har_status load_reference(struct har_lab *lab, struct replay *r,
                                      struct har_error *error)
{
    const struct har_artifact reference = {.kind = har_artifact_pair(r->bench).reference,
                                           .bench = r->bench,
                                           .seed = lab->campaign.seed};
    struct har_artifacts set = {0};
    char *const path = har_artifact_path(&reference);
    har_artifacts_need_pair(&set, r->bench, lab->campaign.seed,
                            (struct har_variant){.schedule = HAR_SCHEDULE_fifo});
    enum har_status status = har_artifacts_make(lab, &set, error);
    if (status == HAR_OK) {
        status = path != NULL ? har_artifact_read(r->bench, path, &r->reference, error)
                              : har_fail(error, HAR_EMEMORY, "no memory for a path");
    }
    har_artifacts_fini(&set);
    free(path);
    return status;
}

/* References, and the planted case's trace. */
static enum har_status add_stored(struct har_lab *lab, struct replay *r, const char *planted,
                                  struct har_error *error)
{
    char *subject = NULL;
    char *reference = NULL;
    enum har_status status = load_reference(lab, r, error);
    if (status == HAR_OK &&
        (asprintf(&subject, "%s/runs/planted-%s-%s-%" PRIu64 "/subject%s", lab->out, planted,
                  r->bench->recipe.name, lab->campaign.seed, r->bench->suffix) < 0 ||
         asprintf(&reference, "%s/runs/planted-%s-%s-%" PRIu64 "/reference%s", lab->out, planted,
                  r->bench->recipe.name, lab->campaign.seed, r->bench->suffix) < 0)) {
        status = har_fail(error, HAR_EMEMORY, "no memory for a path");
    }
    if (status == HAR_OK) {
        status = add_trace(r, subject, "planted", error);
    }
    if (status == HAR_OK && r->bench->lockstep) {
        status = har_artifact_read(r->bench, reference, &r->planted, error);
    }
    free(subject);
    free(reference);
    return status;
}

static enum har_status prepare(struct har_lab *lab, struct replay *r, const char *planted,
                               struct har_error *error)
{
    static const enum har_warp warps[] = {HAR_WARP_nan, HAR_WARP_empty, HAR_WARP_sketch,
                                          HAR_WARP_count, HAR_WARP_gone};
    static const char *const names[] = {"nan", "empty", "turned", "counted", "lacking"};
    char *folder = NULL;
    char path[2][4096];
    if (asprintf(&folder, "%s/runs/selftest", lab->out) < 0) {
        return har_fail(error, HAR_EMEMORY, "no memory for a path");
    }
    snprintf(path[0], sizeof path[0], "%s/healthy.jsonl", folder);
    snprintf(path[1], sizeof path[1], "%s/warped.jsonl", folder);
    enum har_status status = har_lab_make_folder(folder, error);
    if (status == HAR_OK) {
        status = add_stored(lab, r, planted, error);
    }
    if (status == HAR_OK) {
        status = make_plain(lab, r->bench, path[0], error);
    }
    if (status == HAR_OK) {
        status = add_trace(r, path[0], "healthy", error);
    }
    for (size_t i = 0; status == HAR_OK && i < sizeof warps / sizeof warps[0]; i++) {
        status = har_selftest_warp(path[0], warps[i], 0.0, path[1], error);
        if (status == HAR_OK) {
            status = add_trace(r, path[1], names[i], error);
        }
    }
    if (status == HAR_OK) {
        status = add_marginal(r, path[0], path[1], error);
    }
    har_lab_remove(lab->out, folder);
    free(folder);
    return status;
}

static bool same_verdict(const struct orc_verdict *a, const struct orc_verdict *b)
{
    return a->applicable == b->applicable && a->fired == b->fired && a->step == b->step;
}

static const char *verdict_word(const struct orc_verdict *v)
{
    return !v->applicable ? "not applicable" : v->fired ? "fires" : "passes";
}

static void say_change(const struct orc_verdict *sound, const struct orc_verdict *broken,
                       const char *trace, const char *check, char *out, size_t size)
{
    snprintf(out, size, "%s trace: %s %s (step %d), soundly %s (step %d)", trace, check,
             verdict_word(broken), broken->step, verdict_word(sound), sound->step);
}

/* Replays everything with one oracle fault armed; says which trace and check noticed it. */
static enum har_status try_fault(const struct replay *r, const char *id, bool *killed, char *detail,
                                 size_t detail_size, struct har_error *error)
{
    struct orc_error cause = {{0}};
    *killed = false;
    snprintf(detail, detail_size, "no verdict changed");
    if (orc_fault_select(id, &cause) != ORC_OK) {
        return har_fail(error, HAR_EINTERNAL, "oracle fault %s: %s", id, cause.text);
    }
    for (size_t i = 0; i < r->count && !*killed; i++) {
        struct orc_verdict verdicts[ORC_CHECK_COUNT];
        if (judge_one(r, i, verdicts) != ORC_OK) {
            *killed = true;
            snprintf(detail, detail_size, "%s trace: cannot be judged", r->names[i]);
        }
        for (int k = 0; k < ORC_CHECK_COUNT && !*killed; k++) {
            if (!same_verdict(&verdicts[k], &r->sound[i][k])) {
                *killed = true;
                say_change(&r->sound[i][k], &verdicts[k], r->names[i],
                           orc_check_name((enum orc_check_id)k), detail, detail_size);
            }
        }
    }
    return orc_fault_select("none", &cause) == ORC_OK
               ? HAR_OK
               : har_fail(error, HAR_EINTERNAL, "oracle faults cannot be disarmed");
}

enum har_status har_selftest_run(struct har_lab *lab, struct har_error *error)
{
    struct replay r = {0};
    const char *planted = NULL;
    int place = -1;
    struct har_variant variant;
    enum har_status status = har_control_find_planted(lab, &planted, &place, &variant, error);
    if (status != HAR_OK) {
        return status;
    }
    const double start_s = har_spent_clock_s();
    r.bench = &lab->benches[place];
    status = prepare(lab, &r, planted, error);
    for (size_t i = 0; status == HAR_OK && i < r.count; i++) {
        if (judge_one(&r, i, r.sound[i]) != ORC_OK) {
            status = har_fail(error, HAR_EINTERNAL, "the %s trace cannot be judged", r.names[i]);
        }
    }
    for (size_t i = 0; status == HAR_OK && i < orc_fault_count(); i++) {
        bool killed = false;
        char detail[200];
        status = try_fault(&r, orc_fault_id(i), &killed, detail, sizeof detail, error);
        if (status == HAR_OK) {
            status = har_store_put_oracle_fault(lab->store, orc_fault_id(i), orc_fault_why(i),
                                                killed, detail, error);
        }
    }
    lab->spent.work_s[HAR_WORK_checks] += har_spent_clock_s() - start_s;
    orc_trace_free(r.reference);
    orc_trace_free(r.planted);
    for (size_t i = 0; i < REPLAY_MAX; i++) {
        orc_trace_free(r.subjects[i]);
    }
    return status;
}
