/* The files of a results folder, and the sentences all formats share.
 * Called by the commands; must not know how results come about. */
#include "har_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_report_page.h"

static void add_rate(const struct har_summary *s, struct har_text *out)
{
    if (s->rate_below == 0) {
        har_text_add(out, "detected 0 of 0 faults that counted\n");
        return;
    }
    har_text_addf(out,
                  "detected %zu of %zu faults that were infected, latent or dead: %.1f %% (exact "
                  "95 %% interval %.1f to %.1f %%, of a population like this catalogue)\n",
                  s->outcomes[HAR_OUTCOME_detected], s->rate_below, 100.0 * s->rate,
                  100.0 * s->rate_interval.low, 100.0 * s->rate_interval.high);
}

static void add_contrast(const struct har_summary *s, struct har_text *out)
{
    static const enum orc_check_id baselines[] = {ORC_CHECK_curve, ORC_CHECK_band,
                                                  ORC_CHECK_loss_only};
    har_text_add(out, "alone, of the same faults:");
    for (size_t i = 0; i < sizeof baselines / sizeof baselines[0]; i++) {
        har_text_addf(out, "%s %s %zu", i > 0 ? "," : "", orc_check_name(baselines[i]),
                      s->alone[baselines[i]]);
    }
    har_text_addf(out, " of %zu\n", s->rate_below);
}

static void add_others(const struct har_summary *s, struct har_text *out)
{
    har_text_addf(out, "entries %zu: KILL %zu, EQUIVALENT %zu, GAP %zu; of KILL:", s->entries,
                  s->kill, s->equivalent, s->gap);
    bool first = true;
    for (int i = 0; i < HAR_OUTCOME_COUNT; i++) {
        if (s->outcomes[i] > 0) {
            har_text_addf(out, "%s %s %zu", first ? "" : ",", har_outcome_name((enum har_outcome)i),
                          s->outcomes[i]);
            first = false;
        }
    }
    har_text_add(out, first ? " none\n" : "\n");
}

/* An oracle of the user is believed as far as it passes healthy runs and kills the planted fault.
 */
static void add_external(const struct har_summary *s, struct har_text *out)
{
    const struct har_alarms *const a = &s->alarms[ORC_CHECK_external];
    if (s->external_asked == 0) {
        return;
    }
    har_text_addf(out,
                  "external oracle: %s the planted fault, false alarms %zu of %zu healthy runs, no "
                  "verdict in %zu of %zu cases%s\n",
                  s->external_killed ? "fires on" : "does not fire on", a->fired, a->runs,
                  s->external_lost, s->external_asked,
                  s->external_killed && a->fired == 0 && a->runs > 0 ? "" : ": not calibrated");
}

static void add_unexpected(const struct har_results *r, struct har_text *out)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct har_result *const e = &r->entries[i];
        if (e->outcome == HAR_OUTCOME_detected && strcmp(e->expectation, "KILL") != 0) {
            har_text_addf(out, "%s is declared %s but is detected by %s\n", e->id, e->expectation,
                          e->first_check >= 0 ? orc_check_name((enum orc_check_id)e->first_check)
                                              : "?");
        }
    }
}

static void add_checks(uint32_t mask, struct har_text *out)
{
    const char *comma = "";
    for (int c = 0; c < ORC_CHECK_COUNT; c++) {
        if ((mask >> c & 1) != 0) {
            har_text_addf(out, "%s %s", comma, orc_check_name((enum orc_check_id)c));
            comma = ",";
        }
    }
}

static void add_blame(const struct har_study_blame *b, struct har_text *out)
{
    har_text_addf(out,
                  "diff blames the stage where the fault first shows: %zu of %zu (%.1f %%, exact "
                  "95 %% interval %.1f to %.1f %%)\n  by the class of the fault:",
                  b->right, b->n, 100.0 * (double)b->right / (double)b->n, 100.0 * b->interval.low,
                  100.0 * b->interval.high);
    for (int c = 0; c < MUT_CLASS_COUNT; c++) {
        if (b->by_class[c][0] > 0) {
            har_text_addf(out, " %s %zu of %zu", mut_class_name((enum mut_class)c),
                          b->by_class[c][1], b->by_class[c][0]);
        }
    }
    har_text_add(out, "\n");
}

