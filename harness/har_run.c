/* The stages of a campaign in order.
 * Called by cmd_run.c, cmd_effect.c and doctor; must not know options or output. */
#include "har_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "har_calibrate.h"
#include "har_case.h"
#include "har_control.h"
#include "har_hash.h"
#include "har_provenance.h"
#include "har_select.h"
#include "har_selftest.h"

static uint64_t hash_number(uint64_t hash, uint64_t value)
{
    return har_hash_bytes(hash, &value, sizeof value);
}

/* Everything that can change a result: programs, recipes with their data, faults, seeds, checks. */
static enum har_status plan_hash(const struct har_lab *lab, uint64_t *out, struct har_error *error)
{
    const struct har_campaign *const c = &lab->campaign;
    const uint64_t numbers[] = {
        lab->programs_hash,         (uint64_t)c->repeats,        c->seed,
        (uint64_t)c->horizon,       (uint64_t)c->calibration,    (uint64_t)c->false_alarms,
        (uint64_t)c->first_verdict, (uint64_t)c->timeout_factor, (uint64_t)c->timeout_min_s,
        (uint64_t)c->memory_mb,     (uint64_t)c->mode,           (uint64_t)c->external_timeout_s};
    uint64_t hash = HAR_HASH_START;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        hash = hash_number(hash, numbers[i]);
    }
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        hash = hash_number(hash, lab->enabled[i]);
    }
    for (size_t i = 0; i < lab->bench_count; i++) {
        hash = hash_number(hash, lab->benches[i].recipe.inputs_hash);
    }
    hash = hash_number(hash, lab->catalogue.hash);
    hash = har_hash_string(hash, c->planted != NULL ? c->planted : "");
    for (size_t i = 0; i < lab->plan.count; i++) {
        const struct har_entry *const e = &lab->plan.entries[i];
        hash = har_hash_string(hash, e->id);
        hash = har_hash_string(hash, e->fault->faulty);
        hash = hash_number(hash, (uint64_t)(int64_t)e->place);
        hash = hash_number(hash, (uint64_t)e->variant.schedule * 4 + e->variant.tasks * 2u +
                                     e->variant.lanes);
    }
    const enum har_status status = har_user_hash(&c->external, &hash, error);
    *out = hash;
    return status;
}

static void take_peak(void *context, int columns, char **values)
{
    (void)columns;
    *(double *)context = strtod(values[0], NULL);
}

static double available_kb(void)
{
    char line[256];
    double kb = 0.0;
    FILE *const file = fopen("/proc/meminfo", "rbe");
    while (file != NULL && kb <= 0.0 && fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "MemAvailable: %lf", &kb);
    }
    if (file != NULL) {
        fclose(file);
    }
    return kb;
}

/* Without --jobs: as many children as cores, but no more than have room. A mutant may take twice
 * what the largest run so far took; the harness itself gets such a share as well. What a child may
 * allocate is bounded by its share of the memory there is, so that one that leaks dies alone. */
static enum har_status share_memory(struct har_lab *lab, struct har_error *error)
{
    enum { LEAST_MB = 512, OVER_PEAK = 8 }; /* allocated is not resident: never too tight */
    const struct har_campaign *const c = &lab->campaign;
    double peak_kb = 0.0;
    const double room_kb = available_kb();
    lab->child_mb = c->memory_mb;
    if (room_kb <= 0.0) {
        return HAR_OK;
    }
    const enum har_status status =
        har_store_query(lab->store, "SELECT max(peak_kb) FROM runs", take_peak, &peak_kb, error);
    const int most = peak_kb > 0.0 ? (int)fmin(room_kb / (2.0 * peak_kb), 1e6) - 1 : 1 << 20;
    if (c->jobs == 0 && most < lab->pool.jobs_at_once) {
        lab->pool.jobs_at_once = most > 1 ? most : 1;
    }
    const double share_mb = fmax(room_kb / 1024.0 / (lab->pool.jobs_at_once + 1),
                                 fmax(LEAST_MB, OVER_PEAK * peak_kb / 1024.0));
    lab->child_mb = (int)fmin(c->memory_mb, share_mb);
    return status;
}

