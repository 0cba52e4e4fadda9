/* Bounds from healthy runs: no false alarm on other healthy runs, deviations of some scales found,
 * JSON there and back, and what is refused. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "orc_check_synth.h"

enum { FIRST_SEED = 1, FRESH_SEED = 1000 };

static void judge_pair(const struct synth *mine, const orc_bounds *bounds,
                       struct orc_verdict *verdicts)
{
    struct orc_error error = {""};
    const struct synth theirs = synth_reference(mine->seed);
    const struct orc_case c = {.subject = synth_trace(mine), .reference = synth_trace(&theirs)};
    cr_assert_eq(orc_judge(&c, bounds, verdicts, &error), ORC_OK, "%s", error.text);
    orc_trace_free((orc_trace *)c.subject);
    orc_trace_free((orc_trace *)c.reference);
}

static int count_alarms(int calibration_runs, int fresh_runs)
{
    orc_bounds *bounds = synth_bounds(FIRST_SEED, calibration_runs);
    int alarms = 0;
    size_t compared = 0;
    for (int i = 0; i < fresh_runs; i++) {
        struct orc_verdict v[ORC_CHECK_COUNT];
        const struct synth mine = synth_subject(FRESH_SEED + (uint64_t)i);
        judge_pair(&mine, bounds, v);
        for (int k = 0; k < ORC_CHECK_COUNT; k++) {
            alarms += v[k].fired;
            compared += v[k].compared;
            cr_expect_not(v[k].fired, "seed %d, %s at step %d: %s", FRESH_SEED + i,
                          orc_check_name((enum orc_check_id)k), v[k].step, v[k].detail);
        }
    }
    cr_expect_gt(compared, 0);
    orc_bounds_free(bounds);
    return alarms;
}

Test(calibration, twenty_runs_raise_no_alarm_on_two_hundred_others)
{
    cr_expect_eq(count_alarms(20, 200), 0);
}

Test(calibration, ten_runs_raise_no_alarm_on_a_hundred_others)
{
    cr_expect_eq(count_alarms(10, 100), 0);
}

/* In the first step the bound of sketches is the margin (4) times the largest of about 10^3 normal
 * deviates (3.5) times the factor between runs (up to about 1.6 with the synthetic spread): about
 * 22 standard deviations. Later steps have the margin 10 and up to 10^4 deviates: about 70. */
Test(calibration, deviations_of_some_scales_are_detected_at_once)
{
    static const struct {
        enum synth_plant plant;
        enum orc_check_id check;
    } cases[] = {{SYNTH_activation, ORC_CHECK_activations},
                 {SYNTH_gradient, ORC_CHECK_gradients},
                 {SYNTH_update, ORC_CHECK_updates},
                 {SYNTH_moment, ORC_CHECK_state},
                 {SYNTH_loss, ORC_CHECK_loss}};
    orc_bounds *bounds = synth_bounds(FIRST_SEED, 20);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int step = 1; step <= SYNTH_STEPS; step += 5) {
            struct orc_verdict v[ORC_CHECK_COUNT];
            struct synth mine = synth_subject(FRESH_SEED);
            mine.plant = cases[i].plant;
            mine.plant_step = step;
            mine.scales = step == 1 ? 30 : 120;
            judge_pair(&mine, bounds, v);
            const struct orc_verdict *verdict = &v[cases[i].check];
            cr_expect(verdict->fired, "%s at step %d: worst %g", synth_plant_name(cases[i].plant),
                      step, verdict->worst);
            cr_expect_eq(verdict->step, step);
            mine.scales = 1; /* one standard deviation is nothing */
            judge_pair(&mine, bounds, v);
            cr_expect_not(verdict->fired);
            mine.scales = 10; /* of losses after the first step 100: within their margin only */
            judge_pair(&mine, bounds, v);
            cr_expect_not(verdict->fired && cases[i].check == ORC_CHECK_loss && step > 1);
        }
    }
    orc_bounds_free(bounds);
}

Test(calibration, bounds_survive_json)
{
    orc_bounds *bounds = synth_bounds(FIRST_SEED, 6), *again = NULL;
    char *text = NULL, *text_again = NULL;
    struct orc_error error = {""};
    cr_assert_eq(orc_bounds_write(bounds, &text), ORC_OK);
    cr_assert_eq(orc_bounds_parse(text, &again, &error), ORC_OK, "%s", error.text);
    cr_assert_eq(orc_bounds_write(again, &text_again), ORC_OK);
    cr_expect_str_eq(text, text_again);
    cr_expect_str_eq(orc_bounds_summary(bounds), orc_bounds_summary(again));
    cr_expect_eq(orc_bounds_runs(again), 6);
    cr_expect_not_null(strstr(orc_bounds_summary(again), "6 healthy runs"));
    cr_expect_not_null(strstr(orc_bounds_summary(again), "synthetic"));
    struct synth mine = synth_subject(FRESH_SEED);
    mine.plant = SYNTH_gradient;
    mine.scales = 100;
    struct orc_verdict a[ORC_CHECK_COUNT], b[ORC_CHECK_COUNT];
    judge_pair(&mine, bounds, a);
    judge_pair(&mine, again, b);
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        cr_expect_eq(a[i].fired, b[i].fired);
        cr_expect_eq(a[i].worst, b[i].worst);
        cr_expect_eq(a[i].compared, b[i].compared);
        cr_expect_str_eq(a[i].detail, b[i].detail);
    }
    free(text);
    free(text_again);
    orc_bounds_free(bounds);
    orc_bounds_free(again);
}

