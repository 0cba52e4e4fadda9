/* Loads stored cases, joins repeats, counts.
 * Called by reports, gate and explain; must not know how the facts came about. */
#include "har_results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS_MAX = 1000 };

/* Facts of the repeats of one entry, while they are joined. */
struct repeats {
    enum har_outcome outcomes[REPEATS_MAX];
    double reached[REPEATS_MAX], infected[REPEATS_MAX], detected[REPEATS_MAX];
    double steps[ORC_CHECK_COUNT][REPEATS_MAX];
    size_t fired[ORC_CHECK_COUNT];
    size_t count, reached_count, infected_count, detected_count;
};

struct loading {
    struct har_results *results;
    struct repeats *repeats; /* one per entry */
    bool failed;
};

static char *copy(const char *text, bool *failed)
{
    char *const out = strdup(text != NULL ? text : "");
    *failed = *failed || out == NULL;
    return out;
}

static int whole(const char *text)
{
    return text != NULL ? atoi(text) : 0;
}

static void load_entry(void *context, int columns, char **v)
{
    struct loading *const l = context;
    struct har_result *const entries =
        realloc(l->results->entries, (l->results->count + 1) * sizeof *entries);
    (void)columns;
    if (entries == NULL) {
        l->failed = true;
        return;
    }
    l->results->entries = entries;
    struct har_result *const e = &entries[l->results->count++];
    memset(e, 0, sizeof *e);
    e->id = copy(v[0], &l->failed);
    e->fault = copy(v[1], &l->failed);
    e->number = (unsigned)whole(v[2]);
    e->dose = v[3][0] != '\0' ? strtod(v[3], NULL) : (double)NAN;
    for (int i = 0; i < MUT_FAMILY_COUNT; i++) {
        if (strcmp(mut_family_name((enum mut_family)i), v[4]) == 0) {
            e->family = (enum mut_family)i;
        }
    }
    snprintf(e->class_, sizeof e->class_, "%s", v[5]);
    snprintf(e->expectation, sizeof e->expectation, "%s", v[6]);
    e->recipe = copy(v[7], &l->failed);
    e->schedule = copy(v[8], &l->failed);
    e->driver = copy(v[9], &l->failed);
    e->reason = copy(v[10], &l->failed);
    e->horizon = whole(v[11]);
    char **const later[] = {&e->detail, &e->reproduce, &e->curve, &e->blame, &e->blame_item};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        *later[i] = copy("", &l->failed);
    }
    e->reached = -1;
    e->first_check = -1;
}

