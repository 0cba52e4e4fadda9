/* Prints what the statistics make of data sets on standard input, for peer.py to compare with R and
 * scipy. One data set a line: kind, then numbers; one result a line: number of the set, name,
 * value. Called by peer.py; must not know the peers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_stat_cover.h"
#include "har_stat_dose.h"
#include "har_stat_normal.h"
#include "har_stat_survival.h"
#include "har_stats.h"

enum { NUMBERS_MAX = 100000 };

struct set {
    size_t index, used, count;
    double *numbers;
};

static double take(struct set *s)
{
    if (s->used == s->count) {
        fprintf(stderr, "set %zu has too few numbers\n", s->index);
        exit(1);
    }
    return s->numbers[s->used++];
}

static void say(const struct set *s, const char *name, double value)
{
    printf("%zu %s %.17g\n", s->index, name, value);
}

static void say_at(const struct set *s, const char *name, size_t at, double value)
{
    printf("%zu %s.%zu %.17g\n", s->index, name, at, value);
}

static size_t take_group(struct set *s, double *times, bool *events)
{
    const size_t n = (size_t)take(s);
    for (size_t i = 0; i < n; i++) {
        times[i] = take(s);
        events[i] = take(s) != 0.0;
    }
    return n;
}

static bool *new_flags(void)
{
    return calloc(NUMBERS_MAX, sizeof(bool));
}

static double *new_numbers(void)
{
    return calloc(NUMBERS_MAX, sizeof(double));
}

static void survival(struct set *s)
{
    const double confidence = take(s);
    const double horizon = take(s);
    double *const times = new_numbers();
    bool *const events = new_flags();
    const size_t n = take_group(s, times, events);
    struct har_survival curve;
    if (!har_stat_survival(times, events, n, confidence, &curve)) {
        exit(1);
    }
    for (size_t i = 0; i < curve.count; i++) {
        const struct har_survival_step *const step = &curve.steps[i];
        say_at(s, "time", i, step->time);
        say_at(s, "survival", i, step->survival);
        say_at(s, "deviation", i, step->deviation);
        if (step->survival > 0.0 && step->survival < 1.0) { /* elsewhere R's formula is undefined */
            say_at(s, "low", i, step->low);
            say_at(s, "high", i, step->high);
        }
    }
    const struct har_mean mean = har_stat_survival_mean(&curve, horizon);
    say(s, "mean", mean.value);
    say(s, "mean_deviation", mean.deviation);
    har_stat_survival_fini(&curve);
    free(times);
    free(events);
}

static void log_rank(struct set *s)
{
    double *const times[2] = {new_numbers(), new_numbers()};
    bool *const events[2] = {new_flags(), new_flags()};
    struct har_group groups[2];
    for (int i = 0; i < 2; i++) {
        const size_t n = take_group(s, times[i], events[i]);
        groups[i] = (struct har_group){times[i], events[i], n};
    }
    struct har_log_rank test;
    if (!har_stat_log_rank(&groups[0], &groups[1], &test)) {
        exit(1);
    }
    say(s, "observed", test.observed);
    say(s, "expected", test.expected);
    say(s, "chi_square", test.chi_square);
    say(s, "p", test.p);
    for (int i = 0; i < 2; i++) {
        free(times[i]);
        free(events[i]);
    }
}

static void dose(struct set *s)
{
    const double confidence = take(s);
    const size_t n = (size_t)take(s);
    struct har_dose_point *const points = calloc(n + 1, sizeof *points);
    for (size_t i = 0; i < n; i++) {
        points[i].dose = take(s);
        points[i].detected = (size_t)take(s);
        points[i].tried = (size_t)take(s);
    }
    struct har_dose_fit fit;
    har_stat_dose(points, n, confidence, &fit);
    printf("%zu kind %d\n", s->index, (int)fit.kind);
    if (fit.kind == HAR_DOSE_fitted) {
        say(s, "intercept", fit.intercept);
        say(s, "slope", fit.slope);
        say(s, "var_intercept", fit.covariance[0]);
        say(s, "covariance", fit.covariance[1]);
        say(s, "var_slope", fit.covariance[2]);
        say(s, "log_ed50", log10(fit.ed50));
        if (isfinite(fit.high)) {
            say(s, "log_low", log10(fit.low));
            say(s, "log_high", log10(fit.high));
        }
    }
    free(points);
}

static void proportion(struct set *s)
{
    const size_t k = (size_t)take(s);
    const size_t n = (size_t)take(s);
    const struct har_interval i = har_stats_proportion(k, n, take(s));
    say(s, "low", i.low);
    say(s, "high", i.high);
}

static void normal(struct set *s)
{
    const double p = take(s);
    const double z = take(s);
    say(s, "quantile", har_stat_normal_quantile(p));
    say(s, "tails", har_stat_normal_tails(z));
    say(s, "chi", har_stat_chi_square_tail(fabs(z)));
}

static void sign(struct set *s)
{
    const size_t wins = (size_t)take(s);
    say(s, "p", har_stat_sign_test(wins, (size_t)take(s)));
}

static void cover(struct set *s)
{
    const size_t need = (size_t)take(s);
    const size_t n = (size_t)take(s);
    uint32_t *const masks = calloc(n + 1, sizeof *masks);
    for (size_t i = 0; i < n; i++) {
        masks[i] = (uint32_t)take(s);
    }
    const uint32_t allowed = (UINT32_C(1) << 18) - 1;
    uint32_t reach = 0;
    const uint32_t all = har_stat_cover_all(masks, n, allowed);
    say(s, "all", __builtin_popcount(all));
    say(s, "all_met", (double)har_stat_cover_count(masks, n, all));
    const bool found = har_stat_cover_reach(masks, n, allowed, need, &reach);
    say(s, "reach", found ? __builtin_popcount(reach) : -1.0);
    free(masks);
}

static size_t read_numbers(char *text, double *numbers)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " \n", &rest); word != NULL && count < NUMBERS_MAX;
         word = strtok_r(NULL, " \n", &rest)) {
        numbers[count++] = strtod(word, NULL);
    }
    return count;
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(struct set *s);
    } kinds[] = {
        {"survival", survival}, {"log_rank", log_rank}, {"dose", dose},  {"proportion", proportion},
        {"normal", normal},     {"sign", sign},         {"cover", cover}};
    char *line = NULL;
    size_t capacity = 0;
    struct set s = {.numbers = new_numbers()};
    while (getline(&line, &capacity, stdin) > 0) {
        const size_t length = strcspn(line, " ");
        bool known = false;
        s.used = 0;
        s.count = read_numbers(line + length, s.numbers);
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            if (strlen(kinds[i].name) == length && strncmp(kinds[i].name, line, length) == 0) {
                kinds[i].run(&s);
                known = true;
            }
        }
        if (!known) {
            fprintf(stderr, "set %zu: unknown kind\n", s.index);
            return 1;
        }
        s.index++;
    }
    free(line);
    free(s.numbers);
    return s.index > 0 ? 0 : 1;
}
