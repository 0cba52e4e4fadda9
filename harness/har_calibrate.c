/* Calibration and false-alarm runs over disjoint seeds.
 * Called by har_run.c; must not know faults. */
#include "har_calibrate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_case.h"
#include "har_curve.h"

/* How the run of this number is made: every other one by the second build, where there is one. */
static struct har_variant calibration_variant(const struct har_lab *lab, int run)
{
    const struct har_variant variant = {.schedule = HAR_SCHEDULE_fifo,
                                        .also = lab->campaign.also_train != NULL && run % 2 != 0};
    return variant;
}

/* Schedules, drivers and builds in turn; recipes begin at different places. */
static struct har_variant alarm_variant(const struct har_lab *lab, size_t turn)
{
    const size_t round = turn / HAR_SCHEDULE_COUNT;
    const struct har_variant variant = {
        .schedule = (enum har_schedule)(turn % HAR_SCHEDULE_COUNT),
        .tasks = round % 2 != 0,
        .also = lab->campaign.also_train != NULL && (turn + round / 2) % 2 != 0,
    };
    return variant;
}

static enum har_status bounds_failed(const struct har_bench *bench, enum orc_status status,
                                     const struct orc_error *cause, struct har_error *error)
{
    /* A run that is not healthy in its calibration raises an alarm before there are bounds. */
    return har_fail(error,
                    status == ORC_EMEMORY     ? HAR_EMEMORY
                    : status == ORC_EMISMATCH ? HAR_EALARM
                                              : HAR_EINTERNAL,
                    "bounds of recipe %s: %s", bench->recipe.name, cause->text);
}

/* Losses of a calibration run: the null of the alarms that reports compare. */
static enum har_status store_curve(struct har_lab *lab, const struct har_bench *bench,
                                   uint64_t seed, const orc_trace *healthy,
                                   const orc_trace *reference, struct har_error *error)
{
    char *key = NULL;
    char *const json = har_curve_json(healthy, healthy, reference);
    enum har_status status = HAR_OK;
    if (json == NULL || asprintf(&key, "calibration/%s/%" PRIu64, bench->recipe.name, seed) < 0) {
        status = har_fail(error, HAR_EMEMORY, "no memory for a loss curve");
    } else {
        status = har_store_put_curve(lab->store, key, json, error);
        free(key);
    }
    free(json);
    return status;
}

/* Adds one healthy pair to a calibration. */
static enum har_status add_pair(struct har_lab *lab, const struct har_bench *bench, uint64_t seed,
                                struct har_variant variant, orc_calibration *calibration,
                                struct har_error *error)
{
    const struct har_pair kinds = har_artifact_pair(bench);
    struct har_artifact artifact = {
        .kind = kinds.subject, .bench = bench, .seed = seed, .variant = variant};
    char *const healthy_path = har_artifact_path(&artifact);
    artifact.kind = kinds.reference;
    char *const reference_path = har_artifact_path(&artifact);
    orc_trace *healthy = NULL;
    orc_trace *reference = NULL;
    enum har_status status = healthy_path != NULL && reference_path != NULL
                                 ? har_artifact_read(bench, healthy_path, &healthy, error)
                                 : har_fail(error, HAR_EMEMORY, "no memory for a path");
    if (status == HAR_OK && bench->reference != HAR_REFERENCE_none) {
        status = har_artifact_read(bench, reference_path, &reference, error);
    }
    if (status == HAR_OK) {
        struct orc_error cause = {{0}};
        const struct orc_case pair = {.subject = healthy, .reference = reference};
        const enum orc_status added = orc_calibration_add(calibration, &pair, &cause);
        status = added == ORC_OK ? HAR_OK : bounds_failed(bench, added, &cause, error);
    }
    if (status == HAR_OK) {
        status = store_curve(lab, bench, seed, healthy, reference, error);
    }
    orc_trace_free(healthy);
    orc_trace_free(reference);
    free(healthy_path);
    free(reference_path);
    return status;
}

