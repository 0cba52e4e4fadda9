/* Two sets of results side by side, on results made by hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "har_compare.h"

enum { ENTRIES = 6 };
static const char *const ids[ENTRIES] = {"a.a", "b.b", "c.c", "d.d", "e.e", "f.f"};

static struct har_result entry_of(const char *id, int detected, int loss)
{
    struct har_result e = {.id = (char *)id,
                           .recipe = (char *)"pico",
                           .horizon = 16,
                           .seed = 7,
                           .repeats = 1,
                           .outcome = detected > 0 ? HAR_OUTCOME_detected : HAR_OUTCOME_missed,
                           .reached = 1,
                           .detected = detected,
                           .first_check = detected > 0 ? ORC_CHECK_updates : -1};
    snprintf(e.expectation, sizeof e.expectation, "KILL");
    e.check_steps[ORC_CHECK_loss] = loss;
    return e;
}

static struct har_results results_of(struct har_result entries[ENTRIES],
                                     const int steps[ENTRIES][2])
{
    for (int i = 0; i < ENTRIES; i++) {
        entries[i] = entry_of(ids[i], steps[i][0], steps[i][1]);
    }
    return (struct har_results){.entries = entries, .count = ENTRIES};
}

Test(har_compare, counts_what_each_side_alone_detects_and_when)
{
    static const int here[ENTRIES][2] = {{1, 0}, {2, 3}, {5, 5}, {0, 0}, {4, 4}, {1, 1}};
    static const int there[ENTRIES][2] = {{3, 3}, {2, 2}, {0, 0}, {0, 0}, {2, 0}, {1, 1}};
    struct har_result a[ENTRIES], b[ENTRIES];
    struct har_results mine = results_of(a, here), theirs = results_of(b, there);
    const struct har_results *const sides[HAR_SIDES] = {&mine, &theirs};
    static const char *const names[HAR_SIDES] = {"lockstep", "free"};
    struct har_compare c;
    b[5].seed = 8; /* another seed is no pair */
    mine.summary.child_seconds = 30.0;
    theirs.summary.child_seconds = 20.0;
    cr_assert(har_compare_make(sides, &c));
    cr_expect_eq(c.entries, 5);
    cr_expect_eq(c.apart, 1);
    cr_expect_eq(c.detected[0], 4);
    cr_expect_eq(c.detected[1], 3);
    cr_expect_eq(c.only[0], 1);
    cr_expect_eq(c.only[1], 0);
    cr_expect_eq(c.both, 3);
    cr_expect_eq(c.neither, 1);
    cr_expect_eq(c.earlier[0], 1);
    cr_expect_eq(c.earlier[1], 1);
    cr_expect_eq(c.tied, 1);
    cr_expect_eq(c.median_steps[0], 2.0);
    cr_expect_eq(c.mean_steps[0], 7.0 / 3.0);
    cr_expect_eq(c.mean_steps[1], 7.0 / 3.0);
    cr_expect_eq(c.alone[0][ORC_CHECK_loss], 3);
    cr_expect_eq(c.alone_only[0][ORC_CHECK_loss], 2);
    cr_expect_eq(c.alone[1][ORC_CHECK_loss], 2);
    cr_expect_eq(c.alone_only[1][ORC_CHECK_loss], 1);
    struct har_text text = {0};
    har_compare_text(sides, &c, names, &text);
    const char *const said = har_text_get(&text);
    cr_expect_not_null(strstr(said, "detected by lockstep only: 1; by free only: 0"), "%s", said);
    cr_expect_not_null(strstr(said, "lockstep over free: 1.50"), "%s", said);
    cr_expect_not_null(strstr(said, "c.c"), "%s", said);
    cr_expect_null(strstr(said, "b.b"), "%s", said);
    cr_expect_null(strstr(said, "f.f"), "%s", said);
    har_text_fini(&text);
}

Test(har_compare, nothing_in_common_is_nothing_compared)
{
    static const int steps[ENTRIES][2] = {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    struct har_result a[ENTRIES], b[ENTRIES];
    struct har_results mine = results_of(a, steps), theirs = results_of(b, steps);
    const struct har_results *const sides[HAR_SIDES] = {&mine, &theirs};
    struct har_compare c;
    for (int i = 0; i < ENTRIES; i++) {
        b[i].recipe = (char *)"nano";
    }
    cr_assert(har_compare_make(sides, &c));
    cr_expect_eq(c.entries, 0);
    cr_expect_eq(c.apart, ENTRIES);
    cr_expect(isnan(c.median_steps[0]) && isnan(c.mean_steps[1]));
}