/* Replaces the first occurrence; the result is the caller's. */
static char *replaced(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    cr_assert_not_null(at, "%s", old);
    char *out = calloc(1, strlen(text) + strlen(new) + 1);
    cr_assert_not_null(out);
    memcpy(out, text, (size_t)(at - text));
    strcat(out, new);
    strcat(out, at + strlen(old));
    return out;
}

Test(calibration, damaged_json_is_refused)
{
    static const struct {
        const char *old, *new;
    } damage[] = {
        {"\"schema_version\":2", "\"schema_version\":3"},
        {"\"schema_version\":2", "\"other\":1"},
        {"\"runs\":4", "\"runs\":1"},
        {"\"runs\":4", "\"runs\":5"},
        {"\"quantile\":1", "\"quantile\":2"},
        {"\"regime\":\"later\"", "\"regime\":\"never\""},
        {"\"regime\":\"later\"", "\"regime\":\"any\""},
        {"\"part\":\"norm\"", "\"part\":\"new\""},
        {"\"recipe_hash\":\"", "\"recipe_hash\":\"x"},
        {"\"check\":\"activations\"", "\"check\":\"nothing\""},
        {"\"bound\":", "\"bond\":"},
        {"\"scales\":[", "\"scales\":[-1,"},
        {"\"scales\":[", "\"scales\":[\"1\","},
        {"\"bounds\":[", "\"bounds\":{},\"x\":["},
        {"\"bounds\":[", "\"bounds\":[{\"check\":\"text\"},"},
        {"\"classes\":[", "\"classes\":[{},"},
        {"\"centres\":[", "\"centres\":[1,"},
        {"{", "["},
    };
    orc_bounds *bounds = synth_bounds(FIRST_SEED, 4);
    char *text = NULL;
    cr_assert_eq(orc_bounds_write(bounds, &text), ORC_OK);
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        orc_bounds *again = NULL;
        struct orc_error error = {""};
        char *bad = replaced(text, damage[i].old, damage[i].new);
        cr_expect_eq(orc_bounds_parse(bad, &again, &error), ORC_EFORMAT, "%s", damage[i].new);
        cr_expect_null(again);
        cr_expect(error.text[0] != '\0');
        free(bad);
    }
    orc_bounds *again = NULL;
    struct orc_error error = {""};
    cr_expect_eq(orc_bounds_parse(NULL, &again, &error), ORC_EARG);
    free(text);
    orc_bounds_free(bounds);
}

static enum orc_status add(orc_calibration *calibration, const struct synth *mine,
                           struct orc_error *error)
{
    const struct synth theirs = synth_reference(mine->seed);
    const struct orc_case c = {.subject = synth_trace(mine), .reference = synth_trace(&theirs)};
    const enum orc_status status = orc_calibration_add(calibration, &c, error);
    orc_trace_free((orc_trace *)c.subject);
    orc_trace_free((orc_trace *)c.reference);
    return status;
}

Test(calibration, too_few_same_foreign_and_unhealthy_runs)
{
    orc_calibration *calibration = NULL;
    orc_bounds *bounds = NULL;
    struct orc_error error = {""};
    cr_assert_eq(orc_calibration_create(&calibration), ORC_OK);
    struct synth s = synth_subject(1);
    cr_expect_eq(add(calibration, &s, &error), ORC_OK);
    cr_expect_eq(add(calibration, &s, &error), ORC_OK);
    cr_expect_eq(orc_calibration_runs(calibration), 1, "the same run counts once");
    cr_expect_eq(orc_calibration_finish(calibration, &bounds, &error), ORC_EARG);
    static const enum synth_plant unhealthy[] = {SYNTH_text,     SYNTH_labels,    SYNTH_order,
                                                 SYNTH_loss_nan, SYNTH_nonfinite, SYNTH_sketch_nan};
    for (size_t i = 0; i < sizeof unhealthy / sizeof unhealthy[0]; i++) {
        s = synth_subject(2);
        s.plant = unhealthy[i];
        cr_expect_eq(add(calibration, &s, &error), ORC_EMISMATCH, "%s",
                     synth_plant_name(unhealthy[i]));
        cr_expect_not_null(strstr(error.text, "not healthy"), "%s", error.text);
    }
    s = synth_subject(2);
    s.recipe_hash = 5;
    cr_expect_eq(add(calibration, &s, &error), ORC_EMISMATCH);
    cr_expect_eq(orc_calibration_runs(calibration), 1);
    for (uint64_t seed = 2; seed <= 3; seed++) {
        s = synth_subject(seed);
        cr_expect_eq(add(calibration, &s, &error), ORC_OK, "%s", error.text);
    }
    cr_expect_eq(orc_calibration_finish(calibration, &bounds, &error), ORC_OK, "%s", error.text);
    /* A refused run leaves nothing behind: the bounds equal those of the healthy runs alone. */
    orc_bounds *clean = synth_bounds(1, 3);
    char *a = NULL, *b = NULL;
    cr_assert_eq(orc_bounds_write(bounds, &a), ORC_OK);
    cr_assert_eq(orc_bounds_write(clean, &b), ORC_OK);
    cr_expect_str_eq(a, b);
    free(a);
    free(b);
    orc_bounds_free(clean);
    orc_bounds_free(bounds);
    orc_calibration_free(calibration);
}
