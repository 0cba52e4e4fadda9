/* Every check passes a healthy pair, fires on what is planted at its step, and is not applicable
 * without its inputs. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orc_check_synth.h"

enum { SEED = 501, CALIBRATION_RUNS = 12, CALIBRATION_SEED = 1, BIG = 300 };

struct judged {
    struct orc_verdict verdicts[ORC_CHECK_COUNT];
};

/* Subject with the plant against a healthy reference, repeat and resumed run. */
static struct judged judge(const struct synth *subject, const orc_bounds *bounds)
{
    struct judged out;
    struct orc_error error = {""};
    struct synth healthy = synth_subject(subject->seed), reference = synth_reference(subject->seed);
    healthy.oom = subject->oom;
    struct synth late = healthy;
    late.first_step = 4;
    const bool alarm = subject->plant == SYNTH_external;
    const bool empty = subject->steps < 0;
    const struct orc_verdict said = {.applicable = !empty,
                                     .compared = empty ? 0 : SYNTH_STEPS,
                                     .fired = alarm,
                                     .step = alarm ? SYNTH_PLANT_STEP : 0,
                                     .detail = "said so"};
    struct orc_case c = {.subject = synth_trace(subject),
                         .reference = synth_trace(&reference),
                         .repeat = synth_trace(&healthy),
                         .resumed = synth_trace(&late),
                         .external = &said};
    cr_assert_eq(orc_judge(&c, bounds, out.verdicts, &error), ORC_OK, "%s", error.text);
    orc_trace_free((orc_trace *)c.subject);
    orc_trace_free((orc_trace *)c.reference);
    orc_trace_free((orc_trace *)c.repeat);
    orc_trace_free((orc_trace *)c.resumed);
    return out;
}

