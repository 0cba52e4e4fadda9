/* Checks loss, loss_only, band, curve and schedule: the scalars of a step.
 * Called through the table of checks; must not know where scales come from. */
#include "orc_probe.h"

#include <math.h>
#include <stddef.h>

#include "orc_step_read.h"

void orc_compare_scalar(const struct orc_case *c, struct orc_probe *probe, enum orc_scalar which,
                        double floor_relative)
{
    probe->against_reference = true;
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    const char *const name = orc_scalar_name(which);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *mine = orc_trace_step(c->subject, s);
        const struct orc_step *theirs = orc_trace_step(c->reference, s);
        if (mine == NULL || theirs == NULL || !mine->scalar[which].given ||
            !theirs->scalar[which].given) {
            continue;
        }
        const double a = mine->scalar[which].value, b = theirs->scalar[which].value;
        const struct orc_item item = {.step = s,
                                      .group = name,
                                      .class_name = "",
                                      .part = "",
                                      .name = "",
                                      .floor = floor_relative,
                                      .value = orc_relative(a, b),
                                      .seen = a,
                                      .wanted = b};
        orc_probe_deviation(probe, &item);
    }
    orc_probe_expect(probe, name, range.first, range.last);
}

void orc_check_run_loss(const struct orc_case *c, struct orc_probe *probe)
{
    orc_compare_scalar(c, probe, ORC_SCALAR_loss, orc_trace_roundoff(c->subject));
    orc_compare_scalar(c, probe, ORC_SCALAR_eval_loss, orc_trace_roundoff(c->subject));
}

void orc_check_run_loss_only(const struct orc_case *c, struct orc_probe *probe)
{
    orc_compare_scalar(c, probe, ORC_SCALAR_loss, orc_trace_roundoff(c->subject));
}

void orc_check_run_band(const struct orc_case *c, struct orc_probe *probe)
{
    /* The case study's two stacks agreed within this; a fixed number by definition of the check. */
    const double band_relative = 0.002;
    probe->against_reference = true;
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
                                      .group = "loss",
                                      .class_name = "",
                                      .part = "",
                                      .name = "",
                                      .floor = orc_trace_roundoff(c->subject),
                                      .value = loss,
                                      .seen = loss};
        orc_probe_level(probe, &item);
    }
}

/* Half a unit of the last digit printed: what two honest traces of one number may differ by. Seventeen
 * digits name a double exactly, then its own rounding is the floor. */
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
    orc_compare_scalar(c, probe, ORC_SCALAR_lr,
                       printed_floor(c->subject->lr_digits, c->reference->lr_digits));
    orc_compare_scalar(c, probe, ORC_SCALAR_clip,
                       printed_floor(c->subject->clip_digits, c->reference->clip_digits));
}
