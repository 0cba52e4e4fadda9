/* Time to an event when some never had one before the observation ended: Kaplan-Meier curves with
 * Greenwood bands, log-rank test, restricted mean. Used by the reports; must not know what an event
 * is.
 *
 * A subject is a time and whether the event happened then (true) or was only known not to have
 * happened up to then (false: right-censored). A subject censored at an event's time counts as at
 * risk there. Checked against R's survival package (survfit, survdiff). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct har_survival_step {
    double time;
    size_t at_risk, events, censored; /* at risk just before; both others at this very time */
    double survival;                  /* P(no event up to and including time): product limit */
    double deviation;                 /* Greenwood's standard error of survival */
    double low, high;                 /* pointwise band, log-log transformed: inside [0, 1] */
};

struct har_survival {
    struct har_survival_step *steps; /* by time, one per distinct time; owned */
    size_t count;
    size_t subjects, events;
};

/* Kaplan and Meier 1958; Greenwood 1926: var S = S^2 sum d / (n (n - d)); band of
 * Kalbfleisch and Prentice: S^exp(+-z se(log(-log S))), as R's conf.type = "log-log". Before the
 * first event the band is [1, 1]. Where survival is 0 the formula has no value: low is 0, high
 * stays what it was, or is the exact bound of 0 survivors of those at risk where there was none.
 * False only when memory is exhausted; count 0 gives no steps. Release by har_stat_survival_fini.
 */
bool har_stat_survival(const double *times, const bool *events, size_t count, double confidence,
                       struct har_survival *out);
void har_stat_survival_fini(struct har_survival *curve);

/* Survival at a time, 1 before the first step. */
double har_stat_survival_at(const struct har_survival *curve, double time);
/* First time at which survival is at most 1 - share, e.g. 0.5 for the median; infinite when that is
 * never seen. */
double har_stat_survival_time(const struct har_survival *curve, double share);

/* Restricted mean: area under the curve from 0 to horizon, and its standard error (Klein and
 * Moeschberger: sum over events of (area to the right)^2 d / (n (n - d)); terms with n = d have
 * nothing to the right). As R's survfit with rmean = horizon. */
struct har_mean {
    double value, deviation;
};
struct har_mean har_stat_survival_mean(const struct har_survival *curve, double horizon);

/* Log-rank test of two independent groups (Mantel 1966), variance hypergeometric; chi-square with
 * one degree of freedom as R's survdiff. NaN when no event tells the groups apart. False when
 * memory is exhausted. */
struct har_log_rank {
    double observed, expected; /* events of the first group */
    double chi_square, p;
};
struct har_group {
    const double *times;
    const bool *events;
    size_t count;
};
bool har_stat_log_rank(const struct har_group *first, const struct har_group *second,
                       struct har_log_rank *out);
