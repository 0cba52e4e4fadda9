/* Subject, repeat, resumed run, then the verdict, as one chain of children.
 * Called by the stages of a campaign; must not know their order. */
#include "har_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_curve.h"

static const char *const kind_names[] = {
#define HAR_ROW_(name) #name,
    HAR_CASES(HAR_ROW_)
#undef HAR_ROW_
};

static bool make_names(struct har_case *c)
{
    bool made = asprintf(&c->key, "%s/%s/%s/%" PRIu64, kind_names[c->kind], c->entry,
                         c->bench->recipe.name, c->seed) >= 0;
    made = made && asprintf(&c->kept, "%s/runs/%s-%s-%s-%" PRIu64, c->lab->out, kind_names[c->kind],
                            c->entry, c->bench->recipe.name, c->seed) >= 0;
    /* A child of a killed harness may still write: each harness has folders of its own. */
    made = made && asprintf(&c->folder, "%s.%d", c->kept, (int)getpid()) >= 0;
    for (int i = 0; made && i < HAR_ROLE_COUNT; i++) {
        const char *const role = har_role_name((enum har_role)i);
        made = asprintf(&c->logs[i], "%s/logs/%s-%s-%s-%" PRIu64 "-%s.log", c->lab->out,
                        kind_names[c->kind], c->entry, c->bench->recipe.name, c->seed, role) >= 0;
        made = made && asprintf(&c->traces[i], "%s/%s.jsonl.zst", c->folder, role) >= 0;
    }
    if (made && c->bench->middle_checkpoint > 0) {
        made = asprintf(&c->resume, "%s/checkpoints/step-%d", c->folder,
                        c->bench->middle_checkpoint) >= 0;
    }
    if (made && c->bench->lockstep) {
        made = asprintf(&c->states, "%s/subject.states", c->folder) >= 0;
    }
    return made;
}

static char *artifact_of(const struct har_case *c, enum har_artifact_kind kind)
{
    const struct har_artifact artifact = {
        .kind = kind, .bench = c->bench, .seed = c->seed, .variant = c->variant};
    return har_artifact_path(&artifact);
}

enum har_status har_case_init(struct har_lab *lab, const struct har_bench *bench,
                              enum har_case_kind kind, const char *entry, uint64_t seed,
                              struct har_variant variant, struct har_case *out,
                              struct har_error *error)
{
    memset(out, 0, sizeof *out);
    out->lab = lab;
    out->bench = bench;
    out->kind = kind;
    out->entry = entry;
    out->seed = seed;
    out->variant = variant;
    out->role = -1;
    out->weights = artifact_of(out, HAR_ARTIFACT_weights);
    out->reference = artifact_of(out, HAR_ARTIFACT_reference);
    out->healthy = artifact_of(out, HAR_ARTIFACT_healthy);
    if (!make_names(out) || out->weights == NULL || out->reference == NULL ||
        out->healthy == NULL) {
        har_case_fini(out);
        return har_fail(error, HAR_EMEMORY, "no memory for case %s", entry);
    }
    return HAR_OK;
}

void har_case_fini(struct har_case *c)
{
    for (int i = 0; i < HAR_ROLE_COUNT; i++) {
        free(c->logs[i]);
        free(c->traces[i]);
        free(c->lines[i]);
    }
    free(c->key);
    free(c->kept);
    free(c->folder);
    free(c->weights);
    free(c->reference);
    free(c->healthy);
    free(c->resume);
    free(c->states);
    memset(c, 0, sizeof *c);
}

void har_case_need(const struct har_case *c, struct har_artifacts *set)
{
    har_artifacts_need(set, c->bench, c->seed, c->variant);
}

/* Time limit from the longest healthy run of the recipe so far. */
static enum har_status find_timeout(struct har_case *c, struct har_error *error)
{
    const struct har_campaign *const campaign = &c->lab->campaign;
    double healthy_s = 0.0;
    const enum har_status status =
        har_store_longest_run(c->lab->store, c->bench->recipe.name, "healthy", &healthy_s, error);
    enum { LANES_SLOWER = 20 }; /* lanes take turns */
    c->timeout_s = campaign->timeout_factor * healthy_s * (c->variant.lanes ? LANES_SLOWER : 1);
    if (!(c->timeout_s >= campaign->timeout_min_s)) {
        c->timeout_s = campaign->timeout_min_s;
    }
    return status;
}

