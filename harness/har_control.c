/* Identity of unarmed builds, the planted fault, and the probe runs they share.
 * Called by har_run.c and doctor; must not know reports. */
#include "har_control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_case.h"

static const struct har_variant plain = {.schedule = HAR_SCHEDULE_fifo};

static struct har_artifact control_artifact(const struct har_lab *lab,
                                            const struct har_bench *bench,
                                            enum har_artifact_kind kind, const char *file)
{
    const struct har_artifact artifact = {
        .kind = kind, .bench = bench, .seed = lab->campaign.seed, .variant = plain, .file = file};
    return artifact;
}

static enum har_status read_artifact(const struct har_artifact *artifact, orc_trace **out,
                                     struct har_error *error)
{
    char *const path = har_artifact_path(artifact);
    if (path == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for a path");
    }
    const enum har_status status = har_artifact_read(artifact->bench, path, out, error);
    free(path);
    return status;
}

enum har_status har_control_probe(struct har_lab *lab, struct har_error *error)
{
    static const enum har_artifact_kind kinds[] = {HAR_ARTIFACT_healthy, HAR_ARTIFACT_production,
                                                   HAR_ARTIFACT_reach};
    struct har_artifacts set = {0};
    for (size_t i = 0; i < lab->bench_count; i++) {
        const size_t count = lab->benches[i].own ? 1 : sizeof kinds / sizeof kinds[0];
        for (size_t k = 0; k < count; k++) {
            const struct har_artifact artifact =
                control_artifact(lab, &lab->benches[i], kinds[k], NULL);
            har_artifacts_need_run(&set, &artifact);
        }
    }
    enum har_status status = har_artifacts_make(lab, &set, error);
    for (size_t i = 0; status == HAR_OK && i < lab->bench_count; i++) {
        struct har_bench *const bench = &lab->benches[i];
        const struct har_artifact healthy =
            control_artifact(lab, bench, HAR_ARTIFACT_healthy, NULL);
        const struct har_artifact reach = control_artifact(lab, bench, HAR_ARTIFACT_reach, NULL);
        status = read_artifact(&healthy, &bench->healthy, error);
        if (status == HAR_OK && !bench->own) {
            status = read_artifact(&reach, &bench->reach, error);
        }
    }
    har_artifacts_fini(&set);
    return status;
}

struct har_place har_control_place(const struct har_bench *bench)
{
    struct har_place place = {.recipe = bench->recipe.name,
                              .resumes = bench->middle_checkpoint > 0,
                              .cost = bench->recipe.cost / bench->recipe.steps * bench->steps,
                              .reach = bench->reach};
    place.feature_count = orc_trace_features(bench->healthy, &place.features);
    return place;
}

