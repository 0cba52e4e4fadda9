/* The definitions that the comparator's bounds stand on, from numbers made by hand: the drift, the
 * typical tensor, the floor of two elements, the margins. All numbers are exact in binary, so each
 * expectation is an equality. Sees internal headers; what follows from the definitions on synthetic
 * runs is the business of the other orc_check tests. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orc_probe.h"

enum { STEPS = 2, TENSORS = 3, RUNS = 3, PROJECTIONS = ORC_SKETCH_NONFINITE - ORC_SKETCH_FIRST };

static const double norm = 8.0, rate = 0.125; /* of every tensor; of every step */

/* One stack: two steps, the same three tensors in every group. Points into itself. */
struct stack {
    orc_trace trace;
    struct orc_step steps[STEPS];
    struct orc_sketch tensors[STEPS][ORC_GROUP_COUNT][TENSORS];
};

/* mine deviates from theirs by what a test plants, from nothing else. */
struct pair {
    struct stack mine, theirs;
};

static struct orc_case case_of(const struct pair *pair)
{
    return (struct orc_case){.subject = &pair->mine.trace, .reference = &pair->theirs.trace};
}

static void init_stack(struct stack *s, double loss)
{
    static const char *const names[TENSORS] = {"layers.0.proj.weight", "layers.1.proj.weight",
                                               "layers.2.proj.weight"};
    memset(s, 0, sizeof *s);
    s->trace = (orc_trace){.path = "by hand",
                           .recipe = "by hand",
                           .precision = "fp32",
                           .level = "full",
                           .mode = "free",
                           .first_step = 1,
                           .steps = s->steps,
                           .step_count = STEPS};
    for (int i = 0; i < STEPS; i++) {
        struct orc_step *step = &s->steps[i];
        step->number = i + 1;
        step->scalar[ORC_SCALAR_lr] = (struct orc_number){true, rate};
        step->scalar[ORC_SCALAR_loss] = (struct orc_number){true, loss};
        step->scalar[ORC_SCALAR_grad_norm] = (struct orc_number){true, loss};
        for (int g = 0; g < ORC_GROUP_COUNT; g++) {
            step->group[g] = (struct orc_sketches){true, TENSORS, s->tensors[i][g]};
            for (int t = 0; t < TENSORS; t++) {
                s->tensors[i][g][t] = (struct orc_sketch){
                    .name = names[t], .class_name = "layers.*.proj.weight", .numbers = {norm}};
            }
        }
    }
}

/* Losses tell healthy runs apart, nothing else does. */
static void init_pair(struct pair *pair, double loss)
{
    init_stack(&pair->mine, loss);
    init_stack(&pair->theirs, loss);
}

static struct orc_sketch *tensor(struct stack *s, int step, enum orc_group group, int index)
{
    return &s->tensors[step - 1][group][index];
}

static double *scalar(struct stack *s, int step, enum orc_scalar which)
{
    return &s->steps[step - 1].scalar[which].value;
}

/* Moves each projection by even or by odd, in turn. */
static void move(struct orc_sketch *sketch, double even, double odd)
{
    for (int p = 0; p < PROJECTIONS; p++) {
        sketch->numbers[ORC_SKETCH_FIRST + p] += p % 2 == 0 ? even : odd;
    }
}

/* One element is off by this: all projections by the same amount, some up and some down, and the
 * norm by that element's share of it. A healthy element of an update is one rate. */
static void move_element(struct orc_sketch *sketch, double apart)
{
    move(sketch, apart, -apart);
    sketch->numbers[ORC_SKETCH_NORM] += apart * rate / norm;
}

/* What the check says of the numbers of one class alone, whose scale and bound are 1. */
static struct orc_verdict look(const struct pair *pair, struct orc_key key)
{
    double scales[STEPS] = {1.0, 1.0};
    struct orc_verdict verdict = {.fired = false};
    struct orc_bounds bounds = {.runs = RUNS};
    const struct orc_case c = case_of(pair);
    const ptrdiff_t index = orc_classes_add(&bounds.classes, &key);
    cr_assert_eq(index, 0);
    cr_assert_eq(orc_bounds_stratum(&bounds, &key), 0);
    bounds.strata[0].bound = 1.0;
    struct orc_class *class_ = &bounds.classes.items[index];
    class_->first_step = key.pooled ? 0 : 1;
    class_->step_count = key.pooled ? 1 : STEPS;
    class_->scales = scales;
    struct orc_probe probe = {.check = key.check,
                              .verdict = &verdict,
                              .bounds = &bounds,
                              .confounded_from = ORC_STEP_NEVER};
    orc_check_run(key.check)(&c, &probe);
    free(bounds.strata);
    orc_classes_fini(&bounds.classes);
    return verdict;
}

