/* What the runs of fuzzers amount to, as text and JSON. Called by cmd_fuzz.c; must not know how a
 * run is made. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_fuzz.h"
#include "har_stat_survival.h"
#include "har_stats.h"

static const double confidence = 0.95;
const double har_fuzz_points[HAR_FUZZ_POINTS] = {10.0, 100.0, 1000.0, 10000.0, 100000.0};

/* Counts, and the times of the survival curve: executions to the finding; a run that ended
 * otherwise is censored where it ended. */
static void count_runs(const struct har_fuzz *fuzz, const struct har_fuzz_cell *cell,
                       struct har_fuzz_sum *out, double *times, bool *events, double *seconds)
{
    /* libFuzzer begins with the empty input. */
    const double in_seeds = fuzz->from_seeds ? (double)cell->target->seed_count + 1.0 : 0.0;
    const char *other = NULL;
    for (int r = 0; r < fuzz->repeats; r++) {
        const struct har_fuzz_run *const run = &cell->runs[r];
        if (!run->done) {
            continue;
        }
        const bool found = run->end == HAR_FUZZ_found;
        if (found) {
            seconds[out->found++] = run->seconds;
            out->in_seeds += run->executions <= in_seeds;
            out->by = out->by == NULL ? run->by : out->by;
        } else if (run->end != HAR_FUZZ_quiet) {
            other = other == NULL ? run->by : other;
        }
        out->crashed += run->end == HAR_FUZZ_crashed;
        out->hung += run->end == HAR_FUZZ_hung;
        out->no_verdict += run->end == HAR_FUZZ_no_verdict;
        out->reached += run->reached;
        out->executions += run->executions;
        out->horizon = run->executions > out->horizon ? run->executions : out->horizon;
        times[out->done] = run->executions;
        events[out->done++] = found;
    }
    out->by = out->by == NULL ? other : out->by;
}

bool har_fuzz_sum(const struct har_fuzz *fuzz, const struct har_fuzz_cell *cell,
                  struct har_fuzz_sum *out)
{
    const size_t most = (size_t)fuzz->repeats;
    double *const times = calloc(most, sizeof *times);
    double *const seconds = calloc(most, sizeof *seconds);
    bool *const events = calloc(most, sizeof *events);
    struct har_survival curve = {0};
    bool good = times != NULL && seconds != NULL && events != NULL;
    memset(out, 0, sizeof *out);
    if (good) {
        count_runs(fuzz, cell, out, times, events, seconds);
        good = har_stat_survival(times, events, (size_t)out->done, confidence, &curve);
    }
    if (good) {
        const struct har_mean mean = har_stat_survival_mean(&curve, out->horizon);
        out->mean = mean.value;
        out->mean_deviation = mean.deviation;
        out->median = har_stat_survival_time(&curve, 0.5);
        out->median_seconds = har_stats_median(seconds, (size_t)out->found);
        for (int i = 0; i < HAR_FUZZ_POINTS; i++) {
            out->survival[i] = har_stat_survival_at(&curve, har_fuzz_points[i]);
        }
        har_stat_survival_fini(&curve);
    }
    free(times);
    free(seconds);
    free(events);
    return good;
}

/* ---- text */

static void print_row(const struct har_fuzz_cell *cell, const struct har_fuzz_sum *s)
{
    char median[24] = "-";
    char seconds[24] = "-";
    char found[24];
    if (isfinite(s->median)) {
        snprintf(median, sizeof median, "%.0f", s->median);
    }
    if (s->found > 0) {
        snprintf(seconds, sizeof seconds, "%.2f", s->median_seconds);
    }
    snprintf(found, sizeof found, "%d/%d", s->found, s->done);
    printf("%-16s %-40s %6s %5d %5d %9s %11.1f", cell->target->name, cell->spec, found, s->in_seeds,
           s->crashed + s->hung, median, s->mean);
    for (int i = 0; i < HAR_FUZZ_POINTS; i++) {
        if (har_fuzz_points[i] > s->horizon && s->found < s->done) {
            printf("    -"); /* nobody was watched for so long */
        } else {
            printf(" %4.2f", s->survival[i]);
        }
    }
    printf(" %7s  %s\n", seconds,
           s->by != NULL                    ? s->by
           : s->reached == 0 && s->done > 0 ? "not reached"
                                            : "");
}

static void print_head(const struct har_fuzz *fuzz)
{
    printf("%d repeats, seeds from %llu, at most %.0f executions and %d s a run, %s\n",
           fuzz->repeats, (unsigned long long)fuzz->seed, fuzz->runs_max, fuzz->seconds_max,
           fuzz->from_seeds ? "from corpus/seeds" : "from nothing");
    printf("executions to the finding: median, mean within the longest run, share not found after "
           "10, 100, 1000, 10^4, 10^5 (Kaplan-Meier); seconds: median\n");
    printf("%-16s %-40s %6s %5s %5s %9s %11s %4s %4s %4s %4s %4s %7s  %s\n", "target", "fault",
           "found", "seeds", "crash", "median", "mean", "10", "100", "10^3", "10^4", "10^5",
           "seconds", "noticed by");
}

/* The best cell of each fault in the table. */
static void print_faults(const struct har_fuzz *fuzz, const struct har_fuzz_sum *sums)
{
    size_t faults = 0, always = 0, sometimes = 0;
    for (size_t c = 0; c < fuzz->cell_count; c++) {
        const struct har_fuzz_cell *const cell = &fuzz->cells[c];
        if (cell->fault == NULL || (c > 0 && fuzz->cells[c - 1].fault == cell->fault)) {
            continue;
        }
        bool all = false;
        bool some = false;
        for (size_t o = c; o < fuzz->cell_count && fuzz->cells[o].fault == cell->fault; o++) {
            all = all || (sums[o].done > 0 && sums[o].found == sums[o].done);
            some = some || sums[o].found > 0;
        }
        faults++;
        always += all;
        sometimes += some && !all;
        if (!some) {
            printf("not noticed: %s\n", cell->spec);
        }
    }
    printf("faults with a target that judges them %zu: noticed in every repeat %zu, in some %zu, "
           "never %zu\n",
           faults, always, sometimes, faults - always - sometimes);
}

