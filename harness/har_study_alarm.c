/* Judges stored losses by three alarms and counts.
 * Called by har_study.c; must not know formats. */
#include "har_study_alarm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "har_curve.h"
#include "har_stat_alarm.h"

static const char *const names[] = {
#define HAR_ROW_(name, text) #name,
    HAR_ALARM_METHODS(HAR_ROW_)
#undef HAR_ROW_
};
static const char *const texts[] = {
#define HAR_ROW_(name, text) text,
    HAR_ALARM_METHODS(HAR_ROW_)
#undef HAR_ROW_
};

const char *har_alarm_method_name(enum har_alarm_method method)
{
    return names[method];
}

const char *har_alarm_method_text(enum har_alarm_method method)
{
    return texts[method];
}

/* Relative differences of one run by step from 1; the caller frees. A step that the run took
 * without a finite loss is infinitely far off, one that it lacks is NaN. */
static double *differences_of(const char *json, size_t *steps)
{
    struct har_curve curve;
    double *d = NULL;
    *steps = 0;
    if (har_curve_parse(json, &curve)) {
        d = calloc(curve.count + 1, sizeof *d);
        *steps = d != NULL ? curve.count : 0;
        for (size_t i = 0; i < *steps; i++) {
            const double base = curve.reference[i];
            const double mine = curve.subject[i];
            d[i] = isnan(base)               ? (double)NAN
                   : !isnan(mine)            ? (mine - base) / fabs(base)
                   : i < curve.subject_count ? HUGE_VAL
                                             : (double)NAN;
        }
        har_curve_fini(&curve);
    }
    return d;
}

/* The null of one recipe from the losses of its calibration runs; false when there is none. */
static bool find_null(const struct har_results *r, const char *recipe, struct har_alarm_null *out)
{
    double *rows = NULL;
    size_t runs = 0;
    size_t steps = 0;
    for (size_t i = 0; i < r->loss_count; i++) {
        const struct har_losses *const l = &r->losses[i];
        size_t count = 0;
        if (l->kind != HAR_LOSSES_calibration || strcmp(l->recipe, recipe) != 0) {
            continue;
        }
        double *const d = differences_of(l->json, &count);
        steps = steps == 0 ? count : steps;
        double *const more =
            count == steps ? realloc(rows, (runs + 1) * steps * sizeof *rows) : NULL;
        if (d != NULL && more != NULL) {
            rows = more;
            memcpy(rows + runs++ * steps, d, steps * sizeof *d);
        }
        free(d);
    }
    const bool made = rows != NULL && har_stat_alarm_calibrate(rows, runs, steps, out);
    free(rows);
    return made;
}

static size_t first_outside(const double *d, size_t steps)
{
    const double band = 0.002; /* the case study's, as the check `band` */
    for (size_t i = 0; i < steps; i++) {
        if (!isnan(d[i]) && !(fabs(d[i]) <= band)) {
            return i + 1;
        }
    }
    return 0;
}

/* Steps to each alarm, for medians. */
struct counting {
    struct har_study_alarms *out;
    double *steps[HAR_ALARM_METHOD_COUNT];
};

static void count_run(struct counting *c, const struct har_losses *l,
                      const struct har_alarm_null *null)
{
    size_t count = 0;
    struct har_alarm_times times;
    double *const d = differences_of(l->json, &count);
    har_stat_alarm_run(null, d, count, c->out->alpha, &times);
    const size_t at[HAR_ALARM_METHOD_COUNT] = {[HAR_ALARM_e_process] = times.e_step,
                                               [HAR_ALARM_cusum] = times.cusum_step,
                                               [HAR_ALARM_band] = first_outside(d, count)};
    const bool healthy = l->kind == HAR_LOSSES_alarm;
    c->out->healthy += healthy;
    c->out->faulty += !healthy;
    for (int m = 0; m < HAR_ALARM_METHOD_COUNT; m++) {
        struct har_alarm_count *const a = &c->out->methods[m];
        a->false_alarms += healthy && at[m] > 0;
        if (!healthy && at[m] > 0) {
            c->steps[m][a->detected++] = har_outcome_steps(l->reached, (int)at[m]);
        }
    }
    free(d);
}

/* All runs of one recipe that are judged. */
static void count_recipe(struct counting *c, const struct har_results *r, const char *recipe)
{
    struct har_alarm_null null;
    if (!find_null(r, recipe, &null)) {
        return;
    }
    size_t *const fewest = &c->out->calibration;
    *fewest = *fewest == 0 || null.runs < *fewest ? null.runs : *fewest;
    for (size_t i = 0; i < r->loss_count; i++) {
        const struct har_losses *const l = &r->losses[i];
        const bool counted =
            l->entry >= 0 && l->counted && har_results_counts(&r->entries[l->entry]);
        if ((l->kind == HAR_LOSSES_alarm || counted) && strcmp(l->recipe, recipe) == 0) {
            count_run(c, l, &null);
        }
    }
    har_stat_alarm_fini(&null);
}

static bool is_first_of_recipe(const struct har_results *r, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(r->losses[i].recipe, r->losses[index].recipe) == 0) {
            return false;
        }
    }
    return true;
}

bool har_study_alarms_make(const struct har_results *r, struct har_study_alarms *out)
{
    struct counting c = {.out = out};
    bool good = true;
    memset(out, 0, sizeof *out);
    out->alpha = 0.05;
    for (int m = 0; m < HAR_ALARM_METHOD_COUNT; m++) {
        c.steps[m] = calloc(r->loss_count + 1, sizeof *c.steps[m]);
        good = good && c.steps[m] != NULL;
    }
    for (size_t i = 0; good && i < r->loss_count; i++) {
        if (is_first_of_recipe(r, i)) {
            count_recipe(&c, r, r->losses[i].recipe);
        }
    }
    for (int m = 0; m < HAR_ALARM_METHOD_COUNT; m++) {
        struct har_alarm_count *const a = &out->methods[m];
        a->false_interval = har_stats_proportion(a->false_alarms, out->healthy, 0.95);
        a->interval = har_stats_proportion(a->detected, out->faulty, 0.95);
        a->median_steps = good ? har_stats_median(c.steps[m], a->detected) : (double)NAN;
        free(c.steps[m]);
    }
    return good;
}
