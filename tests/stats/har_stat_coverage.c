/* How often the intervals hold what they should, by simulation; prints counts, fails where the
 * count contradicts the promise. Called by ctest, tier full; must not know R. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "har_stat_alarm.h"
#include "har_stat_dose.h"
#include "har_stat_survival.h"
#include "har_stats.h"

static uint64_t state = 20260802;

static double uniform(void)
{
    state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = state;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) * 0x1p-53;
}

static size_t binomial(size_t n, double p)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        k += uniform() < p;
    }
    return k;
}

/* Prints a line; whether the exact 99.9 % interval of the share agrees with the promise: at least
 * `nominal` where that is promised for every n, else within it. */
static int report(const char *what, size_t inside, size_t runs, double nominal, int at_least)
{
    const struct har_interval i = har_stats_proportion(inside, runs, 0.999);
    const int good = nominal <= i.high && (at_least || nominal >= i.low);
    printf("%-58s %zu of %zu = %.2f %% (99.9 %% interval %.2f to %.2f) %s\n", what, inside, runs,
           100.0 * (double)inside / (double)runs, 100.0 * i.low, 100.0 * i.high,
           good ? "ok" : "FAILED");
    return good;
}

static int proportions(void)
{
    enum { RUNS = 20000 };
    static const struct {
        size_t n;
        double p;
    } sets[] = {{5, 0.5}, {20, 0.02}, {50, 0.9}, {170, 0.97}, {300, 0.003}};
    int good = 1;
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        char what[80];
        size_t inside = 0;
        for (int run = 0; run < RUNS; run++) {
            const size_t k = binomial(sets[s].n, sets[s].p);
            const struct har_interval i = har_stats_proportion(k, sets[s].n, 0.95);
            inside += i.low <= sets[s].p && sets[s].p <= i.high;
        }
        snprintf(what, sizeof what, "Clopper-Pearson 95 %%, n = %zu, p = %g", sets[s].n, sets[s].p);
        good &= report(what, inside, RUNS, 0.95, 1);
    }
    return good;
}

/* Geometric times to detection, censored by a geometric end of observation and a horizon. */
static size_t draw(size_t n, double p, double censor, double horizon, double *times, bool *events)
{
    size_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        const double t = ceil(log(uniform()) / log1p(-p));
        const double c = fmin(horizon, ceil(log(uniform()) / log1p(-censor)));
        events[i] = t <= c;
        times[i] = fmin(t, c);
        seen += events[i];
    }
    return seen;
}

static int survival(size_t n)
{
    enum { RUNS = 4000, N_MAX = 400, HORIZON = 16, AT = 5 };
    const double p = 0.15;
    const double truth = pow(1.0 - p, AT);
    /* Area of the true curve: a step function, 1 on [0, 1), (1-p)^k on [k, k + 1). */
    const double mean = (1.0 - pow(1.0 - p, HORIZON)) / p;
    double times[N_MAX];
    bool events[N_MAX];
    size_t band = 0;
    size_t area = 0;
    for (int run = 0; run < RUNS; run++) {
        struct har_survival curve;
        (void)draw(n, p, 0.02, HORIZON, times, events);
        if (!har_stat_survival(times, events, n, 0.95, &curve)) {
            return 0;
        }
        for (size_t i = 0; i < curve.count; i++) {
            const bool here =
                curve.steps[i].time <= AT && (i + 1 == curve.count || curve.steps[i + 1].time > AT);
            band += here && curve.steps[i].low <= truth && truth <= curve.steps[i].high;
        }
        const struct har_mean m = har_stat_survival_mean(&curve, HORIZON);
        area += fabs(m.value - mean) <= 1.959964 * m.deviation;
        har_stat_survival_fini(&curve);
    }
    char what[80];
    /* Both are asymptotic: only the large n is held to the promise. */
    const int judged = n == N_MAX;
    snprintf(what, sizeof what, "Greenwood band 95 %% at step %d, n = %zu%s", AT, n,
             judged ? "" : " (asymptotic)");
    int good = report(what, band, RUNS, judged ? 0.95 : 0.0, !judged);
    snprintf(what, sizeof what, "restricted mean 95 %%, n = %zu%s", n,
             judged ? "" : " (asymptotic)");
    good &= report(what, area, RUNS, judged ? 0.95 : 0.0, !judged);
    return good;
}

