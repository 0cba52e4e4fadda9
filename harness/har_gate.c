/* The gate's rules.
 * Called by cmd_gate.c; must not know options or files. */
#include "har_gate.h"

#include <math.h>
#include <string.h>

/* A rate that does not exist is below every limit: a campaign that tested nothing is not green. */
static enum har_status judge_rate(const char *what, double rate, double limit,
                                  struct har_text *findings)
{
    if (limit < 0.0 || 100.0 * rate >= limit) {
        return HAR_OK;
    }
    if (isnan(rate)) {
        har_text_addf(findings, "%s: no fault counted, %g %% wanted\n", what, limit);
    } else {
        har_text_addf(findings, "%s: detection rate %.2f %% is below %g %%\n", what, 100.0 * rate,
                      limit);
    }
    return HAR_EGATE;
}

static enum har_status judge_expectations(const struct har_results *r, struct har_text *findings)
{
    enum har_status status = HAR_OK;
    for (size_t i = 0; i < r->count; i++) {
        const struct har_result *const e = &r->entries[i];
        if (e->outcome != HAR_OUTCOME_detected) {
            continue;
        }
        if (strcmp(e->expectation, "EQUIVALENT") == 0) {
            har_text_addf(findings, "%s is declared EQUIVALENT but is detected\n", e->id);
            status = HAR_EGATE;
        } else if (strcmp(e->expectation, "GAP") == 0) {
            har_text_addf(findings, "%s is declared GAP and is detected now: declare it KILL\n",
                          e->id);
        }
    }
    return status;
}

/* The entry of the known misses that means this line of the plan, NULL when there is none. */
static struct har_known_miss *known_of(const struct har_known *known, const struct har_result *e)
{
    for (size_t i = 0; known != NULL && i < known->count; i++) {
        if (har_text_matches(known->items[i].fault, e->id) ||
            har_text_matches(known->items[i].fault, e->fault)) {
            return &known->items[i];
        }
    }
    return NULL;
}

enum har_gate_place har_gate_place(const struct har_result *e, const struct har_limits *limits)
{
    if (!har_results_counts(e) || e->outcome == HAR_OUTCOME_detected) {
        return HAR_GATE_fine;
    }
    const struct har_baseline_entry *const before =
        limits->baseline != NULL ? har_baseline_find(limits->baseline, e->id) : NULL;
    if (before != NULL && before->outcome == HAR_OUTCOME_detected) {
        return HAR_GATE_newly_missed;
    }
    const struct har_known_miss *const known = known_of(limits->known, e);
    if (known == NULL) {
        return HAR_GATE_missed;
    }
    return known->day < limits->today ? HAR_GATE_expired : HAR_GATE_known;
}

static enum har_status judge_entry(const struct har_result *e, const struct har_limits *limits,
                                   struct har_text *findings)
{
    struct har_known_miss *const known = known_of(limits->known, e);
    if (known != NULL) {
        known->used++;
    }
    switch (har_gate_place(e, limits)) {
    case HAR_GATE_newly_missed:
        har_text_addf(findings, "%s is %s; %s has it detected\n", e->id,
                      har_outcome_name(e->outcome), limits->baseline->path);
        return HAR_EGATE;
    case HAR_GATE_expired:
        har_text_addf(findings, "%s is %s; it was known until %s: %s\n", e->id,
                      har_outcome_name(e->outcome), known->expires, known->reason);
        return HAR_EGATE;
    case HAR_GATE_known:
        har_text_addf(findings, "%s is %s, known until %s: %s\n", e->id,
                      har_outcome_name(e->outcome), known->expires, known->reason);
        return HAR_OK;
    case HAR_GATE_missed:
        if (limits->known == NULL) {
            return HAR_OK; /* the rate decides */
        }
        har_text_addf(findings, "%s is %s and no known miss\n", e->id,
                      har_outcome_name(e->outcome));
        return HAR_EGATE;
    case HAR_GATE_fine:
        break;
    }
    if (known != NULL && e->outcome == HAR_OUTCOME_detected) {
        har_text_addf(findings, "%s is a known miss and is detected now: remove it\n", e->id);
    }
    return HAR_OK;
}

static enum har_status judge_entries(const struct har_results *r, const struct har_limits *limits,
                                     struct har_text *findings)
{
    enum har_status status = HAR_OK;
    for (size_t i = 0; i < r->count; i++) {
        status = har_status_worse(status, judge_entry(&r->entries[i], limits, findings));
    }
    for (size_t i = 0; limits->known != NULL && i < limits->known->count; i++) {
        if (limits->known->items[i].used == 0) {
            har_text_addf(findings, "known miss %s: no fault of this plan\n",
                          limits->known->items[i].fault);
        }
    }
    return status;
}