static enum har_status train_command(struct har_case *c, enum har_role role,
                                     struct har_command *command, struct har_error *error)
{
    const bool repeat = role == HAR_ROLE_repeat;
    char *checkpoints = NULL;
    if (role == HAR_ROLE_subject && c->resume != NULL &&
        asprintf(&checkpoints, "%s/checkpoints", c->folder) < 0) {
        return har_fail(error, HAR_EMEMORY, "no memory for case %s", c->key);
    }
    const struct har_train train = {
        .program = c->variant.lanes ? c->lab->programs.train_lanes : c->lab->programs.train,
        .fault = c->entry,
        .weights = c->weights,
        .trace = c->traces[role],
        .checkpoints = checkpoints,
        .resume = role == HAR_ROLE_resumed ? c->resume : NULL,
        .states = role == HAR_ROLE_subject ? c->states : NULL,
        .seed = c->seed,
        .schedule_seed = repeat ? c->seed + HAR_SEED_BLOCK : c->seed,
        .variant = repeat ? har_variant_other(c->variant) : c->variant,
        .threads = repeat ? 2 : 1,
        .full = true,
    };
    har_lab_train_args(c->bench, &train, c->lab->campaign.horizon > 0, &command->args);
    free(checkpoints);
    command->timeout_s = c->timeout_s;
    command->memory_mb = c->lab->campaign.memory_mb;
    return HAR_OK;
}

static void reference_command(const struct har_case *c, struct har_command *command)
{
    const struct har_reference reference = {
        .seed = c->seed, .trace = c->traces[HAR_ROLE_reference], .states = c->states};
    har_artifact_reference_args(c->lab, c->bench, &reference, &command->args);
    command->timeout_s = c->lab->campaign.reference_timeout_s;
}

static enum har_status fill_command(struct har_case *c, enum har_role role,
                                    struct har_command *command, struct har_error *error)
{
    if (role == HAR_ROLE_reference) {
        reference_command(c, command);
    } else {
        const enum har_status status = train_command(c, role, command, error);
        if (status != HAR_OK) {
            return status;
        }
    }
    command->log_path = strdup(c->logs[role]);
    c->lines[role] = har_command_line(command);
    c->role = (int)role;
    return c->lines[role] == NULL || command->log_path == NULL
               ? har_fail(error, HAR_EMEMORY, "no memory for case %s", c->key)
               : HAR_OK;
}

/* The traces of a case in memory; each may be missing. */
struct loaded {
    orc_trace *cached, *healthy;
    orc_trace *runs[HAR_ROLE_COUNT];
    const orc_trace *reference; /* the cached one, or that of this case */
};

static void loaded_fini(struct loaded *traces)
{
    orc_trace_free(traces->cached);
    orc_trace_free(traces->healthy);
    for (int i = 0; i < HAR_ROLE_COUNT; i++) {
        orc_trace_free(traces->runs[i]);
    }
}

/* A run whose trace cannot be read is missing: it may have died before its header. */
static enum har_status load_traces(const struct har_case *c, struct loaded *traces,
                                   struct har_error *error)
{
    struct orc_error cause = {{0}};
    enum har_status status = HAR_OK;
    if (c->states == NULL) {
        status = har_artifact_read(c->bench, c->reference, &traces->cached, error);
    }
    if (status == HAR_OK) {
        status = har_artifact_read(c->bench, c->healthy, &traces->healthy, error);
    }
    if (status != HAR_OK) {
        return status;
    }
    for (int i = 0; i < HAR_ROLE_COUNT; i++) {
        if (c->ends[i].end != HAR_END_not_run && access(c->traces[i], R_OK) == 0 &&
            orc_trace_read(c->traces[i], &traces->runs[i], &cause) != ORC_OK) {
            traces->runs[i] = NULL;
        }
    }
    traces->reference = c->states == NULL ? traces->cached : traces->runs[HAR_ROLE_reference];
    return HAR_OK;
}

/* Only a run that went to its end speaks for repeat and resume: a death is no oracle's credit. */
static const orc_trace *whole(const struct har_case *c, const struct loaded *traces,
                              enum har_role role)
{
    return c->ends[role].end == HAR_END_done ? traces->runs[role] : NULL;
}