static void print_unjudged(const struct har_fuzz *fuzz)
{
    for (size_t i = 0; i < fuzz->unjudged_count; i++) {
        const struct har_fuzz_unjudged *const u = &fuzz->unjudged[i];
        if (u->reached_in == NULL) {
            printf("not reached by any target's seeds: %s\n", u->fault->id);
        } else {
            printf("no target judges it (reached in %s): %s\n", u->reached_in, u->fault->id);
        }
    }
}

static void print_controls(const struct har_fuzz *fuzz, const struct har_fuzz_sum *sums)
{
    int runs = 0, alarms = 0;
    double executions = 0.0;
    for (size_t c = 0; c < fuzz->cell_count && fuzz->cells[c].fault == NULL; c++) {
        runs += sums[c].done;
        alarms += sums[c].found + sums[c].crashed + sums[c].hung;
        executions += sums[c].executions;
    }
    printf("controls, nothing armed, same seeds and budget: %d runs, %.0f executions, alarms %d\n",
           runs, executions, alarms);
}

static struct har_fuzz_sum *sum_all(const struct har_fuzz *fuzz)
{
    struct har_fuzz_sum *const sums = calloc(fuzz->cell_count + 1, sizeof *sums);
    bool good = sums != NULL;
    for (size_t c = 0; good && c < fuzz->cell_count; c++) {
        good = har_fuzz_sum(fuzz, &fuzz->cells[c], &sums[c]);
    }
    if (!good) {
        free(sums);
        return NULL;
    }
    return sums;
}

enum har_status har_fuzz_print_text(const struct har_fuzz *fuzz, struct har_error *error)
{
    struct har_fuzz_sum *const sums = sum_all(fuzz);
    if (sums == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for a table");
    }
    print_head(fuzz);
    for (size_t c = 0; c < fuzz->cell_count; c++) {
        if (fuzz->cells[c].fault != NULL || sums[c].found + sums[c].crashed + sums[c].hung > 0) {
            print_row(&fuzz->cells[c], &sums[c]);
        }
    }
    print_unjudged(fuzz);
    print_faults(fuzz, sums);
    print_controls(fuzz, sums);
    free(sums);
    return HAR_OK;
}

/* ---- JSON */

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *runs_json(const struct har_fuzz *fuzz, const struct har_fuzz_cell *cell)
{
    json_t *const list = json_array();
    for (int r = 0; r < fuzz->repeats; r++) {
        const struct har_fuzz_run *const run = &cell->runs[r];
        if (run->done) {
            json_array_append_new(
                list, json_pack("{s:I, s:s, s:f, s:f, s:b, s:s}", "seed", (json_int_t)run->seed,
                                "end", har_fuzz_end_name(run->end), "executions", run->executions,
                                "seconds", run->seconds, "reached", run->reached, "by", run->by));
        }
    }
    return list;
}

static json_t *cell_json(const struct har_fuzz *fuzz, const struct har_fuzz_cell *cell,
                         const struct har_fuzz_sum *s)
{
    json_t *const survival = json_array();
    for (int i = 0; i < HAR_FUZZ_POINTS; i++) {
        json_array_append_new(survival, json_pack("{s:f, s:f}", "executions", har_fuzz_points[i],
                                                  "not_found", s->survival[i]));
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:f, s:f, s:f, s:o, "
                     "s:o}",
                     "target", cell->target->name, "fault", cell->spec, "repeats", s->done, "found",
                     s->found, "found_in_seeds", s->in_seeds, "crashed", s->crashed, "hung",
                     s->hung, "no_verdict", s->no_verdict, "reached", s->reached,
                     "median_executions", number_or_null(s->median), "median_seconds",
                     number_or_null(s->median_seconds), "mean_executions", s->mean,
                     "mean_executions_deviation", s->mean_deviation, "horizon", s->horizon,
                     "survival", survival, "runs", runs_json(fuzz, cell));
}

enum har_status har_fuzz_print_json(const struct har_fuzz *fuzz, struct har_error *error)
{
    struct har_fuzz_sum *const sums = sum_all(fuzz);
    if (sums == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for a table");
    }
    json_t *const faults = json_array();
    json_t *const controls = json_array();
    json_t *const unjudged = json_array();
    for (size_t c = 0; c < fuzz->cell_count; c++) {
        json_array_append_new(fuzz->cells[c].fault != NULL ? faults : controls,
                              cell_json(fuzz, &fuzz->cells[c], &sums[c]));
    }
    for (size_t i = 0; i < fuzz->unjudged_count; i++) {
        json_array_append_new(unjudged,
                              json_pack("{s:s, s:s?}", "fault", fuzz->unjudged[i].fault->id,
                                        "reached_in", fuzz->unjudged[i].reached_in));
    }
    json_t *const root = json_pack(
        "{s:f, s:i, s:i, s:I, s:b, s:o, s:o, s:o}", "runs_max", fuzz->runs_max, "seconds_max",
        fuzz->seconds_max, "repeats", fuzz->repeats, "seed", (json_int_t)fuzz->seed, "from_seeds",
        fuzz->from_seeds, "faults", faults, "controls", controls, "unjudged", unjudged);
    free(sums);
    if (root == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for a table");
    }
    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    fputc('\n', stdout);
    json_decref(root);
    return HAR_OK;
}
