/* Reads the traces of a case and has the oracle judge them.
 * Called by har_case.c; must not know how runs are started or where facts are kept. */
#include "har_case_judge.h"

#include <string.h>
#include <unistd.h>

#include "har_external.h"

void har_judged_fini(struct har_judged *judged)
{
    for (int i = 0; i < HAR_ROLE_COUNT; i++) {
        orc_trace_free(judged->runs[i]);
    }
    memset(judged, 0, sizeof *judged);
}

/* A run whose trace cannot be read is missing: it may have died before its header. */
static enum har_status load_traces(const struct har_case *c, struct har_judged *traces,
                                   struct har_error *error)
{
    struct orc_error cause = {{0}};
    enum har_status status = HAR_OK;
    if (c->states == NULL && c->bench->reference != HAR_REFERENCE_none) {
        status = har_artifact_borrow(c->lab, c->bench, c->reference, &traces->reference, error);
    }
    if (status == HAR_OK) {
        status = har_artifact_borrow(c->lab, c->bench, c->healthy, &traces->healthy, error);
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
    if (c->states != NULL) {
        traces->reference = traces->runs[HAR_ROLE_reference];
    }
    return HAR_OK;
}

/* Only a run that went to its end speaks for repeat and resume: a death is no oracle's credit. */
static const orc_trace *whole(const struct har_case *c, const struct har_judged *traces,
                              enum har_role role)
{
    return c->ends[role].end == HAR_END_done ? traces->runs[role] : NULL;
}

static void find_reach(const struct har_case *c, const struct har_judged *traces,
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

/* The subject against the healthy run; then the resumed run, which shows faults of resuming. A
 * trainer of the user need not hash its state: then the numbers of its trace stand for it. */
static void find_infection(const struct har_case *c, const struct har_judged *traces,
                           struct har_facts *facts)
{
    static const enum har_role order[] = {HAR_ROLE_subject, HAR_ROLE_resumed};
    const orc_trace *const subject = traces->runs[HAR_ROLE_subject];
    struct orc_divergence divergence;
    struct orc_error ignored;
    if (c->bench->own &&
        orc_diff(subject, traces->healthy, NULL, &divergence, &ignored) == ORC_OK &&
        divergence.found) {
        facts->infected = divergence.step;
    }
    for (size_t i = 0; facts->infected == 0 && i < sizeof order / sizeof order[0]; i++) {
        const orc_trace *const run = traces->runs[order[i]];
        if (run != NULL && orc_trace_last_step(run) > 0) {
            facts->infected = orc_trace_first_difference(traces->healthy, run, NULL);
        }
    }
}

static enum har_status judge(const struct har_case *c, struct har_judged *judged,
                             struct har_error *error)
{
    struct har_facts *const facts = &judged->facts;
    for (int i = 0; i < HAR_ROLE_COUNT; i++) {
        facts->ends[i] = c->ends[i].end;
    }
    memcpy(facts->enabled, c->lab->enabled, sizeof facts->enabled);
    find_reach(c, judged, facts);
    if (c->kind == HAR_CASE_alarm) {
        facts->reached = 0; /* no site is armed; equal seeds must still give equal hashes */
    }
    if (judged->runs[HAR_ROLE_subject] == NULL) {
        return HAR_OK;
    }
    find_infection(c, judged, facts);
    const bool asked = c->ends[HAR_ROLE_external].end != HAR_END_not_run;
    struct orc_verdict said = {.applicable = false};
    const int last = orc_trace_last_step(judged->runs[HAR_ROLE_subject]);
    if (asked && har_external_read(&c->ends[HAR_ROLE_external], c->answer, last, &said, error)) {
        return HAR_EMEMORY;
    }
    const struct orc_case runs = {
        .subject = judged->runs[HAR_ROLE_subject],
        .reference = judged->reference,
        .repeat = whole(c, judged, HAR_ROLE_repeat),
        .resumed = whole(c, judged, HAR_ROLE_resumed),
        .external = asked ? &said : NULL,
    };
    struct orc_error cause = {{0}};
    const enum orc_status status = orc_judge(&runs, c->bench->bounds, facts->verdicts, &cause);
    if (status == ORC_EMEMORY) {
        return har_fail(error, HAR_EMEMORY, "%s: %s", c->key, cause.text);
    }
    facts->judged = status == ORC_OK;
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        if (!facts->enabled[i]) {
            facts->verdicts[i] = (struct orc_verdict){.applicable = false};
        }
    }
    if (asked && !said.applicable) {
        facts->external_lost = true;
        facts->verdicts[ORC_CHECK_external] = said;
    }
    if (c->looking) {
        har_outcome_trim(facts, HAR_LOOK_BELIEVED);
    }
    return HAR_OK;
}

bool har_case_blame(const struct har_case *c, const struct har_judged *judged,
                    struct orc_divergence *out)
{
    struct orc_error ignored;
    const orc_trace *const subject = judged->runs[HAR_ROLE_subject];
    memset(out, 0, sizeof *out);
    return c->kind != HAR_CASE_alarm && !c->looking && subject != NULL &&
           judged->reference != NULL && c->bench->bounds != NULL &&
           orc_diff(subject, judged->reference, c->bench->bounds, out, &ignored) == ORC_OK;
}

enum har_status har_case_judge(const struct har_case *c, struct har_judged *out,
                               struct har_error *error)
{
    const double start_s = har_spent_clock_s();
    memset(out, 0, sizeof *out);
    enum har_status status = load_traces(c, out, error);
    if (status == HAR_OK) {
        status = judge(c, out, error);
    }
    c->lab->spent.work_s[HAR_WORK_checks] += har_spent_clock_s() - start_s;
    return status;
}
