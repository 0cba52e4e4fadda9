/* Tests of reports and gate on results made by hand: escaping, counts, exit codes. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "har_gate.h"
#include "har_report.h"

static char nasty[] = "a<b>&\"'\x01 | , \xFF\n\xE2\x82\xAC";
static char empty[] = "";

static struct har_result entry_of(char *id, enum har_outcome outcome, const char *expectation)
{
    struct har_result e = {.id = id,
                           .fault = id,
                           .recipe = (char *)"pico",
                           .schedule = (char *)"fifo",
                           .driver = (char *)"single",
                           .reason = empty,
                           .detail = nasty,
                           .reproduce = empty,
                           .dose = (double)NAN,
                           .family = MUT_FAMILY_LOSS,
                           .outcome = outcome,
                           .run = true,
                           .reached = 1,
                           .infected = 1,
                           .detected = outcome == HAR_OUTCOME_detected ? 2 : 0,
                           .first_check = outcome == HAR_OUTCOME_detected ? ORC_CHECK_loss : -1};
    snprintf(e.class_, sizeof e.class_, "loss");
    snprintf(e.expectation, sizeof e.expectation, "%s", expectation);
    return e;
}

enum { ENTRIES = 6 };
static char ids[ENTRIES][16] = {"a.x", "b.<y>", "c.z", "d.w", "e.v", "f.u"};

static struct har_results results_of(struct har_result entries[ENTRIES])
{
    entries[0] = entry_of(ids[0], HAR_OUTCOME_detected, "KILL");
    entries[1] = entry_of(ids[1], HAR_OUTCOME_missed, "KILL");
    entries[2] = entry_of(ids[2], HAR_OUTCOME_no_verdict, "KILL");
    entries[3] = entry_of(ids[3], HAR_OUTCOME_not_infected, "EQUIVALENT");
    entries[4] = entry_of(ids[4], HAR_OUTCOME_detected, "KILL");
    entries[5] = entry_of(ids[5], HAR_OUTCOME_crashed, "KILL");
    struct har_results r = {.entries = entries,
                            .count = ENTRIES,
                            .name = nasty,
                            .provenance = (char *)"{\"seed\":1}",
                            .plan_hash = empty,
                            .planted = empty,
                            .controls = (char *)"passed: all",
                            .finished = (char *)"every stage",
                            .shard = empty,
                            .selection = empty,
                            .mode = (char *)"lockstep",
                            .summary = {.entries = ENTRIES,
                                        .kill = 5,
                                        .equivalent = 1,
                                        .rate_below = 4,
                                        .rate = 0.5,
                                        .rate_interval = {0.1, 0.9},
                                        .healthy_runs = 20,
                                        .alarm_interval = {0.0, 0.2},
                                        .median_steps = 3.0}};
    r.summary.outcomes[HAR_OUTCOME_detected] = 2;
    r.summary.outcomes[HAR_OUTCOME_missed] = 1;
    r.summary.outcomes[HAR_OUTCOME_crashed] = 1;
    return r;
}

Test(har_text, xml_is_escaped_and_what_xml_forbids_is_replaced)
{
    struct har_text text = {0};
    har_text_add_xml(&text, nasty);
    cr_expect_str_eq(har_text_get(&text), "a&lt;b&gt;&amp;&quot;&apos;\xEF\xBF\xBD | , "
                                          "\xEF\xBF\xBD\n\xE2\x82\xAC");
    har_text_fini(&text);
    har_text_add_xml(&text, "\xED\xA0\x80\xC0\x80");
    cr_expect_null(strstr(har_text_get(&text), "\xED"), "a surrogate is no character");
    cr_expect_null(strstr(har_text_get(&text), "\xC0"), "an overlong form is no character");
    har_text_fini(&text);
}

Test(har_text, csv_fields_and_shell_words_read_back)
{
    struct har_text text = {0};
    har_text_add_csv(&text, "plain");
    har_text_add_csv(&text, "a\"b,c\n");
    cr_expect_str_eq(har_text_get(&text), "plain\"a\"\"b,c\n\"");
    har_text_fini(&text);
    har_text_add_shell(&text, "");
    har_text_add_shell(&text, "a b");
    har_text_add_shell(&text, "it's");
    cr_expect_str_eq(har_text_get(&text), "'''a b''it'\\''s'");
    har_text_fini(&text);
}

Test(har_text, cleaning_keeps_utf8_and_length)
{
    char text[sizeof nasty];
    memcpy(text, nasty, sizeof nasty);
    har_text_clean(text);
    cr_expect_str_eq(text, "a<b>&\"'? | , ? \xE2\x82\xAC");
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *p = strstr(text, part); p != NULL; p = strstr(p + 1, part)) {
        count++;
    }
    return count;
}

Test(har_report, junit_has_one_case_per_entry_and_the_right_kinds)
{
    struct har_result entries[ENTRIES];
    const struct har_results results = results_of(entries);
    struct har_study study;
    cr_assert(har_study_make(&results, &study));
    struct har_text text = {0};
    har_report_junit(&results, &study, &text);
    const char *const xml = har_text_get(&text);
    cr_expect_eq(count_of(xml, "<testcase "), ENTRIES);
    cr_expect_eq(count_of(xml, "<failure "), 1);
    cr_expect_eq(count_of(xml, "<error "), 2);
    cr_expect_eq(count_of(xml, "<skipped "), 1);
    cr_expect_not_null(strstr(xml, "tests=\"6\" failures=\"1\" errors=\"2\" skipped=\"1\""));
    cr_expect_not_null(strstr(xml, "b.&lt;y&gt;"));
    cr_expect_null(strchr(xml, '\x01'));
    har_text_fini(&text);
    har_study_fini(&study);
}

Test(har_report, json_has_the_fields_of_the_contract)
{
    static const char *const summary_keys[] = {"faults",
                                               "detected",
                                               "missed",
                                               "flaky",
                                               "not_reached",
                                               "not_infected",
                                               "crashed",
                                               "timed_out",
                                               "no_verdict",
                                               "detection_rate",
                                               "detection_rate_low",
                                               "detection_rate_high",
                                               "healthy_runs",
                                               "false_alarms",
                                               "false_alarm_rate_high",
                                               "median_steps",
                                               "seconds"};
    static const char *const fault_keys[] = {
        "id",      "number",       "family",        "class",         "expectation", "recipe",
        "outcome", "reached_step", "infected_step", "detected_step", "first_check", "checks"};
    struct har_result entries[ENTRIES];
    struct har_results results = results_of(entries);
    struct har_study study;
    cr_assert(har_study_make(&results, &study));
    struct har_text text = {0};
    results.name = (char *)"name";
    for (size_t i = 0; i < ENTRIES; i++) {
        entries[i].detail = (char *)"detail";
    }
    har_report_json(&results, &study, &text);
    json_t *const root = json_loads(har_text_get(&text), JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(root);
    cr_expect_eq(json_integer_value(json_object_get(root, "schema_version")), HAR_RESULTS_SCHEMA);
    json_t *const summary = json_object_get(root, "summary");
    for (size_t i = 0; i < sizeof summary_keys / sizeof summary_keys[0]; i++) {
        cr_expect_not_null(json_object_get(summary, summary_keys[i]), "%s", summary_keys[i]);
    }
    json_t *const faults = json_object_get(root, "faults");
    cr_assert_eq(json_array_size(faults), ENTRIES);
    for (size_t i = 0; i < sizeof fault_keys / sizeof fault_keys[0]; i++) {
        cr_expect_not_null(json_object_get(json_array_get(faults, 1), fault_keys[i]), "%s",
                           fault_keys[i]);
    }
    cr_expect_eq(json_object_size(json_object_get(json_array_get(faults, 0), "checks")),
                 (size_t)ORC_CHECK_COUNT);
    json_decref(root);
    har_text_fini(&text);
    har_study_fini(&study);
}

Test(har_report, csv_has_a_line_per_entry_and_the_table_names_each)
{
    struct har_result entries[ENTRIES];
    struct har_results results = results_of(entries);
    struct har_study study;
    cr_assert(har_study_make(&results, &study));
    struct har_text text = {0};
    for (size_t i = 0; i < ENTRIES; i++) {
        entries[i].detail = (char *)"a, b";
    }
    har_report_csv(&results, &study, &text);
    cr_expect_eq(count_of(har_text_get(&text), "\r\n"), ENTRIES + 1);
    cr_expect_eq(count_of(har_text_get(&text), ",\"a, b\"\r\n"), ENTRIES);
    har_text_fini(&text);
    har_report_text(&results, &study, false, &text);
    for (size_t i = 0; i < ENTRIES; i++) {
        cr_expect_not_null(strstr(har_text_get(&text), ids[i]), "%s", ids[i]);
    }
    cr_expect_null(strchr(har_text_get(&text), '\033'), "no colour unless asked");
    har_text_fini(&text);
    har_report_text(&results, &study, true, &text);
    cr_expect_not_null(strchr(har_text_get(&text), '\033'));
    har_text_fini(&text);
    har_study_fini(&study);
}

Test(har_report, after_a_first_verdict_nothing_is_said_of_other_checks)
{
    struct har_result entries[ENTRIES];
    struct har_results results = results_of(entries);
    struct har_study study;
    struct har_text text = {0};
    results.stop = (char *)"first verdict";
    cr_assert(har_study_make(&results, &study));
    har_report_text(&results, &study, false, &text);
    cr_expect_not_null(strstr(har_text_get(&text), "runs stopped at the first verdict"));
    const char *const silent[] = {"loss_only",    "alone, of the same faults",
                                  "smallest set", "cheapest set",
                                  "subsumes",     "alarms on the loss"};
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        cr_expect_null(strstr(har_text_get(&text), silent[i]), "%s", silent[i]);
    }
    har_text_fini(&text);
    har_report_json(&results, &study, &text);
    json_t *const root = json_loads(har_text_get(&text), 0, NULL);
    cr_assert_not_null(root);
    const json_t *const statistics = json_object_get(root, "statistics");
    cr_expect(json_is_null(json_object_get(json_object_get(root, "summary"), "detected_alone")));
    cr_expect(json_is_null(json_object_get(statistics, "sets")));
    cr_expect(json_is_null(json_object_get(statistics, "loss_alarms")));
    cr_expect(json_is_object(json_object_get(statistics, "families")));
    json_decref(root);
    har_text_fini(&text);
    har_study_fini(&study);
}

static struct har_limits no_limits(void)
{
    struct har_limits limits = {
        .fail_under = -1.0, .max_median_steps = -1.0, .max_false_alarms = -1, .max_no_verdict = -1};
    for (int i = 0; i < MUT_FAMILY_COUNT; i++) {
        limits.family_under[i] = -1.0;
    }
    return limits;
}

static int gate_code(const struct har_results *results, const struct har_limits *limits)
{
    struct har_text findings = {0};
    const enum har_status status = har_gate_judge(results, limits, &findings);
    cr_expect_eq(status == HAR_OK, findings.size == 0, "%s", har_text_get(&findings));
    har_text_fini(&findings);
    return har_status_exit_code(status);
}

Test(har_gate, each_limit_has_its_exit_code)
{
    struct har_result entries[ENTRIES];
    struct har_results r = results_of(entries);
    struct har_limits limits = no_limits();
    cr_expect_eq(gate_code(&r, &limits), 0);
    limits.fail_under = 50.0;
    cr_expect_eq(gate_code(&r, &limits), 0, "exactly at the limit passes");
    limits.fail_under = 50.1;
    cr_expect_eq(gate_code(&r, &limits), 2);
    limits = no_limits();
    limits.family_under[MUT_FAMILY_LOSS] = 60.0;
    cr_expect_eq(gate_code(&r, &limits), 2);
    limits = no_limits();
    limits.family_under[MUT_FAMILY_STREAM] = 1.0;
    cr_expect_eq(gate_code(&r, &limits), 2, "a family that tested nothing is not green");
    limits = no_limits();
    limits.max_median_steps = 2.0;
    cr_expect_eq(gate_code(&r, &limits), 2);
    limits.max_median_steps = 3.0;
    cr_expect_eq(gate_code(&r, &limits), 0);
}

Test(har_gate, worse_findings_hide_better_ones)
{
    struct har_result entries[ENTRIES];
    struct har_results r = results_of(entries);
    struct har_limits limits = no_limits();
    limits.fail_under = 99.0;
    r.summary.outcomes[HAR_OUTCOME_no_verdict] = 1;
    cr_expect_eq(gate_code(&r, &limits), 3);
    limits.max_no_verdict = 1;
    cr_expect_eq(gate_code(&r, &limits), 2);
    r.summary.false_alarms = 1;
    cr_expect_eq(gate_code(&r, &limits), 4);
    limits.max_false_alarms = 1;
    cr_expect_eq(gate_code(&r, &limits), 2);
    r.controls = (char *)"failed: planted";
    cr_expect_eq(gate_code(&r, &limits), 5);
    r.controls = empty;
    cr_expect_eq(gate_code(&r, &limits), 3, "controls that never finished did not fail");
    r.controls = (char *)"passed: all";
    r.finished = empty;
    cr_expect_eq(gate_code(&r, &limits), 3, "stopped before its last stage");
}

Test(har_gate, a_rate_of_nothing_and_a_median_of_nothing_fail)
{
    struct har_result entries[ENTRIES];
    struct har_results r = results_of(entries);
    struct har_limits limits = no_limits();
    r.summary.rate = (double)NAN;
    limits.fail_under = 1.0;
    cr_expect_eq(gate_code(&r, &limits), 2);
    limits = no_limits();
    r.summary.median_steps = (double)NAN;
    limits.max_median_steps = 5.0;
    cr_expect_eq(gate_code(&r, &limits), 2);
    r.count = 0;
    const struct har_limits none = no_limits();
    cr_expect_eq(gate_code(&r, &none), 3);
}

Test(har_gate, an_equivalent_fault_that_is_detected_fails)
{
    struct har_result entries[ENTRIES];
    struct har_results r = results_of(entries);
    const struct har_limits limits = no_limits();
    entries[3].outcome = HAR_OUTCOME_detected;
    cr_expect_eq(gate_code(&r, &limits), 2);
}

Test(har_status, codes_and_their_precedence)
{
    static const int order[] = {130, 70, 70, 74, 1, 6, 5, 4, 3, 2};
    size_t compared = 0;
    for (int i = HAR_OK + 1; i <= HAR_EGATE; i++) {
        cr_expect_eq(har_status_exit_code((enum har_status)i), order[i - 1]);
        cr_expect_eq(har_status_worse((enum har_status)i, HAR_OK), (enum har_status)i);
        cr_expect_eq(har_status_worse(HAR_EINTERRUPTED, (enum har_status)i), HAR_EINTERRUPTED);
        compared++;
    }
    cr_assert_eq(compared, sizeof order / sizeof order[0]);
    cr_expect_eq(har_status_worse(HAR_EGATE, HAR_ECONTROL), HAR_ECONTROL);
}
