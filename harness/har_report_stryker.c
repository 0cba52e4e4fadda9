/* mutation.json: the published mutation-testing-report schema, checks standing for tests.
 * Called by har_report.c; must not know how results come about.
 *
 * detected is Killed, missed and flaky Survived, what no run reached or infected NoCoverage, deaths
 * and lost verdicts RuntimeError (the schema counts its Timeout as killed), declared ones Ignored.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_programs.h"
#include "har_report.h"
#include "har_report_source.h"
#include "har_report_study.h"

static const char *status_of(const struct har_result *e)
{
    if (strcmp(e->expectation, "KILL") != 0) {
        return "Ignored";
    }
    switch (e->outcome) {
    case HAR_OUTCOME_detected:
        return "Killed";
    case HAR_OUTCOME_missed:
    case HAR_OUTCOME_flaky:
        return "Survived";
    case HAR_OUTCOME_not_reached:
    case HAR_OUTCOME_not_infected:
        return "NoCoverage";
    default:
        return "RuntimeError";
    }
}

static json_t *checks_where(const struct har_result *e, bool fired)
{
    json_t *const list = json_array();
    for (int c = 0; c < ORC_CHECK_COUNT; c++) {
        if (fired ? e->check_steps[c] > 0 : e->applicable[c]) {
            json_array_append_new(list, json_string(orc_check_name((enum orc_check_id)c)));
        }
    }
    return list;
}

static json_t *mutant_json(const struct har_result *e, const struct mut_fault *fault,
                           const struct har_source_range *range)
{
    json_t *const o = json_object();
    json_object_set_new(o, "id", json_string(e->id));
    json_object_set_new(o, "mutatorName", json_string(mut_family_name(e->family)));
    json_object_set_new(o, "replacement", json_string(fault->faulty));
    json_object_set_new(o, "description", json_string(fault->why));
    json_object_set_new(o, "status", json_string(status_of(e)));
    json_object_set_new(o, "statusReason",
                        json_string(e->reason[0] != '\0' ? e->reason : e->detail));
    json_object_set_new(o, "coveredBy", checks_where(e, false));
    json_object_set_new(o, "killedBy", checks_where(e, true));
    json_object_set_new(o, "static", json_boolean(e->reached == 0));
    json_object_set_new(o, "location",
                        json_pack("{s:{s:i, s:i}, s:{s:i, s:i}}", "start", "line", range->line,
                                  "column", range->column, "end", "line", range->end_line, "column",
                                  range->end_column));
    json_object_set_new(o, "outcome", json_string(har_outcome_name(e->outcome)));
    json_object_set_new(o, "detectedStep",
                        e->detected > 0 ? json_integer(e->detected) : json_null());
    json_object_set_new(o, "reachedStep", e->reached >= 0 ? json_integer(e->reached) : json_null());
    return o;
}

static json_t *tests_json(void)
{
    json_t *const tests = json_array();
    for (int c = 0; c < ORC_CHECK_COUNT; c++) {
        const char *const name = orc_check_name((enum orc_check_id)c);
        json_array_append_new(tests, json_pack("{s:s, s:s}", "id", name, "name", name));
    }
    return json_pack("{s:{s:o}}", "checks", "tests", tests);
}

/* As highlighters call it, by the file's name. */
static const char *language_of(const char *path)
{
    const char *const dot = strrchr(path, '.');
    return dot == NULL                      ? "plaintext"
           : strcmp(dot, ".py") == 0        ? "python"
           : strstr(".c.cu.h", dot) != NULL ? "c"
                                            : dot + 1;
}

/* The file's member, made on first use. */
static json_t *file_json(json_t *files, const char *path)
{
    json_t *file = json_object_get(files, path);
    if (file == NULL) {
        char *const text = har_source_read(path);
        file = json_pack("{s:s, s:o, s:[]}", "language", language_of(path), "source",
                         text != NULL ? json_string(text) : json_string(""), "mutants");
        json_object_set_new(files, path, file);
        free(text);
    }
    return file;
}

void har_report_stryker(const struct har_results *r, const struct har_study *study,
                        struct har_text *out)
{
    (void)study;
    json_t *const files = json_object();
    for (size_t i = 0; i < r->count; i++) {
        const struct har_result *const e = &r->entries[i];
        const struct mut_fault *const fault = har_catalogue_find(&r->catalogue, e->fault);
        const struct mut_site_info *const site = har_catalogue_site(&r->catalogue, fault);
        if (site == NULL) {
            continue; /* a fault of another version's catalogue has no place in these sources */
        }
        json_t *const file = file_json(files, site->file);
        struct har_source_range range;
        har_source_find(json_string_value(json_object_get(file, "source")), site, &range);
        json_array_append_new(json_object_get(file, "mutants"), mutant_json(e, fault, &range));
    }
    json_t *const root = json_pack("{s:s, s:{s:i, s:i}, s:o, s:o, s:{s:s}}", "schemaVersion", "2",
                                   "thresholds", "high", 95, "low", 80, "files", files, "testFiles",
                                   tests_json(), "framework", "name", "faultline");
    har_report_put_json(out, root);
}
