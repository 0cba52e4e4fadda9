/* Exact intervals by the incomplete beta function, quantiles, bootstrap.
 * Called by reports, the gate and `effect`; must not know what the numbers count. */
#include "har_stats.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Continued fraction of the incomplete beta function by Lentz's method; converges fast for
 * x < (a + 1) / (a + b + 2). Terms alternate between the two coefficients of order m. */
static double beta_fraction(double a, double b, double x)
{
    enum { TERMS_MAX = 2000 };
    const double tiny = DBL_MIN / DBL_EPSILON;
    double c = 1.0;
    double d = 1.0 - (a + b) * x / (a + 1.0);
    d = 1.0 / (fabs(d) < tiny ? tiny : d);
    double product = d;
    for (int m = 1; m <= TERMS_MAX; m++) {
        const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        double step = 1.0;
        const double coefficients[2] = {even, odd};
        for (int i = 0; i < 2; i++) {
            d = 1.0 + coefficients[i] * d;
            d = 1.0 / (fabs(d) < tiny ? tiny : d);
            c = 1.0 + coefficients[i] / c;
            c = fabs(c) < tiny ? tiny : c;
            step = c * d;
            product *= step;
        }
        if (fabs(step - 1.0) <= DBL_EPSILON) {
            break;
        }
    }
    return product;
}

double har_stats_beta(double a, double b, double x)
{
    if (!(x > 0.0)) {
        return 0.0;
    }
    if (!(x < 1.0)) {
        return 1.0;
    }
    const double log_front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x);
    if (x < (a + 1.0) / (a + b + 2.0)) {
        return exp(log_front) * beta_fraction(a, b, x) / a;
    }
    return 1.0 - exp(log_front) * beta_fraction(b, a, 1.0 - x) / b;
}

double har_stats_beta_inverse(double a, double b, double p)
{
    double low = 0.0;
    double high = 1.0;
    /* Bisection halves [0, 1] until neighbouring doubles remain. */
    for (int i = 0; i < DBL_MANT_DIG + 64; i++) {
        const double middle = 0.5 * (low + high);
        if (har_stats_beta(a, b, middle) < p) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return 0.5 * (low + high);
}

struct har_interval har_stats_proportion(size_t k, size_t n, double confidence)
{
    struct har_interval interval = {0.0, 1.0};
    const double tail = 0.5 * (1.0 - confidence);
    if (k > 0) {
        interval.low = har_stats_beta_inverse((double)k, (double)(n - k) + 1.0, tail);
    }
    if (k < n) {
        interval.high = har_stats_beta_inverse((double)k + 1.0, (double)(n - k), 1.0 - tail);
    }
    return interval;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

double har_stats_quantile(double *values, size_t count, double q)
{
    if (count == 0) {
        return (double)NAN;
    }
    qsort(values, count, sizeof *values, compare_doubles);
    const double position = q * (double)(count - 1);
    const size_t below = (size_t)position;
    const double share = position - (double)below;
    if (!(share > 0.0) || below + 1 >= count) {
        return values[below];
    }
    if (isinf(values[below + 1])) { /* inf times a share of inf would be NaN for equal infinities */
        return values[below + 1];
    }
    return values[below] + share * (values[below + 1] - values[below]);
}

double har_stats_median(double *values, size_t count)
{
    return har_stats_quantile(values, count, 0.5);
}

static uint64_t split_mix(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static double sum_ratio(const double *numerators, const double *denominators, size_t count,
                        uint64_t *state)
{
    double above = 0.0;
    double below = 0.0;
    for (size_t i = 0; i < count; i++) {
        const size_t row = state == NULL ? i : (size_t)(split_mix(state) % count);
        above += numerators[row];
        below += denominators[row];
    }
    return above / below;
}

bool har_stats_ratio(const double *numerators, const double *denominators, size_t count,
                     size_t draws, uint64_t seed, struct har_ratio *out)
{
    double *const values = calloc(draws + 1, sizeof *values);
    if (values == NULL || count == 0 || draws == 0) {
        free(values);
        return false;
    }
    out->value = sum_ratio(numerators, denominators, count, NULL);
    uint64_t state = seed;
    for (size_t i = 0; i < draws; i++) {
        values[i] = sum_ratio(numerators, denominators, count, &state);
    }
    out->low = har_stats_quantile(values, draws, 0.025);
    out->high = har_stats_quantile(values, draws, 0.975);
    free(values);
    return true;
}
