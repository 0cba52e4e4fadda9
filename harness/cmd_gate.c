/* faultline gate: stored results against limits; for people, for GitHub, for scripts. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "har_cmd.h"
#include "har_gate.h"
#include "har_github.h"

enum { SECONDS_A_DAY = 86400 };

/* Everything a gate works with. */
struct gate {
    struct har_results results;
    struct har_known known;
    struct har_baseline baseline;
    struct har_limits limits;
    struct har_text findings;
    bool annotate;
    const char *summary; /* file to append to, NULL = none */
};

static const char *environment(const char *name)
{
    const char *const value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static enum har_status choose_annotations(const struct har_options *options, bool *annotate,
                                          struct har_error *error)
{
    const char *const word = options->annotations != NULL ? options->annotations : "auto";
    const char *const actions = environment("GITHUB_ACTIONS");
    if (strcmp(word, "auto") == 0) {
        *annotate = actions != NULL && strcmp(actions, "true") == 0 && !options->json;
    } else if (strcmp(word, "github") == 0 || strcmp(word, "none") == 0) {
        *annotate = word[0] == 'g';
    } else {
        return har_fail(error, HAR_EUSAGE, "--annotations takes auto, github or none, not '%s'",
                        word);
    }
    return HAR_OK;
}

/* The day that counts for known misses; FAULTLINE_TODAY stands in for the clock. */
static enum har_status find_today(int *day, struct har_error *error)
{
    const char *const given = environment("FAULTLINE_TODAY");
    *day = (int)(time(NULL) / SECONDS_A_DAY);
    if (given != NULL && !har_known_day(given, day)) {
        return har_fail(error, HAR_EUSAGE, "FAULTLINE_TODAY: '%s' is no date YYYY-MM-DD", given);
    }
    return HAR_OK;
}

static enum har_status gate_open(const struct har_options *options, struct gate *g,
                                 struct har_error *error)
{
    memset(g, 0, sizeof *g);
    g->limits = (struct har_limits){.fail_under = options->fail_under,
                                    .max_median_steps = options->max_median_steps,
                                    .max_false_alarms = options->max_false_alarms,
                                    .max_no_verdict = options->max_no_verdict};
    memcpy(g->limits.family_under, options->family_under, sizeof g->limits.family_under);
    g->summary = options->summary != NULL ? options->summary : environment("GITHUB_STEP_SUMMARY");
    enum har_status status = choose_annotations(options, &g->annotate, error);
    if (status == HAR_OK) {
        status = find_today(&g->limits.today, error);
    }
    if (status == HAR_OK && options->known != NULL) {
        status = har_known_load(options->known, &g->known, error);
        g->limits.known = &g->known;
    }
    if (status == HAR_OK && options->baseline != NULL) {
        status = har_baseline_load(options->baseline, &g->baseline, error);
        g->limits.baseline = &g->baseline;
    }
    return status == HAR_OK ? har_cmd_load(options, &g->results, error) : status;
}

static void gate_close(struct gate *g)
{
    har_results_fini(&g->results);
    har_known_fini(&g->known);
    har_baseline_fini(&g->baseline);
    har_text_fini(&g->findings);
}

static void print_json(const struct gate *g, enum har_status status)
{
    json_t *const root = json_object();
    json_t *const list = json_array();
    char *const copy = strdup(har_text_get(&g->findings));
    char *rest = NULL;
    for (char *line = copy != NULL ? strtok_r(copy, "\n", &rest) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        json_array_append_new(list, json_string(line));
    }
    const struct har_summary *const s = &g->results.summary;
    json_object_set_new(root, "exit_code", json_integer(har_status_exit_code(status)));
    json_object_set_new(root, "passed", json_boolean(status == HAR_OK));
    json_object_set_new(root, "detected",
                        json_integer((json_int_t)s->outcomes[HAR_OUTCOME_detected]));
    json_object_set_new(root, "of", json_integer((json_int_t)s->rate_below));
    json_object_set_new(root, "findings", list);
    json_dumpf(root, stdout, JSON_INDENT(1));
    fputc('\n', stdout);
    json_decref(root);
    free(copy);
}

static void print_text(const struct gate *g, enum har_status status)
{
    const struct har_summary *const s = &g->results.summary;
    const size_t detected = s->outcomes[HAR_OUTCOME_detected];
    struct har_text annotations = {0};
    if (g->annotate) {
        har_github_annotations(&g->results, &g->limits, &annotations);
    }
    fputs(har_text_get(&annotations), stdout);
    fputs(har_text_get(&g->findings), stdout);
    printf("%zu passed, %zu failed, %zu skipped: %s\n", detected, s->rate_below - detected,
           s->entries - s->rate_below, status == HAR_OK ? "gate passed" : har_status_text(status));
    har_text_fini(&annotations);
}

enum har_status har_cmd_gate(const struct har_options *options, struct har_error *error)
{
    struct gate g;
    enum har_status status = gate_open(options, &g, error);
    if (status == HAR_OK) {
        status = har_gate_judge(&g.results, &g.limits, &g.findings);
        if (options->json) {
            print_json(&g, status);
        } else {
            print_text(&g, status);
        }
        if (g.summary != NULL) {
            status = har_status_worse(status, har_github_summary(&g.results, status,
                                                                 har_text_get(&g.findings),
                                                                 g.summary, error));
        }
    }
    gate_close(&g);
    return status;
}
