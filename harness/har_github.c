/* Workflow commands and step summary.
 * Called by cmd_gate.c; must not know limits' origin or exit codes. */
#include "har_github.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "har_report.h"

/* Data of a workflow command: percent and line ends are escaped, in a property also : and , */
static void add_escaped(struct har_text *out, const char *text, bool property)
{
    for (const char *p = text; *p != '\0'; p++) {
        const bool escape = strchr("%\r\n", *p) != NULL || (property && strchr(":,", *p) != NULL);
        har_text_addf(out, escape ? "%%%02X" : "%c", (unsigned char)*p);
    }
}

static void add_annotation(const struct har_results *r, const struct har_result *e,
                           enum har_gate_place place, struct har_text *out)
{
    static const char *const words[] = {
        [HAR_GATE_fine] = "",
        [HAR_GATE_missed] = "fault not detected",
        [HAR_GATE_newly_missed] = "fault no longer detected",
        [HAR_GATE_known] = "known miss",
        [HAR_GATE_expired] = "known miss, expired",
    };
    const struct mut_fault *const fault = har_catalogue_find(&r->catalogue, e->fault);
    const struct mut_site_info *const site = har_catalogue_site(&r->catalogue, fault);
    har_text_add(out, place == HAR_GATE_known ? "::warning " : "::error ");
    if (site != NULL) {
        har_text_add(out, "file=");
        add_escaped(out, site->file, true);
        har_text_addf(out, ",line=%d,", site->line);
    }
    har_text_add(out, "title=");
    add_escaped(out, words[place], true);
    har_text_add(out, "::");
    add_escaped(out, e->id, false);
    har_text_addf(out, " on %s is %s", e->recipe, har_outcome_name(e->outcome));
    if (fault != NULL) {
        har_text_add(out, ": ");
        add_escaped(out, fault->why, false);
    }
    har_text_add(out, "\n");
}

void har_github_annotations(const struct har_results *r, const struct har_limits *limits,
                            struct har_text *out)
{
    static const enum har_gate_place order[] = {HAR_GATE_newly_missed, HAR_GATE_expired,
                                                HAR_GATE_missed, HAR_GATE_known};
    size_t shown = 0;
    size_t left_out = 0;
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++) {
        for (size_t i = 0; i < r->count; i++) {
            if (har_gate_place(&r->entries[i], limits) != order[k]) {
                continue;
            }
            if (shown < HAR_GITHUB_ANNOTATIONS - 1) {
                add_annotation(r, &r->entries[i], order[k], out);
                shown++;
            } else {
                left_out++;
            }
        }
    }
    if (left_out > 0) {
        har_text_addf(out, "::notice title=faultline::%zu more faults are not detected\n",
                      left_out);
    }
}

enum har_status har_github_summary(const struct har_results *r, enum har_status verdict,
                                   const char *findings, const char *path, struct har_error *error)
{
    struct har_text text = {0};
    har_text_addf(&text, "### Gate: %s\n\n",
                  verdict == HAR_OK ? "passed" : har_status_text(verdict));
    if (findings[0] != '\0') {
        har_text_add(&text, "```\n");
        har_text_add_bytes(&text, findings, strnlen(findings, HAR_GITHUB_SUMMARY_BYTES / 4));
        har_text_add(&text, "```\n\n");
    }
    struct har_study study;
    if (har_study_make(r, &study)) {
        har_report_markdown(r, &study, &text);
        har_study_fini(&study);
    } else {
        text.failed = true;
    }
    FILE *const file = text.failed ? NULL : fopen(path, "abe");
    enum har_status status = HAR_OK;
    if (text.failed) {
        status = har_fail(error, HAR_EMEMORY, "no memory for the summary");
    } else if (file == NULL || fputs(har_text_get(&text), file) < 0) {
        status = har_fail(error, HAR_EIO, "%s: %s", path, strerror(errno));
    }
    if (file != NULL && fclose(file) != 0 && status == HAR_OK) {
        status = har_fail(error, HAR_EIO, "%s: %s", path, strerror(errno));
    }
    har_text_fini(&text);
    return status;
}
