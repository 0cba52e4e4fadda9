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
    if (r->count == 0) {
        har_text_add(findings, "the stored plan is empty\n");
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
    return har_status_worse(status, judge_expectations(r, findings));
}