/* A baseline says nothing about another campaign, nor about one that shares no fault with it. */
static enum har_status judge_baseline(const struct har_results *r,
                                      const struct har_baseline *baseline,
                                      struct har_text *findings)
{
    size_t common = 0;
    if (baseline == NULL) {
        return HAR_OK;
    }
    for (size_t i = 0; i < r->count; i++) {
        common += har_baseline_find(baseline, r->entries[i].id) != NULL;
    }
    if (strcmp(baseline->campaign, r->name) != 0 || (common == 0 && r->count > 0)) {
        har_text_addf(findings, "%s: is of campaign %s with %zu of these %zu faults; this is %s\n",
                      baseline->path, baseline->campaign, common, r->count, r->name);
        return HAR_EMISMATCH;
    }
    if (common < baseline->count) {
        har_text_addf(findings, "%zu faults of %s are not in this plan\n", baseline->count - common,
                      baseline->path);
    }
    return HAR_OK;
}

static enum har_status judge_counts(const struct har_results *r, const struct har_limits *limits,
                                    struct har_text *findings)
{
    const struct har_summary *const s = &r->summary;
    const size_t lost = s->outcomes[HAR_OUTCOME_no_verdict] + s->healthy_lost;
    const size_t lost_most = limits->max_no_verdict > 0 ? (size_t)limits->max_no_verdict : 0;
    const size_t alarms_most = limits->max_false_alarms > 0 ? (size_t)limits->max_false_alarms : 0;
    enum har_status status = HAR_OK;
    if (s->false_alarms > alarms_most) {
        har_text_addf(findings, "false alarms: %zu of %zu healthy runs, at most %zu allowed\n",
                      s->false_alarms, s->healthy_runs, alarms_most);
        status = HAR_EALARM;
    }
    if (lost > lost_most) {
        har_text_addf(findings, "without verdict: %zu, at most %zu allowed\n", lost, lost_most);
        status = har_status_worse(status, HAR_EINCOMPLETE);
    }
    if (r->count == 0 && r->selection[0] != '\0') {
        har_text_addf(findings, "no fault to run: %s\n", r->selection);
    } else if (r->count == 0) {
        har_text_add(findings, "the stored plan is empty\n");
        status = har_status_worse(status, HAR_EINCOMPLETE);
    }
    if (r->shard[0] != '\0') {
        har_text_addf(findings, "only shard %s; faultline merge joins all of them\n", r->shard);
        status = har_status_worse(status, HAR_EINCOMPLETE);
    }
    return status;
}

enum har_status har_gate_judge(const struct har_results *r, const struct har_limits *limits,
                               struct har_text *findings)
{
    enum har_status status = judge_counts(r, limits, findings);
    if (strncmp(r->controls, "passed", strlen("passed")) != 0) {
        const bool tried = r->controls[0] != '\0';
        har_text_addf(findings, "controls: %s\n", tried ? r->controls : "not finished");
        status = har_status_worse(status, tried ? HAR_ECONTROL : HAR_EINCOMPLETE);
    } else if (r->finished[0] == '\0') {
        har_text_add(findings, "the campaign did not come to its end\n");
        status = har_status_worse(status, HAR_EINCOMPLETE);
    }
    status = har_status_worse(status, judge_baseline(r, limits->baseline, findings));
    const bool nothing = r->count == 0 && r->selection[0] != '\0';
    if (nothing) {
        return status; /* limits on faults say nothing where none was to run */
    }
    status =
        har_status_worse(status, judge_rate("all", r->summary.rate, limits->fail_under, findings));
    for (int i = 0; i < MUT_FAMILY_COUNT; i++) {
        size_t detected = 0;
        size_t n = 0;
        const double rate = har_results_family_rate(r, (enum mut_family)i, &detected, &n);
        status = har_status_worse(status, judge_rate(mut_family_name((enum mut_family)i), rate,
                                                     limits->family_under[i], findings));
    }
    if (limits->max_median_steps >= 0.0 && !(r->summary.median_steps <= limits->max_median_steps)) {
        har_text_addf(findings, "median steps to detection %g, at most %g allowed\n",
                      r->summary.median_steps, limits->max_median_steps);
        status = har_status_worse(status, HAR_EGATE);
    }
    status = har_status_worse(status, judge_entries(r, limits, findings));
    return har_status_worse(status, judge_expectations(r, findings));
}
