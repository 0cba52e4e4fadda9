/* missed.sarif: SARIF 2.1.0, one result per fault that no check found, at its site.
 * Called by har_report.c; must not know how results come about. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_report.h"
#include "har_report_source.h"
#include "har_report_study.h"

static bool is_missed(const struct har_result *e)
{
    return strcmp(e->expectation, "KILL") == 0 &&
           (e->outcome == HAR_OUTCOME_missed || e->outcome == HAR_OUTCOME_flaky);
}

static json_t *location_json(const struct mut_site_info *site)
{
    struct har_source_range range;
    char *const text = har_source_read(site->file);
    har_source_find(text, site, &range);
    free(text);
    return json_pack("{s:{s:{s:s, s:s}, s:{s:i, s:i, s:i, s:i}}}", "physicalLocation",
                     "artifactLocation", "uri", site->file, "uriBaseId", "SRCROOT", "region",
                     "startLine", range.line, "startColumn", range.column, "endLine",
                     range.end_line, "endColumn", range.end_column);
}

static json_t *rule_json(const struct har_result *e, const struct mut_fault *fault)
{
    json_t *const rule =
        json_pack("{s:s, s:{s:s}, s:{s:s}, s:{s:s}}", "id", e->id, "shortDescription", "text",
                  fault->why, "fullDescription", "text", fault->faulty, "properties", "family",
                  mut_family_name(e->family));
    const size_t length = strcspn(fault->source, " ");
    if (length > 0) {
        json_object_set_new(rule, "helpUri", json_stringn(fault->source, length));
    }
    return rule;
}

static json_t *result_json(const struct har_result *e, const struct mut_fault *fault,
                           const struct mut_site_info *site, size_t rule)
{
    char message[1024];
    snprintf(message, sizeof message,
             "No check detects this fault (%s): %s. In its place stands: %s. %s",
             har_outcome_name(e->outcome), fault->why, fault->faulty,
             e->reason[0] != '\0' ? e->reason : e->detail);
    har_text_clean(message); /* a character may have been cut */
    return json_pack("{s:s, s:I, s:s, s:{s:s}, s:[o], s:{s:s}}", "ruleId", e->id, "ruleIndex",
                     (json_int_t)rule, "level", "warning", "message", "text", message, "locations",
                     location_json(site), "partialFingerprints", "faultline/v1", e->id);
}

void har_report_sarif(const struct har_results *r, const struct har_study *study,
                      struct har_text *out)
{
    (void)study;
    json_t *const rules = json_array();
    json_t *const results = json_array();
    for (size_t i = 0; i < r->count; i++) {
        const struct har_result *const e = &r->entries[i];
        const struct mut_fault *const fault = har_catalogue_find(&r->catalogue, e->fault);
        const struct mut_site_info *const site = har_catalogue_site(&r->catalogue, fault);
        if (site != NULL && is_missed(e)) {
            json_array_append_new(results, result_json(e, fault, site, json_array_size(rules)));
            json_array_append_new(rules, rule_json(e, fault));
        }
    }
    json_t *const root =
        json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:o}}, s:s, s:o}]}", "version", "2.1.0", "$schema",
                  "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
                  "sarif-schema-2.1.0.json",
                  "runs", "tool", "driver", "name", "faultline", "rules", rules, "columnKind",
                  "utf16CodeUnits", "results", results);
    har_report_put_json(out, root);
}
