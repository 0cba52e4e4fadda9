/* Check invariants: what one stack alone can know about itself, without a reference.
 * Called through the table of checks; must not know where scales come from. */
#include "orc_probe.h"

#include <math.h>
#include <string.h>

static void all_finite(struct orc_probe *probe, const struct orc_step *step)
{
    for (int n = 0; n < ORC_SCALAR_COUNT; n++) {
        if (step->scalar[n].given) {
            orc_probe_exact(probe, step->number, isfinite(step->scalar[n].value) != 0,
                            "%s is not finite", orc_scalar_name((enum orc_scalar)n));
        }
    }
    for (int g = 0; g < ORC_GROUP_COUNT; g++) {
        const struct orc_sketches *list = &step->group[g];
        for (size_t i = 0; i < list->count; i++) {
            const double *x = list->items[i].numbers;
            orc_probe_exact(
                probe, step->number, isfinite(x[ORC_SKETCH_NORM]) && x[ORC_SKETCH_NONFINITE] == 0.0,
                "%s %.90s: %.0f elements are not finite", orc_group_name((enum orc_group)g),
                list->items[i].name, x[ORC_SKETCH_NONFINITE]);
        }
    }
}

/* Supervised tokens are labels, and labels are tokens. */
static void tokens_conserved(struct orc_probe *probe, const struct orc_step *step)
{
    const struct orc_number supervised = step->scalar[ORC_SCALAR_supervised];
    if (!supervised.given) {
        return;
    }
    orc_probe_exact(probe, step->number, supervised.value > 0.0, "no supervised token");
    if (step->label_count.given) {
        orc_probe_exact(probe, step->number, step->label_count.value == supervised.value,
                        "%.0f labels, %.0f supervised tokens", step->label_count.value,
                        supervised.value);
    }
    double tokens = 0.0;
    bool counted = step->records_given;
    for (size_t i = 0; i < step->record_count; i++) {
        counted = counted && step->records[i].count_given;
        tokens += (double)step->records[i].count;
    }
    if (counted) {
        orc_probe_exact(probe, step->number, supervised.value < tokens,
                        "%.0f supervised of %.0f tokens", supervised.value, tokens);
    }
}

static void micro_batches(struct orc_probe *probe, const orc_trace *trace,
                          const struct orc_step *step)
{
    const struct orc_step *first = orc_trace_step(trace, orc_trace_first_step(trace));
    for (int b = 0; first != NULL && b < ORC_BATCH_COUNT; b++) {
        if (step->batch[b].given && first->batch[ORC_BATCH_ids].given) {
            orc_probe_exact(
                probe, step->number, step->batch[b].count == first->batch[ORC_BATCH_ids].count,
                "%s: %zu micro-batches, %zu in the first step", orc_batch_name((enum orc_batch)b),
                step->batch[b].count, first->batch[ORC_BATCH_ids].count);
        }
    }
}

/* The loss of the first step is that of guessing, ln(vocab): the centre is the healthy runs'
 * median, because a trace does not name the vocabulary. */
static void first_loss(const orc_trace *trace, struct orc_probe *probe)
{
    const struct orc_step *step = orc_trace_step(trace, 1);
    if (step == NULL || !step->scalar[ORC_SCALAR_loss].given) {
        return;
    }
    const double loss = step->scalar[ORC_SCALAR_loss].value;
    const struct orc_item item = {.step = 1,
                                  .regime = ORC_REGIME_any,
                                  .group = "",
                                  .class_name = "",
                                  .part = "first loss",
                                  .name = "",
                                  .floor = orc_trace_roundoff(trace),
                                  .value = loss,
                                  .seen = loss};
    orc_probe_level(probe, &item);
}

/* Root of the sum of squared norms; negative when the step has no such sketches. */
static double total_norm(const struct orc_step *step, enum orc_group group)
{
    double sum = 0.0;
    for (size_t i = 0; i < step->group[group].count; i++) {
        const double norm = step->group[group].items[i].numbers[ORC_SKETCH_NORM];
        sum += norm * norm;
    }
    return step->group[group].count > 0 ? sqrt(sum) : -1.0;
}

/* The reported gradient norm is the norm of the gradients, and updates are a sane part of the
 * parameters. */