static void find_reach(const struct har_case *c, const struct loaded *traces,
                       struct har_facts *facts)
{
    facts->reached = -1;
    facts->reach_known = true;
    for (int i = 0; i < HAR_TRAINERS; i++) {
        if (c->ends[i].end == HAR_END_not_run) {
            continue;
        }
        const bool complete = traces->runs[i] != NULL && orc_trace_ended(traces->runs[i]) &&
                              orc_trace_last_step(traces->runs[i]) > 0;
        facts->reach_known = facts->reach_known && complete;
        facts->cut = facts->cut || (c->ends[i].end == HAR_END_done && !complete);
        const int step = traces->runs[i] != NULL ? orc_trace_fault_reached(traces->runs[i]) : -1;
        if (step >= 0 && (facts->reached < 0 || step < facts->reached)) {
            facts->reached = step;
        }
    }
    const orc_trace *const own = traces->runs[HAR_ROLE_reference];
    facts->cut = facts->cut || (c->ends[HAR_ROLE_reference].end == HAR_END_done &&
                                (own == NULL || !orc_trace_ended(own)));
    facts->reach_known = facts->reach_known && strcmp(c->entry, "none") != 0;
}

/* The subject against the healthy run; then the resumed run, which shows faults of resuming. */
static void find_infection(const struct loaded *traces, struct har_facts *facts)
{
    static const enum har_role order[] = {HAR_ROLE_subject, HAR_ROLE_resumed};
    for (size_t i = 0; facts->infected == 0 && i < sizeof order / sizeof order[0]; i++) {
        const orc_trace *const run = traces->runs[order[i]];
        if (run != NULL && orc_trace_last_step(run) > 0) {
            facts->infected = orc_trace_first_difference(traces->healthy, run, NULL);
        }
    }
}

static enum har_status judge(const struct har_case *c, struct loaded *traces,
                             struct har_facts *facts, struct har_error *error)
{
    memset(facts, 0, sizeof *facts);
    for (int i = 0; i < HAR_ROLE_COUNT; i++) {
        facts->ends[i] = c->ends[i].end;
    }
    memcpy(facts->enabled, c->lab->enabled, sizeof facts->enabled);
    find_reach(c, traces, facts);
    if (c->kind == HAR_CASE_alarm) {
        facts->reached = 0; /* no site is armed; equal seeds must still give equal hashes */
    }
    if (traces->runs[HAR_ROLE_subject] == NULL) {
        return HAR_OK;
    }
    find_infection(traces, facts);
    const struct orc_case judged = {
        .subject = traces->runs[HAR_ROLE_subject],
        .reference = traces->reference,
        .repeat = whole(c, traces, HAR_ROLE_repeat),
        .resumed = whole(c, traces, HAR_ROLE_resumed),
    };
    struct orc_error cause = {{0}};
    const enum orc_status status = orc_judge(&judged, c->bench->bounds, facts->verdicts, &cause);
    if (status == ORC_EMEMORY) {
        return har_fail(error, HAR_EMEMORY, "%s: %s", c->key, cause.text);
    }
    facts->judged = status == ORC_OK;
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        if (!facts->enabled[i]) {
            facts->verdicts[i] = (struct orc_verdict){.applicable = false};
        }
    }
    return HAR_OK;
}

/* Adds what the program said last to the sentence of a dead run. */
static void explain_death(const struct har_case *c, struct har_decision *decision)
{
    char line[200];
    for (int i = 0; i < HAR_ROLE_COUNT; i++) { /* the trainer's first */
        const enum har_end end = c->ends[i].end;
        if (decision->first_check < 0 && end != HAR_END_done && end != HAR_END_not_run) {
            har_lab_last_line(c->logs[i], line, sizeof line);
            const size_t used = strlen(decision->detail);
            snprintf(decision->detail + used, sizeof decision->detail - used, "%s%s",
                     line[0] != '\0' ? ": " : "", line);
            break;
        }
    }
    har_text_clean(decision->detail);
}

/* The command that makes this result again, bounds and all: the options as given, narrowed to this
 * fault and to the repeats up to this one (seeds, and with them the bounds, count from the first).
 */
static char *reproduce_line(const struct har_case *c)
{
    struct har_text text = {0};
    struct har_args words = {0};
    struct har_options options = c->lab->options;
    const bool alarm = c->kind == HAR_CASE_alarm;
    options.out = "repro";
    options.keep_traces = true;
    options.jobs = options.slurm = -1;
    options.shard = options.baseline = options.changed_since = NULL;
    options.iterate = options.resume = options.dry_run = options.quiet = false;
    if (!alarm) {
        options.faults = (struct har_patterns){.items = {c->entry}, .count = 1};
        options.families.count = 0;
        options.doses = NULL;
        options.repeats = (int)(c->seed - c->lab->campaign.seed) + 1;
    }
    har_options_words(alarm ? HAR_SUBCOMMAND_null : HAR_SUBCOMMAND_run, &options, &words);
    har_text_add(&text, "faultline");
    for (size_t i = 0; i < words.count; i++) {
        har_text_add(&text, " ");
        har_text_add_shell(&text, words.items[i]);
    }
    if (words.failed || text.failed) {
        har_text_fini(&text);
    }
    har_args_fini(&words);
    return text.data;
}

