/* The normal distribution and the two tests that need nothing else: sign test, chi-square of 1.
 * Used by the other statistics; must not know what the numbers mean. */
#pragma once

#include <stddef.h>

/* x with P(Z <= x) = p for a standard normal Z, p in (0, 1); bisection on erfc. */
double har_stat_normal_quantile(double p);
/* P(|Z| > |z|), two-sided. */
double har_stat_normal_tails(double z);
/* P(X > x) for X chi-square with one degree of freedom: the square of a normal. */
double har_stat_chi_square_tail(double x);

/* Exact two-sided sign test: p of at least this imbalance between two counts when both are equally
 * likely, binomial with one half (as scipy.stats.binomtest). 1 when both are 0. Pairs that tie are
 * not counted by the caller. */
double har_stat_sign_test(size_t wins, size_t losses);