/* plant, check, step at which it must fire */
static const struct {
    enum synth_plant plant;
    enum orc_check_id check;
    int step;
} expected[] = {
    {SYNTH_text, ORC_CHECK_text, SYNTH_PLANT_STEP},
    {SYNTH_tokens, ORC_CHECK_tokens, SYNTH_PLANT_STEP},
    {SYNTH_count, ORC_CHECK_tokens, SYNTH_PLANT_STEP},
    {SYNTH_ids, ORC_CHECK_tokens, SYNTH_PLANT_STEP},
    {SYNTH_labels, ORC_CHECK_labels, SYNTH_PLANT_STEP},
    {SYNTH_positions, ORC_CHECK_labels, SYNTH_PLANT_STEP},
    {SYNTH_supervised, ORC_CHECK_labels, SYNTH_PLANT_STEP},
    {SYNTH_micro_missing, ORC_CHECK_labels, SYNTH_PLANT_STEP},
    {SYNTH_micro_missing, ORC_CHECK_invariants, SYNTH_PLANT_STEP},
    {SYNTH_eval_supervised, ORC_CHECK_labels, SYNTH_EVAL_EVERY},
    {SYNTH_order, ORC_CHECK_order, SYNTH_PLANT_STEP},
    {SYNTH_epoch, ORC_CHECK_order, SYNTH_PLANT_STEP},
    {SYNTH_record_missing, ORC_CHECK_order, SYNTH_PLANT_STEP},
    {SYNTH_skipped, ORC_CHECK_order, SYNTH_PLANT_STEP},
    {SYNTH_skip_reason, ORC_CHECK_order, SYNTH_PLANT_STEP},
    {SYNTH_step_missing, ORC_CHECK_order, SYNTH_PLANT_STEP},
    {SYNTH_step_repeated, ORC_CHECK_order, SYNTH_PLANT_STEP},
    {SYNTH_activation, ORC_CHECK_activations, SYNTH_PLANT_STEP},
    {SYNTH_loss, ORC_CHECK_loss, SYNTH_PLANT_STEP},
    {SYNTH_loss, ORC_CHECK_loss_only, SYNTH_PLANT_STEP},
    {SYNTH_eval_loss, ORC_CHECK_loss, SYNTH_EVAL_EVERY},
    {SYNTH_eval_missing, ORC_CHECK_loss, SYNTH_EVAL_EVERY},
    {SYNTH_gradient, ORC_CHECK_gradients, SYNTH_PLANT_STEP},
    {SYNTH_grad_norm, ORC_CHECK_gradients, SYNTH_PLANT_STEP},
    {SYNTH_grad_norm, ORC_CHECK_invariants, SYNTH_PLANT_STEP},
    {SYNTH_tensor_missing, ORC_CHECK_gradients, SYNTH_PLANT_STEP},
    {SYNTH_update, ORC_CHECK_updates, SYNTH_PLANT_STEP},
    {SYNTH_update_one, ORC_CHECK_updates, SYNTH_PLANT_STEP},
    {SYNTH_parameter, ORC_CHECK_state, SYNTH_PLANT_STEP},
    {SYNTH_parameter, ORC_CHECK_invariants, SYNTH_PLANT_STEP},
    {SYNTH_moment, ORC_CHECK_state, SYNTH_PLANT_STEP},
    {SYNTH_lr, ORC_CHECK_schedule, SYNTH_PLANT_STEP},
    {SYNTH_clip, ORC_CHECK_schedule, SYNTH_PLANT_STEP},
    {SYNTH_clip_above_one, ORC_CHECK_invariants, SYNTH_PLANT_STEP},
    {SYNTH_conservation, ORC_CHECK_memory, SYNTH_PLANT_STEP},
    {SYNTH_spurious, ORC_CHECK_memory, SYNTH_PLANT_STEP},
    {SYNTH_leak, ORC_CHECK_memory, SYNTH_PLANT_STEP},
    {SYNTH_backlog, ORC_CHECK_memory, SYNTH_BACKLOG_SEEN},
    {SYNTH_host_leak, ORC_CHECK_memory, SYNTH_HOST_LEAK_SEEN},
    {SYNTH_oom_unanswered, ORC_CHECK_memory, SYNTH_PLANT_STEP},
    {SYNTH_oom_counted, ORC_CHECK_memory, SYNTH_PLANT_STEP},
    {SYNTH_skip_after_oom, ORC_CHECK_memory, SYNTH_PLANT_STEP},
    {SYNTH_untrained, ORC_CHECK_memory, SYNTH_PLANT_STEP},
    {SYNTH_race, ORC_CHECK_races, SYNTH_PLANT_STEP},
    {SYNTH_hash_input, ORC_CHECK_repeat, SYNTH_PLANT_STEP},
    {SYNTH_hash_state, ORC_CHECK_repeat, SYNTH_PLANT_STEP},
    {SYNTH_hash_output, ORC_CHECK_resume, SYNTH_PLANT_STEP},
    {SYNTH_hash_ledger, ORC_CHECK_repeat, SYNTH_PLANT_STEP},
    {SYNTH_checkpoint, ORC_CHECK_repeat, SYNTH_EVAL_EVERY},
    {SYNTH_checkpoint, ORC_CHECK_resume, SYNTH_EVAL_EVERY},
    {SYNTH_loss_nan, ORC_CHECK_loss, SYNTH_PLANT_STEP},
    {SYNTH_loss_nan, ORC_CHECK_loss_only, SYNTH_PLANT_STEP},
    {SYNTH_loss_nan, ORC_CHECK_band, SYNTH_PLANT_STEP},
    {SYNTH_loss_nan, ORC_CHECK_curve, SYNTH_PLANT_STEP},
    {SYNTH_loss_nan, ORC_CHECK_invariants, SYNTH_PLANT_STEP},
    {SYNTH_sketch_nan, ORC_CHECK_gradients, SYNTH_PLANT_STEP},
    {SYNTH_nonfinite, ORC_CHECK_gradients, SYNTH_PLANT_STEP},
    {SYNTH_nonfinite, ORC_CHECK_invariants, SYNTH_PLANT_STEP},
    {SYNTH_first_loss, ORC_CHECK_invariants, 1},
    {SYNTH_first_loss, ORC_CHECK_curve, 1},
    {SYNTH_curve, ORC_CHECK_curve, SYNTH_PLANT_STEP},
    {SYNTH_band, ORC_CHECK_band, SYNTH_PLANT_STEP},
    {SYNTH_no_labels, ORC_CHECK_invariants, SYNTH_PLANT_STEP},
    /* What is not there to compare is a difference, in one step or throughout. */
    {SYNTH_records_absent, ORC_CHECK_order, SYNTH_PLANT_STEP},
    {SYNTH_batches_absent, ORC_CHECK_tokens, SYNTH_PLANT_STEP},
    {SYNTH_batches_absent, ORC_CHECK_labels, SYNTH_PLANT_STEP},
    {SYNTH_sketches_empty, ORC_CHECK_activations, 1},
    {SYNTH_sketches_empty, ORC_CHECK_gradients, 1},
    {SYNTH_sketches_empty, ORC_CHECK_updates, 1},
    {SYNTH_sketches_empty, ORC_CHECK_state, 1},
    {SYNTH_sketches_absent, ORC_CHECK_activations, 1},
    {SYNTH_sketches_absent, ORC_CHECK_state, 1},
    {SYNTH_external, ORC_CHECK_external, SYNTH_PLANT_STEP},
};
enum { EXPECTED = sizeof expected / sizeof expected[0] };

