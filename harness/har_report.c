/* The files of a results folder, and the sentences all formats share.
 * Called by the commands; must not know how results come about. */
#include "har_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void har_report_summary(const struct har_results *r, struct har_text *out)
{
    const struct har_summary *const s = &r->summary;
    add_others(s, out);
    add_rate(s, out);
    add_contrast(s, out);
    if (isinf(s->median_steps)) {
        har_text_add(out, "median steps to detection from reached: beyond the horizon\n");
    } else if (!isnan(s->median_steps)) {
        har_text_addf(out, "median steps to detection from reached: %g\n", s->median_steps);
    }
    har_text_addf(out,
                  "healthy runs not used for the bounds: %zu, false alarms %zu (rate at most %.1f "
                  "%% at 95 %%)\n",
                  s->healthy_runs, s->false_alarms, 100.0 * s->alarm_interval.high);
    add_unexpected(r, out);
    if (r->controls[0] != '\0') {
        har_text_addf(out, "controls: %s\n", r->controls);
    }
    har_text_addf(out, "time %.1f s\n", s->seconds);
}

enum har_status har_report_format(const struct har_results *r, const char *format, bool colour,
                                  struct har_text *out, struct har_error *error)
{
    if (strcmp(format, "text") == 0) {
        har_report_text(r, colour, out);
    } else if (strcmp(format, "json") == 0) {
        har_report_json(r, out);
    } else if (strcmp(format, "csv") == 0) {
        har_report_csv(r, out);
    } else if (strcmp(format, "junit") == 0) {
        har_report_junit(r, out);
    } else {
        return har_fail(error, HAR_EUSAGE, "--format takes text, json, csv or junit, not '%s'",
                        format);
    }
    return out->failed ? har_fail(error, HAR_EMEMORY, "no memory for the report") : HAR_OK;
}

enum har_status har_report_write_all(const struct har_results *r, const char *dir,
                                     struct har_error *error)
{
    static const struct {
        const char *file;
        void (*write)(const struct har_results *, struct har_text *);
    } files[] = {{"results.json", har_report_json},
                 {"junit.xml", har_report_junit},
                 {"results.csv", har_report_csv},
                 {"summary.md", har_report_markdown}};
    enum har_status status = HAR_OK;
    for (size_t i = 0; status == HAR_OK && i < sizeof files / sizeof files[0]; i++) {
        char path[4096];
        struct har_text text = {0};
        snprintf(path, sizeof path, "%s/%s", dir, files[i].file);
        files[i].write(r, &text);
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
    status = har_report_write_all(&results, dir, error);
    if (json) {
        har_report_json(&results, &text);
    } else {
        har_report_text(&results, har_report_colour(), &text);
        har_text_addf(&text,
                      "reports: %s/results.json, junit.xml, results.csv, summary.md, "
                      "results.sqlite\n",
                      dir);
    }
    fputs(har_text_get(&text), stdout);
    if (status == HAR_OK) {
        status = explain_status(&results, error);
    }
    har_text_fini(&text);
    har_results_fini(&results);
    return status;
}
