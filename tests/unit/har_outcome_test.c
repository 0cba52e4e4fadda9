/* Tests of the outcome rules, as a table of facts. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "har_outcome.h"

struct row {
    const char *what;
    enum har_end subject, repeat, resumed;
    bool judged, reach_known;
    int reached, infected;
    int fired_step; /* of check `memory`; 0 = nothing fires */
    enum har_outcome expected;
    int detected;
};

#define DONE HAR_END_done
#define NOT_RUN HAR_END_not_run

static const struct row rows[] = {
    {"a check fires on an infected run", DONE, DONE, DONE, true, true, 1, 2, 3,
     HAR_OUTCOME_detected, 3},
    {"a latent fault is detected before anything is infected", DONE, DONE, NOT_RUN, true, true, 1,
     0, 2, HAR_OUTCOME_detected, 2},
    {"infected and silent", DONE, DONE, DONE, true, true, 1, 4, 0, HAR_OUTCOME_missed, 0},
    {"ran without a trace in any hash", DONE, DONE, DONE, true, true, 0, 0, 0,
     HAR_OUTCOME_not_infected, 0},
    {"never ran", DONE, DONE, DONE, true, true, -1, 0, 0, HAR_OUTCOME_not_reached, 0},
    {"a spurious refusal that memory saw is detected", HAR_END_refused, NOT_RUN, NOT_RUN, true,
     false, -1, 0, 5, HAR_OUTCOME_detected, 5},
    {"a refusal nobody saw is no credit", HAR_END_refused, NOT_RUN, NOT_RUN, true, false, -1, 3, 0,
     HAR_OUTCOME_crashed, 0},
    {"a crash is no credit", HAR_END_crashed, NOT_RUN, NOT_RUN, true, false, -1, 3, 0,
     HAR_OUTCOME_crashed, 0},
    {"an assertion is no credit", HAR_END_assertion, NOT_RUN, NOT_RUN, false, false, -1, 0, 0,
     HAR_OUTCOME_crashed, 0},
    {"rejected input is no credit", HAR_END_rejected, NOT_RUN, NOT_RUN, false, false, -1, 0, 0,
     HAR_OUTCOME_crashed, 0},
    {"a crash after a check fired is detected", HAR_END_crashed, NOT_RUN, NOT_RUN, true, false, -1,
     2, 2, HAR_OUTCOME_detected, 2},
    {"past its time", HAR_END_timed_out, NOT_RUN, NOT_RUN, true, false, -1, 1, 0,
     HAR_OUTCOME_timed_out, 0},
    {"the repeat dies", DONE, HAR_END_crashed, DONE, true, false, 1, 0, 0, HAR_OUTCOME_crashed, 0},
    {"the resumed run hangs", DONE, DONE, HAR_END_timed_out, true, false, 1, 0, 0,
     HAR_OUTCOME_timed_out, 0},
    {"the harness failed", HAR_END_no_verdict, NOT_RUN, NOT_RUN, false, false, -1, 0, 0,
     HAR_OUTCOME_no_verdict, 0},
    {"the harness failed in the repeat and nothing fired", DONE, HAR_END_no_verdict, NOT_RUN, true,
     false, 1, 1, 0, HAR_OUTCOME_no_verdict, 0},
    {"the harness failed in the repeat after a check fired", DONE, HAR_END_no_verdict, NOT_RUN,
     true, false, 1, 1, 1, HAR_OUTCOME_detected, 1},
    {"nothing could be judged", DONE, DONE, DONE, false, true, 1, 0, 0, HAR_OUTCOME_no_verdict, 0},
    {"a check fires though the site never ran", DONE, DONE, DONE, true, true, -1, 0, 1,
     HAR_OUTCOME_no_verdict, 1},
    {"hashes differ though the site never ran", DONE, DONE, DONE, true, true, -1, 4, 0,
     HAR_OUTCOME_no_verdict, 0},
};

