/* Survival, sets of checks, doses, subsumption, rates, false alarms, localisation to JSON.
 * Called by har_report_data.c and har_report_page.c; must not know how results come about. */
#include "har_report_study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *har_report_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *har_report_text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *interval_json(struct har_interval interval)
{
    return json_pack("[ff]", interval.low, interval.high);
}

static json_t *checks_json(uint32_t mask)
{
    json_t *const list = json_array();
    for (int c = 0; c < ORC_CHECK_COUNT; c++) {
        if ((mask >> c & 1) != 0) {
            json_array_append_new(list, json_string(orc_check_name((enum orc_check_id)c)));
        }
    }
    return list;
}

/* Rows of [time, at risk, events, censored, survival, low, high]. */
static json_t *curve_json(const struct har_survival *curve)
{
    json_t *const rows = json_array();
    for (size_t i = 0; i < curve->count; i++) {
        const struct har_survival_step *const s = &curve->steps[i];
        json_array_append_new(rows, json_pack("[fIIIfff]", s->time, (json_int_t)s->at_risk,
                                              (json_int_t)s->events, (json_int_t)s->censored,
                                              s->survival, s->low, s->high));
    }
    return rows;
}

/* Tests against the check `curve` need its times. */
static void add_tests(const struct har_study_check *c, bool first_verdict, json_t *o)
{
    json_object_set_new(o, "log_rank_against_curve",
                        first_verdict ? json_null()
                                      : json_pack("{s:o, s:o}", "chi_square",
                                                  har_report_number(c->rank.chi_square), "p",
                                                  har_report_number(c->rank.p)));
    json_object_set_new(o, "sign_test_against_curve",
                        first_verdict
                            ? json_null()
                            : json_pack("{s:I, s:I, s:I, s:f}", "earlier", (json_int_t)c->earlier,
                                        "later", (json_int_t)c->later, "tied", (json_int_t)c->tied,
                                        "p", c->sign_p));
}

static json_t *check_json(const struct har_study_check *c, double horizon, bool first_verdict)
{
    json_t *const o = json_object();
    json_object_set_new(o, "detected", json_integer((json_int_t)c->detected));
    json_object_set_new(o, "median_steps", har_report_number(c->median));
    json_object_set_new(o, "restricted_mean_steps", har_report_number(c->mean.value));
    json_object_set_new(o, "restricted_mean_standard_error", har_report_number(c->mean.deviation));
    json_object_set_new(o, "restricted_to", har_report_number(horizon));
    add_tests(c, first_verdict, o);
    json_object_set_new(o, "survival", curve_json(&c->curve));
    return o;
}

static json_t *survival_json(const struct har_study *s, bool first_verdict)
{
    json_t *const o = json_object();
    json_t *const checks = json_object();
    json_object_set_new(o, "unit",
                        json_string("steps from reaching the site; a fault not detected"
                                    " is censored at the horizon"));
    json_object_set_new(
        o, "columns",
        json_pack("[sssssss]", "time", "at_risk", "events", "censored", "survival", "low", "high"));
    json_object_set_new(o, "all", check_json(&s->any, s->horizon, first_verdict));
    for (int c = 0; !first_verdict && c < ORC_CHECK_COUNT; c++) {
        json_object_set_new(checks, orc_check_name((enum orc_check_id)c),
                            check_json(&s->checks[c], s->horizon, false));
    }
    json_object_set_new(o, "checks", checks);
    return o;
}