/* A healthy case is quiet or an alarm; a second run with other bits is an alarm as well. */
static const char *outcome_text(const struct har_case *c, enum har_outcome outcome)
{
    if (c->kind != HAR_CASE_alarm) {
        return har_outcome_name(outcome);
    }
    switch (outcome) {
    case HAR_OUTCOME_detected:
    case HAR_OUTCOME_missed:
        return "alarm";
    case HAR_OUTCOME_not_reached:
    case HAR_OUTCOME_not_infected:
        return "quiet";
    default:
        return har_outcome_name(outcome);
    }
}

/* First stage at which the subject parts from the reference, with the campaign's bounds: what
 * `faultline diff` would blame. False when there is nothing to compare. */
static bool find_blame(const struct har_case *c, const struct loaded *traces,
                       struct orc_divergence *out)
{
    struct orc_error ignored;
    const orc_trace *const subject = traces->runs[HAR_ROLE_subject];
    memset(out, 0, sizeof *out);
    return c->kind != HAR_CASE_alarm && subject != NULL && traces->reference != NULL &&
           c->bench->bounds != NULL &&
           orc_diff(subject, traces->reference, c->bench->bounds, out, &ignored) == ORC_OK;
}

static enum har_status store_case(const struct har_case *c, const struct loaded *traces,
                                  const struct har_facts *facts,
                                  const struct har_decision *decision, struct har_error *error)
{
    struct orc_divergence blame;
    const bool blamed = find_blame(c, traces, &blame);
    char *const curve =
        har_curve_json(traces->runs[HAR_ROLE_subject], traces->healthy, traces->reference);
    struct har_run_record runs[HAR_ROLE_COUNT];
    size_t run_count = 0;
    double seconds = 0.0;
    for (int i = 0; i < HAR_ROLE_COUNT; i++) {
        if (c->ends[i].end != HAR_END_not_run) {
            runs[run_count++] = (struct har_run_record){.role = har_role_name((enum har_role)i),
                                                        .command = c->lines[i],
                                                        .log = c->logs[i],
                                                        .end = c->ends[i]};
            seconds += c->ends[i].seconds;
        }
    }
    char *const reproduce = reproduce_line(c);
    const struct har_case_record record = {
        .key = c->key,
        .kind = kind_names[c->kind],
        .entry = c->entry,
        .recipe = c->bench->recipe.name,
        .seed = c->seed,
        .outcome = outcome_text(c, decision->outcome),
        .first_check = decision->first_check >= 0
                           ? orc_check_name((enum orc_check_id)decision->first_check)
                           : "",
        .detail = decision->detail,
        .reproduce = reproduce != NULL ? reproduce : "",
        .reached = facts->reached,
        .infected = facts->infected,
        .detected = decision->detected,
        .seconds = seconds,
        .runs = runs,
        .run_count = run_count,
        .verdicts = facts->judged ? facts->verdicts : NULL,
        .curve = curve,
        .blame = blamed ? &blame : NULL,
    };
    const enum har_status status = har_store_put_case(c->lab->store, &record, error);
    free(reproduce);
    free(curve);
    return status;
}

/* The planted fault's traces are needed by the self-test, others if asked for. */
static void keep_or_remove(const struct har_case *c)
{
    har_lab_remove(c->lab->out, c->kept);
    if (!(c->lab->keep_traces || c->kind == HAR_CASE_planted) || rename(c->folder, c->kept) != 0) {
        har_lab_remove(c->lab->out, c->folder);
    }
}

static enum har_status finish_case(struct har_case *c, struct har_error *error)
{
    struct loaded traces = {0};
    struct har_facts facts;
    struct har_decision decision;
    const double start_s = har_clock_s();
    enum har_status status = load_traces(c, &traces, error);
    if (status == HAR_OK) {
        status = judge(c, &traces, &facts, error);
    }
    const double judged_s = har_clock_s();
    if (status == HAR_OK) {
        har_outcome_decide(&facts, &decision);
        explain_death(c, &decision);
        keep_or_remove(c); /* first: what is stored as kept is there, even after kill -9 */
        status = store_case(c, &traces, &facts, &decision, error);
    }
    loaded_fini(&traces);
    for (int i = 0; i < HAR_ROLE_COUNT; i++) {
        c->lab->children_s += c->ends[i].seconds;
    }
    c->lab->checks_s += judged_s - start_s;
    c->lab->store_s += har_clock_s() - judged_s;
    return status;
}

