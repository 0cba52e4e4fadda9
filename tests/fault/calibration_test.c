/* Calibration of the oracle itself: each of its own faults (0xF000..) changes a verdict on stored
 * healthy, NaN, empty and known-fault traces. The traces are made here; killed = changed. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orc_check_synth.h"

enum { SEED = 701, RUNS = 12 };

/* name, plant, step of the plant, what the trace stands for. A size is found for near_bound. */
#define CASES(X)                                                                                   \
    X(healthy, none, 0, "a pair within all bounds")                                                \
    X(not_a_number, loss_nan, SYNTH_PLANT_STEP, "the loss is NaN once")                            \
    X(empty, none, 0, "a header and no step")                                                      \
    X(near_bound, loss, SYNTH_PLANT_STEP, "a loss at three times its bound")                       \
    X(last_step, gradient, SYNTH_STEPS, "a projection of o_proj's gradient in the last step")      \
    X(one_class, gradient, SYNTH_PLANT_STEP, "a projection of o_proj's gradient")                  \
    X(one_element, nonfinite, SYNTH_PLANT_STEP, "one element counted as not finite")               \
    X(one_gone, tensor_missing, SYNTH_PLANT_STEP, "one gradient has no sketch")
enum case_id {
#define ROW_(name, plant, step, text) CASE_##name,
    CASES(ROW_)
#undef ROW_
        CASE_COUNT
};
static const struct {
    const char *name;
    enum synth_plant plant;
    int step;
} cases[CASE_COUNT] = {
#define ROW_(name, plant, step, text) {#name, SYNTH_##plant, step},
    CASES(ROW_)
#undef ROW_
};

struct stored {
    orc_bounds *bounds;
    orc_trace *reference, *subjects[CASE_COUNT];
};

struct outcome {
    struct orc_verdict verdicts[CASE_COUNT][ORC_CHECK_COUNT];
};

static void judge_all(const struct stored *stored, struct outcome *out)
{
    for (int i = 0; i < CASE_COUNT; i++) {
        struct orc_error error = {""};
        const struct orc_case c = {.subject = stored->subjects[i], .reference = stored->reference};
        cr_assert_eq(orc_judge(&c, stored->bounds, out->verdicts[i], &error), ORC_OK, "%s",
                     error.text);
    }
}

/* Worst ratio of the loss with a plant of this size; ratios grow with the size. */
static double loss_ratio(const struct stored *stored, double scales)
{
    struct synth s = synth_subject(SEED);
    struct orc_verdict v[ORC_CHECK_COUNT];
    struct orc_error error = {""};
    s.plant = SYNTH_loss;
    s.scales = scales;
    orc_trace *subject = synth_trace(&s);
    const struct orc_case c = {.subject = subject, .reference = stored->reference};
    cr_assert_eq(orc_judge(&c, stored->bounds, v, &error), ORC_OK);
    orc_trace_free(subject);
    return v[ORC_CHECK_loss].worst;
}

static struct stored store(void)
{
    struct stored stored = {.bounds = synth_bounds(1, RUNS)};
    const struct synth theirs = synth_reference(SEED);
    stored.reference = synth_trace(&theirs);
    double scales = 1.0;
    while (!(loss_ratio(&stored, scales) > 3.0)) {
        scales *= 1.25; /* above 3 and below 3.75 and a little noise: less than tenfold */
    }
    for (int i = 0; i < CASE_COUNT; i++) {
        struct synth s = synth_subject(SEED);
        s.plant = cases[i].plant;
        s.plant_step = cases[i].step;
        s.scales = i == CASE_near_bound ? scales : 1000.0;
        s.steps = i == CASE_empty ? -1 : 0;
        stored.subjects[i] = synth_trace(&s);
    }
    return stored;
}

static void release(struct stored *stored)
{
    for (int i = 0; i < CASE_COUNT; i++) {
        orc_trace_free(stored->subjects[i]);
    }
    orc_trace_free(stored->reference);
    orc_bounds_free(stored->bounds);
}

/* Whether a verdict of the case differs; *check is the first. */
static bool changed(const struct outcome *a, const struct outcome *b, enum case_id id, int *check)
{
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        const struct orc_verdict *x = &a->verdicts[id][i], *y = &b->verdicts[id][i];
        if (x->applicable != y->applicable || x->fired != y->fired || x->step != y->step) {
            *check = i;
            return true;
        }
    }
    return false;
}

/* What each fault must be killed by, and how: by a verdict that changes on a trace with a known
 * fault (missed: it fires no more there, and the healthy trace stays as it was), or by an alarm on
 * what is sound. */