static json_t *sets_json(const struct har_study *s)
{
    json_t *const goals = json_array();
    json_t *const prices = json_object();
    json_t *const inputs = json_object();
    for (int i = 0; i < HAR_STUDY_GOALS; i++) {
        const struct har_study_goal *const g = &s->goals[i];
        if (g->possible) {
            json_array_append_new(goals, json_pack("{s:f, s:I, s:o, s:f, s:o, s:f}", "share",
                                                   g->share, "entries", (json_int_t)g->need,
                                                   "smallest", checks_json(g->smallest),
                                                   "smallest_seconds", g->smallest_seconds,
                                                   "cheapest", checks_json(g->cheapest),
                                                   "cheapest_seconds", g->cheapest_seconds));
        }
    }
    for (int i = 0; i < HAR_INPUT_COUNT; i++) {
        json_object_set_new(prices, har_input_name((enum har_input)i),
                            har_report_number(s->cost.price[i]));
    }
    for (int c = 0; c < ORC_CHECK_COUNT; c++) {
        json_t *const list = json_array();
        for (int i = 0; i < HAR_INPUT_COUNT; i++) {
            if ((s->cost.inputs[c] >> i & 1) != 0) {
                json_array_append_new(list, json_string(har_input_name((enum har_input)i)));
            }
        }
        json_object_set_new(inputs, orc_check_name((enum orc_check_id)c), list);
    }
    return json_pack("{s:o, s:I, s:o, s:o, s:o}", "smallest_that_detects_all",
                     checks_json(s->smallest), "entries",
                     (json_int_t)har_stat_cover_count(s->masks, s->count, s->smallest), "goals",
                     goals, "seconds_of_a_run", prices, "inputs", inputs);
}

static json_t *points_json(const struct har_dose_point *points, size_t count)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_pack("{s:f, s:I, s:I}", "dose", points[i].dose, "detected",
                                              (json_int_t)points[i].detected, "tried",
                                              (json_int_t)points[i].tried));
    }
    return list;
}

static json_t *fit_json(const struct har_dose_fit *fit)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "kind", har_dose_kind_name(fit->kind),
                     "ed50", har_report_number(fit->ed50), "low", har_report_number(fit->low),
                     "high", har_report_number(fit->high), "intercept",
                     har_report_number(fit->intercept), "slope", har_report_number(fit->slope));
}

static json_t *doses_json(const struct har_study *s)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < s->dose_count; i++) {
        const struct har_study_dose *const d = &s->doses[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "fault", d->fault, "unit", d->unit,
                            "points", points_json(d->points, d->count), "fit", fit_json(&d->fit),
                            "loss_only_points", points_json(d->loss_only, d->count),
                            "loss_only_fit", fit_json(&d->loss_only_fit)));
    }
    return list;
}

static json_t *subsumption_json(const struct har_study *s)
{
    json_t *const roots = json_array();
    for (size_t i = 0; i < s->count; i++) {
        if (!s->root[i]) {
            continue;
        }
        json_t *const same = json_array();
        for (size_t k = 0; k < s->count; k++) {
            if (k != i && s->representative[k] == i && s->masks[k] != 0) {
                json_array_append_new(same, json_string(s->entries[k]->id));
            }
        }
        json_array_append_new(roots, json_pack("{s:s, s:o, s:o}", "id", s->entries[i]->id, "checks",
                                               checks_json(s->masks[i]), "same", same));
    }
    return json_pack("{s:I, s:I, s:o}", "roots", (json_int_t)s->roots, "roots_detected_by_curve",
                     (json_int_t)s->roots_detected_by_curve, "faults", roots);
}

static json_t *rates_json(const struct har_study_rate *rates, size_t count)
{
    json_t *const o = json_object();
    for (size_t i = 0; i < count; i++) {
        if (rates[i].n > 0) {
            json_object_set_new(
                o, rates[i].name,
                json_pack("{s:I, s:I, s:o}", "detected", (json_int_t)rates[i].detected, "of",
                          (json_int_t)rates[i].n, "interval", interval_json(rates[i].interval)));
        }
    }
    return o;
}

