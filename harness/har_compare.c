/* Results side by side. Called by cmd_report.c; must not know the database. */
#include "har_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "har_stat_normal.h"

static const struct har_result *find(const struct har_results *r, const char *id)
{
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->entries[i].id, id) == 0) {
            return &r->entries[i];
        }
    }
    return NULL;
}

static bool comparable(const struct har_result *a, const struct har_result *b)
{
    return strcmp(a->recipe, b->recipe) == 0 && a->seed == b->seed && a->horizon == b->horizon &&
           a->repeats == b->repeats && har_results_counts(a) && har_results_counts(b);
}

/* The entry of each side; false when they are no pair. */
static bool pair_at(const struct har_results *const sides[HAR_SIDES], size_t index,
                    const struct har_result *pair[HAR_SIDES])
{
    pair[0] = &sides[0]->entries[index];
    pair[1] = find(sides[1], pair[0]->id);
    return pair[1] != NULL && comparable(pair[0], pair[1]);
}

static bool is_detected(const struct har_result *e)
{
    return e->outcome == HAR_OUTCOME_detected;
}

static int steps_of(const struct har_result *e)
{
    return har_outcome_steps(e->reached, e->detected);
}

static void count_checks(const struct har_result *const pair[HAR_SIDES], struct har_compare *out)
{
    for (int c = 0; c < ORC_CHECK_COUNT; c++) {
        const bool fired[HAR_SIDES] = {pair[0]->check_steps[c] > 0, pair[1]->check_steps[c] > 0};
        for (int s = 0; s < HAR_SIDES; s++) {
            out->alone[s][c] += fired[s];
            out->alone_only[s][c] += fired[s] && !fired[1 - s];
        }
    }
}

static void count_pair(const struct har_result *const pair[HAR_SIDES], struct har_compare *out,
                       double *const steps[HAR_SIDES])
{
    const bool found[HAR_SIDES] = {is_detected(pair[0]), is_detected(pair[1])};
    out->entries++;
    for (int s = 0; s < HAR_SIDES; s++) {
        out->detected[s] += found[s];
        out->only[s] += found[s] && !found[1 - s];
    }
    out->neither += !found[0] && !found[1];
    if (found[0] && found[1]) {
        const int taken[HAR_SIDES] = {steps_of(pair[0]), steps_of(pair[1])};
        for (int s = 0; s < HAR_SIDES; s++) {
            steps[s][out->both] = taken[s];
            out->mean_steps[s] += taken[s];
            out->earlier[s] += taken[s] < taken[1 - s];
        }
        out->tied += taken[0] == taken[1];
        out->both++;
    }
    count_checks(pair, out);
}

bool har_compare_make(const struct har_results *const sides[HAR_SIDES], struct har_compare *out)
{
    double *const steps[HAR_SIDES] = {calloc(sides[0]->count + 1, sizeof(double)),
                                      calloc(sides[0]->count + 1, sizeof(double))};
    const bool memory = steps[0] != NULL && steps[1] != NULL;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; memory && i < sides[0]->count; i++) {
        const struct har_result *pair[HAR_SIDES];
        if (pair_at(sides, i, pair)) {
            count_pair(pair, out, steps);
        } else {
            out->apart += pair[1] != NULL;
        }
    }
    for (int s = 0; s < HAR_SIDES; s++) {
        out->mean_steps[s] = out->both > 0 ? out->mean_steps[s] / (double)out->both : (double)NAN;
        out->median_steps[s] = memory ? har_stats_median(steps[s], out->both) : (double)NAN;
        free(steps[s]);
    }
    return memory;
}

static void add_cell(const struct har_result *e, struct har_text *out)
{
    if (is_detected(e)) {
        har_text_addf(out, "  %-24s %6d",
                      e->first_check >= 0 ? orc_check_name((enum orc_check_id)e->first_check) : "?",
                      steps_of(e));
    } else {
        har_text_addf(out, "  %-24s %6s", har_outcome_name(e->outcome), "-");
    }
}

