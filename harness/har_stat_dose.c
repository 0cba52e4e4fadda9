/* Logistic fit of two parameters, and what is said when it has no maximum.
 * Used by the reports; must not know what a dose is. */
#include "har_stat_dose.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "har_stat_normal.h"

static const char *const kind_names[] = {"none", "all", "never", "separated", "fitted"};

const char *har_dose_kind_name(enum har_dose_kind kind)
{
    return kind_names[kind];
}

static double probability(double intercept, double slope, double x)
{
    return 1.0 / (1.0 + exp(-(intercept + slope * x)));
}

static double log_likelihood(const struct har_dose_point *p, size_t count, double a, double b)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double eta = a + b * log10(p[i].dose);
        /* log(1 + e^eta) without overflow */
        const double soft = eta > 0.0 ? eta + log1p(exp(-eta)) : log1p(exp(eta));
        sum += (double)p[i].detected * eta - (double)p[i].tried * soft;
    }
    return sum;
}

/* Score and information at a point: g and the upper half of the matrix. */
static void information(const struct har_dose_point *p, size_t count, double a, double b,
                        double g[2], double m[3])
{
    memset(g, 0, 2 * sizeof *g);
    memset(m, 0, 3 * sizeof *m);
    for (size_t i = 0; i < count; i++) {
        const double x = log10(p[i].dose);
        const double q = probability(a, b, x);
        const double residual = (double)p[i].detected - (double)p[i].tried * q;
        const double weight = (double)p[i].tried * q * (1.0 - q);
        g[0] += residual;
        g[1] += residual * x;
        m[0] += weight;
        m[1] += weight * x;
        m[2] += weight * x * x;
    }
}

/* Covariance of the estimates: the inverse of the information. */
static bool invert(const double m[3], double covariance[3])
{
    const double determinant = m[0] * m[2] - m[1] * m[1];
    covariance[0] = m[2] / determinant;
    covariance[1] = -m[1] / determinant;
    covariance[2] = m[0] / determinant;
    return determinant > 0.0;
}

/* Half of the step until the likelihood does not fall; the whole one where rounding decides. */
static double damped(const struct har_dose_point *p, size_t count, const double at[2],
                     const double step[2])
{
    enum { HALVINGS_MAX = 40 };
    const double before = log_likelihood(p, count, at[0], at[1]);
    double share = 1.0;
    for (int i = 0; i < HALVINGS_MAX; i++, share *= 0.5) {
        if (log_likelihood(p, count, at[0] + share * step[0], at[1] + share * step[1]) >= before) {
            break;
        }
    }
    return share;
}

/* Newton's method; false when it does not settle. */
static bool fit(const struct har_dose_point *p, size_t count, struct har_dose_fit *out)
{
    enum { ROUNDS_MAX = 200 };
    double at[2] = {0.0, 0.0};
    for (int round = 0; round < ROUNDS_MAX; round++) {
        double g[2];
        double m[3];
        double v[3];
        information(p, count, at[0], at[1], g, m);
        if (!invert(m, v)) {
            return false;
        }
        const double step[2] = {v[0] * g[0] + v[1] * g[1], v[1] * g[0] + v[2] * g[1]};
        const double size = fabs(step[0]) + fabs(step[1]);
        /* Convergence is quadratic: after a step below the root of the precision one is enough. */
        const bool last = size <= sqrt(DBL_EPSILON) * (fabs(at[0]) + fabs(at[1]) + 1.0);
        const double share = last ? 1.0 : damped(p, count, at, step);
        at[0] += share * step[0];
        at[1] += share * step[1];
        if (last) {
            information(p, count, at[0], at[1], g, m);
            out->intercept = at[0];
            out->slope = at[1];
            return invert(m, out->covariance);
        }
    }
    return false;
}

/* Interval of the ratio -a / b: {x : (a + b x)^2 <= z^2 var(a + b x)}, Fieller 1954. */
static void set_interval(struct har_dose_fit *f, double z)
{
    const double *const v = f->covariance;
    const double a = f->intercept;
    const double b = f->slope;
    const double z2 = z * z;
    const double quadratic = b * b - z2 * v[2];
    const double half = a * b - z2 * v[1];
    const double constant = a * a - z2 * v[0];
    const double inner = half * half - quadratic * constant;
    f->low = 0.0;
    f->high = HUGE_VAL;
    if (quadratic > 0.0 && inner >= 0.0) {
        f->low = pow(10.0, (-half - sqrt(inner)) / quadratic);
        f->high = pow(10.0, (-half + sqrt(inner)) / quadratic);
    }
}

/* Smallest and largest dose with a response, and without. */
struct sides {
    double hit_low, hit_high, miss_low, miss_high;
};

static struct sides sides_of(const struct har_dose_point *p, size_t count)
{
    struct sides s = {HUGE_VAL, -HUGE_VAL, HUGE_VAL, -HUGE_VAL};
    for (size_t i = 0; i < count; i++) {
        if (p[i].detected > 0) {
            s.hit_low = fmin(s.hit_low, p[i].dose);
            s.hit_high = fmax(s.hit_high, p[i].dose);
        }
        if (p[i].detected < p[i].tried) {
            s.miss_low = fmin(s.miss_low, p[i].dose);
            s.miss_high = fmax(s.miss_high, p[i].dose);
        }
    }
    return s;
}

static bool two_doses(const struct har_dose_point *p, size_t count)
{
    double low = HUGE_VAL;
    double high = -HUGE_VAL;
    for (size_t i = 0; i < count; i++) {
        if (p[i].tried > 0) {
            low = fmin(low, p[i].dose);
            high = fmax(high, p[i].dose);
        }
    }
    return low < high && low > 0.0;
}

void har_stat_dose(const struct har_dose_point *p, size_t count, double confidence,
                   struct har_dose_fit *out)
{
    const double nan = (double)NAN;
    *out = (struct har_dose_fit){.kind = HAR_DOSE_none,
                                 .intercept = nan,
                                 .slope = nan,
                                 .covariance = {nan, nan, nan},
                                 .ed50 = nan,
                                 .low = 0.0,
                                 .high = HUGE_VAL};
    if (!two_doses(p, count)) {
        return;
    }
    const struct sides s = sides_of(p, count);
    if (isinf(s.miss_low)) {
        out->kind = HAR_DOSE_all;
        out->high = s.hit_low;
    } else if (isinf(s.hit_low)) {
        out->kind = HAR_DOSE_never;
        out->low = s.miss_high;
    } else if (s.miss_high <= s.hit_low || s.hit_high <= s.miss_low) {
        /* No maximum exists (Albert and Anderson 1984), also where only one dose is mixed. */
        const bool rising = s.miss_high <= s.hit_low;
        out->kind = HAR_DOSE_separated;
        out->low = rising ? s.miss_high : s.hit_high;
        out->high = rising ? s.hit_low : s.miss_low;
    } else if (fit(p, count, out)) {
        out->kind = HAR_DOSE_fitted;
        out->ed50 = pow(10.0, -out->intercept / out->slope);
        set_interval(out, har_stat_normal_quantile(0.5 + 0.5 * confidence));
    }
}