enum har_status har_run_plan(struct har_lab *lab, bool all, struct har_error *error)
{
    struct har_place *const places = calloc(lab->bench_count, sizeof *places);
    if (places == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for %zu recipes", lab->bench_count);
    }
    enum har_status status = har_control_probe(lab, error);
    for (size_t i = 0; status == HAR_OK && i < lab->bench_count; i++) {
        places[i] = har_control_place(&lab->benches[i]);
        lab->benches[i].used = all;
    }
    if (status == HAR_OK) {
        status = har_plan_make(&lab->campaign, &lab->catalogue, places, lab->bench_count,
                               &lab->plan, error);
    }
    if (status == HAR_OK) {
        status = har_select_apply(lab, error);
    }
    if (status == HAR_OK) {
        status = plan_hash(lab, &lab->plan_hash, error);
    }
    if (status == HAR_OK) {
        status = har_select_shard(lab, error);
    }
    for (size_t i = 0; status == HAR_OK && i < lab->plan.count; i++) {
        if (lab->plan.entries[i].place >= 0) {
            lab->benches[lab->plan.entries[i].place].used = true;
        }
    }
    const char *planted = NULL;
    int place = -1;
    struct har_variant variant;
    if (status == HAR_OK && lab->plan.count > 0) {
        status = har_control_find_planted(lab, &planted, &place, &variant, error);
    }
    if (status == HAR_OK && place >= 0) {
        lab->benches[place].used = true;
    }
    free(places);
    return status == HAR_OK ? share_memory(lab, error) : status;
}

static enum har_status store_plan(struct har_lab *lab, struct har_error *error)
{
    const size_t count = lab->plan.count;
    struct har_entry_record *const records = calloc(count + 1, sizeof *records);
    if (records == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for the plan");
    }
    for (size_t i = 0; i < count; i++) {
        const struct har_entry *const e = &lab->plan.entries[i];
        const struct har_bench *const bench = e->place >= 0 ? &lab->benches[e->place] : NULL;
        records[i] = (struct har_entry_record){.id = e->id,
                                               .fault = e->fault->id,
                                               .family = mut_family_name(e->fault->family),
                                               .class_ = mut_class_name(e->fault->class_),
                                               .expectation = mut_expect_name(e->fault->expect),
                                               .recipe = bench != NULL ? bench->recipe.name : "",
                                               .schedule = har_schedule_name(e->variant.schedule),
                                               .driver = e->variant.tasks ? "tasks" : "single",
                                               .reason = e->reason,
                                               .number = e->fault->number,
                                               .dose = e->dose,
                                               .horizon = bench != NULL ? bench->steps : 0,
                                               .position = e->position};
    }
    const enum har_status status = har_store_put_plan(lab->store, records, count, error);
    free(records);
    return status;
}

/* "K/N", "" for the whole plan. */
static void shard_text(const struct har_lab *lab, char *out, size_t size)
{
    out[0] = '\0';
    if (lab->campaign.shards > 0) {
        snprintf(out, size, "%d/%d", lab->campaign.shard, lab->campaign.shards);
    }
}

static enum har_status store_texts(struct har_lab *lab, const char *hash, struct har_error *error)
{
    char *provenance = NULL;
    char *const catalogue = har_catalogue_text(&lab->catalogue); /* NULL = the built-in one */
    char total[24];
    char shard[32];
    enum har_status status = har_provenance_json(lab, &provenance, error);
    snprintf(total, sizeof total, "%zu", lab->entry_total);
    shard_text(lab, shard, sizeof shard);
    const struct {
        const char *key, *value;
    } texts[] = {{"plan_hash", hash},
                 {"campaign", lab->campaign.name},
                 {"campaign_path", lab->campaign.path},
                 {"provenance", provenance},
                 {"mode", har_mode_name(lab->campaign.mode)},
                 {"selection", har_text_get(&lab->selection)},
                 {"stop", lab->campaign.first_verdict ? "first verdict" : ""},
                 {"entry_total", total},
                 {"shard", shard},
                 {"catalogue", catalogue}};
    const size_t count = sizeof texts / sizeof texts[0] - (catalogue == NULL);
    if (status == HAR_OK && catalogue == NULL && lab->catalogue.published != NULL) {
        status = har_fail(error, HAR_EMEMORY, "no memory for the catalogue");
    }
    for (size_t i = 0; status == HAR_OK && i < count; i++) {
        status = har_store_put_text(lab->store, texts[i].key, texts[i].value, error);
    }
    free(catalogue);
    free(provenance);
    return status;
}