/* Compares a run with production of the same recipe and stores what came out. */
static enum har_status compare_with_production(struct har_lab *lab, const struct har_bench *bench,
                                               enum har_artifact_kind kind, const char *file,
                                               struct har_error *error)
{
    const struct har_artifact mine = control_artifact(lab, bench, kind, file);
    const struct har_artifact production =
        control_artifact(lab, bench, HAR_ARTIFACT_production, NULL);
    const bool lanes = kind == HAR_ARTIFACT_lanes;
    const char *const what = kind == HAR_ARTIFACT_healthy ? "none" : file != NULL ? file : "all";
    orc_trace *a = NULL;
    orc_trace *b = NULL;
    const char *which = "";
    char key[256];
    char detail[256] = "same bits as production";
    const double start_s = har_spent_clock_s();
    enum har_status status = read_artifact(&mine, &a, error);
    if (status == HAR_OK) {
        status = read_artifact(&production, &b, error);
    }
    lab->spent.work_s[HAR_WORK_checks] += har_spent_clock_s() - start_s;
    if (status == HAR_OK) {
        const int step = orc_trace_first_difference(a, b, &which);
        if (step != 0) {
            snprintf(detail, sizeof detail, "%s hash differs from production at step %d", which,
                     step);
        }
        snprintf(key, sizeof key, "identity%s/%s/%s", lanes ? "-lanes" : "", what,
                 bench->recipe.name);
        const struct har_case_record record = {.key = key,
                                               .kind = "identity",
                                               .entry = what,
                                               .recipe = bench->recipe.name,
                                               .seed = lab->campaign.seed,
                                               .outcome = step == 0 ? "same" : "differs",
                                               .first_check = "",
                                               .detail = detail,
                                               .reproduce = "",
                                               .reached = -1,
                                               .infected = step};
        status = har_store_put_case(lab->store, &record, error);
        if (status == HAR_OK && step != 0) {
            status =
                har_fail(error, HAR_ECONTROL,
                         "unarmed is not production: %s--fault none%s%s "
                         "on recipe %s: %s",
                         lanes ? "emulated lanes, " : "", kind == HAR_ARTIFACT_healthy ? "" : ":",
                         kind == HAR_ARTIFACT_healthy ? "" : what, bench->recipe.name, detail);
        }
    }
    orc_trace_free(a);
    orc_trace_free(b);
    return status;
}

/* Cheapest bench that reaches a site of the file, else the cheapest one. */
static const struct har_bench *bench_of_file(const struct har_lab *lab, const char *file)
{
    const struct har_bench *best = NULL;
    bool best_reaches = false;
    for (size_t i = 0; i < lab->bench_count; i++) {
        const struct har_bench *const bench = &lab->benches[i];
        bool reaches = false;
        for (size_t s = 0; s < mut_site_count(); s++) {
            reaches = reaches || (strcmp(mut_site_at(s)->file, file) == 0 &&
                                  orc_trace_site_reached(bench->reach, mut_site_at(s)->site) >= 0);
        }
        if (best == NULL || (reaches && !best_reaches) ||
            (reaches == best_reaches && bench->recipe.cost < best->recipe.cost)) {
            best = bench;
            best_reaches = reaches;
        }
    }
    return best;
}

/* Whether this site is the first of its file in the list. */
static bool first_of_file(size_t site)
{
    for (size_t i = 0; i < site; i++) {
        if (strcmp(mut_site_at(i)->file, mut_site_at(site)->file) == 0) {
            return false;
        }
    }
    return true;
}

/* Whether a fault of the file asks for emulated lanes. */
static bool has_lane_fault(const char *file)
{
    bool found = false;
    for (size_t i = 0; i < mut_fault_count(); i++) {
        const struct mut_fault *const fault = mut_fault_at(i);
        const struct mut_site_info *const site = mut_site_find(fault->site);
        found |=
            site != NULL && strcmp(site->file, file) == 0 && strcmp(fault->trigger, "lanes") == 0;
    }
    return found;
}

enum har_status har_control_identity(struct har_lab *lab, struct har_error *error)
{
    struct har_artifacts set = {0};
    for (size_t s = 0; s < mut_site_count(); s++) {
        if (first_of_file(s)) {
            const char *const file = mut_site_at(s)->file;
            const struct har_artifact twin =
                control_artifact(lab, bench_of_file(lab, file), HAR_ARTIFACT_twin, file);
            har_artifacts_need_run(&set, &twin);
            if (has_lane_fault(file)) {
                const struct har_artifact lanes =
                    control_artifact(lab, twin.bench, HAR_ARTIFACT_lanes, file);
                har_artifacts_need_run(&set, &lanes);
            }
        }
    }
    enum har_status status = har_artifacts_make(lab, &set, error);
    for (size_t i = 0; status == HAR_OK && i < lab->bench_count; i++) {
        status = compare_with_production(lab, &lab->benches[i], HAR_ARTIFACT_healthy, NULL, error);
        if (status == HAR_OK) {
            status =
                compare_with_production(lab, &lab->benches[i], HAR_ARTIFACT_reach, NULL, error);
        }
    }
    for (size_t i = 0; status == HAR_OK && i < set.count; i++) {
        const enum har_artifact_kind kind = set.items[i].kind;
        if (kind == HAR_ARTIFACT_twin || kind == HAR_ARTIFACT_lanes) {
            status =
                compare_with_production(lab, set.items[i].bench, kind, set.items[i].file, error);
        }
    }
    har_artifacts_fini(&set);
    return status;
}