static const struct orc_key elements = {.check = ORC_CHECK_updates,
                                        .regime = ORC_REGIME_later,
                                        .pooled = true,
                                        .group = "updates",
                                        .name = "",
                                        .part = "in elements"};

/* The typical update of the first step, where nothing has drifted. */
static struct orc_key typical(const char *family, const char *part)
{
    return (struct orc_key){.check = ORC_CHECK_updates,
                            .regime = ORC_REGIME_amplified,
                            .group = "updates",
                            .name = family,
                            .part = part};
}

static double typical_norm(const struct pair *pair)
{
    return look(pair, typical("matrices", "typical norm")).worst;
}

static double typical_projection(const struct pair *pair)
{
    return look(pair, typical("matrices", "typical projection")).worst;
}

/* ---- the drift ---- */

Test(drift, is_the_largest_relative_distance_of_a_tensor)
{
    struct pair p;
    init_pair(&p, 1.0);
    const struct orc_case c = case_of(&p);
    move(tensor(&p.mine, 1, ORC_GROUP_parameters, 0), 0.5, -0.5);
    cr_expect_eq(orc_drift(&c, 2), 0.5 / norm);
    /* A distance is the root mean square over projections: of 0.75 and 1, 0.75 * 0.75 + 1 = 1.25^2,
     * halved once. */
    move(tensor(&p.mine, 1, ORC_GROUP_parameters, 1), 0.75, 1.0);
    cr_expect_eq(orc_drift(&c, 2), sqrt(1.25 * 1.25 / 2.0) / norm);
    /* A small tensor counts as much as a large one, and partners have one name, not one place. */
    struct orc_sketch *const mine = tensor(&p.mine, 1, ORC_GROUP_parameters, 2);
    struct orc_sketch *const theirs = tensor(&p.theirs, 1, ORC_GROUP_parameters, 0);
    const struct orc_sketch first = *theirs;
    *theirs = *tensor(&p.theirs, 1, ORC_GROUP_parameters, 2);
    *tensor(&p.theirs, 1, ORC_GROUP_parameters, 2) = first;
    theirs->numbers[ORC_SKETCH_NORM] = 0.25;
    mine->numbers[ORC_SKETCH_NORM] = 0.25;
    move(mine, 0.125, 0.125);
    cr_expect_eq(orc_drift(&c, 2), 0.125 / 0.25);
}

Test(drift, looks_at_the_step_before_and_at_parameters_alone)
{
    struct pair p;
    init_pair(&p, 1.0);
    const struct orc_case c = case_of(&p);
    for (int g = 0; g < ORC_GROUP_COUNT; g++) {
        move(tensor(&p.mine, 2, g, 0), 1.0, 1.0);
        if (g != ORC_GROUP_parameters) {
            move(tensor(&p.mine, 1, g, 0), 1.0, 1.0);
        }
    }
    cr_expect_eq(orc_drift(&c, 2), ldexp(1.0, -24), "at least one roundoff of single precision");
    cr_expect_eq(orc_drift(&c, 1), 1.0, "the first step starts from the same weights");
    cr_expect_lt(orc_drift(&c, STEPS + 2), 0.0, "no trace says");
    p.theirs.trace.mode = "lockstep";
    move(tensor(&p.mine, 1, ORC_GROUP_parameters, 0), 1.0, 1.0);
    cr_expect_eq(orc_drift(&c, 2), 1.0, "so does each step of a run that is followed");
}

