/* faultline run and faultline null. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_cmd.h"
#include "har_report.h"
#include "har_run.h"

static bool colour_wanted(void)
{
    const char *const no_colour = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) == 1 && (no_colour == NULL || no_colour[0] == '\0');
}

/* Loads what is stored, writes all reports, prints the table. The facts on disk are what counts, so
 * this happens after a failure or an interruption as well. */
static enum har_status finish(struct har_lab *lab, enum har_status status, struct har_error *error)
{
    struct har_results results;
    struct har_text text = {0};
    struct har_error second = {{0}};
    enum har_status after = har_run_close(lab, &second);
    if (after == HAR_OK) {
        after = har_results_load(lab->store, &results, &second);
    }
    if (after == HAR_OK) {
        after = har_report_write_all(&results, lab->out, &second);
        har_report_text(&results, colour_wanted(), &text);
        fputs(har_text_get(&text), stdout);
        printf("reports: %s/results.json, junit.xml, results.csv, summary.md, results.sqlite\n",
               lab->out);
        if (after == HAR_OK && status == HAR_OK) {
            after = har_results_status(&results);
            if (after == HAR_EALARM) {
                (void)har_fail(&second, after, "%zu of %zu healthy runs raised an alarm",
                               results.summary.false_alarms, results.summary.healthy_runs);
            } else if (after == HAR_EINCOMPLETE) {
                (void)har_fail(&second, after, "%zu faults and %zu healthy runs have no verdict",
                               results.summary.outcomes[HAR_OUTCOME_no_verdict],
                               results.summary.healthy_lost);
            }
        }
        har_results_fini(&results);
    }
    har_text_fini(&text);
    if (status == HAR_OK) {
        *error = second;
    }
    return har_status_worse(status, after);
}

static enum har_status dry_run(struct har_lab *lab, struct har_error *error)
{
    struct har_text text = {0};
    const enum har_status status = har_run_describe(lab, &text, error);
    fputs(har_text_get(&text), stdout);
    har_text_fini(&text);
    return status;
}

enum har_status har_cmd_run(const struct har_options *options, struct har_error *error)
{
    struct har_lab lab;
    enum har_status status = har_lab_open(options, &lab, error);
    if (status != HAR_OK) {
        return status;
    }
    status = har_run_plan(&lab, false, error);
    if (status == HAR_OK && options->dry_run) {
        status = dry_run(&lab, error);
    } else if (status == HAR_OK) {
        status = har_run_claim(&lab, error);
        if (status == HAR_OK) {
            status = finish(&lab, har_run_stages(&lab, true, error), error);
        }
    }
    har_lab_close(&lab);
    return status;
}

static void print_bounds(void *context, int columns, char **values)
{
    (void)context;
    (void)columns;
    printf("%-16s bounds: %s\n", values[0], values[1]);
}

static enum har_status print_null(struct har_lab *lab, struct har_error *error)
{
    struct har_results results;
    enum har_status status =
        har_store_query(lab->store, "SELECT recipe, summary FROM bounds ORDER BY recipe",
                        print_bounds, NULL, error);
    if (status == HAR_OK) {
        status = har_results_load(lab->store, &results, error);
    }
    if (status != HAR_OK) {
        return status;
    }
    const struct har_summary *const s = &results.summary;
    printf("false alarms: %zu of %zu healthy runs not used for the bounds; rate at most %.1f %% "
           "(exact, 95 %%)\n",
           s->false_alarms, s->healthy_runs, 100.0 * s->alarm_interval.high);
    if (s->false_alarms > 0) {
        status = har_fail(error, HAR_EALARM, "%zu of %zu healthy runs raised an alarm",
                          s->false_alarms, s->healthy_runs);
    } else if (s->healthy_lost > 0) {
        status =
            har_fail(error, HAR_EINCOMPLETE, "%zu healthy runs have no verdict", s->healthy_lost);
    }
    har_results_fini(&results);
    return status;
}

enum har_status har_cmd_null(const struct har_options *options, struct har_error *error)
{
    struct har_lab lab;
    enum har_status status = har_lab_open(options, &lab, error);
    if (status != HAR_OK) {
        return status;
    }
    status = har_run_plan(&lab, true, error);
    if (status == HAR_OK) {
        status = har_run_claim(&lab, error);
    }
    if (status == HAR_OK) {
        status = har_run_stages(&lab, false, error);
    }
    struct har_error ignored = {{0}};
    const enum har_status closed = har_run_close(&lab, status == HAR_OK ? error : &ignored);
    status = status == HAR_OK ? closed : status;
    if (status == HAR_OK) {
        status = print_null(&lab, error);
    }
    har_lab_close(&lab);
    return status;
}
