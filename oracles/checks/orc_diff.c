/* The first place where two traces part, by stage of the pipeline.
 * Called by `faultline diff`; must not know which of the two is right. */
#include "orc_probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stages in the order in which a difference travels. */
#define ORC_STAGES(X)                                                                              \
    X(text) X(tokens) X(labels) X(order) X(activations) X(loss) X(gradients) X(updates) X(state)

static const enum orc_check_id stages[] = {
#define ORC_ROW_(name) ORC_CHECK_##name,
    ORC_STAGES(ORC_ROW_)
#undef ORC_ROW_
};
enum { STAGE_COUNT = sizeof stages / sizeof stages[0] };

/* Without bounds a probe has no verdict on numbers; this keeps the largest deviation instead. */
static void largest(const struct orc_case *c, struct orc_divergence *out)
{
    double worst = 0.0;
    int at = 0;
    int from = 0;
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *a = orc_trace_step(c->subject, s);
        const struct orc_step *b = orc_trace_step(c->reference, s);
        for (int g = 0; a != NULL && b != NULL && g < ORC_GROUP_COUNT; g++) {
            const struct orc_sketches *x = &a->group[g], *y = &b->group[g];
            for (size_t i = 0; i < x->count && i < y->count; i++) {
                if (strcmp(x->items[i].name, y->items[i].name) != 0) {
                    continue;
                }
                for (int p = 0; p < ORC_SKETCH_NONFINITE; p++) {
                    const double u = x->items[i].numbers[p], v = y->items[i].numbers[p];
                    const double deviation =
                        u == v ? 0.0 : fabs(u - v) / fabs(y->items[i].numbers[ORC_SKETCH_NORM]);
                    out->compared++;
                    from = from == 0 && deviation != 0.0 ? s : from;
                    if (!(deviation <= worst)) {
                        worst = deviation;
                        at = s;
                        (void)snprintf(out->item, sizeof out->item, "%s %.90s",
                                       orc_group_name((enum orc_group)g), x->items[i].name);
                    }
                }
            }
        }
        if (a != NULL && b != NULL && a->scalar[ORC_SCALAR_loss].given &&
            b->scalar[ORC_SCALAR_loss].given) {
            const double deviation =
                orc_relative(a->scalar[ORC_SCALAR_loss].value, b->scalar[ORC_SCALAR_loss].value);
            out->compared++;
            from = from == 0 && deviation != 0.0 ? s : from;
            if (!(deviation <= worst)) {
                worst = deviation;
                at = s;
                (void)snprintf(out->item, sizeof out->item, "loss");
            }
        }
    }
    out->step = at;
    if (from == 0) {
        (void)snprintf(out->detail, sizeof out->detail,
                       "no difference of text, tokens, labels, order, sketches or losses");
        return;
    }
    (void)snprintf(out->detail, sizeof out->detail,
                   "no difference of text, tokens, labels or order; numbers differ from step %d "
                   "on, most at step %d: %.64s by %.3g relative; no bounds, so no verdict on that",
                   from, at, out->item, worst);
}

enum orc_status orc_diff(const orc_trace *a, const orc_trace *b, const orc_bounds *bounds,
                         struct orc_divergence *out, struct orc_error *error)
{
    if (a == NULL || b == NULL || out == NULL) {
        return orc_fail(ORC_EARG, error, "two traces and a place for the answer are needed");
    }
    size_t *seen = NULL;
    const struct orc_case c = {.subject = a, .reference = b};
    const struct orc_case alone = {.subject = a};
    const enum orc_status status = orc_case_check(&alone, bounds, error);
    if (status != ORC_OK) {
        return status;
    }
    if (bounds != NULL) {
        seen = calloc(bounds->cells > 0 ? bounds->cells : 1, sizeof *seen);
        if (seen == NULL) {
            return orc_fail(ORC_EMEMORY, error, "host memory exhausted");
        }
    }
    memset(out, 0, sizeof *out);
    for (int i = 0; i < STAGE_COUNT; i++) {
        struct orc_verdict verdict = {.fired = false};
        struct orc_probe probe = {.check = stages[i],
                                  .verdict = &verdict,
                                  .bounds = bounds,
                                  .seen = seen,
                                  .confounded_from = ORC_STEP_NEVER};
        if (orc_check_is_bound(stages[i]) && bounds == NULL) {
            continue;
        }
        orc_check_run(stages[i])(&c, &probe);
        out->compared += verdict.compared;
        if (verdict.fired && (!out->found || verdict.step < out->step)) {
            out->found = true;
            out->step = verdict.step;
            (void)snprintf(out->stage, sizeof out->stage, "%s", orc_check_name(stages[i]));
            (void)snprintf(out->detail, sizeof out->detail, "%s", verdict.detail);
            (void)snprintf(out->item, sizeof out->item, "%.*s", (int)strcspn(verdict.detail, ":"),
                           verdict.detail);
        }
    }
    free(seen);
    if (!out->found && bounds == NULL) {
        largest(&c, out);
    } else if (!out->found) {
        (void)snprintf(out->detail, sizeof out->detail, "equal within the bounds");
    }
    return ORC_OK;
}