enum har_status har_run_claim(struct har_lab *lab, struct har_error *error)
{
    char hash[20];
    char *stored = NULL;
    char shard[32];
    char *stored_shard = NULL;
    snprintf(hash, sizeof hash, "%016" PRIx64, lab->plan_hash);
    shard_text(lab, shard, sizeof shard);
    enum har_status status = har_store_get_text(lab->store, "plan_hash", &stored, error);
    if (status == HAR_OK && stored != NULL) {
        status = har_store_get_text(lab->store, "shard", &stored_shard, error);
    }
    if (status == HAR_OK && stored_shard != NULL && strcmp(stored_shard, shard) != 0) {
        status = har_fail(error, HAR_EMISMATCH,
                          "%s holds %s%s of this plan, not %s%s; use another "
                          "--out",
                          lab->out, stored_shard[0] != '\0' ? "shard " : "the whole", stored_shard,
                          shard[0] != '\0' ? "shard " : "the whole", shard);
    }
    if (status == HAR_OK && stored != NULL && strcmp(stored, hash) != 0) {
        status = har_fail(error, HAR_EMISMATCH,
                          "%s holds results of another plan (%s, now %s): other faults, recipes, "
                          "options or programs; use another --out or remove that folder",
                          lab->out, stored, hash);
    } else if (status == HAR_OK && stored == NULL) {
        status = store_plan(lab, error);
        if (status == HAR_OK) {
            status = store_texts(lab, hash, error);
        }
    }
    free(stored_shard);
    free(stored);
    return status;
}

/* All fault cases of the plan; *count of them in a new array. */
static enum har_status make_cases(struct har_lab *lab, struct har_case **out, size_t *count,
                                  struct har_artifacts *set, struct har_error *error)
{
    const size_t most = lab->plan.count * (size_t)lab->campaign.repeats;
    enum har_status status = HAR_OK;
    *count = 0;
    *out = calloc(most + 1, sizeof **out);
    if (*out == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for %zu cases", most);
    }
    for (size_t i = 0; i < lab->plan.count; i++) {
        const struct har_entry *const e = &lab->plan.entries[i];
        for (int r = 0; e->place >= 0 && status == HAR_OK && r < lab->campaign.repeats; r++) {
            status = har_case_init(lab, &lab->benches[e->place], HAR_CASE_fault, e->id,
                                   har_campaign_fault_seed(&lab->campaign, r), e->variant,
                                   &(*out)[*count], error);
            if (status == HAR_OK) {
                har_case_need(&(*out)[*count], set);
                ++*count;
            }
        }
    }
    return status;
}

static void free_cases(struct har_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        har_case_fini(&cases[i]);
    }
    free(cases);
}

static enum har_status run_faults(struct har_lab *lab, struct har_error *error)
{
    struct har_case *cases = NULL;
    size_t count = 0;
    struct har_artifacts set = {0};
    enum har_status status = make_cases(lab, &cases, &count, &set, error);
    if (status == HAR_OK) {
        status = har_artifacts_make(lab, &set, error);
    }
    if (status == HAR_OK) {
        status = har_cases_run(lab, cases, count, "faults", error);
    }
    har_artifacts_fini(&set);
    free_cases(cases, count);
    return status;
}

