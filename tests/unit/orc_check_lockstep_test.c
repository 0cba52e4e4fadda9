/* Judging against a reference that follows the run: every step is judged like the first, other
 * bounds are refused, and a difference of the batch confounds nothing that was adopted. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "orc_check_synth.h"

enum { SEED = 501, CALIBRATION_RUNS = 12, CALIBRATION_SEED = 1, LATE = 12, BIG = 300 };

static void judge(const struct synth *mine, const struct synth *theirs, const orc_bounds *bounds,
                  struct orc_verdict *out)
{
    struct orc_error error = {""};
    orc_trace *subject = synth_trace(mine), *reference = synth_trace(theirs);
    const struct orc_case c = {.subject = subject, .reference = reference};
    cr_assert_eq(orc_judge(&c, bounds, out, &error), ORC_OK, "%s", error.text);
    orc_trace_free(subject);
    orc_trace_free(reference);
}

static struct synth subject(bool lockstep)
{
    struct synth s = synth_subject(SEED);
    s.lockstep = lockstep;
    return s;
}

static struct synth reference(bool lockstep)
{
    struct synth s = synth_reference(SEED);
    s.lockstep = lockstep;
    return s;
}

Test(lockstep, healthy_runs_are_quiet)
{
    orc_bounds *bounds = synth_lockstep_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    size_t compared = 0;
    for (uint64_t seed = SEED; seed < SEED + 50; seed++) {
        struct synth mine = subject(true), theirs = reference(true);
        struct orc_verdict v[ORC_CHECK_COUNT];
        mine.seed = theirs.seed = seed;
        judge(&mine, &theirs, bounds, v);
        for (int i = 0; i < ORC_CHECK_COUNT; i++) {
            cr_expect_not(v[i].fired, "%s: %s", orc_check_name((enum orc_check_id)i), v[i].detail);
            compared += v[i].compared;
        }
    }
    cr_assert_gt(compared, 0);
    cr_expect_not_null(strstr(orc_bounds_summary(bounds), "in lockstep"));
    orc_bounds_free(bounds);
}

/* The same absolute difference: many times the noise of a step that starts from the same bits, few
 * times that of a late step that does not. */
Test(lockstep, a_late_step_is_judged_like_the_first)
{
    static const struct {
        enum synth_plant plant;
        enum orc_check_id check;
        double scales;
    } rows[] = {
        {SYNTH_gradient, ORC_CHECK_gradients, 60},
        {SYNTH_activation, ORC_CHECK_activations, 60},
        {SYNTH_moment, ORC_CHECK_state, 60},
        {SYNTH_loss, ORC_CHECK_loss, 60},
    };
    orc_bounds *together = synth_lockstep_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    orc_bounds *apart = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    const double late_noise = 41.569219381653056; /* LATE to the power of 1.5, see noise_rms */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct orc_verdict v[ORC_CHECK_COUNT];
        for (int lockstep = 0; lockstep < 2; lockstep++) {
            struct synth mine = subject(lockstep != 0), theirs = reference(lockstep != 0);
            mine.plant = rows[i].plant;
            mine.plant_step = LATE;
            mine.scales = lockstep != 0 ? rows[i].scales : rows[i].scales / late_noise;
            judge(&mine, &theirs, lockstep != 0 ? together : apart, v);
            cr_expect_eq(v[rows[i].check].fired, lockstep != 0, "%s, lockstep %d: %s",
                         synth_plant_name(rows[i].plant), lockstep, v[rows[i].check].detail);
            cr_expect_eq(v[rows[i].check].step, lockstep != 0 ? LATE : 0);
        }
    }
    orc_bounds_free(together);
    orc_bounds_free(apart);
}

Test(lockstep, an_adopted_batch_confounds_only_the_evaluation)
{
    orc_bounds *bounds = synth_lockstep_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    struct orc_verdict v[ORC_CHECK_COUNT];
    struct synth theirs = reference(true);
    theirs.plant = SYNTH_text;
    theirs.plant_step = 1;
    struct synth mine = subject(true);
    mine.plant = SYNTH_gradient;
    mine.scales = BIG;
    judge(&mine, &theirs, bounds, v);
    cr_expect_eq(v[ORC_CHECK_text].step, 1);
    cr_expect(v[ORC_CHECK_gradients].fired);
    cr_expect_eq(v[ORC_CHECK_gradients].step, SYNTH_PLANT_STEP);
    mine.plant = SYNTH_eval_loss;
    judge(&mine, &theirs, bounds, v);
    cr_expect_not(v[ORC_CHECK_loss].fired, "%s", v[ORC_CHECK_loss].detail);
    theirs.plant = SYNTH_none;
    judge(&mine, &theirs, bounds, v);
    cr_expect(v[ORC_CHECK_loss].fired);
    cr_expect_eq(v[ORC_CHECK_loss].step, SYNTH_EVAL_EVERY);
    orc_bounds_free(bounds);
}

Test(lockstep, bounds_belong_to_one_mode)
{
    struct orc_error error = {""};
    struct orc_verdict v[ORC_CHECK_COUNT];
    char *text = NULL;
    orc_bounds *made = synth_lockstep_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    orc_bounds *together = NULL, *apart = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    cr_assert_eq(orc_bounds_write(made, &text), ORC_OK);
    cr_assert_eq(orc_bounds_parse(text, &together, &error), ORC_OK, "%s", error.text);
    const struct synth mine = subject(true), follows = reference(true), own = reference(false);
    const struct orc_case followed = {.subject = synth_trace(&mine),
                                      .reference = synth_trace(&follows)};
    const struct orc_case alone = {.subject = followed.subject, .reference = synth_trace(&own)};
    cr_expect_eq(orc_judge(&followed, together, v, &error), ORC_OK, "%s", error.text);
    cr_expect_eq(orc_judge(&alone, apart, v, &error), ORC_OK, "%s", error.text);
    cr_expect_eq(orc_judge(&followed, apart, v, &error), ORC_EMISMATCH);
    cr_expect_not_null(strstr(error.text, "not for references that follow"), "%s", error.text);
    cr_expect_eq(orc_judge(&alone, together, v, &error), ORC_EMISMATCH);
    orc_calibration *calibration = NULL;
    cr_assert_eq(orc_calibration_create(&calibration), ORC_OK);
    cr_expect_eq(orc_calibration_add(calibration, &followed, &error), ORC_OK, "%s", error.text);
    cr_expect_eq(orc_calibration_add(calibration, &alone, &error), ORC_EMISMATCH);
    orc_calibration_free(calibration);
    orc_trace_free((orc_trace *)followed.subject);
    orc_trace_free((orc_trace *)followed.reference);
    orc_trace_free((orc_trace *)alone.reference);
    orc_bounds_free(made);
    orc_bounds_free(together);
    orc_bounds_free(apart);
    free(text);
}