Test(har_outcome, every_row_of_the_table_has_its_outcome)
{
    size_t compared = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct har_facts facts = {.judged = rows[i].judged,
                                  .reach_known = rows[i].reach_known,
                                  .reached = rows[i].reached,
                                  .infected = rows[i].infected,
                                  .ends = {rows[i].subject, rows[i].repeat, rows[i].resumed}};
        struct har_decision decision;
        memset(facts.enabled, 1, sizeof facts.enabled);
        if (rows[i].fired_step > 0) {
            facts.verdicts[ORC_CHECK_memory] =
                (struct orc_verdict){.applicable = true, .fired = true, .step = rows[i].fired_step};
        }
        har_outcome_decide(&facts, &decision);
        cr_expect_eq(decision.outcome, rows[i].expected, "%s: %s", rows[i].what,
                     har_outcome_name(decision.outcome));
        cr_expect_eq(decision.detected, rows[i].detected, "%s", rows[i].what);
        compared++;
    }
    cr_assert_gt(compared, 0);
}

Test(har_outcome, a_reference_of_its_own_that_fails_is_no_verdict_and_no_credit)
{
    struct har_decision decision;
    struct har_facts facts = {
        .judged = true,
        .reach_known = true,
        .reached = 1,
        .infected = 1,
        .ends = {HAR_END_done, HAR_END_done, HAR_END_not_run, HAR_END_crashed}};
    memset(facts.enabled, 1, sizeof facts.enabled);
    har_outcome_decide(&facts, &decision);
    cr_expect_eq(decision.outcome, HAR_OUTCOME_no_verdict);
    cr_expect_not_null(strstr(decision.detail, "reference"), "%s", decision.detail);
    /* A mutant that died leaves states that end before the run does. */
    facts.ends[HAR_ROLE_subject] = HAR_END_crashed;
    facts.ends[HAR_ROLE_reference] = HAR_END_rejected;
    har_outcome_decide(&facts, &decision);
    cr_expect_eq(decision.outcome, HAR_OUTCOME_crashed);
    facts.verdicts[ORC_CHECK_updates] =
        (struct orc_verdict){.applicable = true, .fired = true, .step = 2};
    har_outcome_decide(&facts, &decision);
    cr_expect_eq(decision.outcome, HAR_OUTCOME_detected);
}

Test(har_outcome, a_trace_without_its_end_gives_no_verdict_unless_a_check_fired)
{
    struct har_decision decision;
    struct har_facts facts = {.judged = true,
                              .cut = true,
                              .reached = -1,
                              .ends = {HAR_END_done, HAR_END_done, HAR_END_not_run}};
    memset(facts.enabled, 1, sizeof facts.enabled);
    har_outcome_decide(&facts, &decision);
    cr_expect_eq(decision.outcome, HAR_OUTCOME_no_verdict);
    cr_expect_not_null(strstr(decision.detail, "no complete trace"));
    facts.reached = 0; /* as for a healthy run */
    har_outcome_decide(&facts, &decision);
    cr_expect_eq(decision.outcome, HAR_OUTCOME_no_verdict);
    facts.verdicts[ORC_CHECK_loss] =
        (struct orc_verdict){.applicable = true, .fired = true, .step = 2};
    har_outcome_decide(&facts, &decision);
    cr_expect_eq(decision.outcome, HAR_OUTCOME_detected);
}

Test(har_outcome, an_oracle_without_verdict_makes_no_miss_and_takes_no_credit)
{
    static const struct {
        int reached, infected, fired_step;
        enum har_outcome expected;
    } lost[] = {{1, 2, 0, HAR_OUTCOME_no_verdict},
                {1, 0, 0, HAR_OUTCOME_no_verdict}, /* also a healthy run */
                {-1, 0, 0, HAR_OUTCOME_not_reached},
                {1, 2, 3, HAR_OUTCOME_detected}};
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        struct har_decision decision;
        struct har_facts facts = {.judged = true,
                                  .reach_known = true,
                                  .reached = lost[i].reached,
                                  .infected = lost[i].infected,
                                  .external_lost = true,
                                  .ends = {DONE, DONE, [HAR_ROLE_external] = HAR_END_no_verdict}};
        memset(facts.enabled, 1, sizeof facts.enabled);
        snprintf(facts.verdicts[ORC_CHECK_external].detail, sizeof facts.verdicts[0].detail,
                 "it never came back");
        if (lost[i].fired_step > 0) {
            facts.verdicts[ORC_CHECK_loss] =
                (struct orc_verdict){.applicable = true, .fired = true, .step = lost[i].fired_step};
        }
        har_outcome_decide(&facts, &decision);
        cr_expect_eq(decision.outcome, lost[i].expected, "%zu: %s", i,
                     har_outcome_name(decision.outcome));
        cr_expect_eq(strstr(decision.detail, "it never came back") != NULL,
                     lost[i].expected == HAR_OUTCOME_no_verdict, "%s", decision.detail);
    }
}

