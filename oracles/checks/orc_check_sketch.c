/* Checks activations, gradients, updates, state: sketches against the reference's.
 * Called through the table of checks; must not know where scales come from.
 *
 * Three kinds of numbers, because rounding reaches them in three ways (README, "Deviations"):
 * relative deviations in the first step, where both stacks hold the same weights; the same divided
 * by the drift of the weights later on; and, for updates and parameters, where AdamW turns the
 * rounding of one element near zero into a visible step, deviations in units of one element's step,
 * with the typical (median) relative deviation beside them. */
#include "orc_probe.h"

#include <math.h>
#include <stdlib.h>
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

static double squared_distance(const struct orc_sketch *a, const struct orc_sketch *b)
{
    double sum = 0.0;
    for (int p = ORC_SKETCH_FIRST; p < ORC_SKETCH_NONFINITE; p++) {
        const double d = a->numbers[p] - b->numbers[p];
        sum += d * d;
    }
    return sum / (ORC_SKETCH_NONFINITE - ORC_SKETCH_FIRST);
}

/* A tensor's distance relative to its norm counts, however small the tensor: what follows from a
 * norm's gain that is off by a part is as far off as what follows from a matrix that is. */
double orc_drift(const struct orc_case *c, int step)
{
    if (orc_regime_at(c, step) == ORC_REGIME_first) {
        return 1.0;
    }
    const struct orc_step *mine = orc_trace_step(c->subject, step - 1);
    const struct orc_step *theirs = orc_trace_step(c->reference, step - 1);
    if (mine == NULL || theirs == NULL) {
        return -1.0;
    }
    const struct orc_sketches *a = &mine->group[ORC_GROUP_parameters];
    const struct orc_sketches *b = &theirs->group[ORC_GROUP_parameters];
    double drift = 0.0;
    bool compared = false;
    for (size_t i = 0; i < a->count; i++) {
        const struct orc_sketch *other = partner(b, i, a->items[i].name);
        if (other == NULL || other->numbers[ORC_SKETCH_NORM] == 0.0) {
            continue;
        }
        const double apart =
            sqrt(squared_distance(&a->items[i], other)) / other->numbers[ORC_SKETCH_NORM];
        if (!isfinite(apart)) {
            return (double)NAN;
        }
        drift = apart > drift ? apart : drift;
        compared = true;
    }
    if (!compared) {
        return -1.0;
    }
    const double least = orc_trace_roundoff(c->subject);
    return drift > least ? drift : least;
}

/* One element whose gradient is within rounding of zero may go the other way, two whole steps off:
 * with its margin the bound of a single tensor is at least that. */
static const double element_floor = 2.0 / ORC_MARGIN_DRIFT;

/* How the numbers of one group at one step are made comparable. */
struct unit {
    int step;
    enum orc_regime regime;
    enum orc_group group;
    double drift;   /* relative deviations are divided by this */
    bool adam;      /* updates and parameters: each tensor in elements, and the typical one */
    double element; /* one element's step; 0 = none, then only the typical one counts */
    double floor;   /* relative */
};

/* Recipes treat norms (one dimension, no weight decay) and matrices apart, and so do optimizers. */
enum family { FAMILY_norms, FAMILY_matrices, FAMILY_COUNT };
static const char *const family_names[FAMILY_COUNT] = {"norms", "matrices"};
static enum family family_of(const char *name)
{
    return strstr(name, "norm") != NULL ? FAMILY_norms : FAMILY_matrices;
}

/* Relative deviations of the tensors of one family, for the typical one of the step. */
struct typical {
    double *norms, *projections; /* one number a tensor each */
    size_t count;
};

/* 0 for 0, whatever the norm; NaN stays. */
static double relative_to(double norm, double apart)
{
    return apart > 0.0 || isnan(apart) ? apart / norm : 0.0;
}

/* What the rounding of all elements did to a tensor, without what one element did that went astray:
 * an error e in one element moves every projection by |e|, so the spread of their distances is the
 * rest's; and the norm by at most |e| times that element's share of it. A fault that moves many
 * elements moves the projections each by another amount, and the norm by more than that. */