static const struct {
    const char *fault;
    enum case_id killer;
    bool missed;
} killers[] = {
    {"accept.nan_blind", CASE_not_a_number, true},
    {"tolerance.times_ten", CASE_near_bound, true},
    {"verdict.inverted", CASE_healthy, false},
    {"item_count.zero", CASE_healthy,
     false}, /* what every healthy run had is missed by the guard */
    {"applicable.zero_items_pass", CASE_empty, false},
    {"last_step.skipped", CASE_last_step, true},
    {"class_compared.one_class_never", CASE_one_class, true},
    {"projection_end.norms_only", CASE_one_class, true},
    {"nonfinite.not_counted", CASE_one_element, true},
    {"expected.never_missed", CASE_one_gone, true},
};

/* Whether a check that soundly fires on the case is silent now, and none is new. */
static bool silenced(const struct outcome *a, const struct outcome *b, enum case_id id)
{
    bool silent = false;
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        const struct orc_verdict *x = &a->verdicts[id][i], *y = &b->verdicts[id][i];
        if (y->fired && !x->fired) {
            return false;
        }
        silent = silent || (x->fired && !y->fired);
    }
    return silent;
}

Test(calibration, healthy_oracle_judges_the_stored_traces_right)
{
    struct stored stored = store();
    struct outcome o;
    judge_all(&stored, &o);
    size_t compared = 0;
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        cr_expect_not(o.verdicts[CASE_healthy][i].fired, "%s", o.verdicts[CASE_healthy][i].detail);
        cr_expect_not(o.verdicts[CASE_empty][i].applicable, "nothing compared is not passed");
        cr_expect_not(o.verdicts[CASE_empty][i].fired);
        compared += o.verdicts[CASE_healthy][i].compared;
    }
    cr_expect_gt(compared, 0);
    cr_expect(o.verdicts[CASE_not_a_number][ORC_CHECK_loss].fired);
    cr_expect(o.verdicts[CASE_near_bound][ORC_CHECK_loss].fired);
    cr_expect_eq(o.verdicts[CASE_last_step][ORC_CHECK_gradients].step, SYNTH_STEPS);
    cr_expect_eq(o.verdicts[CASE_one_class][ORC_CHECK_gradients].step, SYNTH_PLANT_STEP);
    cr_expect(o.verdicts[CASE_one_element][ORC_CHECK_gradients].fired);
    cr_expect(o.verdicts[CASE_one_gone][ORC_CHECK_gradients].fired);
    release(&stored);
}

Test(calibration, every_fault_of_the_oracle_is_killed)
{
    struct stored stored = store();
    struct outcome healthy, armed;
    struct orc_error error = {""};
    judge_all(&stored, &healthy);
    cr_expect_eq(orc_fault_count(), sizeof killers / sizeof killers[0]);
    for (size_t f = 0; f < orc_fault_count(); f++) {
        const char *id = orc_fault_id(f);
        cr_assert_eq(orc_fault_select(id, &error), ORC_OK, "%s", error.text);
        judge_all(&stored, &armed);
        cr_assert_eq(orc_fault_select("none", &error), ORC_OK);
        cr_expect(orc_fault_why(f)[0] != '\0');
        bool known = false;
        for (size_t k = 0; k < sizeof killers / sizeof killers[0]; k++) {
            int check = 0;
            if (strcmp(killers[k].fault, id) == 0) {
                known = true;
                cr_expect(changed(&healthy, &armed, killers[k].killer, &check), "%s survives %s",
                          id, cases[killers[k].killer].name);
                if (killers[k].missed) {
                    cr_expect(silenced(&healthy, &armed, killers[k].killer), "%s does not miss %s",
                              id, cases[killers[k].killer].name);
                    cr_expect_not(changed(&healthy, &armed, CASE_healthy, &check),
                                  "%s shows on a healthy trace already", id);
                }
            }
        }
        cr_expect(known, "%s has a trace that kills it", id);
    }
    judge_all(&stored, &armed);
    for (int i = 0; i < CASE_COUNT; i++) {
        int check = 0;
        cr_expect_not(changed(&healthy, &armed, (enum case_id)i, &check), "disarmed is healthy");
    }
    release(&stored);
}

Test(calibration, unknown_faults_are_refused)
{
    struct orc_error error = {""};
    cr_expect_eq(orc_fault_select("no.such", &error), ORC_EARG);
    cr_expect_not_null(strstr(error.text, "no.such"));
    cr_expect_eq(orc_fault_select(NULL, &error), ORC_EARG);
    cr_expect_eq(orc_fault_select("0xF001", &error), ORC_OK);
    cr_expect_eq(orc_fault_select("none", &error), ORC_OK);
    cr_expect_null(orc_fault_id(orc_fault_count()));
}
