/* Tests of the statistics: beta function, exact intervals, quantiles, bootstrap. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "har_stats.h"

/* The log of the leading factor is a sum of lgamma values of size about n log n, each correct to
 * one rounding; the continued fraction adds at most one rounding per term. */
static double beta_tolerance(double a, double b)
{
    const double n = a + b + 1.0;
    return 64.0 * DBL_EPSILON * n * (1.0 + log(n));
}

/* P(X >= k) for X ~ Binomial(n, p), summed term by term. */
static double upper_tail(size_t k, size_t n, double p)
{
    double sum = 0.0;
    for (size_t i = k; i <= n; i++) {
        double term = 1.0;
        for (size_t j = 0; j < i; j++) {
            term *= p * (double)(n - j) / (double)(i - j);
        }
        sum += term * pow(1.0 - p, (double)(n - i));
    }
    return sum;
}

Test(har_stats, beta_function_equals_its_closed_forms)
{
    size_t compared = 0;
    for (double x = 0.05; x < 1.0; x += 0.05) {
        for (double b = 1.0; b <= 40.0; b += 3.0) {
            const double tolerance = beta_tolerance(1.0, b);
            cr_expect(fabs(har_stats_beta(1.0, b, x) - (1.0 - pow(1.0 - x, b))) <= tolerance);
            cr_expect(fabs(har_stats_beta(b, 1.0, x) - pow(x, b)) <= tolerance);
            compared++;
        }
    }
    cr_assert_gt(compared, 0);
    cr_expect_eq(har_stats_beta(3.0, 4.0, 0.0), 0.0);
    cr_expect_eq(har_stats_beta(3.0, 4.0, 1.0), 1.0);
}

Test(har_stats, beta_function_is_the_binomial_tail)
{
    size_t compared = 0;
    for (size_t n = 1; n <= 60; n += 7) {
        for (size_t k = 1; k <= n; k += 3) {
            for (double p = 0.1; p < 1.0; p += 0.2) {
                const double value = har_stats_beta((double)k, (double)(n - k) + 1.0, p);
                cr_expect(fabs(value - upper_tail(k, n, p)) <= beta_tolerance((double)n, 1.0));
                compared++;
            }
        }
    }
    cr_assert_gt(compared, 0);
}

Test(har_stats, interval_without_events_has_its_closed_form)
{
    size_t compared = 0;
    for (size_t n = 1; n <= 1000; n = n * 2 + 1) {
        const struct har_interval none = har_stats_proportion(0, n, 0.95);
        const struct har_interval all = har_stats_proportion(n, n, 0.95);
        const double root = pow(0.025, 1.0 / (double)n);
        /* The root's error is that of the tail times its slope, at most 1 / (n tail). */
        const double tolerance = beta_tolerance((double)n, 1.0) / 0.025;
        cr_expect_eq(none.low, 0.0);
        cr_expect_eq(all.high, 1.0);
        cr_expect(fabs(none.high - (1.0 - root)) <= tolerance, "n = %zu", n);
        cr_expect(fabs(all.low - root) <= tolerance, "n = %zu", n);
        compared++;
    }
    cr_assert_gt(compared, 0);
    /* "0 of 20" is at most 16.8 % to the digits a report prints. */
    cr_expect_eq(lround(1000.0 * har_stats_proportion(0, 20, 0.95).high), 168);
}

Test(har_stats, interval_ends_leave_half_of_the_rest_in_each_tail)
{
    size_t compared = 0;
    for (size_t n = 2; n <= 60; n += 5) {
        for (size_t k = 1; k < n; k += 4) {
            const struct har_interval i = har_stats_proportion(k, n, 0.95);
            const double tolerance = beta_tolerance((double)n, 1.0);
            cr_expect(fabs(upper_tail(k, n, i.low) - 0.025) <= tolerance);
            cr_expect(fabs(1.0 - upper_tail(k + 1, n, i.high) - 0.025) <= tolerance);
            cr_expect_lt(i.low, (double)k / (double)n);
            cr_expect_gt(i.high, (double)k / (double)n);
            compared++;
        }
    }
    cr_assert_gt(compared, 0);
}

Test(har_stats, nothing_tried_tells_nothing)
{
    const struct har_interval i = har_stats_proportion(0, 0, 0.95);
    cr_expect_eq(i.low, 0.0);
    cr_expect_eq(i.high, 1.0);
}

Test(har_stats, quantiles_interpolate_between_order_statistics)
{
    double odd[] = {5.0, 1.0, 3.0};
    double even[] = {4.0, 1.0, 2.0, 3.0};
    double late[] = {1.0, HUGE_VAL, HUGE_VAL};
    double mixed[] = {1.0, 2.0, HUGE_VAL, HUGE_VAL};
    cr_expect_eq(har_stats_median(odd, 3), 3.0);
    cr_expect_eq(har_stats_median(even, 4), 2.5);
    cr_expect_eq(har_stats_quantile(even, 4, 0.0), 1.0);
    cr_expect_eq(har_stats_quantile(even, 4, 1.0), 4.0);
    cr_expect(isinf(har_stats_median(late, 3)), "more than half beyond the horizon");
    cr_expect(isinf(har_stats_median(mixed, 4)), "the middle reaches beyond the horizon");
    cr_expect(isnan(har_stats_median(odd, 0)));
}

Test(har_stats, ratio_of_proportional_rows_has_no_width)
{
    const double above[] = {2.0, 4.0, 8.0, 16.0, 32.0};
    const double below[] = {1.0, 2.0, 4.0, 8.0, 16.0};
    struct har_ratio ratio;
    cr_assert(har_stats_ratio(above, below, 5, 1000, 7, &ratio));
    cr_expect_eq(ratio.value, 2.0);
    cr_expect_eq(ratio.low, 2.0);
    cr_expect_eq(ratio.high, 2.0);
}

Test(har_stats, bootstrap_depends_on_its_seed_alone)
{
    const double above[] = {1.0, 5.0, 2.0, 9.0, 3.0};
    const double below[] = {1.0, 1.5, 1.0, 2.0, 1.0};
    struct har_ratio a;
    struct har_ratio b;
    cr_assert(har_stats_ratio(above, below, 5, 500, 11, &a));
    cr_assert(har_stats_ratio(above, below, 5, 500, 11, &b));
    cr_expect_eq(a.low, b.low);
    cr_expect_eq(a.high, b.high);
    cr_expect_leq(a.low, a.value);
    cr_expect_geq(a.high, a.value);
    cr_expect_not(har_stats_ratio(above, below, 0, 500, 11, &a));
}