Test(judge, healthy_pair_passes_every_check)
{
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    for (int oom = 0; oom < 2; oom++) {
        struct synth subject = synth_subject(SEED);
        subject.oom = oom != 0;
        const struct judged j = judge(&subject, bounds);
        for (int i = 0; i < ORC_CHECK_COUNT; i++) {
            const struct orc_verdict *v = &j.verdicts[i];
            const char *name = orc_check_name((enum orc_check_id)i);
            cr_expect(v->applicable, "%s", name);
            cr_expect_gt(v->compared, 0, "%s", name);
            cr_expect_not(v->fired, "%s: %s", name, v->detail);
            cr_expect_eq(v->step, 0, "%s", name);
            cr_expect(v->worst <= 1.0, "%s: %g", name, v->worst);
        }
    }
    orc_bounds_free(bounds);
}

Test(judge, a_run_that_came_to_its_end_has_every_step)
{
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    for (int dies = 0; dies < 2; dies++) {
        struct synth subject = synth_subject(SEED);
        subject.steps = SYNTH_STEPS - 3;
        subject.dies = dies != 0;
        const struct judged j = judge(&subject, bounds);
        const struct orc_verdict *v = &j.verdicts[ORC_CHECK_order];
        cr_expect_eq(v->fired, dies == 0, "%s", v->detail);
        cr_expect_eq(v->step, dies == 0 ? SYNTH_STEPS - 2 : 0);
    }
    orc_bounds_free(bounds);
}

/* A gradient within rounding of zero: in every tensor one element goes the other way, two steps
 * off. Only the typical tensor could tell, and it leaves one element out. */
Test(judge, an_element_astray_in_every_tensor_is_no_alarm)
{
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    for (int step = 1; step < SYNTH_STEPS; step += 5) {
        struct synth subject = synth_subject(SEED);
        subject.plant = SYNTH_update_stray;
        subject.plant_step = step;
        const struct judged j = judge(&subject, bounds);
        const struct orc_verdict *v = &j.verdicts[ORC_CHECK_updates];
        cr_expect(v->applicable);
        cr_expect_not(v->fired, "step %d: %s", step, v->detail);
        cr_expect_gt(v->worst, 0.5, "step %d: %g", step, v->worst);
    }
    orc_bounds_free(bounds);
}

