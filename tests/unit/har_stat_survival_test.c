/* Tests of survival curves, log-rank and the normal distribution on stored values of R 4.2.2 with
 * survival 3.5-3, made with digits = 17 by
 *   a <- aml[aml$x == "Maintained", ]; survfit(Surv(time, status) ~ 1, a, conf.type = "log-log")
 *   summary(..., rmean = 45)$table; survdiff(Surv(time, status) ~ x, aml); binom.test(3, 17)
 * The whole comparison with R and scipy is tests/stats. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "har_stat_normal.h"
#include "har_stat_survival.h"

/* Each step of the product multiplies by a rounded quotient; the band adds log, exp and pow of it:
 * a few roundings a step, amplified by the exponent of the band, which stays below 10 here. */
static double tolerance(size_t steps)
{
    return 10.0 * (4.0 * (double)steps + 16.0) * DBL_EPSILON;
}

/* Acute myelogenous leukemia, maintained chemotherapy and not (Miller 1997, R's `aml`). */
static const double maintained[] = {9, 13, 13, 18, 23, 28, 31, 34, 45, 48, 161};
static const bool maintained_events[] = {1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0};
static const double others[] = {5, 5, 8, 8, 12, 16, 23, 27, 30, 33, 43, 45};
static const bool other_events[] = {1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1};
enum { MAINTAINED = 11, OTHERS = 12 };

Test(har_stat_survival, curve_and_band_equal_those_of_r)
{
    static const struct {
        double time, survival, deviation, low, high;
    } wanted[] = {
        {9, 0.90909090909090906, 0.08667841720414475, 0.508080205769929738, 0.98667382266782311},
        {13, 0.81818181818181812, 0.11629129983033294, 0.447428614682181425, 0.95116222858249166},
        {18, 0.71590909090909083, 0.13966497055722782, 0.350190385907938384, 0.89902397419105340},
        {23, 0.61363636363636354, 0.15263233102731200, 0.265752040001286105, 0.83529924325022142},
        {28, 0.61363636363636354, 0.15263233102731200, 0.265752040001286105, 0.83529924325022142},
        {31, 0.49090909090909085, 0.16419326722113581, 0.167330909776850806, 0.75339979037081128},
        {34, 0.36818181818181817, 0.16266888582709479, 0.092829574936985182, 0.65704083239816380},
        {45, 0.36818181818181817, 0.16266888582709479, 0.092829574936985182, 0.65704083239816380},
        {48, 0.18409090909090908, 0.15349274578629368, 0.011738480123189602, 0.52501484272664145},
        {161, 0.18409090909090908, 0.15349274578629368, 0.011738480123189602, 0.52501484272664145}};
    const size_t count = sizeof wanted / sizeof wanted[0];
    struct har_survival curve;
    cr_assert(har_stat_survival(maintained, maintained_events, MAINTAINED, 0.95, &curve));
    cr_assert_eq(curve.count, count);
    for (size_t i = 0; i < count; i++) {
        const struct har_survival_step *const step = &curve.steps[i];
        const double most = tolerance(i + 1);
        cr_expect_eq(step->time, wanted[i].time);
        cr_expect(fabs(step->survival - wanted[i].survival) <= most, "step %zu", i);
        cr_expect(fabs(step->deviation - wanted[i].deviation) <= most, "step %zu", i);
        cr_expect(fabs(step->low - wanted[i].low) <= most, "step %zu", i);
        cr_expect(fabs(step->high - wanted[i].high) <= most, "step %zu", i);
    }
    cr_expect_eq(curve.steps[1].events, 1);
    cr_expect_eq(curve.steps[1].censored, 1, "censored at an event's time: still at risk there");
    cr_expect_eq(curve.steps[1].at_risk, 10);
    cr_expect_eq(har_stat_survival_time(&curve, 0.5), 31.0);
    cr_expect_eq(har_stat_survival_at(&curve, 8.9), 1.0);
    cr_expect_eq(har_stat_survival_at(&curve, 13.0), curve.steps[1].survival);
    har_stat_survival_fini(&curve);
}

