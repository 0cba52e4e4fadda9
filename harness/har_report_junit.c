/* junit.xml: a suite per family, a case per entry.
 * Called by har_report.c; must not know how results come about. */
#include <string.h>

#include "har_report.h"

enum junit_kind { PASSED, FAILED, ERROR, SKIPPED, JUNIT_COUNT };

/* A detected fault passes. What is declared EQUIVALENT or GAP is skipped, unless it was detected:
 * then the declaration is wrong. A fault no run could reach is skipped too. */
static enum junit_kind kind_of(const struct har_result *e)
{
    if (strcmp(e->expectation, "KILL") != 0) {
        return e->outcome == HAR_OUTCOME_detected ? FAILED : SKIPPED;
    }
    switch (e->outcome) {
    case HAR_OUTCOME_detected:
        return PASSED;
    case HAR_OUTCOME_missed:
    case HAR_OUTCOME_flaky:
        return FAILED;
    case HAR_OUTCOME_not_reached:
    case HAR_OUTCOME_not_infected:
        return SKIPPED;
    default:
        return ERROR;
    }
}

static void add_property(struct har_text *out, const char *name, int value)
{
    har_text_addf(out, "        <property name=\"%s\" value=\"%d\"/>\n", name, value);
}

static void add_properties(const struct har_result *e, struct har_text *out)
{
    if (e->reached < 0 && e->infected <= 0 && e->detected <= 0) {
        return;
    }
    har_text_add(out, "      <properties>\n");
    if (e->reached >= 0) {
        add_property(out, "reached_step", e->reached);
    }
    if (e->infected > 0) {
        add_property(out, "infected_step", e->infected);
    }
    if (e->detected > 0) {
        add_property(out, "detected_step", e->detected);
    }
    har_text_add(out, "      </properties>\n");
}

static void add_case(const struct har_result *e, struct har_text *out)
{
    static const char *const tags[JUNIT_COUNT] = {NULL, "failure", "error", "skipped"};
    const char *const tag = tags[kind_of(e)];
    har_text_addf(out, "    <testcase classname=\"faultline.%s\" name=\"",
                  mut_family_name(e->family));
    har_text_add_xml(out, e->id);
    har_text_add(out, "\">\n");
    add_properties(e, out);
    if (tag != NULL) {
        har_text_addf(out, "      <%s message=\"%s: ", tag, har_outcome_name(e->outcome));
        har_text_add_xml(out, e->reason[0] != '\0' ? e->reason : e->detail);
        har_text_add(out, "\"/>\n");
    }
    har_text_add(out, "    </testcase>\n");
}

static void count_suite(const struct har_results *r, enum mut_family family,
                        size_t counts[JUNIT_COUNT + 1])
{
    memset(counts, 0, (JUNIT_COUNT + 1) * sizeof *counts);
    for (size_t i = 0; i < r->count; i++) {
        if (r->entries[i].family == family) {
            counts[kind_of(&r->entries[i])]++;
            counts[JUNIT_COUNT]++;
        }
    }
}

void har_report_junit(const struct har_results *r, const struct har_study *study,
                      struct har_text *out)
{
    (void)study;
    har_text_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"");
    har_text_add_xml(out, r->name);
    har_text_add(out, "\">\n");
    for (int f = 0; f < MUT_FAMILY_COUNT; f++) {
        size_t counts[JUNIT_COUNT + 1];
        count_suite(r, (enum mut_family)f, counts);
        if (counts[JUNIT_COUNT] == 0) {
            continue;
        }
        har_text_addf(out,
                      "  <testsuite name=\"%s\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
                      "skipped=\"%zu\">\n",
                      mut_family_name((enum mut_family)f), counts[JUNIT_COUNT], counts[FAILED],
                      counts[ERROR], counts[SKIPPED]);
        for (size_t i = 0; i < r->count; i++) {
            if (r->entries[i].family == (enum mut_family)f) {
                add_case(&r->entries[i], out);
            }
        }
        har_text_add(out, "  </testsuite>\n");
    }
    har_text_add(out, "</testsuites>\n");
}