static void norms(const orc_trace *trace, struct orc_probe *probe, const struct orc_step *step)
{
    const double gradient = total_norm(step, ORC_GROUP_gradients);
    const struct orc_number reported = step->scalar[ORC_SCALAR_grad_norm];
    struct orc_item item = {.step = step->number,
                            .regime = ORC_REGIME_any,
                            .group = "",
                            .class_name = "",
                            .name = "",
                            .floor = orc_trace_roundoff(trace)};
    if (gradient >= 0.0 && reported.given) {
        item.part = "gradient norm against its tensors";
        item.value = orc_relative(reported.value, gradient);
        item.seen = reported.value;
        item.wanted = gradient;
        orc_probe_deviation(probe, &item);
    }
    const double update = total_norm(step, ORC_GROUP_updates);
    const double parameter = total_norm(step, ORC_GROUP_parameters);
    if (update >= 0.0 && parameter > 0.0) {
        item.part = "update norm over parameter norm";
        item.value = item.seen = update / parameter;
        orc_probe_level(probe, &item);
    }
}

/* Clipped gradients all have the same norm, the clipping threshold. */
static void clipped(const orc_trace *trace, struct orc_probe *probe, const struct orc_step *step,
                    double *threshold)
{
    const struct orc_number clip = step->scalar[ORC_SCALAR_clip];
    const struct orc_number norm = step->scalar[ORC_SCALAR_grad_norm];
    if (!clip.given || !norm.given) {
        return;
    }
    orc_probe_exact(probe, step->number, clip.value > 0.0 && clip.value <= 1.0,
                    "clip factor %.9g is not in (0, 1]", clip.value);
    if (!(clip.value < 1.0)) {
        return;
    }
    const double now = clip.value * norm.value;
    if (*threshold > 0.0) {
        const struct orc_item item = {.step = step->number,
                                      .regime = ORC_REGIME_any,
                                      .pooled = true,
                                      .group = "",
                                      .class_name = "",
                                      .part = "clipped gradient norm",
                                      .name = "",
                                      .floor = orc_trace_roundoff(trace),
                                      .value = orc_relative(now, *threshold),
                                      .seen = now,
                                      .wanted = *threshold};
        orc_probe_deviation(probe, &item);
    }
    *threshold = now;
}

/* Parameters change by the update and by nothing else. Projections are linear, so this shows in
 * sketches; the deviation is relative to the parameter, whose rounding it is. */
static void moved_by_update(const orc_trace *trace, struct orc_probe *probe,
                            const struct orc_step *before, const struct orc_step *step)
{
    const struct orc_sketches *old = &before->group[ORC_GROUP_parameters];
    const struct orc_sketches *new = &step->group[ORC_GROUP_parameters];
    const struct orc_sketches *update = &step->group[ORC_GROUP_updates];
    for (size_t i = 0; i < new->count &&i < old->count &&i < update->count; i++) {
        const struct orc_sketch *a = &old->items[i], *b = &new->items[i], *u = &update->items[i];
        if (strcmp(a->name, b->name) != 0 || strcmp(u->name, b->name) != 0) {
            continue;
        }
        for (int p = ORC_SKETCH_FIRST; p < ORC_SKETCH_NONFINITE; p++) {
            const double wanted = a->numbers[p] + u->numbers[p];
            const struct orc_item item = {.step = step->number,
                                          .regime = ORC_REGIME_any,
                                          .group = "parameters",
                                          .class_name = b->class_name,
                                          .part = "old value plus update",
                                          .name = b->name,
                                          .floor = orc_trace_roundoff(trace),
                                          .value = fabs(b->numbers[p] - wanted) /
                                                   fabs(b->numbers[ORC_SKETCH_NORM]),
                                          .seen = b->numbers[p],
                                          .wanted = wanted};
            orc_probe_deviation(probe, &item);
        }
    }
}

void orc_check_run_invariants(const struct orc_case *c, struct orc_probe *probe)
{
    const struct orc_range range = orc_range_of(c->subject);
    double threshold = 0.0;
    if (range.first <= range.last) {
        first_loss(c->subject, probe);
    }
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *step = orc_trace_step(c->subject, s);
        const struct orc_step *before = orc_trace_step(c->subject, s - 1);
        if (step == NULL) {
            continue;
        }
        all_finite(probe, step);
        tokens_conserved(probe, step);
        micro_batches(probe, c->subject, step);
        norms(c->subject, probe, step);
        clipped(c->subject, probe, step, &threshold);
        if (before != NULL) {
            moved_by_update(c->subject, probe, before, step);
        }
    }
}