Test(har_stat_survival, restricted_mean_equals_that_of_r)
{
    struct har_survival curve;
    cr_assert(har_stat_survival(maintained, maintained_events, MAINTAINED, 0.95, &curve));
    const struct har_mean mean = har_stat_survival_mean(&curve, 45.0);
    const double most = 45.0 * tolerance(curve.count);
    cr_expect(fabs(mean.value - 30.7386363636363633) <= most);
    cr_expect(fabs(mean.deviation - 4.1140862400114671) <= most);
    cr_expect_eq(har_stat_survival_mean(&curve, 5.0).value, 5.0, "nothing happened until then");
    har_stat_survival_fini(&curve);
}

Test(har_stat_survival, log_rank_equals_that_of_r)
{
    const struct har_group a = {maintained, maintained_events, MAINTAINED};
    const struct har_group b = {others, other_events, OTHERS};
    struct har_log_rank test;
    cr_assert(har_stat_log_rank(&a, &b, &test));
    const double most = 16.0 * tolerance(MAINTAINED + OTHERS);
    cr_expect_eq(test.observed, 7.0);
    cr_expect(fabs(test.expected - 10.689335992300724953) <= most);
    cr_expect(fabs(test.chi_square - 3.396388698977601095) <= most);
    cr_expect(fabs(test.p - 0.065339322040505132) <= most);
    struct har_log_rank mirrored;
    cr_assert(har_stat_log_rank(&b, &a, &mirrored));
    cr_expect(fabs(mirrored.chi_square - test.chi_square) <= most);
}

Test(har_stat_survival, without_censoring_the_curve_is_the_share_left)
{
    const double times[] = {1, 1, 2, 5};
    const bool events[] = {true, true, true, true};
    struct har_survival curve;
    cr_assert(har_stat_survival(times, events, 4, 0.95, &curve));
    cr_assert_eq(curve.count, 3);
    cr_expect_eq(curve.steps[0].survival, 0.5);
    cr_expect_eq(curve.steps[1].survival, 0.25);
    cr_expect_eq(curve.steps[2].survival, 0.0);
    cr_expect_eq(curve.steps[2].low, 0.0);
    cr_expect_eq(curve.steps[2].high, curve.steps[1].high, "carried on where Greenwood has none");
    cr_expect_eq(har_stat_survival_mean(&curve, 10.0).value, 1.0 * 1.0 + 0.5 * 1.0 + 0.25 * 3.0);
    har_stat_survival_fini(&curve);
}

Test(har_stat_survival, nothing_seen_tells_nothing)
{
    struct har_survival curve;
    cr_assert(har_stat_survival(NULL, NULL, 0, 0.95, &curve));
    cr_expect_eq(curve.count, 0);
    cr_expect_eq(har_stat_survival_at(&curve, 3.0), 1.0);
    cr_expect(isinf(har_stat_survival_time(&curve, 0.5)));
    har_stat_survival_fini(&curve);
    const double times[] = {4, 4};
    const bool events[] = {false, false};
    cr_assert(har_stat_survival(times, events, 2, 0.95, &curve));
    cr_expect_eq(curve.steps[0].low, 1.0);
    cr_expect_eq(har_stat_survival_mean(&curve, 4.0).value, 4.0);
    har_stat_survival_fini(&curve);
    const struct har_group group = {times, events, 2};
    struct har_log_rank test;
    cr_assert(har_stat_log_rank(&group, &group, &test));
    cr_expect(isnan(test.p), "no event tells the groups apart");
}

Test(har_stat_normal, quantiles_and_tests_equal_those_of_r)
{
    const double most = 8.0 * DBL_EPSILON;
    cr_expect(fabs(har_stat_normal_quantile(0.975) - 1.9599639845400536) <= 2.0 * most);
    cr_expect(fabs(har_stat_normal_quantile(0.5)) <= most);
    cr_expect_eq(har_stat_normal_quantile(0.25), -har_stat_normal_quantile(0.75));
    cr_expect(fabs(har_stat_normal_tails(har_stat_normal_quantile(0.95)) - 0.1) <= most);
    cr_expect_eq(har_stat_chi_square_tail(0.0), 1.0);
    /* binom.test(3, 17): the beta function's leading factor is a sum of logarithms of size 17. */
    cr_expect(fabs(har_stat_sign_test(3, 14) - 0.012725830078124997) <= 64.0 * 20.0 * DBL_EPSILON);
    cr_expect_eq(har_stat_sign_test(14, 3), har_stat_sign_test(3, 14));
    cr_expect_eq(har_stat_sign_test(0, 0), 1.0);
    cr_expect_eq(har_stat_sign_test(5, 5), 1.0);
}