static int doses(size_t tried, int judged)
{
    enum { RUNS = 4000, DOSES = 7 };
    const double centre = 0.3;
    const double slope = 2.5;
    size_t inside = 0;
    size_t fitted = 0;
    for (int run = 0; run < RUNS; run++) {
        struct har_dose_point points[DOSES];
        struct har_dose_fit fit;
        for (int i = 0; i < DOSES; i++) {
            const double x = -1.2 + 0.5 * i;
            const double p = 1.0 / (1.0 + exp(-slope * (x - centre)));
            points[i] = (struct har_dose_point){pow(10.0, x), binomial(tried, p), tried};
        }
        har_stat_dose(points, DOSES, 0.95, &fit);
        if (fit.kind == HAR_DOSE_fitted) {
            fitted++;
            inside += fit.low <= pow(10.0, centre) && pow(10.0, centre) <= fit.high;
        }
    }
    char what[80];
    snprintf(what, sizeof what, "Fieller 95 %%, %d doses x %zu, fitted %zu%s", DOSES, tried, fitted,
             judged ? "" : " (asymptotic)");
    return fitted > 0 && report(what, inside, fitted, judged ? 0.95 : 0.0, !judged);
}

/* Normal steps with a scale of the run's own, chosen among three, and random signs. */
static void healthy_run(double *d, int steps)
{
    static const double scales[] = {0.5, 1.0, 2.0};
    const double scale = 1e-8 * scales[(int)(3.0 * uniform())];
    for (int i = 0; i < steps; i++) {
        const double radius = sqrt(-2.0 * log(uniform()));
        d[i] = scale * radius * cos(6.283185307179586 * uniform());
    }
}

/* Healthy runs whose steps depend on each other and whose scale is one for the run, so that large
 * steps come together: false alarms of the e-process, read at every step, of runs judged by scales
 * from other runs. */
static int alarms(int calibration)
{
    enum { ROUNDS = 200, RUNS = 50, STEPS = 64, CALIBRATION_MAX = 24 };
    static double d[CALIBRATION_MAX * STEPS];
    const double alpha = 0.05;
    size_t quiet[2] = {0, 0};
    for (int round = 0; round < ROUNDS; round++) {
        struct har_alarm_null null;
        for (int i = 0; i < calibration; i++) {
            healthy_run(d + i * STEPS, STEPS);
        }
        if (!har_stat_alarm_calibrate(d, (size_t)calibration, STEPS, &null)) {
            return 0;
        }
        for (int i = 0; i < RUNS; i++) {
            double run[STEPS];
            struct har_alarm_times times;
            healthy_run(run, STEPS);
            har_stat_alarm_run(&null, run, STEPS, alpha, &times);
            quiet[0] += times.e_step == 0;
            quiet[1] += times.cusum_step == 0;
        }
        har_stat_alarm_fini(&null);
    }
    char what[80];
    snprintf(what, sizeof what, "e-process quiet, promised 95 %%, %d runs calibrate", calibration);
    int good = report(what, quiet[0], ROUNDS * RUNS, 0.95, 1);
    snprintf(what, sizeof what, "CUSUM quiet, about %d/%d, %d runs calibrate", calibration,
             calibration + 1, calibration);
    good &= report(what, quiet[1], ROUNDS * RUNS, 0.0, 1);
    return good;
}

int main(void)
{
    int good = proportions();
    good &= survival(30);
    good &= survival(100);
    good &= survival(400);
    good &= doses(6, 0);
    good &= doses(100, 1);
    good &= alarms(8);
    good &= alarms(24);
    return good ? 0 : 1;
}