/* Without a choice in the campaign: a fault of the norm kernel, which every recipe runs. */
static const struct mut_fault *default_planted(const struct har_catalogue *catalogue)
{
    const struct mut_fault *any = NULL;
    for (size_t i = 0; i < har_catalogue_count(catalogue); i++) {
        const struct mut_fault *const fault = har_catalogue_at(catalogue, i);
        if (fault->expect != MUT_EXPECT_KILL || fault->dose.unit != NULL ||
            fault->trigger[0] != '\0') {
            continue;
        }
        const struct mut_site_info *const site = har_catalogue_site(catalogue, fault);
        if (site != NULL && strstr(site->file, "norm") != NULL) {
            return fault;
        }
        any = any == NULL ? fault : any;
    }
    return any;
}

enum har_status har_control_find_planted(const struct har_lab *lab, const char **id, int *place,
                                         struct har_variant *variant, struct har_error *error)
{
    const char *const planted = lab->campaign.planted;
    const struct mut_fault *const fault = planted != NULL
                                              ? har_catalogue_find(&lab->catalogue, planted)
                                              : default_planted(&lab->catalogue);
    char reason[160];
    if (fault == NULL && planted != NULL) {
        return har_fail(error, HAR_EUSAGE, "%s: planted: unknown fault '%s'", lab->campaign.path,
                        planted);
    }
    if (fault == NULL) {
        return har_fail(error, HAR_ECONTROL, "the catalogue has no fault to plant");
    }
    struct har_place *const places = calloc(lab->bench_count, sizeof *places);
    if (places == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for %zu recipes", lab->bench_count);
    }
    for (size_t i = 0; i < lab->bench_count; i++) {
        places[i] = har_control_place(&lab->benches[i]);
    }
    *place = har_plan_match(fault, places, lab->bench_count, lab->campaign.schedules[fault->family],
                            variant, reason, sizeof reason);
    free(places);
    *id = fault->id;
    return *place >= 0 ? HAR_OK : har_fail(error, HAR_EUSAGE, "planted fault %s: %s", *id, reason);
}

enum har_status har_control_planted(struct har_lab *lab, struct har_error *error)
{
    const char *id = NULL;
    int place = -1;
    struct har_variant variant;
    struct har_case planted;
    struct har_artifacts set = {0};
    enum har_status status = har_control_find_planted(lab, &id, &place, &variant, error);
    if (status != HAR_OK) {
        return status;
    }
    status = har_case_init(lab, &lab->benches[place], HAR_CASE_planted, id, lab->campaign.seed,
                           variant, &planted, error);
    if (status != HAR_OK) {
        return status;
    }
    har_case_need(&planted, &set);
    status = har_artifacts_make(lab, &set, error);
    if (status == HAR_OK) {
        status = har_cases_run(lab, &planted, 1, "planted fault", error);
    }
    char *outcome = NULL;
    bool found = false;
    if (status == HAR_OK) {
        status = har_store_find_case(lab->store, planted.key, &found, &outcome, error);
    }
    if (status == HAR_OK && (outcome == NULL || strcmp(outcome, "detected") != 0)) {
        status = har_fail(error, HAR_ECONTROL, "the planted fault %s is not detected but %s", id,
                          outcome != NULL ? outcome : "unknown");
    }
    free(outcome);
    har_artifacts_fini(&set);
    har_case_fini(&planted);
    return status;
}