Test(drift, says_when_there_is_nothing_to_compare)
{
    struct pair p;
    init_pair(&p, 1.0);
    const struct orc_case c = case_of(&p);
    move(tensor(&p.mine, 1, ORC_GROUP_parameters, 1), 1.0, 1.0);
    tensor(&p.theirs, 1, ORC_GROUP_parameters, 1)->numbers[ORC_SKETCH_NORM] = 0.0;
    cr_expect_eq(orc_drift(&c, 2), ldexp(1.0, -24), "nothing is relative to a norm of zero");
    p.theirs.steps[0].group[ORC_GROUP_parameters].count = 0;
    cr_expect_lt(orc_drift(&c, 2), 0.0);
}

Test(drift, divides_what_follows_it)
{
    struct pair p;
    init_pair(&p, 1.0);
    move(tensor(&p.mine, 1, ORC_GROUP_parameters, 0), 0.5, 0.5); /* a drift of 1/16 */
    move(tensor(&p.mine, 2, ORC_GROUP_gradients, 0), 0.125, 0.0);
    *scalar(&p.mine, 2, ORC_SCALAR_grad_norm) += 0.25;
    *scalar(&p.mine, 2, ORC_SCALAR_loss) += 0.25;
    struct orc_key key = {.check = ORC_CHECK_gradients,
                          .regime = ORC_REGIME_later,
                          .group = "gradients",
                          .name = "layers.*.proj.weight",
                          .part = "projection"};
    cr_expect_eq(look(&p, key).worst, 0.125 / norm / (1.0 / 16.0));
    key.group = key.name = "";
    key.part = "grad_norm";
    cr_expect_eq(look(&p, key).worst, 0.25 / (1.0 / 16.0));
    key.check = ORC_CHECK_loss_only;
    key.regime = ORC_REGIME_undivided;
    key.part = "loss";
    cr_expect_eq(look(&p, key).worst, 0.25, "losses are not divided");
}

/* ---- the typical tensor ---- */

Test(typical, one_runaway_element_does_not_move_it)
{
    struct pair p;
    init_pair(&p, 1.0);
    for (int t = 0; t < TENSORS; t++) { /* in each tensor, so that no median hides it */
        move_element(tensor(&p.mine, 1, ORC_GROUP_updates, t), 2.0 * rate);
    }
    cr_expect_eq(typical_norm(&p), 0.0);
    cr_expect_eq(typical_projection(&p), 0.0);
    cr_expect_eq(look(&p, elements).worst, 2.0, "the tensor itself is two elements off");
}

Test(typical, many_elements_move_it)
{
    struct pair p;
    init_pair(&p, 1.0);
    for (int t = 0; t < TENSORS; t++) { /* each projection by another amount: 1 +- 0.5 */
        move(tensor(&p.mine, 1, ORC_GROUP_updates, t), 0.5, 1.5);
    }
    cr_expect_eq(typical_projection(&p), 0.5 / norm);
    cr_expect_eq(typical_norm(&p), 0.0);
    for (int t = 0; t < TENSORS; t++) {
        tensor(&p.mine, 1, ORC_GROUP_updates, t)->numbers[ORC_SKETCH_NORM] += 2.0;
    }
    /* What one element that far off would move the norm by is left out. */
    cr_expect_eq(typical_norm(&p), (2.0 - 1.0 * rate / norm) / norm);
}

Test(typical, is_the_median_of_its_family)
{
    struct pair p;
    init_pair(&p, 1.0);
    move(tensor(&p.mine, 1, ORC_GROUP_updates, 0), 0.0, 4.0);
    cr_expect_eq(typical_projection(&p), 0.0, "one of three tensors is not typical");
    cr_expect_eq(look(&p, elements).worst, 4.0 / rate, "but seen in elements");
    move(tensor(&p.mine, 1, ORC_GROUP_updates, 2), 0.0, 2.0);
    cr_expect_eq(typical_projection(&p), 1.0 / norm, "two are");
    /* Norms have no matrix among them. */
    for (int t = 1; t < TENSORS; t++) {
        static const char *const names[] = {"", "layers.0.norm.weight", "layers.1.norm.weight"};
        tensor(&p.mine, 1, ORC_GROUP_updates, t)->name = names[t];
        tensor(&p.theirs, 1, ORC_GROUP_updates, t)->name = names[t];
    }
    cr_expect_eq(typical_projection(&p), 2.0 / norm);
    cr_expect_eq(look(&p, typical("norms", "typical projection")).worst, 1.0 / norm);
}