static int entry_index(const struct har_results *results, const char *id)
{
    for (size_t i = 0; i < results->count; i++) {
        if (strcmp(results->entries[i].id, id) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static void set_text(char **place, const char *text, bool *failed)
{
    free(*place);
    *place = copy(text, failed);
}

static void load_case(void *context, int columns, char **v)
{
    struct loading *const l = context;
    const int index = entry_index(l->results, v[0]);
    enum har_outcome outcome;
    (void)columns;
    if (index < 0 || l->repeats[index].count == REPEATS_MAX || !har_outcome_find(v[1], &outcome)) {
        return;
    }
    struct repeats *const r = &l->repeats[index];
    struct har_result *const e = &l->results->entries[index];
    r->outcomes[r->count++] = outcome;
    e->tried += outcome != HAR_OUTCOME_no_verdict && outcome != HAR_OUTCOME_not_reached;
    e->seed = r->count == 1 && v[8] != NULL ? strtoull(v[8], NULL, 10) : e->seed;
    if (whole(v[2]) >= 0) {
        r->reached[r->reached_count++] = whole(v[2]);
    }
    if (whole(v[3]) > 0) {
        r->infected[r->infected_count++] = whole(v[3]);
    }
    if (whole(v[4]) > 0) {
        r->detected[r->detected_count++] = whole(v[4]);
    }
    if (e->detail[0] == '\0' || outcome != HAR_OUTCOME_detected) {
        set_text(&e->detail, v[6], &l->failed);
    }
    if (e->reproduce[0] == '\0') {
        set_text(&e->reproduce, v[7], &l->failed);
    }
    enum orc_check_id check;
    if (e->first_check < 0 && v[5] != NULL && orc_check_find(v[5], &check)) {
        e->first_check = (int)check;
    }
}

static void load_verdict(void *context, int columns, char **v)
{
    struct loading *const l = context;
    const int index = entry_index(l->results, v[0]);
    enum orc_check_id check;
    (void)columns;
    if (index < 0 || v[1] == NULL || !orc_check_find(v[1], &check)) {
        return;
    }
    struct repeats *const r = &l->repeats[index];
    if (whole(v[2]) != 0) {
        l->results->entries[index].applicable[check] = true;
    }
    if (whole(v[3]) != 0 && r->fired[check] < REPEATS_MAX) {
        r->steps[check][r->fired[check]++] = whole(v[4]);
    }
}

static int median_step(double *values, size_t count, int none)
{
    return count == 0 ? none : (int)floor(har_stats_median(values, count));
}

static void join_entry(struct har_result *e, struct repeats *r)
{
    e->run = r->count > 0;
    e->repeats = r->count;
    memcpy(e->check_fired, r->fired, sizeof e->check_fired);
    if (r->count == 0) {
        /* Without a recipe there is nothing to run; with one, the case is missing. */
        e->outcome = e->recipe[0] == '\0' ? HAR_OUTCOME_not_reached : HAR_OUTCOME_no_verdict;
        return;
    }
    e->outcome = har_outcome_join(r->outcomes, r->count, &e->detected_repeats, &e->relevant);
    e->reached = median_step(r->reached, r->reached_count, -1);
    e->infected = median_step(r->infected, r->infected_count, 0);
    e->detected =
        e->outcome == HAR_OUTCOME_detected ? median_step(r->detected, r->detected_count, 0) : 0;
    int first = 0;
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        if (e->relevant > 0 && r->fired[i] >= e->relevant) {
            e->check_steps[i] = median_step(r->steps[i], r->fired[i], 0);
            if (first == 0 || e->check_steps[i] < first) {
                first = e->check_steps[i];
                e->first_check = i;
            }
        }
    }
    if (e->outcome != HAR_OUTCOME_detected && e->outcome != HAR_OUTCOME_flaky) {
        e->first_check = -1;
    }
}

bool har_results_first_verdict(const struct har_results *results)
{
    return results->stop != NULL && results->stop[0] != '\0';
}

/* Runs that stopped at the first verdict saw only part of the other checks' firings. */
static void forget_others(struct har_result *e)
{
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        e->check_steps[i] = i == e->first_check ? e->detected : 0;
    }
}

static void load_oracle(void *context, int columns, char **v)
{
    struct loading *const l = context;
    struct har_results *const r = l->results;
    struct har_oracle_result *const items =
        realloc(r->oracle, (r->oracle_count + 1) * sizeof *items);
    (void)columns;
    if (items == NULL) {
        l->failed = true;
        return;
    }
    r->oracle = items;
    items[r->oracle_count++] = (struct har_oracle_result){.id = copy(v[0], &l->failed),
                                                          .why = copy(v[1], &l->failed),
                                                          .killed = whole(v[2]) != 0,
                                                          .detail = copy(v[3], &l->failed)};
}

static void load_alarms(void *context, int columns, char **v)
{
    struct har_summary *const s = context;
    (void)columns;
    const size_t count = (size_t)whole(v[1]);
    if (strcmp(v[0], "alarm") == 0) {
        s->false_alarms += count;
        s->healthy_runs += count;
    } else if (strcmp(v[0], "quiet") == 0) {
        s->healthy_runs += count;
    } else {
        s->healthy_lost += count;
    }
}

static void load_seconds(void *context, int columns, char **v)
{
    struct har_summary *const s = context;
    (void)columns;
    s->seconds = v[0] != NULL ? strtod(v[0], NULL) : 0.0;
}

static void load_spent(void *context, int columns, char **v)
{
    struct har_summary *const s = context;
    const double amount = strtod(v[2], NULL);
    enum har_work work = HAR_WORK_COUNT;
    enum har_stage stage = HAR_STAGE_COUNT;
    (void)columns;
    if (strcmp(v[0], "work") == 0 && har_work_find(v[1], &work)) {
        s->spent.work_s[work] += amount;
    } else if (strcmp(v[0], "stage") == 0 && har_stage_find(v[1], &stage)) {
        s->spent.stage_s[stage] += amount;
    } else if (strcmp(v[0], "stage_busy") == 0 && har_stage_find(v[1], &stage)) {
        s->spent.stage_busy_s[stage] += amount;
    } else if (strcmp(v[0], "cases") == 0) {
        s->spent.cases += amount;
    }
}

static const char *const input_names[] = {
#define HAR_ROW_(name) #name,
    HAR_INPUTS(HAR_ROW_)
#undef HAR_ROW_
};

const char *har_input_name(enum har_input input)
{
    return input_names[input];
}

static void load_check_alarms(void *context, int columns, char **v)
{
    struct har_summary *const s = context;
    enum orc_check_id check;
    (void)columns;
    if (v[0] != NULL && orc_check_find(v[0], &check)) {
        s->alarms[check].runs = (size_t)whole(v[1]);
        s->alarms[check].fired = (size_t)whole(v[2]);
    }
}

/* Columns: cases, without verdict, whether it fired on the planted fault. */
static void load_external(void *context, int columns, char **v)
{
    struct har_summary *const s = context;
    (void)columns;
    s->external_asked = (size_t)whole(v[0]);
    s->external_lost = (size_t)whole(v[1]);
    s->external_killed = whole(v[2]) != 0;
}

static void load_role_seconds(void *context, int columns, char **v)
{
    struct har_summary *const s = context;
    (void)columns;
    for (int i = 0; v[0] != NULL && i < HAR_INPUT_COUNT; i++) {
        if (strcmp(v[0], input_names[i]) == 0) {
            s->role_seconds[i] = v[1] != NULL ? strtod(v[1], NULL) : (double)NAN;
        }
    }
}

static void load_child_seconds(void *context, int columns, char **v)
{
    struct har_summary *const s = context;
    (void)columns;
    s->child_seconds = v[0] != NULL ? strtod(v[0], NULL) : 0.0;
    s->reference_seconds = v[1] != NULL ? strtod(v[1], NULL) : 0.0;
    s->references = (size_t)whole(v[2]);
}

/* Rows come from the last seed to the first, so the first repeat's stays. */
static void load_curve(void *context, int columns, char **v)
{
    struct loading *const l = context;
    const int index = v[0] != NULL ? entry_index(l->results, v[0]) : -1;
    (void)columns;
    if (index >= 0) {
        set_text(&l->results->entries[index].curve, v[1], &l->failed);
    }
}

/* Columns: key, kind (none for calibration), entry, outcome, reached, recipe, json. */
static void load_losses(void *context, int columns, char **v)
{
    static const char prefix[] = "calibration/";
    struct loading *const l = context;
    const char *const kind = v[1] != NULL ? v[1] : "";
    const bool calibration = kind[0] == '\0' && strncmp(v[0], prefix, strlen(prefix)) == 0;
    enum har_outcome outcome = HAR_OUTCOME_no_verdict;
    (void)columns;
    if (!calibration && strcmp(kind, "alarm") != 0 && strcmp(kind, "fault") != 0) {
        return;
    }
    struct har_losses *const list =
        realloc(l->results->losses, (l->results->loss_count + 1) * sizeof *list);
    if (list == NULL) {
        l->failed = true;
        return;
    }
    l->results->losses = list;
    struct har_losses *const row = &list[l->results->loss_count++];
    *row = (struct har_losses){.kind = HAR_LOSSES_calibration, .entry = -1};
    if (calibration) {
        const char *const recipe = v[0] + strlen(prefix);
        row->recipe = strndup(recipe, strcspn(recipe, "/"));
    } else {
        row->kind = strcmp(kind, "alarm") == 0 ? HAR_LOSSES_alarm : HAR_LOSSES_fault;
        row->entry = row->kind == HAR_LOSSES_fault ? entry_index(l->results, v[2]) : -1;
        row->reached = whole(v[4]);
        row->counted = har_outcome_find(v[3], &outcome) && outcome != HAR_OUTCOME_not_infected &&
                       outcome != HAR_OUTCOME_not_reached;
        row->recipe = copy(v[5], &l->failed);
    }
    row->json = copy(v[6], &l->failed);
    l->failed = l->failed || row->recipe == NULL;
}

static void load_cut(void *context, int columns, char **v)
{
    struct loading *const l = context;
    (void)columns;
    l->results->cut = (size_t)whole(v[0]);
}

static void load_blame(void *context, int columns, char **v)
{
    struct loading *const l = context;
    const int index = v[0] != NULL ? entry_index(l->results, v[0]) : -1;
    (void)columns;
    if (index >= 0) {
        struct har_result *const e = &l->results->entries[index];
        set_text(&e->blame, v[1], &l->failed);
        e->blame_step = whole(v[2]);
        set_text(&e->blame_item, v[3], &l->failed);
    }
}

static void count_entry(const struct har_result *e, struct har_summary *s, double *steps,
                        size_t *step_count)
{
    s->entries++;
    s->kill += strcmp(e->expectation, "KILL") == 0;
    s->equivalent += strcmp(e->expectation, "EQUIVALENT") == 0;
    s->gap += strcmp(e->expectation, "GAP") == 0;
    if (strcmp(e->expectation, "KILL") != 0) {
        return;
    }
    s->outcomes[e->outcome]++;
    s->missing += !e->run && e->recipe[0] != '\0';
    if (!har_results_counts(e)) {
        return;
    }
    s->rate_below++;
    steps[(*step_count)++] =
        e->detected > 0 ? har_outcome_steps(e->reached, e->detected) : HUGE_VAL;
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        s->alone[i] += e->check_steps[i] > 0;
    }
}

