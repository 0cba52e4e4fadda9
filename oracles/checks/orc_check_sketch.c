/* Checks activations, gradients, updates, state: sketches against the reference's.
 * Called through the table of checks; must not know where scales come from. */
#include "orc_probe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "orc_fault.h"

/* The sketch of the same name, looked for first at the same place. */
static const struct orc_sketch *partner(const struct orc_sketches *list, size_t index,
                                        const char *name)
{
    if (index < list->count && strcmp(list->items[index].name, name) == 0) {
        return &list->items[index];
    }
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, name) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* A norm deviates relative to the reference's norm, and so does each projection: for an error
 * vector e, the projection of e is about ||e||, whatever the projection of the tensor is. */
static void compare_sketch(struct orc_probe *probe, int step, const char *group,
                           const struct orc_sketch *a, const struct orc_sketch *b, double floor_)
{
    const double *x = a->numbers, *y = b->numbers;
    const bool counts_equal = ORC_FAULT(nonfinite, x[ORC_SKETCH_NONFINITE] == y[ORC_SKETCH_NONFINITE]);
    orc_probe_exact(probe, step, counts_equal,
                    "%s %.90s: %.0f non-finite elements, expected %.0f", group, a->name,
                    x[ORC_SKETCH_NONFINITE], y[ORC_SKETCH_NONFINITE]);
    struct orc_item item = {.step = step,
                            .group = group,
                            .class_name = a->class_name,
                            .part = "norm",
                            .name = a->name,
                            .floor = floor_,
                            .value = orc_relative(x[ORC_SKETCH_NORM], y[ORC_SKETCH_NORM]),
                            .seen = x[ORC_SKETCH_NORM],
                            .wanted = y[ORC_SKETCH_NORM]};
    orc_probe_deviation(probe, &item);
    item.part = "projection";
    const int end = ORC_FAULT(projection_end, ORC_SKETCH_NONFINITE);
    for (int p = ORC_SKETCH_FIRST; p < end; p++) {
        item.seen = x[p];
        item.wanted = y[p];
        item.value = x[p] == y[p] && isfinite(x[p]) ? 0.0 : fabs(x[p] - y[p]) / fabs(y[ORC_SKETCH_NORM]);
        orc_probe_deviation(probe, &item);
    }
}

static void compare_group(const struct orc_case *c, struct orc_probe *probe, enum orc_group group)
{
    probe->against_reference = true;
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    const char *const group_name = orc_group_name(group);
    bool given = false;
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *mine = orc_trace_step(c->subject, s);
        const struct orc_step *theirs = orc_trace_step(c->reference, s);
        if (mine == NULL || theirs == NULL || !mine->group[group].given ||
            !theirs->group[group].given) {
            continue;
        }
        given = true;
        const struct orc_sketches *list = &mine->group[group];
        const size_t count = ORC_FAULT(item_count, list->count);
        for (size_t i = 0; i < count; i++) {
            const char *const name = list->items[i].name;
            const struct orc_sketch *other = partner(&theirs->group[group], i, name);
            if (other != NULL && ORC_FAULT(class_compared, true)) {
                compare_sketch(probe, s, group_name, &list->items[i], other,
                               orc_trace_roundoff(c->subject));
            }
        }
    }
    if (given) {
        orc_probe_expect(probe, group_name, range.first, range.last);
    }
}

void orc_check_run_activations(const struct orc_case *c, struct orc_probe *probe)
{
    compare_group(c, probe, ORC_GROUP_activations);
}

void orc_check_run_updates(const struct orc_case *c, struct orc_probe *probe)
{
    compare_group(c, probe, ORC_GROUP_updates);
}

void orc_check_run_state(const struct orc_case *c, struct orc_probe *probe)
{
    compare_group(c, probe, ORC_GROUP_parameters);
    compare_group(c, probe, ORC_GROUP_moment1);
    compare_group(c, probe, ORC_GROUP_moment2);
}

void orc_check_run_gradients(const struct orc_case *c, struct orc_probe *probe)
{
    compare_group(c, probe, ORC_GROUP_gradients);
    orc_compare_scalar(c, probe, ORC_SCALAR_grad_norm, orc_trace_roundoff(c->subject));
}