static enum har_status store_controls(struct har_lab *lab, enum har_status status,
                                      struct har_error *error)
{
    char text[1100];
    const char *planted = NULL;
    int place = -1;
    struct har_variant variant;
    if (status == HAR_ECONTROL) {
        snprintf(text, sizeof text, "failed: %s", error->text);
        return har_status_worse(status, har_store_put_text(lab->store, "controls", text, NULL));
    }
    if (status != HAR_OK) {
        return status;
    }
    const char *const identity = lab->campaign.trainer.words.count > 0
                                     ? "a trainer of the user has no production build to compare"
                                     : "every twin unarmed equals production bit for bit";
    if (lab->plan.count == 0) {
        snprintf(text, sizeof text, "passed: %s; no fault to run, none planted", identity);
        return har_store_put_text(lab->store, "controls", text, error);
    }
    status = har_control_find_planted(lab, &planted, &place, &variant, error);
    if (status == HAR_OK) {
        snprintf(text, sizeof text, "passed: %s, planted fault %s is detected", identity, planted);
        status = har_store_put_text(lab->store, "controls", text, error);
    }
    return status;
}

static void end_stage(struct har_lab *lab, enum har_stage stage)
{
    har_spent_stage(&lab->spent, stage, har_lab_seconds(lab));
}

enum har_status har_run_stages(struct har_lab *lab, bool faults, struct har_error *error)
{
    const bool own = lab->campaign.trainer.words.count > 0;
    const bool reference = lab->campaign.reference != HAR_REFERENCE_none;
    end_stage(lab, HAR_STAGE_plan);
    enum har_status status = own ? HAR_OK : har_control_identity(lab, error);
    end_stage(lab, HAR_STAGE_controls);
    if (status == HAR_OK) {
        status = har_calibrate_bounds(lab, error);
    }
    end_stage(lab, HAR_STAGE_bounds);
    if (status == HAR_OK && faults && lab->plan.count > 0) {
        status = har_control_planted(lab, error);
    }
    if (faults) {
        status = store_controls(lab, status, error);
    }
    end_stage(lab, HAR_STAGE_controls);
    if (status == HAR_OK) {
        status = har_calibrate_alarms(lab, error);
    }
    end_stage(lab, HAR_STAGE_alarms);
    if (status == HAR_OK && faults) {
        status = run_faults(lab, error);
    }
    end_stage(lab, HAR_STAGE_faults);
    if (status == HAR_OK && faults && lab->plan.count > 0 && !own && reference) {
        status = har_selftest_run(lab, error);
    }
    end_stage(lab, HAR_STAGE_selftest);
    if (status == HAR_OK && faults) {
        status = har_store_put_text(lab->store, "finished", "every stage", error);
    }
    return status;
}

enum har_status har_run_close(struct har_lab *lab, struct har_error *error)
{
    char now[32];
    const time_t clock = time(NULL);
    struct tm parts;
    gmtime_r(&clock, &parts);
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &parts);
    const double elapsed_s = har_lab_seconds(lab);
    har_spent_close(&lab->spent, elapsed_s, har_pool_cores());
    return har_store_add_session(lab->store, now, elapsed_s, &lab->spent, error);
}

static double left_of(double planned, size_t stored)
{
    return fmax(0.0, planned - (double)stored);
}

/* Seconds of child processes that one recipe still needs: what is planned less what is stored, by
 * the longest healthy and reference run so far. Runs that stop at a verdict take less. */