static bool summarise(struct har_results *r)
{
    struct har_summary *const s = &r->summary;
    double *const steps = calloc(r->count + 1, sizeof *steps);
    size_t step_count = 0;
    if (steps == NULL) {
        return false;
    }
    for (size_t i = 0; i < r->count; i++) {
        count_entry(&r->entries[i], s, steps, &step_count);
    }
    const size_t detected = s->outcomes[HAR_OUTCOME_detected];
    s->rate = s->rate_below > 0 ? (double)detected / (double)s->rate_below : (double)NAN;
    s->rate_interval = har_stats_proportion(detected, s->rate_below, 0.95);
    s->alarm_interval = har_stats_proportion(s->false_alarms, s->healthy_runs, 0.95);
    s->median_steps = har_stats_median(steps, step_count);
    free(steps);
    return true;
}

static enum har_status load_texts(har_store *store, struct har_results *r, struct har_error *error)
{
    const struct {
        const char *key;
        char **place;
    } texts[] = {
        {"campaign", &r->name},   {"provenance", &r->provenance}, {"plan_hash", &r->plan_hash},
        {"planted", &r->planted}, {"controls", &r->controls},     {"finished", &r->finished},
        {"shard", &r->shard},     {"selection", &r->selection},   {"mode", &r->mode},
        {"stop", &r->stop}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const enum har_status status =
            har_store_get_text(store, texts[i].key, texts[i].place, error);
        if (status != HAR_OK) {
            return status;
        }
        if (*texts[i].place == NULL && (*texts[i].place = strdup("")) == NULL) {
            return har_fail(error, HAR_EMEMORY, "no memory for results");
        }
    }
    return HAR_OK;
}

