/* Subject, repeat, resumed run, then the verdict, as one chain of children.
 * Called by the stages of a campaign; must not know their order. */
#include "har_case.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "har_case_judge.h"
#include "har_curve.h"
#include "har_external.h"

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
        made = made && asprintf(&c->traces[i], "%s/%s%s", c->folder, role, c->bench->suffix) >= 0;
    }
    made = made && asprintf(&c->answer, "%s.answer", c->logs[HAR_ROLE_external]) >= 0;
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
    out->variant = bench->own ? (struct har_variant){.schedule = HAR_SCHEDULE_fifo} : variant;
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
    free(c->answer);
    free(c->key);
    free(c->kept);
    free(c->folder);
    free(c->weights);
    free(c->reference);
    free(c->healthy);
    free(c->resume);
    free(c->states);
    free(c->look_line);
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

/* Adds what the program said last to the sentence of a dead run. */
static void explain_death(const struct har_case *c, struct har_decision *decision)
{
    char line[200];
    for (int i = 0; i < HAR_ROLE_external; i++) { /* the trainer's first */
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

/* blame NULL = not compared. */
static enum har_status store_case(const struct har_case *c, const struct har_judged *judged,
                                  const struct har_decision *decision,
                                  const struct orc_divergence *blame, struct har_error *error)
{
    const struct har_facts *const facts = &judged->facts;
    char *const curve = c->looking ? NULL
                                   : har_curve_json(judged->runs[HAR_ROLE_subject], judged->healthy,
                                                    judged->reference);
    struct har_run_record runs[HAR_ROLE_COUNT + 1];
    size_t run_count = 0;
    double seconds = 0.0;
    if (c->look_line != NULL) {
        runs[run_count++] = (struct har_run_record){.role = "look",
                                                    .command = c->look_line,
                                                    .log = c->logs[HAR_ROLE_subject],
                                                    .end = c->look};
        seconds += c->look.seconds;
    }
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
        .blame = blame,
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

static enum har_status finish_case(struct har_case *c, const struct har_judged *judged,
                                   struct har_error *error)
{
    struct har_decision decision;
    struct orc_divergence blame;
    const double judged_s = har_spent_clock_s();
    const bool blamed = har_case_blame(c, judged, &blame);
    const double start_s = har_spent_clock_s();
    har_outcome_decide(&judged->facts, &decision);
    explain_death(c, &decision);
    keep_or_remove(c); /* first: what is stored as kept is there, even after kill -9 */
    const enum har_status status = store_case(c, judged, &decision, blamed ? &blame : NULL, error);
    c->lab->spent.work_s[HAR_WORK_checks] += start_s - judged_s;
    c->lab->spent.work_s[HAR_WORK_store] += har_spent_clock_s() - start_s;
    c->lab->spent.cases += status == HAR_OK && c->kind == HAR_CASE_fault;
    return status;
}

/* Whether a fault's run stops at its verdict: at the first one if the campaign asks for that, else
 * once every enabled check has fired, which those that compare with companions do last. An oracle
 * or a trainer of the user is given whole runs. */
static bool may_stop(const struct har_case *c)
{
    const bool *const enabled = c->lab->enabled;
    return c->kind == HAR_CASE_fault && !c->bench->own && !enabled[ORC_CHECK_external] &&
           (c->lab->campaign.first_verdict ||
            (!enabled[ORC_CHECK_repeat] && !enabled[ORC_CHECK_resume]));
}

/* Whether nothing that the runs still to come show, from `next` on, can change the verdict. */
static bool is_settled(const struct har_case *c, const struct har_facts *facts, enum har_role next)
{
    const bool *const enabled = c->lab->enabled;
    int step = c->looking ? HAR_LOOK_BELIEVED + 1 : INT_MAX;
    enum orc_check_id check = (enum orc_check_id)0;
    if (enabled[ORC_CHECK_repeat] && next != HAR_ROLE_resumed) {
        step = 1;
        check = ORC_CHECK_repeat;
    } else if (enabled[ORC_CHECK_resume] && c->resume != NULL && !c->looking) {
        step = c->bench->middle_checkpoint + 1;
        check = ORC_CHECK_resume;
    }
    return har_outcome_is_settled(facts, c->lab->campaign.first_verdict, step, check);
}

/* The role that follows; HAR_ROLE_COUNT when there is none. A look is followed by the whole run; a
 * subject that died needs no companions, but a reference of its own judges the steps before the
 * death, and the user's oracle sees what is left. */
static enum har_role next_role(const struct har_case *c)
{
    const enum har_end subject = c->ends[HAR_ROLE_subject].end;
    const bool repeats = !c->bench->own || c->lab->enabled[ORC_CHECK_repeat];
    if (c->role == HAR_ROLE_subject && c->states != NULL && access(c->states, R_OK) == 0) {
        return HAR_ROLE_reference;
    }
    if (c->looking) {
        return HAR_ROLE_subject;
    }
    if (c->role == HAR_ROLE_external) {
        return HAR_ROLE_COUNT;
    }
    if (subject == HAR_END_done && repeats &&
        (c->role == HAR_ROLE_subject || c->role == HAR_ROLE_reference)) {
        return HAR_ROLE_repeat;
    }
    if (subject == HAR_END_done && c->role == HAR_ROLE_repeat && c->resume != NULL &&
        access(c->resume, R_OK) == 0) {
        return HAR_ROLE_resumed;
    }
    return c->lab->enabled[ORC_CHECK_external] && subject != HAR_END_no_verdict &&
                   access(c->traces[HAR_ROLE_subject], R_OK) == 0
               ? HAR_ROLE_external
               : HAR_ROLE_COUNT;
}

/* The self-test replays the planted fault's trace: without it, that case runs again. */
static bool trace_lost(const struct har_case *c)
{
    char *path = NULL;
    if (c->kind != HAR_CASE_planted ||
        asprintf(&path, "%s/subject%s", c->kept, c->bench->suffix) < 0) {
        return false;
    }
    const bool lost = access(path, R_OK) != 0;
    free(path);
    return lost;
}

static enum har_status start_case(struct har_case *c, struct har_command *command, bool *more,
                                  struct har_error *error)
{
    enum har_status status = har_lab_make_folder(c->folder, error);
    if (status == HAR_OK) {
        status = find_timeout(c, error);
    }
    *more = status == HAR_OK;
    /* In lockstep a look would need a reference of its own. */
    c->looking = may_stop(c) && c->bench->steps > HAR_LOOK_STEPS && c->states == NULL;
    return status == HAR_OK ? har_case_command(c, HAR_ROLE_subject, command, error) : status;
}

/* Before the run that follows: a look that was not enough is one run more, not the subject, and its
 * trace must not pass for the subject's. */
static void leave_look(struct har_case *c)
{
    if (c->looking) {
        (void)unlink(c->traces[HAR_ROLE_subject]);
        c->look = c->ends[HAR_ROLE_subject];
        c->look_line = c->lines[HAR_ROLE_subject];
        c->lines[HAR_ROLE_subject] = NULL;
        c->looking = false;
    }
}

static enum har_work work_of(enum har_role role)
{
    return role == HAR_ROLE_reference  ? HAR_WORK_reference
           : role == HAR_ROLE_external ? HAR_WORK_checks
                                       : HAR_WORK_trainer;
}

/* Whether a run failed to write because the results' disk is full: that says nothing about this
 * case, which is not stored and runs again when there is room. Runs side by side may have removed
 * tens of MB in the meantime. */
static bool disk_is_full(const struct har_case *c, const struct har_exit *last)
{
    enum { LEAST_FREE = 64 << 20 };
    struct statvfs disk;
    return last->code == har_status_exit_code(HAR_EIO) && statvfs(c->lab->out, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize < LEAST_FREE;
}

static enum har_status case_next(void *job, const struct har_exit *last,
                                 struct har_command *command, bool *more, struct har_error *error)
{
    struct har_case *const c = job;
    *more = false;
    if (last == NULL) {
        return start_case(c, command, more, error);
    }
    if (disk_is_full(c, last)) {
        return har_fail(error, HAR_EIO, "%s: the disk is full: %s could not write (log %s)",
                        c->lab->out, c->key, c->logs[c->role]);
    }
    c->ends[c->role] = *last;
    c->lab->spent.work_s[work_of((enum har_role)c->role)] += last->processor_s;
    if (c->role == HAR_ROLE_reference) {
        har_lab_remove(c->lab->out, c->states);
    }
    if (c->role == HAR_ROLE_external && last->end != HAR_END_timed_out) {
        /* Its exit codes are not the trainer's. */
        c->ends[c->role].end = har_external_spoke(last) ? HAR_END_done : HAR_END_no_verdict;
    }
    const enum har_role role = next_role(c);
    struct har_judged judged;
    enum har_status status = HAR_OK;
    bool settled = role == HAR_ROLE_COUNT;
    if (settled || (may_stop(c) && role != HAR_ROLE_reference)) {
        status = har_case_judge(c, &judged, error);
        settled = settled || (status == HAR_OK && is_settled(c, &judged.facts, role));
        if (status == HAR_OK && settled) {
            status = finish_case(c, &judged, error);
        }
        har_judged_fini(&judged);
    }
    if (status != HAR_OK || settled) {
        return status;
    }
    leave_look(c);
    *more = true;
    return har_case_command(c, role, command, error);
}

/* The cases that are still to run. */
static enum har_status list_jobs(struct har_case *cases, size_t count, void **jobs,
                                 size_t *job_count, struct har_error *error)
{
    *job_count = 0;
    for (size_t i = 0; i < count; i++) {
        bool stored = false;
        const enum har_status status =
            har_store_find_case(cases[i].lab->store, cases[i].key, &stored, NULL, error);
        if (status != HAR_OK) {
            return status;
        }
        if (!stored || trace_lost(&cases[i])) {
            jobs[(*job_count)++] = &cases[i];
        }
    }
    return HAR_OK;
}

enum har_status har_cases_run(struct har_lab *lab, struct har_case *cases, size_t count,
                              const char *label, struct har_error *error)
{
    char *logs = NULL;
    size_t job_count = 0;
    void **const jobs = calloc(count + 1, sizeof *jobs);
    if (jobs == NULL || asprintf(&logs, "%s/logs", lab->out) < 0) {
        free(jobs);
        return har_fail(error, HAR_EMEMORY, "no memory for %zu cases", count);
    }
    enum har_status status = har_lab_make_folder(logs, error);
    if (status == HAR_OK) {
        status = list_jobs(cases, count, jobs, &job_count, error);
    }
    if (status == HAR_OK) {
        status = har_pool_run(&lab->pool, jobs, job_count, case_next, label, error);
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