/* ---- not a number ---- */

/* Of one tensor, and of half of a family: a median of those is one. */
Test(not_a_number, is_within_no_bound)
{
    for (int n = ORC_SKETCH_NORM; n < ORC_SKETCH_NONFINITE; n++) {
        struct pair p;
        init_pair(&p, 1.0);
        tensor(&p.mine, 1, ORC_GROUP_updates, 0)->name = "norm.weight";
        tensor(&p.theirs, 1, ORC_GROUP_updates, 0)->name = "norm.weight";
        tensor(&p.mine, 1, ORC_GROUP_updates, 1)->numbers[n] = (double)NAN;
        cr_expect(look(&p, elements).fired, "number %d", n);
        const char *const part = n == ORC_SKETCH_NORM ? "typical norm" : "typical projection";
        cr_expect(look(&p, typical("matrices", part)).fired, "number %d, %s", n, part);
    }
}

Test(not_a_number, as_drift_passes_nothing)
{
    struct pair p;
    init_pair(&p, 1.0);
    const struct orc_case c = case_of(&p);
    tensor(&p.mine, 1, ORC_GROUP_parameters, 0)->numbers[ORC_SKETCH_FIRST] = (double)NAN;
    cr_expect(isnan(orc_drift(&c, 2)));
    struct orc_key key = {.check = ORC_CHECK_gradients,
                          .regime = ORC_REGIME_later,
                          .group = "gradients",
                          .name = "layers.*.proj.weight",
                          .part = "norm"};
    cr_expect(look(&p, key).fired, "sketches");
    key.group = key.name = "";
    key.part = "grad_norm";
    cr_expect(look(&p, key).fired, "the gradient norm");
}

Test(not_a_number, is_no_loss)
{
    struct pair p;
    init_pair(&p, 1.0);
    *scalar(&p.mine, 2, ORC_SCALAR_loss) = (double)NAN;
    const struct orc_key key = {.check = ORC_CHECK_loss_only,
                                .regime = ORC_REGIME_undivided,
                                .group = "",
                                .name = "",
                                .part = "loss"};
    cr_expect(look(&p, key).fired);
    orc_calibration *calibration = NULL;
    struct orc_error error = {""};
    const struct orc_case c = case_of(&p);
    cr_assert_eq(orc_calibration_create(&calibration), ORC_OK);
    cr_expect_eq(orc_calibration_add(calibration, &c, &error), ORC_EMISMATCH);
    *scalar(&p.mine, 2, ORC_SCALAR_loss) = 1.0;
    *scalar(&p.theirs, 2, ORC_SCALAR_loss) = (double)NAN; /* the subject is healthy by itself */
    cr_expect(look(&p, key).fired);
    cr_expect_eq(orc_calibration_add(calibration, &c, &error), ORC_EMISMATCH);
    orc_calibration_free(calibration);
}

/* ---- floor and margins ---- */

/* What a margin is applied to: plants a deviation of `size` where healthy runs have 1. */
typedef void planting(struct pair *pair, double size);

static const double unit = 1.0 / 1024.0; /* exact, far above a roundoff */

static void plant_first_gradient(struct pair *p, double size)
{
    tensor(&p->mine, 1, ORC_GROUP_gradients, 0)->numbers[ORC_SKETCH_NORM] += norm * unit * size;
}

static void plant_first_loss(struct pair *p, double size)
{
    *scalar(&p->mine, 1, ORC_SCALAR_loss) *= 1.0 + unit * size;
}

static void plant_later_loss(struct pair *p, double size)
{
    *scalar(&p->mine, 2, ORC_SCALAR_loss) *= 1.0 + unit * size;
}

static void plant_later_gradient(struct pair *p, double size)
{
    move(tensor(&p->mine, 1, ORC_GROUP_parameters, 0), 0.5, 0.5);
    tensor(&p->mine, 2, ORC_GROUP_gradients, 0)->numbers[ORC_SKETCH_NORM] += norm * unit * size;
}

static void plant_typical_update(struct pair *p, double size)
{
    for (int t = 0; t < TENSORS; t++) { /* so small that no tensor is near two elements */
        move(tensor(&p->mine, 1, ORC_GROUP_updates, t), 0.0, rate * unit * size);
    }
}

