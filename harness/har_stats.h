/* Exact intervals, quantiles and the bootstrap, from arrays of numbers.
 * Used by reports, the gate and `effect`; must not know what the numbers count. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct har_interval {
    double low, high;
};

/* Regularised incomplete beta function I_x(a, b) for a, b > 0 and x in [0, 1]. */
double har_stats_beta(double a, double b, double x);
/* x with I_x(a, b) = p, for p in [0, 1]. */
double har_stats_beta_inverse(double a, double b, double p);
/* Exact (Clopper-Pearson) two-sided interval of a proportion, k of n, at `confidence` (0.95).
 * n = 0 gives [0, 1]: nothing is known. */
struct har_interval har_stats_proportion(size_t k, size_t n, double confidence);

/* q-quantile with linear interpolation between order statistics (type 7); sorts values. NaN when
 * count is 0. Infinite values are allowed and stand for "later than the horizon". */
double har_stats_quantile(double *values, size_t count, double q);
double har_stats_median(double *values, size_t count);

/* Mean of the numerators over the mean of the denominators, and its percentile bootstrap interval.
 * Row i holds what seed i measured; rows are drawn with replacement, so that both sides of a ratio
 * come from the same seeds. */
struct har_ratio {
    double value, low, high;
};
bool har_stats_ratio(const double *numerators, const double *denominators, size_t count,
                     size_t draws, uint64_t seed, struct har_ratio *out);
