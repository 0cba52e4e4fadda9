/* The probe: turns comparisons into a verdict, or into samples of a calibration.
 * Called by the checks; must not know what they compare. */
#include "orc_probe.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "orc_fault.h"

bool orc_accept(double err, double tol)
{
    return ORC_FAULT(accept, err <= tol);
}

/* Records the outcome of one comparison; true when it is the first alarm, whose text is wanted. */
static bool record(struct orc_probe *probe, int step, bool ok)
{
    struct orc_verdict *v = probe->verdict;
    const bool fails = ORC_FAULT(verdict, !ok);
    if (!fails || (probe->against_reference && step >= probe->confounded_from)) {
        return false;
    }
    if (v->fired && v->step <= step) {
        return false;
    }
    v->fired = true;
    v->step = step;
    return true;
}

void orc_probe_reference(struct orc_probe *probe, const struct orc_case *c)
{
    probe->against_reference = !orc_trace_follows(c->reference);
}

void orc_probe_exact(struct orc_probe *probe, int step, bool equal, const char *format, ...)
{
    probe->verdict->compared++;
    if (!record(probe, step, equal)) {
        return;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(probe->verdict->detail, sizeof probe->verdict->detail, format, args);
    va_end(args);
    probe->verdict->worst = (double)INFINITY;
    if (probe->calibration != NULL) {
        orc_calibration_alarm(probe->calibration, probe->check, step, probe->verdict->detail);
    }
}

static void describe(struct orc_verdict *v, const struct orc_item *item, double ratio)
{
    const char *const words[] = {item->group, item->name, item->part};
    size_t used = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i][0] != '\0') {
            const int n = snprintf(v->detail + used, sizeof v->detail - used, "%s%.80s",
                                   used > 0 ? " " : "", words[i]);
            used += (size_t)n < sizeof v->detail - used ? (size_t)n : 0;
        }
    }
    (void)snprintf(v->detail + used, sizeof v->detail - used,
                   ": %.9g, expected %.9g, %.3g times the bound", item->seen, item->wanted, ratio);
}

static void judge(struct orc_probe *probe, const struct orc_item *item, double err, double allowed)
{
    struct orc_verdict *v = probe->verdict;
    const double bound = allowed;
    const double tol = ORC_FAULT(tolerance, bound);
    const bool ok = orc_accept(err, tol);
    const double ratio = isnan(err) ? (double)INFINITY : err / allowed;
    v->compared++;
    const bool credit = !probe->against_reference || item->step < probe->confounded_from;
    if (credit && ratio > v->worst) {
        v->worst = ratio;
    }
    if (record(probe, item->step, ok)) {
        describe(v, item, ratio);
    }
}

void orc_probe_fixed(struct orc_probe *probe, const struct orc_item *item, double bound)
{
    judge(probe, item, item->value, bound);
}

static void calibrated(struct orc_probe *probe, const struct orc_item *item, bool level)
{
    const struct orc_key key = {.check = probe->check,
                                .regime = item->regime,
                                .level = level,
                                .pooled = item->pooled,
                                .group = item->group,
                                .name = item->class_name,
                                .part = item->part};
    if (probe->calibration != NULL) {
        probe->verdict->compared++;
        orc_calibration_take(probe->calibration, &key, item);
        return;
    }
    if (probe->bounds == NULL || !probe->bounds->has_bound[probe->check]) {
        return;
    }
    const ptrdiff_t index = orc_classes_find(&probe->bounds->classes, &key);
    if (index == ORC_NO_CLASS) {
        return;
    }
    const struct orc_class *class_ = &probe->bounds->classes.items[index];
    const ptrdiff_t cell = orc_class_cell(class_, item->step);
    if (cell == ORC_NO_CLASS) {
        return;
    }
    if (probe->seen != NULL) {
        probe->seen[class_->offset + (size_t)cell]++;
    }
    if (!ORC_FAULT(class_compared, true) || !ORC_FAULT(projection_end, true)) {
        probe->verdict->compared++;
        return;
    }
    struct orc_item shown = *item;
    double err = item->value;
    if (level) {
        shown.wanted = class_->centres[cell];
        err = fabs(item->value - class_->centres[cell]);
    }
    judge(probe, &shown, err, class_->scales[cell] * probe->bounds->strata[class_->stratum].bound);
}

void orc_probe_deviation(struct orc_probe *probe, const struct orc_item *item)
{
    calibrated(probe, item, false);
}

void orc_probe_level(struct orc_probe *probe, const struct orc_item *item)
{
    calibrated(probe, item, true);
}

static void expect_class(struct orc_probe *probe, const struct orc_class *class_, int first,
                         int last)
{
    for (size_t i = 0; i < class_->step_count; i++) {
        const int step = class_->first_step + (int)i;
        if (class_->scales[i] <= 0.0 || step < first || step > last) {
            continue;
        }
        const size_t seen = probe->seen[class_->offset + i];
        if (seen < class_->items) {
            orc_probe_exact(probe, step, false, "%s %.90s %s: %zu of %zu numbers missing",
                            class_->key.group, class_->key.name, class_->key.part,
                            class_->items - seen, class_->items);
        }
    }
}

void orc_probe_expect(struct orc_probe *probe, const char *group, const char *part, int first,
                      int last)
{
    if (probe->bounds == NULL || probe->seen == NULL || !ORC_FAULT(expected, true)) {
        return;
    }
    for (size_t i = 0; i < probe->bounds->classes.count; i++) {
        const struct orc_class *class_ = &probe->bounds->classes.items[i];
        if (class_->key.check == probe->check && !class_->key.pooled &&
            strcmp(class_->key.group, group) == 0 &&
            (part == NULL || strcmp(class_->key.part, part) == 0)) {
            expect_class(probe, class_, first, last);
        }
    }
}

static struct orc_range range_make(int first, int last)
{
    return (struct orc_range){first, ORC_FAULT(last_step, last)};
}

struct orc_range orc_range_of(const orc_trace *trace)
{
    if (trace == NULL) {
        return (struct orc_range){1, 0};
    }
    return range_make(orc_trace_first_step(trace), orc_trace_last_step(trace));
}

struct orc_range orc_range_common(const orc_trace *a, const orc_trace *b)
{
    if (a == NULL || b == NULL) {
        return (struct orc_range){1, 0};
    }
    const int first_a = orc_trace_first_step(a), first_b = orc_trace_first_step(b);
    const int last_a = orc_trace_last_step(a), last_b = orc_trace_last_step(b);
    return range_make(first_a > first_b ? first_a : first_b, last_a < last_b ? last_a : last_b);
}

double orc_relative(double a, double b)
{
    if (a == b && isfinite(a)) {
        return 0.0;
    }
    return fabs(a - b) / fabs(b);
}
