/* Product-limit curves, Greenwood bands, restricted means, log-rank.
 * Used by the reports; must not know what an event is. */
#include "har_stat_survival.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "har_stat_normal.h"
#include "har_stats.h"

struct subject {
    double time;
    bool event;
    bool first; /* of the first group */
};

static int by_time(const void *a, const void *b)
{
    const double x = ((const struct subject *)a)->time;
    const double y = ((const struct subject *)b)->time;
    return (x > y) - (x < y);
}

/* Both groups in one sorted array; NULL when memory is exhausted. */
static struct subject *sorted(const struct har_group *first, const struct har_group *second)
{
    const size_t count = first->count + (second != NULL ? second->count : 0);
    struct subject *const all = calloc(count + 1, sizeof *all);
    for (size_t i = 0; all != NULL && i < count; i++) {
        const bool is_first = i < first->count;
        const struct har_group *const group = is_first ? first : second;
        const size_t index = is_first ? i : i - first->count;
        all[i] = (struct subject){group->times[index], group->events[index], is_first};
    }
    if (all != NULL) {
        qsort(all, count, sizeof *all, by_time);
    }
    return all;
}

static void set_band(struct har_survival_step *step, const struct har_survival_step *before,
                     double sum, double z)
{
    const double s = step->survival;
    if (s >= 1.0) {
        step->low = step->high = 1.0;
    } else if (s <= 0.0) {
        const bool carried = before != NULL && before->survival < 1.0;
        step->low = 0.0;
        step->high =
            carried ? before->high
                    : har_stats_proportion(0, step->at_risk, 1.0 - har_stat_normal_tails(z)).high;
    } else {
        /* Delta method: se(log(-log S)) = sqrt(sum) / |log S|. */
        const double width = exp(z * sqrt(sum) / fabs(log(s)));
        step->low = pow(s, width);
        step->high = pow(s, 1.0 / width);
    }
}

bool har_stat_survival(const double *times, const bool *events, size_t count, double confidence,
                       struct har_survival *out)
{
    const struct har_group group = {times, events, count};
    const double z = har_stat_normal_quantile(0.5 + 0.5 * confidence);
    struct subject *const all = sorted(&group, NULL);
    memset(out, 0, sizeof *out);
    out->steps = calloc(count + 1, sizeof *out->steps);
    if (all == NULL || out->steps == NULL) {
        free(all);
        har_stat_survival_fini(out);
        return false;
    }
    double survival = 1.0;
    double sum = 0.0; /* of d / (n (n - d)) */
    out->subjects = count;
    for (size_t i = 0; i < count;) {
        struct har_survival_step *const step = &out->steps[out->count];
        *step = (struct har_survival_step){.time = all[i].time, .at_risk = count - i};
        for (; i < count && !(all[i].time > step->time); i++) {
            step->events += all[i].event;
            step->censored += !all[i].event;
        }
        const double n = (double)step->at_risk;
        const double d = (double)step->events;
        survival *= (n - d) / n;
        sum += step->events < step->at_risk ? d / (n * (n - d)) : 0.0;
        step->survival = survival;
        step->deviation = survival * sqrt(sum);
        set_band(step, out->count > 0 ? step - 1 : NULL, sum, z);
        out->events += step->events;
        out->count++;
    }
    free(all);
    return true;
}

void har_stat_survival_fini(struct har_survival *curve)
{
    free(curve->steps);
    memset(curve, 0, sizeof *curve);
}

double har_stat_survival_at(const struct har_survival *curve, double time)
{
    double survival = 1.0;
    for (size_t i = 0; i < curve->count && curve->steps[i].time <= time; i++) {
        survival = curve->steps[i].survival;
    }
    return survival;
}

double har_stat_survival_time(const struct har_survival *curve, double share)
{
    for (size_t i = 0; i < curve->count; i++) {
        if (curve->steps[i].survival <= 1.0 - share) {
            return curve->steps[i].time;
        }
    }
    return HUGE_VAL;
}

/* Area under the curve between a step's time and the horizon. */
static double area_from(const struct har_survival *curve, size_t index, double horizon)
{
    double area = 0.0;
    for (size_t i = index; i < curve->count && curve->steps[i].time < horizon; i++) {
        const bool last = i + 1 == curve->count || curve->steps[i + 1].time > horizon;
        const double end = last ? horizon : curve->steps[i + 1].time;
        area += curve->steps[i].survival * (end - curve->steps[i].time);
    }
    return area;
}

struct har_mean har_stat_survival_mean(const struct har_survival *curve, double horizon)
{
    const bool empty = curve->count == 0 || curve->steps[0].time > horizon;
    struct har_mean mean = {empty ? horizon : curve->steps[0].time, 0.0};
    double variance = 0.0;
    for (size_t i = 0; i < curve->count && curve->steps[i].time <= horizon; i++) {
        const double n = (double)curve->steps[i].at_risk;
        const double d = (double)curve->steps[i].events;
        const double area = area_from(curve, i, horizon);
        mean.value += i == 0 ? area : 0.0;
        variance += curve->steps[i].events < curve->steps[i].at_risk
                        ? area * area * d / (n * (n - d))
                        : 0.0;
    }
    mean.deviation = sqrt(variance);
    return mean;
}

bool har_stat_log_rank(const struct har_group *first, const struct har_group *second,
                       struct har_log_rank *out)
{
    struct subject *const all = sorted(first, second);
    if (all == NULL) {
        return false;
    }
    const size_t count = first->count + second->count;
    size_t first_at_risk = first->count;
    double variance = 0.0;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < count;) {
        const double n = (double)(count - i);
        const double n_first = (double)first_at_risk;
        const double time = all[i].time;
        double d = 0.0;
        for (; i < count && !(all[i].time > time); i++) {
            d += all[i].event;
            out->observed += all[i].event && all[i].first;
            first_at_risk -= all[i].first;
        }
        out->expected += d * n_first / n;
        variance += n > 1.0 ? d * (n_first / n) * (1.0 - n_first / n) * (n - d) / (n - 1.0) : 0.0;
    }
    free(all);
    const double difference = out->observed - out->expected;
    out->chi_square = variance > 0.0 ? difference * difference / variance : (double)NAN;
    out->p = variance > 0.0 ? har_stat_chi_square_tail(out->chi_square) : (double)NAN;
    return true;
}
