/* Tests of what results amount to, of stored losses and of places in sources, on results made by
 * hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_curve.h"
#include "har_report_source.h"
#include "har_study.h"

enum { ENTRIES = 4 };

static struct har_result entry_of(const char *class_, enum har_outcome outcome, int loss, int curve)
{
    struct har_result e = {.id = (char *)"a.b",
                           .fault = (char *)"a.b",
                           .curve = (char *)"{}",
                           .blame = (char *)"",
                           .dose = (double)NAN,
                           .horizon = 16,
                           .outcome = outcome,
                           .reached = 1,
                           .detected = loss > 0 && (curve == 0 || loss < curve) ? loss : curve};
    snprintf(e.class_, sizeof e.class_, "%s", class_);
    snprintf(e.expectation, sizeof e.expectation, "KILL");
    e.check_steps[ORC_CHECK_loss] = loss;
    e.check_steps[ORC_CHECK_curve] = curve;
    return e;
}

static struct har_results results_of(struct har_result entries[ENTRIES])
{
    entries[0] = entry_of("loss", HAR_OUTCOME_detected, 1, 5);
    entries[1] = entry_of("loss", HAR_OUTCOME_detected, 3, 0);
    entries[2] = entry_of("gradient", HAR_OUTCOME_detected, 0, 2);
    entries[3] = entry_of("gradient", HAR_OUTCOME_missed, 0, 0);
    entries[0].blame = (char *)"loss";
    entries[2].blame = (char *)"loss";
    return (struct har_results){.entries = entries, .count = ENTRIES};
}

Test(har_study, a_fault_that_is_never_detected_is_censored_at_its_horizon)
{
    struct har_result entries[ENTRIES];
    const struct har_results results = results_of(entries);
    struct har_study study;
    cr_assert(har_study_make(&results, &study));
    cr_expect_eq(study.count, ENTRIES);
    cr_expect_eq(study.horizon, 16.0);
    cr_expect_eq(study.any.detected, 3);
    cr_expect_eq(study.any.curve.events, 3);
    cr_expect_eq(har_stat_survival_at(&study.any.curve, 16.0), 0.25);
    cr_expect_eq(study.checks[ORC_CHECK_curve].curve.events, 2);
    /* 1 until 1, then 3/4, 1/2 from 2 on, 1/4 from 3 on. */
    cr_expect_eq(study.any.mean.value, 1.0 + 0.75 + 0.5 + 13.0 * 0.25);
    har_study_fini(&study);
}

Test(har_study, checks_are_compared_in_pairs_and_as_sets)
{
    struct har_result entries[ENTRIES];
    const struct har_results results = results_of(entries);
    struct har_study study;
    cr_assert(har_study_make(&results, &study));
    cr_expect_eq(study.checks[ORC_CHECK_loss].earlier, 2);
    cr_expect_eq(study.checks[ORC_CHECK_loss].later, 1);
    cr_expect_eq(study.checks[ORC_CHECK_loss].tied, 1, "neither saw it");
    cr_expect_eq(study.smallest, 1u << ORC_CHECK_loss | 1u << ORC_CHECK_curve);
    cr_expect_eq(study.roots, 2, "seen by loss alone, and by curve alone");
    cr_expect_eq(study.roots_detected_by_curve, 1);
    cr_expect(study.goals[0].possible, "half of them");
    cr_expect_not(study.goals[2].possible, "nine tenths are not to be had");
    har_study_fini(&study);
}

Test(har_study, blame_is_right_where_the_class_first_shows)
{
    struct har_result entries[ENTRIES];
    const struct har_results results = results_of(entries);
    struct har_study study;
    cr_assert(har_study_make(&results, &study));
    cr_expect_eq(study.blame.n, ENTRIES);
    cr_expect_eq(study.blame.right, 1);
    har_study_fini(&study);
    cr_expect(har_study_blames_rightly("order", "races"));
    cr_expect(har_study_blames_rightly("later", "state"));
    cr_expect_not(har_study_blames_rightly("later", "stat"));
    cr_expect_not(har_study_blames_rightly("bytes", ""));
    size_t known = 0;
    for (int c = 0; c < MUT_CLASS_COUNT; c++) {
        for (int k = 0; k < ORC_CHECK_COUNT; k++) {
            known += har_study_blames_rightly(mut_class_name((enum mut_class)c),
                                              orc_check_name((enum orc_check_id)k));
        }
    }
    cr_expect_geq(known, (size_t)MUT_CLASS_COUNT, "every class has a stage");
}

Test(har_curve, losses_read_back_and_what_is_no_curve_is_refused)
{
    struct har_curve curve;
    cr_assert(har_curve_parse("{\"first\":1,\"subject\":[2.5,null],\"healthy\":[2.5,2.25,2.0],"
                              "\"reference\":[]}",
                              &curve));
    cr_expect_eq(curve.count, 3);
    cr_expect_eq(curve.subject_count, 2);
    cr_expect_eq(curve.subject[0], 2.5);
    cr_expect(isnan(curve.subject[1]));
    cr_expect(isnan(curve.subject[2]));
    cr_expect_eq(curve.healthy[2], 2.0);
    cr_expect(isnan(curve.reference[0]));
    har_curve_fini(&curve);
    cr_expect_not(har_curve_parse("[1,2]", &curve));
    cr_expect_not(har_curve_parse("{\"first\":\"x\"}", &curve));
    cr_expect_not(har_curve_parse("", &curve));
    cr_expect_null(har_curve_json(NULL, NULL, NULL));
}

Test(har_source, a_site_is_found_to_the_column_or_not_at_all)
{
    static const char text[] = "int a;\nb = FAULT(site, f(1,\n    2)) + c;\n";
    struct mut_site_info site = {.site = "site", .line = 2};
    struct har_source_range range;
    har_source_find(text, &site, &range);
    cr_expect_eq(range.line, 2);
    cr_expect_eq(range.column, 5);
    cr_expect_eq(range.end_line, 3);
    cr_expect_eq(range.end_column, 8);
    site.line = 1;
    har_source_find(text, &site, &range);
    cr_expect_eq(range.column, 1, "another version of the file");
    cr_expect_eq(range.end_line, 1);
    site.line = 99;
    har_source_find(text, &site, &range);
    cr_expect_eq(range.line, 99);
    har_source_find(NULL, &site, &range);
    cr_expect_eq(range.column, 1);
}