/* Faults that one side alone detects, or at another step. */
static void add_differences(const struct har_results *const sides[HAR_SIDES],
                            const char *const names[HAR_SIDES], struct har_text *out)
{
    enum { FAULT_WIDTH = 44 };
    bool titled = false;
    for (size_t i = 0; i < sides[0]->count; i++) {
        const struct har_result *pair[HAR_SIDES];
        if (!pair_at(sides, i, pair) ||
            (is_detected(pair[0]) == is_detected(pair[1]) &&
             (!is_detected(pair[0]) || steps_of(pair[0]) == steps_of(pair[1])))) {
            continue;
        }
        if (!titled) {
            har_text_addf(out, "%-*s  %-24s %6s  %-24s %6s\n", FAULT_WIDTH, "faults that differ",
                          names[0], "steps", names[1], "steps");
            titled = true;
        }
        har_text_addf(out, "%-*s", FAULT_WIDTH, pair[0]->id);
        add_cell(pair[0], out);
        add_cell(pair[1], out);
        har_text_add(out, "\n");
    }
    har_text_add(out, titled ? "\n" : "no fault differs in outcome or step\n\n");
}

static void add_checks(const struct har_compare *c, const char *const names[HAR_SIDES],
                       struct har_text *out)
{
    har_text_addf(out, "\n%-12s %20s %20s   of %zu, and of these by this one only\n", "check alone",
                  names[0], names[1], c->entries);
    for (int k = 0; k < ORC_CHECK_COUNT; k++) {
        if (c->alone[0][k] + c->alone[1][k] > 0) {
            har_text_addf(out, "%-12s %13zu %6zu %13zu %6zu\n",
                          orc_check_name((enum orc_check_id)k), c->alone[0][k], c->alone_only[0][k],
                          c->alone[1][k], c->alone_only[1][k]);
        }
    }
}

static void add_side(const struct har_results *r, const char *name, struct har_text *out)
{
    const struct har_summary *const s = &r->summary;
    har_text_addf(out,
                  "%s: %.1f s of child processes, of them %.1f s for %zu references; false alarms "
                  "%zu of %zu healthy runs (rate at most %.1f %% at 95 %%)\n",
                  name, s->child_seconds, s->reference_seconds, s->references, s->false_alarms,
                  s->healthy_runs, 100.0 * s->alarm_interval.high);
}

void har_compare_text(const struct har_results *const sides[HAR_SIDES], const struct har_compare *c,
                      const char *const names[HAR_SIDES], struct har_text *out)
{
    add_differences(sides, names, out);
    har_text_addf(out,
                  "entries that count in both: %zu (%zu more stand in both and cannot be "
                  "compared)\n",
                  c->entries, c->apart);
    har_text_addf(out, "detected by %s %zu, by %s %zu; by both %zu, by neither %zu\n", names[0],
                  c->detected[0], names[1], c->detected[1], c->both, c->neither);
    har_text_addf(out, "detected by %s only: %zu; by %s only: %zu\n", names[0], c->only[0],
                  names[1], c->only[1]);
    if (c->both > 0) {
        har_text_addf(out,
                      "steps to detection where both detect: %s median %g, mean %.2f; %s median "
                      "%g, mean %.2f; earlier in %s %zu, in %s %zu, equal %zu (sign test p = "
                      "%.3g)\n",
                      names[0], c->median_steps[0], c->mean_steps[0], names[1], c->median_steps[1],
                      c->mean_steps[1], names[0], c->earlier[0], names[1], c->earlier[1], c->tied,
                      har_stat_sign_test(c->earlier[0], c->earlier[1]));
    }
    add_checks(c, names, out);
    har_text_add(out, "\n");
    for (int s = 0; s < HAR_SIDES; s++) {
        add_side(sides[s], names[s], out);
    }
    const double other = sides[1]->summary.child_seconds;
    if (other > 0.0) {
        har_text_addf(out, "time of child processes, %s over %s: %.2f\n", names[0], names[1],
                      sides[0]->summary.child_seconds / other);
    }
}