static void add_study(const struct har_study *s, bool first_verdict, struct har_text *out)
{
    if (s->count == 0) {
        return;
    }
    har_text_addf(out,
                  "mean steps to detection within %g (restricted mean, standard error): all checks "
                  "%.2f (%.2f)",
                  s->horizon, s->any.mean.value, s->any.mean.deviation);
    if (first_verdict) {
        har_text_add(out, "\n");
        return;
    }
    har_text_addf(out, ", loss_only %.2f (%.2f), curve %.2f (%.2f)\n",
                  s->checks[ORC_CHECK_loss_only].mean.value,
                  s->checks[ORC_CHECK_loss_only].mean.deviation,
                  s->checks[ORC_CHECK_curve].mean.value, s->checks[ORC_CHECK_curve].mean.deviation);
    har_text_addf(out, "smallest set of checks that detects all %zu:",
                  har_stat_cover_count(s->masks, s->count, s->smallest));
    add_checks(s->smallest, out);
    har_text_add(out, "\n");
    for (int i = 0; i < HAR_STUDY_GOALS; i++) {
        const struct har_study_goal *const g = &s->goals[i];
        if (g->possible && g->share >= 0.9) {
            har_text_addf(out,
                          "time of the cheapest set for %g %%: %.2f s a case:", 100.0 * g->share,
                          g->cheapest_seconds);
            add_checks(g->cheapest, out);
            har_text_add(out, "\n");
            break;
        }
    }
    har_text_addf(out, "faults that no other subsumes: %zu, of them curve alone sees %zu\n",
                  s->roots, s->roots_detected_by_curve);
    if (s->alarms.faulty > 0) {
        har_text_add(out, "alarms on the loss, faulty runs seen and false alarms:");
        for (int m = 0; m < HAR_ALARM_METHOD_COUNT; m++) {
            const struct har_alarm_count *const a = &s->alarms.methods[m];
            har_text_addf(out, "%s %s %zu of %zu and %zu of %zu", m > 0 ? "," : "",
                          har_alarm_method_name((enum har_alarm_method)m), a->detected,
                          s->alarms.faulty, a->false_alarms, s->alarms.healthy);
        }
        har_text_add(out, "\n");
    }
    if (s->blame.n > 0) {
        add_blame(&s->blame, out);
    }
}

/* One line: whatever compares two tables leaves it out. */
static void add_time(const struct har_results *r, struct har_text *out)
{
    const struct har_summary *const s = &r->summary;
    har_text_addf(out, "time %.1f s; mode %s: %zu references, %.1f s of %.1f s of child processes",
                  s->seconds, r->mode[0] != '\0' ? r->mode : "free", s->references,
                  s->reference_seconds, s->child_seconds);
    const double mutants = har_spent_per_minute(&s->spent);
    if (!isnan(mutants)) {
        har_text_addf(out, "; %.0f faults a minute", mutants);
    }
    if (!isnan(har_spent_percent(&s->spent, HAR_WORK_idle))) {
        har_text_add(out, "; of all cores' time:");
        for (int i = 0; i < HAR_WORK_COUNT; i++) {
            har_text_addf(out, "%s %s %.1f %%", i > 0 ? "," : "", har_work_name((enum har_work)i),
                          har_spent_percent(&s->spent, (enum har_work)i));
        }
    }
    har_text_add(out, "\n");
}

void har_report_summary(const struct har_results *r, const struct har_study *study,
                        struct har_text *out)
{
    const struct har_summary *const s = &r->summary;
    const bool first_verdict = har_results_first_verdict(r);
    add_others(s, out);
    add_rate(s, out);
    if (first_verdict) {
        har_text_add(out, "runs stopped at the first verdict: no times of the other checks, so "
                          "nothing on what each would have detected alone, no sets, no curves\n");
    } else {
        add_contrast(s, out);
    }
    if (isinf(s->median_steps)) {
        har_text_add(out, "median steps to detection from reached: beyond the horizon\n");
    } else if (!isnan(s->median_steps)) {
        har_text_addf(out, "median steps to detection from reached: %g\n", s->median_steps);
    }
    add_study(study, first_verdict, out);
    har_text_addf(out,
                  "healthy runs not used for the bounds: %zu, false alarms %zu (rate at most %.1f "
                  "%% at 95 %%)\n",
                  s->healthy_runs, s->false_alarms, 100.0 * s->alarm_interval.high);
    add_external(s, out);
    add_unexpected(r, out);
    if (r->controls[0] != '\0') {
        har_text_addf(out, "controls: %s\n", r->controls);
    }
    add_time(r, out);
}

