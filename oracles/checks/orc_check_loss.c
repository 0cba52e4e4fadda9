/* Checks loss, loss_only, band, curve and schedule: the scalars of a step.
 * Called through the table of checks; must not know where scales come from. */
#include "orc_probe.h"

#include <math.h>
#include <stddef.h>

#include "orc_step_read.h"

enum orc_regime orc_regime_at(const struct orc_case *c, int step)
{
    return step == 1 || orc_trace_follows(c->reference) ? ORC_REGIME_first : ORC_REGIME_later;
}

/* Scalars after the first step, unless they are divided by the drift or have none in it. */
static enum orc_regime undivided_at(const struct orc_case *c, int step)
{
    const bool first = orc_regime_at(c, step) == ORC_REGIME_first;
    return first ? ORC_REGIME_first : ORC_REGIME_undivided;
}

/* How the deviation of a scalar is judged. */
struct scalar_rule {
    enum orc_scalar which;
    double floor;  /* relative */
    bool drifting; /* divided by the drift */
    bool pooled;   /* one scale for all later steps */
    bool exact;    /* no drift in it at all: one regime */
};

static void compare(const struct orc_case *c, struct orc_probe *probe,
                    const struct scalar_rule *rule)
{
    orc_probe_reference(probe, c);
    /* Nobody adopts the other stack's evaluation set. */
    probe->against_reference |= rule->which == ORC_SCALAR_eval_loss;
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    const char *const name = orc_scalar_name(rule->which);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *mine = orc_trace_step(c->subject, s);
        const struct orc_step *theirs = orc_trace_step(c->reference, s);
        const double drift = rule->drifting ? orc_drift(c, s) : 1.0;
        if (mine == NULL || theirs == NULL || !mine->scalar[rule->which].given ||
            !theirs->scalar[rule->which].given || drift < 0.0) {
            continue;
        }
        const double a = mine->scalar[rule->which].value, b = theirs->scalar[rule->which].value;
        const struct orc_item item = {.step = s,
                                      .regime = rule->exact      ? ORC_REGIME_any
                                                : rule->drifting ? orc_regime_at(c, s)
                                                                 : undivided_at(c, s),
                                      .pooled = rule->pooled && s > 1,
                                      .group = "",
                                      .class_name = "",
                                      .part = name,
                                      .name = "",
                                      .floor = rule->floor / drift,
                                      .value = orc_relative(a, b) / drift,
                                      .seen = a,
                                      .wanted = b};
        orc_probe_deviation(probe, &item);
    }
    if (!rule->drifting) {
        orc_probe_expect(probe, "", name, range.first, range.last);
    }
}

void orc_compare_scalar(const struct orc_case *c, struct orc_probe *probe, enum orc_scalar which)
{
    const struct scalar_rule rule = {.which = which, .floor = orc_trace_roundoff(c->subject)};
    compare(c, probe, &rule);
}

void orc_compare_drifting(const struct orc_case *c, struct orc_probe *probe, enum orc_scalar which,
                          double floor_relative, bool pooled)
{
    const struct scalar_rule rule = {
        .which = which, .floor = floor_relative, .drifting = true, .pooled = pooled};
    compare(c, probe, &rule);
}

void orc_check_run_loss(const struct orc_case *c, struct orc_probe *probe)
{
    orc_compare_scalar(c, probe, ORC_SCALAR_loss);
    orc_compare_scalar(c, probe, ORC_SCALAR_eval_loss);
}

void orc_check_run_loss_only(const struct orc_case *c, struct orc_probe *probe)
{
    orc_compare_scalar(c, probe, ORC_SCALAR_loss);
}

void orc_check_run_band(const struct orc_case *c, struct orc_probe *probe)
{
    /* The case study's two stacks agreed within this; a fixed number by definition of the check. */
    const double band_relative = 0.002;
    orc_probe_reference(probe, c);
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *mine = orc_trace_step(c->subject, s);
        const struct orc_step *theirs = orc_trace_step(c->reference, s);
        if (mine == NULL || theirs == NULL || !mine->scalar[ORC_SCALAR_loss].given ||
            !theirs->scalar[ORC_SCALAR_loss].given) {
            continue;
        }
        const double a = mine->scalar[ORC_SCALAR_loss].value;
        const double b = theirs->scalar[ORC_SCALAR_loss].value;
        const struct orc_item item = {.step = s,
                                      .group = "",
                                      .class_name = "",
                                      .part = "",
                                      .name = "loss",
                                      .value = orc_relative(a, b),
                                      .seen = a,
                                      .wanted = b};
        orc_probe_fixed(probe, &item, band_relative);
    }
}

void orc_check_run_curve(const struct orc_case *c, struct orc_probe *probe)
{
    const struct orc_range range = orc_range_of(c->subject);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *step = orc_trace_step(c->subject, s);
        if (step == NULL || !step->scalar[ORC_SCALAR_loss].given) {
            continue;
        }
        const double loss = step->scalar[ORC_SCALAR_loss].value;
        const struct orc_item item = {.step = s,
                                      .regime = ORC_REGIME_any,
                                      .group = "",
                                      .class_name = "",
                                      .part = "loss",
                                      .name = "",
                                      .floor = orc_trace_roundoff(c->subject),
                                      .value = loss,
                                      .seen = loss};
        orc_probe_level(probe, &item);
    }
}

/* Half a unit of the last digit printed: what two honest traces of one number may differ by.
 * Seventeen digits name a double exactly, then its own rounding is the floor. */
static double printed_floor(int digits_a, int digits_b)
{
    const int digits = digits_a < digits_b ? digits_a : digits_b;
    return digits >= ORC_DIGITS_MAX - 1 ? ldexp(1.0, -53) : 0.5 * pow(10.0, 1 - digits);
}

void orc_check_run_schedule(const struct orc_case *c, struct orc_probe *probe)
{
    if (c->subject == NULL || c->reference == NULL) {
        return;
    }
    const struct scalar_rule rate = {
        .which = ORC_SCALAR_lr,
        .floor = printed_floor(c->subject->lr_digits, c->reference->lr_digits),
        .exact = true};
    compare(c, probe, &rate);
    /* Most steps of a run may be unclipped and agree exactly, so all later steps share one scale.
     */
    orc_compare_drifting(c, probe, ORC_SCALAR_clip,
                         printed_floor(c->subject->clip_digits, c->reference->clip_digits), true);
}