static enum har_status load_facts(har_store *store, struct loading *l, struct har_error *error)
{
    struct har_results *const r = l->results;
    const struct {
        const char *sql;
        har_store_row *row;
        void *context;
    } queries[] = {
        {"SELECT entry, outcome, reached, infected, detected, first_check, detail, reproduce, seed"
         " FROM cases WHERE kind = 'fault' ORDER BY seed",
         load_case, l},
        {"SELECT cases.entry, check_name, applicable, fired, step FROM verdicts JOIN cases ON"
         " case_key = key WHERE kind = 'fault' AND outcome = 'detected'",
         load_verdict, l},
        {"SELECT id, why, killed, detail FROM oracle_fault ORDER BY id", load_oracle, l},
        {"SELECT outcome, count(*) FROM cases WHERE kind = 'alarm' GROUP BY outcome", load_alarms,
         &r->summary},
        {"SELECT check_name, sum(applicable), sum(fired) FROM verdicts JOIN cases ON case_key = key"
         " WHERE kind = 'alarm' GROUP BY check_name",
         load_check_alarms, &r->summary},
        {"SELECT role, avg(seconds) FROM runs WHERE ending = 'done' GROUP BY role",
         load_role_seconds, &r->summary},
        {"SELECT sum(seconds), sum(seconds * (role = 'reference')), sum(role = 'reference') FROM"
         " runs",
         load_child_seconds, &r->summary},
        {"SELECT count(*), sum(NOT applicable), max(fired AND kind = 'planted') FROM verdicts JOIN"
         " cases ON case_key = key WHERE check_name = 'external' AND (applicable OR "
         "verdicts.detail <> '')",
         load_external, &r->summary},
        {"SELECT sum(seconds) FROM session", load_seconds, &r->summary},
        {"SELECT entry, json FROM curve JOIN cases ON case_key = key WHERE kind = 'fault' ORDER BY"
         " seed DESC",
         load_curve, l},
        {"SELECT entry, stage, step, item FROM blame JOIN cases ON case_key = key WHERE"
         " kind = 'fault' ORDER BY seed DESC",
         load_blame, l},
        {"SELECT count(*) FROM cases WHERE kind = 'fault' AND outcome = 'detected' AND key NOT IN"
         " (SELECT case_key FROM curve)",
         load_cut, l},
        {"SELECT case_key, kind, entry, outcome, reached, recipe, json FROM curve LEFT JOIN cases "
         "ON"
         " case_key = key ORDER BY case_key",
         load_losses, l},
    };
    size_t count = sizeof queries / sizeof queries[0];
    bool has = false;
    enum har_status status = har_store_has_table(store, "blame", &has, error);
    count -= has ? 0 : 4; /* a database of before these tables */
    for (size_t i = 0; status == HAR_OK && i < count; i++) {
        status = har_store_query(store, queries[i].sql, queries[i].row, queries[i].context, error);
    }
    if (status == HAR_OK) {
        status = har_store_has_table(store, "spent", &has, error);
    }
    return status == HAR_OK && has ? har_store_query(store, "SELECT what, name, amount FROM spent",
                                                     load_spent, &r->summary, error)
                                   : status;
}