static void add_typical(struct typical *typical, const struct unit *unit,
                        const struct orc_sketch *a, const struct orc_sketch *b)
{
    const double count = ORC_SKETCH_NONFINITE - ORC_SKETCH_FIRST;
    const double norm = fabs(b->numbers[ORC_SKETCH_NORM]);
    double sum = 0.0, squares = 0.0;
    for (int p = ORC_SKETCH_FIRST; p < ORC_SKETCH_NONFINITE; p++) {
        const double apart = fabs(a->numbers[p] - b->numbers[p]);
        sum += apart;
        squares += apart * apart;
    }
    const double variance = squares / count - (sum / count) * (sum / count);
    const double spread = variance > 0.0 || isnan(variance) ? sqrt(variance) : 0.0;
    const double moved = fabs(a->numbers[ORC_SKETCH_NORM] - b->numbers[ORC_SKETCH_NORM]);
    const double share = norm > 0.0 ? unit->element / norm : 0.0;
    const double rest = moved - sum / count * share;
    typical->norms[typical->count] = relative_to(norm, rest);
    typical->projections[typical->count++] = relative_to(norm, spread);
}

static void report(struct orc_probe *probe, const struct unit *unit, const struct orc_sketch *a,
                   const struct orc_sketch *b, int index)
{
    const double seen = a->numbers[index], wanted = b->numbers[index];
    const double norm = fabs(b->numbers[ORC_SKETCH_NORM]);
    const double apart = seen == wanted && isfinite(seen) ? 0.0 : fabs(seen - wanted);
    const bool is_norm = index == ORC_SKETCH_NORM;
    const double relative = relative_to(norm, apart);
    const bool pooled = unit->adam;
    const double scale = pooled ? unit->element / norm : unit->drift;
    const struct orc_item item = {.step = unit->step,
                                  .regime = pooled ? ORC_REGIME_later : unit->regime,
                                  .pooled = pooled,
                                  .group = orc_group_name(unit->group),
                                  .class_name = pooled ? "" : a->class_name,
                                  .part = pooled    ? "in elements"
                                          : is_norm ? "norm"
                                                    : "projection",
                                  .name = a->name,
                                  .floor = pooled ? element_floor : unit->floor / unit->drift,
                                  .value = relative / scale,
                                  .seen = seen,
                                  .wanted = wanted};
    if (!unit->adam || unit->element > 0.0) {
        orc_probe_deviation(probe, &item);
    }
}

/* A norm deviates relative to the reference's norm, and so does each projection: for an error
 * vector e, the projection of e is about ||e||, whatever the projection of the tensor is. */
