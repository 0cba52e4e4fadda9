/* Dose-response: at which magnitude a fault is detected half the time.
 * Used by the reports; must not know what a dose is.
 *
 * Logistic regression of detection on log10(dose), maximum likelihood by Newton's method with step
 * halving, as R's glm(family = binomial); ED50 = 10^(-intercept / slope) with Fieller's interval
 * (Finney 1971) from the inverse information matrix. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct har_dose_point {
    double dose; /* > 0 */
    size_t detected, tried;
};

enum har_dose_kind {
    HAR_DOSE_none,      /* fewer than two doses were tried */
    HAR_DOSE_all,       /* detected every time at every dose: ED50 is below `high` */
    HAR_DOSE_never,     /* never: ED50 is above `low` */
    HAR_DOSE_separated, /* all of one side detected, none of the other: ED50 is between */
    HAR_DOSE_fitted
};
const char *har_dose_kind_name(enum har_dose_kind kind);

struct har_dose_fit {
    enum har_dose_kind kind;
    double intercept, slope; /* of log odds over log10(dose); fitted only, else NaN */
    double covariance[3];    /* var intercept, covariance, var slope */
    double ed50;             /* NaN unless fitted */
    /* Fitted: Fieller's interval at the asked confidence, [0, inf] when the slope is not different
     * from 0. Separated: the doses between which the response turns, which is no interval of a
     * stated confidence. All or never: the end that is known; the other is 0 or infinite. */
    double low, high;
};
/* points in any order; doses may repeat. */
void har_stat_dose(const struct har_dose_point *points, size_t count, double confidence,
                   struct har_dose_fit *out);