enum har_status har_report_format(const struct har_results *r, const struct har_study *study,
                                  const char *format, bool colour, struct har_text *out,
                                  struct har_error *error)
{
    static const struct {
        const char *name;
        har_report_writer *write;
    } formats[] = {{"json", har_report_json},       {"csv", har_report_csv},
                   {"junit", har_report_junit},     {"markdown", har_report_markdown},
                   {"stryker", har_report_stryker}, {"sarif", har_report_sarif}};
    har_report_writer *write = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        write = strcmp(format, formats[i].name) == 0 ? formats[i].write : write;
    }
    if (write != NULL) {
        write(r, study, out);
    } else if (strcmp(format, "text") == 0) {
        har_report_text(r, study, colour, out);
    } else {
        return har_fail(error, HAR_EUSAGE,
                        "--format takes text, json, csv, junit, markdown, stryker or sarif, not "
                        "'%s'",
                        format);
    }
    return out->failed ? har_fail(error, HAR_EMEMORY, "no memory for the report") : HAR_OK;
}

static const struct {
    const char *file;
    har_report_writer *write;
} files[] = {{"report.html", har_report_page},      {"results.json", har_report_json},
             {"mutation.json", har_report_stryker}, {"junit.xml", har_report_junit},
             {"missed.sarif", har_report_sarif},    {"results.csv", har_report_csv},
             {"summary.md", har_report_markdown}};
enum { FILE_COUNT = sizeof files / sizeof files[0] };

static bool is_written(size_t index)
{
    return files[index].write != har_report_page || har_report_page_built();
}

void har_report_names(struct har_text *out)
{
    for (size_t i = 0; i < FILE_COUNT; i++) {
        if (is_written(i)) {
            har_text_addf(out, "%s, ", files[i].file);
        }
    }
    har_text_add(out, "results.sqlite");
    if (!har_report_page_built()) {
        har_text_add(out, " (no report.html: this program was built without the page of "
                          "harness/web, which needs npm)");
    }
}

enum har_status har_report_write_all(const struct har_results *r, const struct har_study *study,
                                     const char *dir, struct har_error *error)
{
    enum har_status status = HAR_OK;
    for (size_t i = 0; status == HAR_OK && i < FILE_COUNT; i++) {
        char path[4096];
        struct har_text text = {0};
        if (!is_written(i)) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", dir, files[i].file);
        files[i].write(r, study, &text);
        status = har_text_write(&text, path, error);
        har_text_fini(&text);
    }
    return status;
}

bool har_report_colour(void)
{
    const char *const no_colour = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) == 1 && (no_colour == NULL || no_colour[0] == '\0');
}

static enum har_status explain_status(const struct har_results *r, struct har_error *error)
{
    const enum har_status status = har_results_status(r);
    if (status == HAR_EALARM) {
        return har_fail(error, status, "%zu of %zu healthy runs raised an alarm",
                        r->summary.false_alarms, r->summary.healthy_runs);
    }
    if (status == HAR_EINCOMPLETE) {
        return har_fail(error, status, "%zu faults and %zu healthy runs have no verdict",
                        r->summary.outcomes[HAR_OUTCOME_no_verdict], r->summary.healthy_lost);
    }
    return status;
}

enum har_status har_report_finish(const char *dir, bool json, struct har_error *error)
{
    struct har_results results;
    struct har_study study;
    struct har_text text = {0};
    har_store *store = NULL;
    enum har_status status = har_store_open(dir, &store, error);
    if (status == HAR_OK) {
        status = har_results_load(store, &results, error);
    }
    har_store_close(store);
    if (status != HAR_OK) {
        return status;
    }
    if (!har_study_make(&results, &study)) {
        har_results_fini(&results);
        return har_fail(error, HAR_EMEMORY, "no memory for the statistics");
    }
    status = har_report_write_all(&results, &study, dir, error);
    if (json) {
        har_report_json(&results, &study, &text);
    } else {
        har_report_text(&results, &study, har_report_colour(), &text);
        har_text_addf(&text, "reports: %s/", dir);
        har_report_names(&text);
        har_text_add(&text, "\n");
    }
    har_study_fini(&study);
    fputs(har_text_get(&text), stdout);
    if (status == HAR_OK) {
        status = explain_status(&results, error);
    }
    har_text_fini(&text);
    har_results_fini(&results);
    return status;
}