Test(judge, planted_differences_fire_at_their_step)
{
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    bool planted[SYNTH_PLANT_COUNT] =
        {[SYNTH_none] = true, [SYNTH_all_nan] = true, [SYNTH_update_stray] = true},
         covered[ORC_CHECK_COUNT] = {false};
    for (int i = 0; i < EXPECTED; i++) {
        struct synth subject = synth_subject(SEED);
        subject.plant = expected[i].plant;
        subject.scales = BIG;
        const struct judged j = judge(&subject, bounds);
        const struct orc_verdict *v = &j.verdicts[expected[i].check];
        const char *name = orc_check_name(expected[i].check);
        cr_expect(v->fired, "%s on %s", name, synth_plant_name(expected[i].plant));
        cr_expect_eq(v->step, expected[i].step, "%s on %s: step %d, %s", name,
                     synth_plant_name(expected[i].plant), v->step, v->detail);
        cr_expect(v->detail[0] != '\0');
        planted[expected[i].plant] = covered[expected[i].check] = true;
    }
    for (int i = 0; i < SYNTH_PLANT_COUNT; i++) {
        cr_expect(planted[i], "%s is tested", synth_plant_name((enum synth_plant)i));
    }
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        cr_expect(covered[i], "%s is tested", orc_check_name((enum orc_check_id)i));
    }
    orc_bounds_free(bounds);
}

/* NaN is within no bound: each check of numbers fires on it. */
Test(judge, every_check_of_numbers_rejects_nan)
{
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    struct synth subject = synth_subject(SEED);
    subject.plant = SYNTH_all_nan;
    const struct judged j = judge(&subject, bounds);
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        if (orc_check_is_bound((enum orc_check_id)i) || i == ORC_CHECK_band) {
            const struct orc_verdict *v = &j.verdicts[i];
            cr_expect(v->fired, "%s", orc_check_name((enum orc_check_id)i));
            cr_expect_eq(v->step, SYNTH_PLANT_STEP, "%s", orc_check_name((enum orc_check_id)i));
            cr_expect(isinf(v->worst), "%s", orc_check_name((enum orc_check_id)i));
        }
    }
    orc_bounds_free(bounds);
}

/* Numbers that nothing else sees fire one check and leave the others alone. */
Test(judge, one_difference_is_one_alarm)
{
    static const struct {
        enum synth_plant plant;
        enum orc_check_id check;
    } alone[] = {{SYNTH_activation, ORC_CHECK_activations},
                 {SYNTH_gradient, ORC_CHECK_gradients},
                 {SYNTH_moment, ORC_CHECK_state},
                 {SYNTH_lr, ORC_CHECK_schedule},
                 {SYNTH_text, ORC_CHECK_text},
                 {SYNTH_tokens, ORC_CHECK_tokens},
                 {SYNTH_order, ORC_CHECK_order},
                 {SYNTH_race, ORC_CHECK_races},
                 {SYNTH_external, ORC_CHECK_external}};
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    for (size_t k = 0; k < sizeof alone / sizeof alone[0]; k++) {
        struct synth subject = synth_subject(SEED);
        subject.plant = alone[k].plant;
        subject.scales = BIG;
        const struct judged j = judge(&subject, bounds);
        for (int i = 0; i < ORC_CHECK_COUNT; i++) {
            if (i == ORC_CHECK_repeat || i == ORC_CHECK_resume) {
                continue; /* the rate is part of what must repeat */
            }
            cr_expect_eq(j.verdicts[i].fired, i == (int)alone[k].check, "%s on %s: %s",
                         orc_check_name((enum orc_check_id)i), synth_plant_name(alone[k].plant),
                         j.verdicts[i].detail);
        }
    }
    orc_bounds_free(bounds);
}