static enum har_status estimate_bench(struct har_lab *lab, int index, double *seconds,
                                      struct har_error *error)
{
    const struct har_campaign *const c = &lab->campaign;
    const struct har_bench *const bench = &lab->benches[index];
    const char *const recipe = bench->recipe.name;
    static const char *const what[] = {
        "artifact/healthy", "artifact/followed", "artifact/reference", "fault/reference",
        "alarm/reference",  "fault/subject",     "alarm/subject"};
    enum { HEALTHY, FOLLOWED, REFERENCE, OF_FAULT, OF_ALARM, FAULT, ALARM, KINDS };
    size_t stored[KINDS] = {0};
    double healthy_s = 0.0;
    double reference_s = 0.0;
    double cases = 0.0;
    enum har_status status =
        har_store_longest_run(lab->store, recipe, "healthy", &healthy_s, error);
    if (status == HAR_OK) {
        status = har_store_longest_run(lab->store, recipe, "reference", &reference_s, error);
    }
    for (int i = 0; status == HAR_OK && i < KINDS; i++) {
        status = har_store_count_runs(lab->store, recipe, what[i], &stored[i], error);
    }
    for (size_t e = 0; e < lab->plan.count; e++) {
        cases += lab->plan.entries[e].place == index ? c->repeats : 0;
    }
    const double alarms = bench->owned ? c->false_alarms : 0.0;
    const double seeds = c->repeats + c->calibration + alarms;
    const double references = bench->lockstep ? c->calibration + cases + alarms : seeds;
    *seconds =
        left_of(seeds, stored[HEALTHY] + stored[FOLLOWED]) * healthy_s +
        left_of(references, stored[REFERENCE] + stored[OF_FAULT] + stored[OF_ALARM]) * reference_s +
        HAR_TRAINERS * healthy_s * (left_of(cases, stored[FAULT]) + left_of(alarms, stored[ALARM]));
    return status;
}

/* Seconds the campaign still needs with its children side by side. */
static enum har_status estimate(struct har_lab *lab, double *seconds, struct har_error *error)
{
    struct har_artifacts set = {0};
    const struct har_variant plain = {.schedule = HAR_SCHEDULE_fifo};
    for (size_t i = 0; i < lab->bench_count; i++) {
        if (lab->benches[i].used) {
            har_artifacts_need(&set, &lab->benches[i], lab->campaign.seed, plain);
            har_artifacts_need_pair(&set, &lab->benches[i], lab->campaign.seed, plain);
        }
    }
    enum har_status status = har_artifacts_make(lab, &set, error);
    har_artifacts_fini(&set);
    *seconds = 0.0;
    for (size_t i = 0; status == HAR_OK && i < lab->bench_count; i++) {
        double mine_s = 0.0;
        if (lab->benches[i].used) {
            status = estimate_bench(lab, (int)i, &mine_s, error);
        }
        *seconds += mine_s;
    }
    *seconds /= fmin(lab->pool.jobs_at_once, har_pool_cores());
    return status;
}

enum har_status har_run_describe(struct har_lab *lab, struct har_text *out, struct har_error *error)
{
    double seconds = 0.0;
    size_t placed = 0;
    enum har_status status = estimate(lab, &seconds, error);
    if (status != HAR_OK) {
        return status;
    }
    har_text_addf(out, "%-11s %-40s %-10s %-14s %-5s %s\n", "family", "fault", "expect", "recipe",
                  "sched", "driver");
    for (size_t i = 0; i < lab->plan.count; i++) {
        const struct har_entry *const e = &lab->plan.entries[i];
        placed += e->place >= 0;
        har_text_addf(out, "%-11s %-40s %-10s %-14s %-5s %s\n", mut_family_name(e->fault->family),
                      e->id, mut_expect_name(e->fault->expect),
                      e->place >= 0 ? lab->benches[e->place].recipe.name : "-",
                      har_schedule_name(e->variant.schedule),
                      e->place >= 0 ? e->variant.tasks ? "tasks" : "single" : e->reason);
    }
    har_text_addf(
        out,
        "\n%zu entries, %zu with a recipe, %d repeat%s, seeds from %" PRIu64
        "; %d calibration and %d false-alarm runs per recipe; plan %016" PRIx64
        "\n%s %.0f s left with %d children at once\n",
        lab->plan.count, placed, lab->campaign.repeats, lab->campaign.repeats == 1 ? "" : "s",
        lab->campaign.seed, lab->campaign.calibration, lab->campaign.false_alarms, lab->plan_hash,
        lab->campaign.first_verdict ? "at most" : "about", seconds, lab->pool.jobs_at_once);
    return out->failed ? har_fail(error, HAR_EMEMORY, "no memory for the plan") : HAR_OK;
}
