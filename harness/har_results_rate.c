/* What stored results amount to for a gate: which entries count, rates, the exit code.
 * Called by the reports and the gate; must not know the database. */
#include <math.h>
#include <string.h>

#include "har_results.h"

bool har_results_counts(const struct har_result *e)
{
    return strcmp(e->expectation, "KILL") == 0 &&
           (e->outcome == HAR_OUTCOME_detected || e->outcome == HAR_OUTCOME_missed ||
            e->outcome == HAR_OUTCOME_flaky || e->outcome == HAR_OUTCOME_crashed ||
            e->outcome == HAR_OUTCOME_timed_out);
}

double har_results_family_rate(const struct har_results *r, enum mut_family family,
                               size_t *detected, size_t *n)
{
    *detected = *n = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->entries[i].family == family && har_results_counts(&r->entries[i])) {
            ++*n;
            *detected += r->entries[i].outcome == HAR_OUTCOME_detected;
        }
    }
    return *n > 0 ? (double)*detected / (double)*n : (double)NAN;
}

enum har_status har_results_status(const struct har_results *r)
{
    enum har_status status = HAR_OK;
    if (r->summary.false_alarms > 0) {
        status = har_status_worse(status, HAR_EALARM);
    }
    if (r->summary.outcomes[HAR_OUTCOME_no_verdict] > 0 || r->summary.healthy_lost > 0) {
        status = har_status_worse(status, HAR_EINCOMPLETE);
    }
    return status;
}