/* With text changed at a step, numbers against the reference get no credit from there on. */
Test(judge, input_difference_confounds_later_numbers)
{
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    const struct synth wrong = {.seed = SEED, .hashes = true, .plant = SYNTH_loss, .scales = BIG};
    struct orc_error error = {""};
    struct orc_verdict v[ORC_CHECK_COUNT];
    orc_trace *subject = synth_trace(&wrong);
    for (int at = SYNTH_PLANT_STEP - 1; at <= SYNTH_PLANT_STEP + 1; at++) {
        struct synth reference = synth_reference(SEED);
        reference.plant = SYNTH_text;
        reference.plant_step = at;
        const struct orc_case c = {.subject = subject, .reference = synth_trace(&reference)};
        cr_assert_eq(orc_judge(&c, bounds, v, &error), ORC_OK, "%s", error.text);
        cr_expect(v[ORC_CHECK_text].fired);
        cr_expect_eq(v[ORC_CHECK_text].step, at);
        cr_expect(v[ORC_CHECK_loss].applicable);
        cr_expect_eq(v[ORC_CHECK_loss].fired, at > SYNTH_PLANT_STEP);
        cr_expect_eq(v[ORC_CHECK_loss_only].fired, at > SYNTH_PLANT_STEP);
        cr_expect_not(v[ORC_CHECK_gradients].fired);
        orc_trace_free((orc_trace *)c.reference);
    }
    orc_trace_free(subject);
    orc_bounds_free(bounds);
}

Test(judge, curve_and_invariants_are_not_confounded)
{
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    struct orc_error error = {""};
    struct orc_verdict v[ORC_CHECK_COUNT];
    const struct synth wrong = {.seed = SEED, .hashes = true, .plant = SYNTH_loss_nan};
    struct synth reference = synth_reference(SEED);
    reference.plant = SYNTH_text;
    reference.plant_step = 1;
    const struct orc_case c = {.subject = synth_trace(&wrong),
                               .reference = synth_trace(&reference)};
    cr_assert_eq(orc_judge(&c, bounds, v, &error), ORC_OK, "%s", error.text);
    cr_expect_not(v[ORC_CHECK_loss].fired);
    cr_expect_not(v[ORC_CHECK_band].fired);
    cr_expect(v[ORC_CHECK_curve].fired);
    cr_expect(v[ORC_CHECK_invariants].fired);
    orc_trace_free((orc_trace *)c.subject);
    orc_trace_free((orc_trace *)c.reference);
    orc_bounds_free(bounds);
}

Test(judge, nothing_is_applicable_without_its_inputs)
{
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    struct orc_error error = {""};
    struct orc_verdict v[ORC_CHECK_COUNT];
    struct synth mine = synth_subject(SEED);
    orc_trace *subject = synth_trace(&mine);
    struct orc_case c = {.subject = subject};
    cr_assert_eq(orc_judge(&c, bounds, v, &error), ORC_OK);
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        const bool alone = i == ORC_CHECK_memory || i == ORC_CHECK_races ||
                           i == ORC_CHECK_invariants || i == ORC_CHECK_curve;
        cr_expect_eq(v[i].applicable, alone, "%s", orc_check_name((enum orc_check_id)i));
        cr_expect_eq(v[i].compared > 0, alone);
        cr_expect_not(v[i].fired);
    }
    cr_assert_eq(orc_judge(&c, NULL, v, &error), ORC_OK);
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        const bool alone = i == ORC_CHECK_memory || i == ORC_CHECK_races;
        cr_expect_eq(v[i].applicable, alone, "%s", orc_check_name((enum orc_check_id)i));
    }
    mine.steps = -1;
    c.reference = c.repeat = c.resumed = subject;
    c.subject = synth_trace(&mine);
    cr_assert_eq(orc_judge(&c, bounds, v, &error), ORC_OK);
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        cr_expect_not(v[i].applicable, "%s on no steps", orc_check_name((enum orc_check_id)i));
    }
    orc_trace_free((orc_trace *)c.subject);
    orc_trace_free(subject);
    orc_bounds_free(bounds);
}