/* What a trainer of the user published; nothing is stored for the built-in one. */
enum har_status har_results_catalogue(har_store *store, struct har_catalogue *out,
                                      struct har_error *error)
{
    char *text = NULL;
    memset(out, 0, sizeof *out);
    enum har_status status = har_store_get_text(store, "catalogue", &text, error);
    if (status == HAR_OK && text != NULL) {
        status = har_catalogue_parse(text, NULL, "the stored catalogue", out, error);
        status = status == HAR_EUSAGE ? HAR_EIO : status;
    }
    free(text);
    return status;
}

enum har_status har_results_load(har_store *store, struct har_results *out, struct har_error *error)
{
    struct loading l = {.results = out};
    memset(out, 0, sizeof *out);
    for (int i = 0; i < HAR_INPUT_COUNT; i++) {
        out->summary.role_seconds[i] = (double)NAN;
    }
    enum har_status status = load_texts(store, out, error);
    if (status == HAR_OK) {
        status = har_results_catalogue(store, &out->catalogue, error);
    }
    if (status == HAR_OK) {
        status = har_store_query(store,
                                 "SELECT id, fault, number, dose, family, class, expectation,"
                                 " recipe, schedule, driver, reason, horizon FROM entry"
                                 " ORDER BY position",
                                 load_entry, &l, error);
    }
    l.repeats = calloc(out->count + 1, sizeof *l.repeats);
    if (status == HAR_OK && l.repeats == NULL) {
        status = har_fail(error, HAR_EMEMORY, "no memory for results");
    }
    if (status == HAR_OK) {
        status = load_facts(store, &l, error);
    }
    for (size_t i = 0; status == HAR_OK && i < out->count; i++) {
        join_entry(&out->entries[i], &l.repeats[i]);
        if (har_results_first_verdict(out)) {
            forget_others(&out->entries[i]);
        }
    }
    if (status == HAR_OK && (l.failed || !summarise(out))) {
        status = har_fail(error, HAR_EMEMORY, "no memory for results");
    }
    free(l.repeats);
    if (status != HAR_OK) {
        har_results_fini(out);
    }
    return status;
}

void har_results_fini(struct har_results *r)
{
    for (size_t i = 0; i < r->count; i++) {
        struct har_result *const e = &r->entries[i];
        char *const texts[] = {e->id,     e->fault,  e->recipe,    e->schedule,
                               e->driver, e->reason, e->detail,    e->reproduce,
                               e->curve,  e->blame,  e->blame_item};
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
            free(texts[k]);
        }
    }
    for (size_t i = 0; i < r->oracle_count; i++) {
        free(r->oracle[i].id);
        free(r->oracle[i].why);
        free(r->oracle[i].detail);
    }
    for (size_t i = 0; i < r->loss_count; i++) {
        free(r->losses[i].recipe);
        free(r->losses[i].json);
    }
    har_catalogue_fini(&r->catalogue);
    free(r->losses);
    free(r->entries);
    free(r->oracle);
    free(r->name);
    free(r->mode);
    free(r->provenance);
    free(r->plan_hash);
    free(r->planted);
    free(r->controls);
    free(r->finished);
    free(r->shard);
    free(r->selection);
    free(r->stop);
    memset(r, 0, sizeof *r);
}