static struct har_facts two_checks(int first_step, int second_step)
{
    struct har_facts facts = {.judged = true,
                              .reach_known = true,
                              .infected = 1,
                              .reached = 1,
                              .ends = {HAR_END_done, HAR_END_done, HAR_END_done}};
    memset(facts.enabled, 1, sizeof facts.enabled);
    facts.verdicts[ORC_CHECK_loss] =
        (struct orc_verdict){.applicable = true, .fired = true, .step = first_step};
    facts.verdicts[ORC_CHECK_curve] =
        (struct orc_verdict){.applicable = true, .fired = true, .step = second_step};
    return facts;
}

Test(har_outcome, earliest_check_wins_and_ties_go_by_the_pipeline)
{
    struct har_decision decision;
    struct har_facts facts = two_checks(3, 3);
    har_outcome_decide(&facts, &decision);
    cr_expect_eq(decision.first_check, ORC_CHECK_loss);
    facts = two_checks(3, 2);
    har_outcome_decide(&facts, &decision);
    cr_expect_eq(decision.first_check, ORC_CHECK_curve);
    cr_expect_eq(decision.detected, 2);
}

/* Facts of a look at step 1: gradients fired there, races at step 2. */
static struct har_facts look(void)
{
    struct har_facts facts = {.judged = true,
                              .reach_known = true,
                              .infected = 1,
                              .reached = 1,
                              .ends = {HAR_END_done, HAR_END_not_run, HAR_END_not_run}};
    memset(facts.enabled, 1, sizeof facts.enabled);
    facts.verdicts[ORC_CHECK_gradients] =
        (struct orc_verdict){.applicable = true, .fired = true, .step = 1};
    facts.verdicts[ORC_CHECK_races] =
        (struct orc_verdict){.applicable = true, .fired = true, .step = 2};
    return facts;
}

Test(har_outcome, a_short_run_is_believed_up_to_a_step)
{
    struct har_facts facts = look();
    har_outcome_trim(&facts, 2);
    cr_expect(facts.verdicts[ORC_CHECK_races].fired);
    har_outcome_trim(&facts, 1);
    cr_expect(facts.verdicts[ORC_CHECK_gradients].fired);
    cr_expect_not(facts.verdicts[ORC_CHECK_races].fired);
    cr_expect_eq(facts.verdicts[ORC_CHECK_races].step, 0);
    cr_expect(facts.verdicts[ORC_CHECK_races].applicable);
    cr_expect_eq(facts.infected, 1);
    facts.infected = 2;
    har_outcome_trim(&facts, 1);
    cr_expect_eq(facts.infected, 0);
}

Test(har_outcome, the_first_verdict_is_settled_when_nothing_could_come_before_it)
{
    struct har_facts facts = look();
    cr_expect(har_outcome_is_settled(&facts, true, 1, ORC_CHECK_repeat));
    cr_expect_not(har_outcome_is_settled(&facts, true, 1, ORC_CHECK_loss), "it comes before");
    cr_expect_not(har_outcome_is_settled(&facts, false, 1, ORC_CHECK_repeat), "not every check");
    facts.verdicts[ORC_CHECK_gradients].step = 3;
    facts.verdicts[ORC_CHECK_races].step = 3;
    cr_expect_not(har_outcome_is_settled(&facts, true, 1, ORC_CHECK_repeat));
    cr_expect(har_outcome_is_settled(&facts, true, 9, ORC_CHECK_resume));
}

