/* Likelihood ratios, normal mixture, CUSUM over relative loss differences.
 * Used by the reports; must not know faults. */
#include "har_stat_alarm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEGREES = 3, WIDTHS = 6, WIDEN_MAX = 200 };

/* Density of a t at k times the scale over that at the scale, at x scales; mean over k =
 * 10^1..10^6. */
static double size_ratio(double x)
{
    const double nu = DEGREES;
    double sum = 0.0;
    double k = 1.0;
    for (int i = 0; i < WIDTHS; i++) {
        k *= 10.0;
        const double base = (1.0 + x * x / nu) / (1.0 + x * x / (nu * k * k));
        sum += pow(base, 0.5 * (nu + 1.0)) / k;
    }
    return sum / WIDTHS;
}

/* Scale of each step over all runs but one; without = runs leaves none out. */
static void find_scales(const double *d, size_t runs, size_t steps, size_t without, double *scales)
{
    for (size_t s = 0; s < steps; s++) {
        double sum = 0.0;
        size_t n = 0;
        for (size_t r = 0; r < runs; r++) {
            const double x = d[r * steps + s];
            if (r != without && isfinite(x)) {
                sum += x * x;
                n++;
            }
        }
        scales[s] = n > 0 ? sqrt(sum / (double)n) : 0.0;
    }
}

/* Two-sided CUSUM with allowance 1/2: its state after one more z. */
struct cusum {
    double up, down;
};

static double cusum_add(struct cusum *c, double z)
{
    const double allowance = 0.5;
    c->up = fmax(0.0, c->up + z - allowance);
    c->down = fmax(0.0, c->down - z - allowance);
    return fmax(c->up, c->down);
}

/* Mean of e_s over calibration runs at a width, and the largest CUSUM; scales hold a row a run. */
static double mean_ratio(const double *d, const double *scales, size_t cells, double widen)
{
    double sum = 0.0;
    size_t n = 0;
    for (size_t i = 0; i < cells; i++) {
        if (isfinite(d[i]) && scales[i] > 0.0) {
            sum += size_ratio(d[i] / (widen * scales[i]));
            n++;
        }
    }
    return n > 0 ? sum / (double)n : 0.0;
}

static double largest_cusum(const double *d, const double *scales, size_t runs, size_t steps)
{
    double largest = 0.0;
    for (size_t r = 0; r < runs; r++) {
        struct cusum c = {0.0, 0.0};
        for (size_t i = r * steps; i < (r + 1) * steps; i++) {
            if (isfinite(d[i]) && scales[i] > 0.0) {
                largest = fmax(largest, cusum_add(&c, d[i] / scales[i]));
            }
        }
    }
    return largest;
}

bool har_stat_alarm_calibrate(const double *d, size_t runs, size_t steps,
                              struct har_alarm_null *out)
{
    memset(out, 0, sizeof *out);
    double *const left_out = calloc(runs * steps + 1, sizeof *left_out);
    out->scales = calloc(steps + 1, sizeof *out->scales);
    if (runs < 2 || steps == 0 || left_out == NULL || out->scales == NULL) {
        free(left_out);
        har_stat_alarm_fini(out);
        return false;
    }
    for (size_t r = 0; r < runs; r++) {
        find_scales(d, runs, steps, r, left_out + r * steps);
    }
    find_scales(d, runs, steps, runs, out->scales);
    out->runs = runs;
    out->steps = steps;
    out->widen = 1.0;
    for (int i = 0; i < WIDEN_MAX && mean_ratio(d, left_out, runs * steps, out->widen) > 1.0; i++) {
        out->widen *= 1.1;
    }
    out->cusum_limit = largest_cusum(d, left_out, runs, steps);
    free(left_out);
    return true;
}

void har_stat_alarm_fini(struct har_alarm_null *null)
{
    free(null->scales);
    memset(null, 0, sizeof *null);
}

void har_stat_alarm_run(const struct har_alarm_null *null, const double *d, size_t steps,
                        double alpha, struct har_alarm_times *out)
{
    double size = 0.0;
    double sum = 0.0;
    double squares = 0.0;
    struct cusum c = {0.0, 0.0};
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < steps && i < null->steps; i++) {
        const double s = (double)i + 1.0;
        if (isnan(d[i])) {
            continue;
        }
        /* Without any healthy deviation a different loss is infinitely many scales away. */
        const double z = null->scales[i] > 0.0 ? d[i] / null->scales[i]
                         : d[i] == 0.0         ? 0.0
                                               : HUGE_VAL;
        double e = HUGE_VAL;
        double cusum = HUGE_VAL;
        if (isfinite(z)) {
            size += size_ratio(z / null->widen) / (s * (s + 1.0));
            sum += z;
            squares += z * z;
            e = 0.5 * size + 0.5 * exp(sum * sum / (2.0 * (1.0 + squares))) / sqrt(1.0 + squares);
            cusum = cusum_add(&c, z);
        }
        out->e_largest = fmax(out->e_largest, e);
        out->e_step = out->e_step == 0 && e >= 1.0 / alpha ? i + 1 : out->e_step;
        out->cusum_step =
            out->cusum_step == 0 && cusum > null->cusum_limit ? i + 1 : out->cusum_step;
    }
}