/* A trace without sketches says nothing about tensors, but something about scalars. */
Test(judge, level_hashes_leaves_sketch_checks_out)
{
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    struct synth subject = synth_subject(SEED);
    subject.bare = true;
    const struct judged j = judge(&subject, bounds);
    cr_expect_not(j.verdicts[ORC_CHECK_activations].applicable);
    cr_expect_not(j.verdicts[ORC_CHECK_updates].applicable);
    cr_expect(j.verdicts[ORC_CHECK_gradients].applicable); /* the norm */
    cr_expect(j.verdicts[ORC_CHECK_loss].applicable);
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        cr_expect_not(j.verdicts[i].fired, "%s", j.verdicts[i].detail);
    }
    orc_bounds_free(bounds);
}

/* A run that died is compared as far as it goes; the steps it lacks are no alarm. */
Test(judge, dead_run_is_compared_as_far_as_it_goes)
{
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    struct synth subject = synth_subject(SEED);
    subject.steps = SYNTH_PLANT_STEP;
    subject.dies = true;
    for (int faulty = 0; faulty < 2; faulty++) {
        subject.plant = faulty ? SYNTH_gradient : SYNTH_oom_unanswered;
        subject.scales = BIG;
        const struct judged j = judge(&subject, bounds);
        for (int i = 0; i < ORC_CHECK_COUNT; i++) {
            cr_expect(j.verdicts[i].applicable, "%s", orc_check_name((enum orc_check_id)i));
            cr_expect_eq(j.verdicts[i].fired, faulty && i == ORC_CHECK_gradients, "%s: %s",
                         orc_check_name((enum orc_check_id)i), j.verdicts[i].detail);
        }
    }
    orc_bounds_free(bounds);
}

Test(judge, foreign_traces_and_bounds_are_refused)
{
    orc_bounds *bounds = synth_bounds(CALIBRATION_SEED, CALIBRATION_RUNS);
    struct orc_error error = {""};
    struct orc_verdict v[ORC_CHECK_COUNT];
    struct synth mine = synth_subject(SEED), theirs = synth_reference(SEED + 1);
    struct synth foreign = synth_subject(SEED);
    foreign.recipe_hash = 78;
    orc_trace *a = synth_trace(&mine), *b = synth_trace(&theirs), *f = synth_trace(&foreign);
    const struct orc_case seeds = {.subject = a, .reference = b};
    const struct orc_case recipes = {.subject = a, .repeat = f};
    const struct orc_case other = {.subject = f};
    cr_expect_eq(orc_judge(&seeds, bounds, v, &error), ORC_EMISMATCH);
    cr_expect(strstr(error.text, "seed") != NULL, "%s", error.text);
    cr_expect_eq(orc_judge(&recipes, bounds, v, &error), ORC_EMISMATCH);
    cr_expect_eq(orc_judge(&other, bounds, v, &error), ORC_EMISMATCH);
    cr_expect_eq(orc_judge(&other, NULL, v, &error), ORC_OK);
    cr_expect_eq(orc_judge(NULL, NULL, v, &error), ORC_EARG);
    orc_trace_free(a);
    orc_trace_free(b);
    orc_trace_free(f);
    orc_bounds_free(bounds);
}

Test(judge, race_detail_names_the_pair)
{
    struct synth subject = synth_subject(SEED);
    subject.plant = SYNTH_race;
    const struct judged j = judge(&subject, NULL);
    const char *detail = j.verdicts[ORC_CHECK_races].detail;
    cr_expect(strstr(detail, "upload") && strstr(detail, "embed") && strstr(detail, "input"), "%s",
              detail);
}

Test(judge, names_find_their_checks)
{
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        enum orc_check_id id = ORC_CHECK_COUNT;
        cr_expect(orc_check_find(orc_check_name((enum orc_check_id)i), &id));
        cr_expect_eq((int)id, i);
        cr_expect(orc_check_text(id)[0] != '\0');
    }
    enum orc_check_id id = ORC_CHECK_COUNT;
    cr_expect_not(orc_check_find("no such check", &id));
    cr_expect(orc_check_is_bound(ORC_CHECK_curve));
    cr_expect_not(orc_check_is_bound(ORC_CHECK_band));
}
