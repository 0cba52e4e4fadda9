/* faultline run and faultline null. */
#include <stdio.h>
#include <string.h>

#include "har_cmd.h"
#include "har_gate.h"
#include "har_null.h"
#include "har_report.h"
#include "har_run.h"
#include "har_slurm.h"

/* Writes all reports and prints the table. The facts on disk are what counts, so this happens after
 * a failure or an interruption as well. */
static enum har_status finish(struct har_lab *lab, enum har_status status, struct har_error *error)
{
    struct har_error second = {{0}};
    enum har_status after = har_run_close(lab, &second);
    if (after == HAR_OK) {
        after = har_report_finish(lab->out, false, &second);
    }
    if (status == HAR_OK) {
        *error = second;
        return after;
    }
    /* What the results lack after a failure follows from it. */
    return after == HAR_EALARM || after == HAR_EINCOMPLETE ? status
                                                           : har_status_worse(status, after);
}

/* What the baseline detected and this run does not; a result, not a verdict. */
static void print_newly_missed(const struct har_lab *lab)
{
    struct har_results results;
    struct har_baseline baseline;
    struct har_error ignored = {{0}};
    if (lab->campaign.baseline == NULL || lab->campaign.iterate ||
        har_baseline_load(lab->campaign.baseline, &baseline, &ignored) != HAR_OK) {
        return;
    }
    const struct har_limits limits = {.baseline = &baseline};
    size_t count = 0;
    if (har_results_load(lab->store, &results, &ignored) == HAR_OK) {
        for (size_t i = 0; i < results.count; i++) {
            if (har_gate_place(&results.entries[i], &limits) == HAR_GATE_newly_missed) {
                printf("newly missed: %s\n", results.entries[i].id);
                count++;
            }
        }
        printf("newly missed against %s: %zu\n", lab->campaign.baseline, count);
        har_results_fini(&results);
    }
    har_baseline_fini(&baseline);
}

static enum har_status dry_run(struct har_lab *lab, struct har_error *error)
{
    struct har_text text = {0};
    const enum har_status status = har_run_describe(lab, &text, error);
    fputs(har_text_get(&text), stdout);
    har_text_fini(&text);
    return status;
}

/* The campaign's file and options are read here as well: a mistake in them needs no job. */
static enum har_status run_on_slurm(const struct har_options *options, struct har_error *error)
{
    const char *const dir = options->out != NULL ? options->out : "faultline.out";
    struct har_campaign campaign;
    if (options->campaign == NULL) {
        return har_fail(error, HAR_EUSAGE, "--campaign FILE is needed");
    }
    enum har_status status = har_campaign_load(options->campaign, &campaign, error);
    if (status != HAR_OK) {
        return status;
    }
    status = har_campaign_apply(&campaign, options, error);
    har_campaign_fini(&campaign);
    if (status == HAR_OK) {
        status = har_lab_make_folder(dir, error);
    }
    if (status == HAR_OK) {
        status = har_slurm_run(options, dir, error);
    }
    return status == HAR_OK && !options->dry_run ? har_report_finish(dir, false, error) : status;
}

enum har_status har_cmd_run(const struct har_options *options, struct har_error *error)
{
    struct har_lab lab;
    if (options->slurm >= 0) {
        return run_on_slurm(options, error);
    }
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
            print_newly_missed(&lab);
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

/* A line per check, then the sentence on all of them together. */
static void print_alarms(const struct har_summary *s)
{
    printf("\n%-12s %12s %13s %s\n", "check", "healthy runs", "false alarms",
           "exact 95 % interval of the rate over the horizon");
    for (int c = 0; c < ORC_CHECK_COUNT; c++) {
        const struct har_alarms *const a = &s->alarms[c];
        const struct har_interval i = har_stats_proportion(a->fired, a->runs, 0.95);
        if (a->runs > 0) {
            printf("%-12s %12zu %13zu %.1f to %.1f %%\n", orc_check_name((enum orc_check_id)c),
                   a->runs, a->fired, 100.0 * i.low, 100.0 * i.high);
        }
    }
}

/* Healthy runs of the campaign's second build. */
struct also {
    const char *program; /* as it stands in stored commands */
    size_t runs, alarms;
};

static void count_also(void *context, int columns, char **values)
{
    struct also *const also = context;
    (void)columns;
    const size_t length = strlen(also->program);
    if (strncmp(values[0], also->program, length) == 0 && values[0][length] == ' ') {
        also->runs++;
        also->alarms += strcmp(values[1], "alarm") == 0;
    }
}

static enum har_status print_also(struct har_lab *lab, struct har_error *error)
{
    struct har_text program = {0};
    if (lab->campaign.also_train == NULL) {
        return HAR_OK;
    }
    har_text_add_shell(&program, lab->campaign.also_train);
    struct also also = {.program = har_text_get(&program)};
    const enum har_status status = har_store_query(
        lab->store,
        "SELECT runs.command, cases.outcome FROM runs JOIN cases ON cases.key = runs.case_key"
        " WHERE cases.kind = 'alarm' AND runs.role = 'subject'",
        count_also, &also, error);
    if (status == HAR_OK) {
        printf("of these by the second build %s: false alarms: %zu of %zu healthy runs\n",
               also.program, also.alarms, also.runs);
    }
    har_text_fini(&program);
    return status;
}

static enum har_status print_null(struct har_lab *lab, struct har_error *error)
{
    struct har_results results;
    struct har_text cells = {0};
    enum har_status status = har_null_text(lab->store, &cells, error);
    fputs(har_text_get(&cells), stdout);
    har_text_fini(&cells);
    if (status == HAR_OK) {
        status = har_store_query(lab->store, "SELECT recipe, summary FROM bounds ORDER BY recipe",
                                 print_bounds, NULL, error);
    }
    if (status == HAR_OK) {
        status = har_results_load(lab->store, &results, error);
    }
    if (status != HAR_OK) {
        return status;
    }
    print_alarms(&results.summary);
    const struct har_summary *const s = &results.summary;
    printf("all checks together: false alarms: %zu of %zu healthy runs not used for the bounds; "
           "rate at most %.1f %% "
           "(exact, 95 %%)\n",
           s->false_alarms, s->healthy_runs, 100.0 * s->alarm_interval.high);
    status = print_also(lab, error);
    if (status == HAR_OK && s->false_alarms > 0) {
        status = har_fail(error, HAR_EALARM, "%zu of %zu healthy runs raised an alarm",
                          s->false_alarms, s->healthy_runs);
    } else if (status == HAR_OK && s->healthy_lost > 0) {
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