/* No healthy run has any, so the floor alone speaks. */
static void plant_element(struct pair *p, double size)
{
    move(tensor(&p->mine, 2, ORC_GROUP_updates, 0), size * rate, size * rate);
}

static orc_bounds *calibrate(planting *plant, const double sizes[RUNS])
{
    struct orc_error error = {""};
    orc_calibration *calibration = NULL;
    orc_bounds *bounds = NULL;
    cr_assert_eq(orc_calibration_create(&calibration), ORC_OK);
    for (int run = 0; run < RUNS; run++) {
        struct pair p;
        init_pair(&p, ldexp(1.0, run));
        plant(&p, sizes[run]);
        const struct orc_case c = case_of(&p);
        cr_assert_eq(orc_calibration_add(calibration, &c, &error), ORC_OK, "%s", error.text);
    }
    cr_assert_eq(orc_calibration_finish(calibration, &bounds, &error), ORC_OK, "%s", error.text);
    orc_calibration_free(calibration);
    return bounds;
}

static struct orc_verdict judge(planting *plant, double size, const orc_bounds *bounds,
                                enum orc_check_id check)
{
    struct pair p;
    struct orc_error error = {""};
    struct orc_verdict verdicts[ORC_CHECK_COUNT];
    init_pair(&p, 1.0);
    plant(&p, size);
    const struct orc_case c = case_of(&p);
    cr_assert_eq(orc_judge(&c, bounds, verdicts, &error), ORC_OK, "%s", error.text);
    return verdicts[check];
}

/* Healthy runs that all deviate by one unit make a bound of exactly one margin. */
Test(bounds, are_a_margin_times_what_healthy_runs_have)
{
    static const struct {
        const char *what;
        planting *plant;
        enum orc_check_id check;
        double healthy, margin;
        int step;
    } rows[] = {
        {"rounding of the first step", plant_first_gradient, ORC_CHECK_gradients, 1.0, 4.0, 1},
        {"loss of the first step", plant_first_loss, ORC_CHECK_loss, 1.0, 4.0, 1},
        {"the same, by itself", plant_first_loss, ORC_CHECK_loss_only, 1.0, 4.0, 1},
        {"later, over the drift", plant_later_gradient, ORC_CHECK_gradients, 1.0, 10.0, 2},
        {"the first typical update", plant_typical_update, ORC_CHECK_updates, 1.0, 10.0, 1},
        {"later loss", plant_later_loss, ORC_CHECK_loss, 1.0, 100.0, 2},
        {"the same, by itself", plant_later_loss, ORC_CHECK_loss_only, 1.0, 100.0, 2},
        {"one element of an update", plant_element, ORC_CHECK_updates, 0.0, 2.0, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double margin = rows[i].margin, healthy = rows[i].healthy;
        orc_bounds *bounds = calibrate(rows[i].plant, (double[RUNS]){healthy, healthy, healthy});
        struct orc_verdict v = judge(rows[i].plant, margin, bounds, rows[i].check);
        cr_expect_not(v.fired, "%s, %g: %s", rows[i].what, margin, v.detail);
        cr_expect_eq(v.worst, 1.0, "%s, %g: %.17g", rows[i].what, margin, v.worst);
        v = judge(rows[i].plant, margin * 1.0625, bounds, rows[i].check);
        cr_expect(v.fired && v.step == rows[i].step, "%s above %g: step %d", rows[i].what, margin,
                  v.step);
        orc_bounds_free(bounds);
    }
}

/* The third run is 4 scales off when it is left out of the scale; with it, the scale is the root
 * mean square of all three. */
Test(bounds, stand_on_the_largest_run_judged_by_the_others)
{
    orc_bounds *bounds = calibrate(plant_element, (double[RUNS]){1.0, 1.0, 4.0});
    const double bound = 10.0 * 4.0 * sqrt((1.0 + 1.0 + 16.0) / 3.0);
    const struct orc_verdict within =
        judge(plant_element, bound * 0.9375, bounds, ORC_CHECK_updates);
    cr_expect_not(within.fired, "%s", within.detail);
    cr_expect(judge(plant_element, bound * 1.0625, bounds, ORC_CHECK_updates).fired);
    orc_bounds_free(bounds);
}