static void compare_sketch(struct orc_probe *probe, const struct unit *unit,
                           const struct orc_sketch *a, const struct orc_sketch *b)
{
    const double mine = a->numbers[ORC_SKETCH_NONFINITE];
    const double theirs = b->numbers[ORC_SKETCH_NONFINITE];
    const bool counts_equal = ORC_FAULT(nonfinite, mine == theirs);
    orc_probe_exact(probe, unit->step, counts_equal,
                    "%s %.90s: %.0f non-finite elements, expected %.0f",
                    orc_group_name(unit->group), a->name, mine, theirs);
    report(probe, unit, a, b, ORC_SKETCH_NORM);
    for (int p = ORC_SKETCH_FIRST; p < ORC_SKETCH_NONFINITE; p++) {
        report(probe, unit, a, b, p);
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    if (isnan(x) || isnan(y)) {
        return isnan(x) - isnan(y); /* NaN last: half of them, and the median is one */
    }
    return (x > y) - (x < y);
}

static void report_typical(struct orc_probe *probe, const struct unit *unit, const char *family,
                           double *values, size_t count, const char *part)
{
    if (count == 0) {
        return;
    }
    qsort(values, count, sizeof *values, by_value);
    const double median = values[count / 2];
    /* What AdamW made of the gradient has its tail from the first step on. */
    const bool first = unit->regime == ORC_REGIME_first;
    const struct orc_item item = {.step = unit->step,
                                  .regime = first ? ORC_REGIME_amplified : ORC_REGIME_later,
                                  .group = orc_group_name(unit->group),
                                  .class_name = family,
                                  .part = part,
                                  .name = family,
                                  .floor = unit->floor / unit->drift,
                                  .value = median / unit->drift,
                                  .seen = median,
                                  .wanted = 0.0};
    orc_probe_deviation(probe, &item);
}

static bool typical_init(struct typical *typical, size_t count)
{
    typical->norms = calloc(count + 1, sizeof(double));
    typical->projections = calloc(count + 1, sizeof(double));
    return typical->norms != NULL && typical->projections != NULL;
}

static void compare_lists(struct orc_probe *probe, const struct unit *unit,
                          const struct orc_sketches *mine, const struct orc_sketches *theirs)
{
    struct typical typical[FAMILY_COUNT] = {{.count = 0}};
    const size_t count = ORC_FAULT(item_count, mine->count);
    bool keep = unit->adam;
    for (int f = 0; keep && f < FAMILY_COUNT; f++) {
        keep = typical_init(&typical[f], count);
    }
    if (unit->adam) {
        orc_probe_exact(probe, unit->step, mine->count >= theirs->count,
                        "%s: %zu sketches, expected %zu", orc_group_name(unit->group), mine->count,
                        theirs->count);
    }
    for (size_t i = 0; i < count; i++) {
        const char *const name = mine->items[i].name;
        const struct orc_sketch *other = partner(theirs, i, name);
        if (other != NULL) {
            compare_sketch(probe, unit, &mine->items[i], other);
        }
        if (other != NULL && keep) {
            add_typical(&typical[family_of(name)], unit, &mine->items[i], other);
        }
    }
    for (int f = 0; f < FAMILY_COUNT; f++) {
        struct typical *t = &typical[f];
        report_typical(probe, unit, family_names[f], t->norms, t->count, "typical norm");
        report_typical(probe, unit, family_names[f], t->projections, t->count,
                       "typical projection");
        free(t->norms);
        free(t->projections);
    }
}

/* A trace of level full has sketches in every step: where the reference has some, none is a
 * difference, and so is a list without a member. Level hashes has none at all. */
static void require_sketches(const struct orc_case *c, struct orc_probe *probe, int step,
                             enum orc_group group)
{
    const struct orc_step *mine = orc_trace_step(c->subject, step);
    const struct orc_step *theirs = orc_trace_step(c->reference, step);
    if (mine == NULL || theirs == NULL || theirs->group[group].count == 0 ||
        strcmp(c->subject->level, "hashes") == 0) {
        return;
    }
    orc_probe_exact(probe, step, mine->group[group].count > 0, "%s: no sketches, expected %zu",
                    orc_group_name(group), theirs->group[group].count);
}

/* The unit of a group at a step; false when the traces do not say enough to have one. */
static bool unit_of(const struct orc_case *c, enum orc_group group, int step, double rates,
                    struct unit *out)
{
    const struct orc_step *theirs = orc_trace_step(c->reference, step);
    *out = (struct unit){.step = step,
                         .regime = orc_regime_at(c, step),
                         .group = group,
                         .drift = 1.0,
                         .adam = group == ORC_GROUP_updates || group == ORC_GROUP_parameters,
                         .floor = orc_trace_roundoff(c->subject)};
    if (group == ORC_GROUP_updates) {
        out->element = theirs->scalar[ORC_SCALAR_lr].value;
    } else if (group == ORC_GROUP_parameters) {
        out->element = rates;
    }
    out->drift = orc_drift(c, step);
    return !(out->drift < 0.0);
}

static void compare_group(const struct orc_case *c, struct orc_probe *probe, enum orc_group group)
{
    orc_probe_reference(probe, c);
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    const char *const group_name = orc_group_name(group);
    bool given = false;
    double rates = 0.0; /* an element of a parameter may be that far off, a step's rate at a time */
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *mine = orc_trace_step(c->subject, s);
        const struct orc_step *theirs = orc_trace_step(c->reference, s);
        struct unit unit;
        if (theirs != NULL && theirs->scalar[ORC_SCALAR_lr].given) {
            /* Parameters that are the same bits before a step are a step apart after it. */
            rates = (orc_trace_follows(c->reference) ? 0.0 : rates) +
                    theirs->scalar[ORC_SCALAR_lr].value;
        }
        require_sketches(c, probe, s, group);
        if (mine != NULL && theirs != NULL && mine->group[group].given &&
            theirs->group[group].given && unit_of(c, group, s, rates, &unit)) {
            given = true;
            compare_lists(probe, &unit, &mine->group[group], &theirs->group[group]);
        }
    }
    if (given) {
        orc_probe_expect(probe, group_name, NULL, range.first, range.last);
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
    if (c->subject != NULL && c->reference != NULL) {
        orc_compare_drifting(c, probe, ORC_SCALAR_grad_norm, orc_trace_roundoff(c->subject), false);
    }
}