/* Bounds of one recipe from its calibration runs, which are there. */
static enum har_status make_bounds(struct har_lab *lab, size_t index, struct har_error *error)
{
    struct har_bench *const bench = &lab->benches[index];
    orc_calibration *calibration = NULL;
    char *json = NULL;
    struct orc_error cause = {{0}};
    enum har_status status = HAR_OK;
    const double start_s = har_spent_clock_s();
    if (orc_calibration_create(&calibration) != ORC_OK) {
        return har_fail(error, HAR_EMEMORY, "no memory for a calibration");
    }
    for (int i = 0; status == HAR_OK && i < lab->campaign.calibration; i++) {
        status = add_pair(lab, bench, har_campaign_calibration_seed(&lab->campaign, index, i),
                          calibration_variant(lab, i), calibration, error);
    }
    enum orc_status result = ORC_OK;
    if (status == HAR_OK) {
        result = orc_calibration_finish(calibration, &bench->bounds, &cause);
    }
    if (status == HAR_OK && result == ORC_OK) {
        result = orc_bounds_write(bench->bounds, &json);
    }
    if (status == HAR_OK && result != ORC_OK) {
        status = bounds_failed(bench, result, &cause, error);
    }
    const double made_s = har_spent_clock_s();
    if (status == HAR_OK) {
        status = har_store_put_bounds(lab->store, bench->recipe.name, json,
                                      orc_bounds_summary(bench->bounds), lab->campaign.calibration,
                                      error);
    }
    if (status == HAR_OK) {
        status = har_store_put_null(lab->store, bench->recipe.name, calibration, error);
    }
    lab->spent.work_s[HAR_WORK_checks] += made_s - start_s;
    lab->spent.work_s[HAR_WORK_store] += har_spent_clock_s() - made_s;
    free(json);
    orc_calibration_free(calibration);
    return status;
}

static enum har_status load_bounds(struct har_lab *lab, struct har_bench *bench,
                                   struct har_error *error)
{
    char *json = NULL;
    struct orc_error cause = {{0}};
    enum har_status status = har_store_get_bounds(lab->store, bench->recipe.name, &json, error);
    if (status == HAR_OK && json != NULL) {
        const enum orc_status result = orc_bounds_parse(json, &bench->bounds, &cause);
        if (result != ORC_OK) {
            status = har_fail(error, result == ORC_EMEMORY ? HAR_EMEMORY : HAR_EIO,
                              "%s/results.sqlite: the stored bounds of recipe %s are damaged: %s",
                              lab->out, bench->recipe.name, cause.text);
        }
    }
    free(json);
    return status;
}

enum har_status har_calibrate_bounds(struct har_lab *lab, struct har_error *error)
{
    struct har_artifacts set = {0};
    enum har_status status = HAR_OK;
    for (size_t i = 0; status == HAR_OK && i < lab->bench_count; i++) {
        struct har_bench *const bench = &lab->benches[i];
        if (!bench->used) {
            continue;
        }
        status = load_bounds(lab, bench, error);
        for (int run = 0; bench->bounds == NULL && run < lab->campaign.calibration; run++) {
            har_artifacts_need_pair(&set, bench,
                                    har_campaign_calibration_seed(&lab->campaign, i, run),
                                    calibration_variant(lab, run));
        }
    }
    if (status == HAR_OK) {
        status = har_artifacts_make(lab, &set, error);
    }
    for (size_t i = 0; status == HAR_OK && i < lab->bench_count; i++) {
        if (lab->benches[i].used && lab->benches[i].bounds == NULL) {
            status = make_bounds(lab, i, error);
        }
    }
    har_artifacts_fini(&set);
    return status;
}

enum har_status har_calibrate_alarms(struct har_lab *lab, struct har_error *error)
{
    const size_t runs = (size_t)lab->campaign.false_alarms;
    struct har_case *const cases = calloc(lab->bench_count * runs + 1, sizeof *cases);
    struct har_artifacts set = {0};
    size_t count = 0;
    enum har_status status =
        cases != NULL ? HAR_OK : har_fail(error, HAR_EMEMORY, "no memory for healthy runs");
    for (size_t i = 0; status == HAR_OK && i < lab->bench_count; i++) {
        const bool here = lab->benches[i].used && lab->benches[i].owned;
        for (size_t run = 0; here && status == HAR_OK && run < runs; run++) {
            status = har_case_init(lab, &lab->benches[i], HAR_CASE_alarm, "none",
                                   har_campaign_alarm_seed(&lab->campaign, i, (int)run),
                                   alarm_variant(lab, run + i), &cases[count], error);
            if (status == HAR_OK) {
                har_case_need(&cases[count++], &set);
            }
        }
    }
    if (status == HAR_OK) {
        status = har_artifacts_make(lab, &set, error);
    }
    if (status == HAR_OK) {
        status = har_cases_run(lab, cases, count, "false-alarm runs", error);
    }
    for (size_t i = 0; i < count; i++) {
        har_case_fini(&cases[i]);
    }
    har_artifacts_fini(&set);
    free(cases);
    return status;
}
