/* faultline report and faultline gate: from the database alone. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_cmd.h"
#include "har_gate.h"
#include "har_report.h"

static enum har_status load(const struct har_options *options, struct har_results *results,
                            struct har_error *error)
{
    har_store *store = NULL;
    const char *const dir = options->out != NULL ? options->out : "faultline.out";
    enum har_status status = har_store_open(dir, &store, error);
    if (status == HAR_OK) {
        status = har_results_load(store, results, error);
    }
    har_store_close(store);
    return status;
}

enum har_status har_cmd_report(const struct har_options *options, struct har_error *error)
{
    struct har_results results;
    struct har_text text = {0};
    const char *const no_colour = getenv("NO_COLOR");
    const bool colour = isatty(STDOUT_FILENO) == 1 && (no_colour == NULL || no_colour[0] == '\0');
    const char *const format = options->format != NULL ? options->format
                               : options->json         ? "json"
                                                       : "text";
    enum har_status status = load(options, &results, error);
    if (status != HAR_OK) {
        return status;
    }
    status = har_report_format(&results, format, colour, &text, error);
    if (status == HAR_OK) {
        status = har_report_write_all(&results,
                                      options->out != NULL ? options->out : "faultline.out", error);
        fputs(har_text_get(&text), stdout);
    }
    har_text_fini(&text);
    har_results_fini(&results);
    return status;
}

static void print_json(const struct har_results *results, enum har_status status,
                       const char *findings)
{
    json_t *const root = json_object();
    json_t *const list = json_array();
    char *const copy = strdup(findings);
    char *rest = NULL;
    for (char *line = copy != NULL ? strtok_r(copy, "\n", &rest) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        json_array_append_new(list, json_string(line));
    }
    json_object_set_new(root, "exit_code", json_integer(har_status_exit_code(status)));
    json_object_set_new(root, "passed", json_boolean(status == HAR_OK));
    json_object_set_new(root, "detected",
                        json_integer((json_int_t)results->summary.outcomes[HAR_OUTCOME_detected]));
    json_object_set_new(root, "of", json_integer((json_int_t)results->summary.rate_below));
    json_object_set_new(root, "findings", list);
    json_dumpf(root, stdout, JSON_INDENT(1));
    fputc('\n', stdout);
    json_decref(root);
    free(copy);
}

enum har_status har_cmd_gate(const struct har_options *options, struct har_error *error)
{
    struct har_results results;
    struct har_text findings = {0};
    struct har_limits limits = {.fail_under = options->fail_under,
                                .max_median_steps = options->max_median_steps,
                                .max_false_alarms = options->max_false_alarms,
                                .max_no_verdict = options->max_no_verdict};
    memcpy(limits.family_under, options->family_under, sizeof limits.family_under);
    enum har_status status = load(options, &results, error);
    if (status != HAR_OK) {
        return status;
    }
    status = har_gate_judge(&results, &limits, &findings);
    if (options->json) {
        print_json(&results, status, har_text_get(&findings));
    } else {
        fputs(har_text_get(&findings), stdout);
        printf("%zu passed, %zu failed, %zu skipped: %s\n",
               results.summary.outcomes[HAR_OUTCOME_detected],
               results.summary.rate_below - results.summary.outcomes[HAR_OUTCOME_detected],
               results.summary.entries - results.summary.rate_below,
               status == HAR_OK ? "gate passed" : har_status_text(status));
    }
    har_text_fini(&findings);
    har_results_fini(&results);
    return status;
}