Test(har_outcome, nothing_is_settled_while_reach_infection_or_life_are_unknown)
{
    struct har_facts facts = look();
    facts.infected = 0;
    cr_expect_not(har_outcome_is_settled(&facts, true, 1, ORC_CHECK_repeat), "latent");
    facts = look();
    facts.reached = -1;
    cr_expect_not(har_outcome_is_settled(&facts, true, 1, ORC_CHECK_repeat), "not reached");
    facts = look();
    facts.ends[HAR_ROLE_subject] = HAR_END_crashed;
    cr_expect_not(har_outcome_is_settled(&facts, true, 1, ORC_CHECK_repeat), "dead");
}

Test(har_outcome, without_first_verdict_every_enabled_check_must_have_fired)
{
    struct har_facts facts = look();
    memset(facts.enabled, 0, sizeof facts.enabled);
    facts.enabled[ORC_CHECK_gradients] = facts.enabled[ORC_CHECK_races] = true;
    cr_expect(har_outcome_is_settled(&facts, false, 1, ORC_CHECK_text));
    facts.enabled[ORC_CHECK_loss] = true;
    cr_expect_not(har_outcome_is_settled(&facts, false, 1, ORC_CHECK_text));
}

Test(har_outcome, disabled_and_inapplicable_checks_do_not_count)
{
    struct har_decision decision;
    struct har_facts facts = two_checks(1, 4);
    facts.enabled[ORC_CHECK_loss] = false;
    har_outcome_decide(&facts, &decision);
    cr_expect_eq(decision.first_check, ORC_CHECK_curve);
    facts.verdicts[ORC_CHECK_curve].applicable = false;
    har_outcome_decide(&facts, &decision);
    cr_expect_eq(decision.first_check, -1);
    cr_expect_eq(decision.outcome, HAR_OUTCOME_missed);
}

static void expect_join(const enum har_outcome *repeats, size_t count, enum har_outcome expected,
                        size_t detected, size_t relevant)
{
    size_t got_detected = 0;
    size_t got_relevant = 0;
    cr_expect_eq(har_outcome_join(repeats, count, &got_detected, &got_relevant), expected);
    cr_expect_eq(got_detected, detected);
    cr_expect_eq(got_relevant, relevant);
}

Test(har_outcome, repeats_join_as_the_design_says)
{
    const enum har_outcome D = HAR_OUTCOME_detected;
    const enum har_outcome M = HAR_OUTCOME_missed;
    const enum har_outcome N = HAR_OUTCOME_not_infected;
    expect_join((const enum har_outcome[]){D, D}, 2, HAR_OUTCOME_detected, 2, 2);
    expect_join((const enum har_outcome[]){D, N}, 2, HAR_OUTCOME_detected, 1, 1);
    expect_join((const enum har_outcome[]){D, M}, 2, HAR_OUTCOME_flaky, 1, 2);
    expect_join((const enum har_outcome[]){D, HAR_OUTCOME_crashed}, 2, HAR_OUTCOME_flaky, 1, 2);
    expect_join((const enum har_outcome[]){M, N}, 2, HAR_OUTCOME_missed, 0, 1);
    expect_join((const enum har_outcome[]){N, HAR_OUTCOME_not_reached}, 2, HAR_OUTCOME_not_infected,
                0, 0);
    expect_join((const enum har_outcome[]){HAR_OUTCOME_not_reached}, 1, HAR_OUTCOME_not_reached, 0,
                0);
    expect_join((const enum har_outcome[]){D, HAR_OUTCOME_no_verdict}, 2, HAR_OUTCOME_no_verdict, 1,
                1);
    expect_join((const enum har_outcome[]){HAR_OUTCOME_timed_out}, 1, HAR_OUTCOME_timed_out, 0, 1);
    expect_join(NULL, 0, HAR_OUTCOME_no_verdict, 0, 0);
}

Test(har_outcome, steps_count_both_ends)
{
    cr_expect_eq(har_outcome_steps(0, 1), 1);
    cr_expect_eq(har_outcome_steps(1, 1), 1);
    cr_expect_eq(har_outcome_steps(3, 5), 3);
    cr_expect_eq(har_outcome_steps(2, 1), 1);
}

Test(har_outcome, names_are_found_again)
{
    for (int i = 0; i < HAR_OUTCOME_COUNT; i++) {
        enum har_outcome found;
        cr_assert(har_outcome_find(har_outcome_name((enum har_outcome)i), &found));
        cr_expect_eq((int)found, i);
    }
}