/* --first-verdict: whether the subject alone fires a check. */
static enum har_status subject_is_enough(struct har_case *c, bool *enough, struct har_error *error)
{
    struct loaded traces = {0};
    struct har_facts facts;
    struct har_decision decision;
    enum har_status status = load_traces(c, &traces, error);
    if (status == HAR_OK) {
        status = judge(c, &traces, &facts, error);
    }
    if (status == HAR_OK) {
        har_outcome_decide(&facts, &decision);
        *enough = decision.outcome == HAR_OUTCOME_detected;
    }
    loaded_fini(&traces);
    return status;
}

/* The role that follows; HAR_ROLE_COUNT when there is none. A subject that died needs no
 * companions, but a reference of its own judges the steps before the death. */
static enum har_role next_role(const struct har_case *c)
{
    if (c->role == HAR_ROLE_subject && c->states != NULL && access(c->states, R_OK) == 0) {
        return HAR_ROLE_reference;
    }
    if (c->ends[HAR_ROLE_subject].end != HAR_END_done || c->stop_early) {
        return HAR_ROLE_COUNT;
    }
    if (c->role == HAR_ROLE_subject || c->role == HAR_ROLE_reference) {
        return HAR_ROLE_repeat;
    }
    if (c->role == HAR_ROLE_repeat && c->resume != NULL && access(c->resume, R_OK) == 0) {
        return HAR_ROLE_resumed;
    }
    return HAR_ROLE_COUNT;
}

/* The self-test replays the planted fault's trace: without it, that case runs again. */
static bool trace_lost(const struct har_case *c)
{
    char *path = NULL;
    if (c->kind != HAR_CASE_planted || asprintf(&path, "%s/subject.jsonl.zst", c->kept) < 0) {
        return false;
    }
    const bool lost = access(path, R_OK) != 0;
    free(path);
    return lost;
}

static enum har_status case_next(void *job, const struct har_exit *last,
                                 struct har_command *command, bool *more, struct har_error *error)
{
    struct har_case *const c = job;
    enum har_status status = HAR_OK;
    *more = false;
    if (last == NULL) {
        bool stored = false;
        status = har_store_find_case(c->lab->store, c->key, &stored, NULL, error);
        if (status != HAR_OK || (stored && !trace_lost(c))) {
            return status;
        }
        status = har_lab_make_folder(c->folder, error);
        if (status == HAR_OK) {
            status = find_timeout(c, error);
        }
        *more = status == HAR_OK;
        return status == HAR_OK ? fill_command(c, HAR_ROLE_subject, command, error) : status;
    }
    c->ends[c->role] = *last;
    if (c->role == HAR_ROLE_reference) {
        har_lab_remove(c->lab->out, c->states);
    }
    if (c->role == (c->states != NULL ? HAR_ROLE_reference : HAR_ROLE_subject) &&
        c->lab->campaign.first_verdict) {
        status = subject_is_enough(c, &c->stop_early, error);
    }
    const enum har_role role = next_role(c);
    if (status == HAR_OK && role != HAR_ROLE_COUNT) {
        *more = true;
        return fill_command(c, role, command, error);
    }
    return status == HAR_OK ? finish_case(c, error) : status;
}

enum har_status har_cases_run(struct har_lab *lab, struct har_case *cases, size_t count,
                              const char *label, struct har_error *error)
{
    char *logs = NULL;
    void **const jobs = calloc(count + 1, sizeof *jobs);
    if (jobs == NULL || asprintf(&logs, "%s/logs", lab->out) < 0) {
        free(jobs);
        return har_fail(error, HAR_EMEMORY, "no memory for %zu cases", count);
    }
    for (size_t i = 0; i < count; i++) {
        jobs[i] = &cases[i];
    }
    enum har_status status = har_lab_make_folder(logs, error);
    if (status == HAR_OK) {
        status = har_pool_run(&lab->pool, jobs, count, case_next, label, error);
    }
    free(logs);
    free(jobs);
    return status;
}

enum har_status har_cases_stored(struct har_lab *lab, const struct har_case *cases, size_t count,
                                 size_t *stored, struct har_error *error)
{
    *stored = 0;
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        const enum har_status status =
            har_store_find_case(lab->store, cases[i].key, &found, NULL, error);
        if (status != HAR_OK) {
            return status;
        }
        *stored += found;
    }
    return HAR_OK;
}