static json_t *alarms_json(const struct har_summary *s)
{
    json_t *const checks = json_object();
    for (int c = 0; c < ORC_CHECK_COUNT; c++) {
        const struct har_alarms *const a = &s->alarms[c];
        json_object_set_new(
            checks, orc_check_name((enum orc_check_id)c),
            json_pack("{s:I, s:I, s:o}", "runs", (json_int_t)a->runs, "false_alarms",
                      (json_int_t)a->fired, "interval",
                      interval_json(har_stats_proportion(a->fired, a->runs, 0.95))));
    }
    return json_pack("{s:I, s:I, s:o, s:o}", "runs", (json_int_t)s->healthy_runs, "false_alarms",
                     (json_int_t)s->false_alarms, "interval", interval_json(s->alarm_interval),
                     "checks", checks);
}

static json_t *blame_json(const struct har_study_blame *b)
{
    json_t *const classes = json_object();
    for (int c = 0; c < MUT_CLASS_COUNT; c++) {
        if (b->by_class[c][0] > 0) {
            json_object_set_new(classes, mut_class_name((enum mut_class)c),
                                json_pack("{s:I, s:I}", "of", (json_int_t)b->by_class[c][0],
                                          "right", (json_int_t)b->by_class[c][1]));
        }
    }
    return json_pack("{s:I, s:I, s:o, s:o}", "of", (json_int_t)b->n, "right", (json_int_t)b->right,
                     "interval", interval_json(b->interval), "classes", classes);
}

static json_t *loss_alarms_json(const struct har_study_alarms *a)
{
    json_t *const methods = json_array();
    for (int m = 0; m < HAR_ALARM_METHOD_COUNT; m++) {
        const struct har_alarm_count *const c = &a->methods[m];
        json_array_append_new(
            methods, json_pack("{s:s, s:s, s:I, s:o, s:I, s:o, s:o}", "name",
                               har_alarm_method_name((enum har_alarm_method)m), "text",
                               har_alarm_method_text((enum har_alarm_method)m), "false_alarms",
                               (json_int_t)c->false_alarms, "false_alarm_interval",
                               interval_json(c->false_interval), "detected",
                               (json_int_t)c->detected, "interval", interval_json(c->interval),
                               "median_steps", har_report_number(c->median_steps)));
    }
    return json_pack("{s:f, s:I, s:I, s:I, s:o}", "alpha", a->alpha, "healthy_runs",
                     (json_int_t)a->healthy, "faulty_runs", (json_int_t)a->faulty,
                     "calibration_runs", (json_int_t)a->calibration, "methods", methods);
}

json_t *har_report_study_json(const struct har_results *results, const struct har_study *s)
{
    json_t *const o = json_object();
    const bool first_verdict = har_results_first_verdict(results);
    const bool cut = first_verdict || results->cut > 0;
    json_object_set_new(o, "entries", json_integer((json_int_t)s->count));
    json_object_set_new(o, "survival", survival_json(s, first_verdict));
    json_object_set_new(o, "families", rates_json(s->families, MUT_FAMILY_COUNT));
    json_object_set_new(o, "classes", rates_json(s->classes, MUT_CLASS_COUNT));
    json_object_set_new(o, "false_alarms", alarms_json(&results->summary));
    /* What is left needs the times of every check, or whole runs. */
    json_object_set_new(o, "dose_response", first_verdict ? json_array() : doses_json(s));
    json_object_set_new(o, "sets", first_verdict ? json_null() : sets_json(s));
    json_object_set_new(o, "subsumption", first_verdict ? json_null() : subsumption_json(s));
    json_object_set_new(o, "loss_alarms", cut ? json_null() : loss_alarms_json(&s->alarms));
    json_object_set_new(o, "localisation", cut ? json_null() : blame_json(&s->blame));
    return o;
}

void har_report_put_json(struct har_text *out, json_t *root)
{
    char *const text =
        root != NULL ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
    if (text != NULL) {
        har_text_add(out, text);
        har_text_add(out, "\n");
    } else {
        out->failed = true;
    }
    free(text);
    json_decref(root);
}
