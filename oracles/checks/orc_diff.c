/* The first place where two traces part, by stage of the pipeline: within bounds, or bit for bit.
 * Called by `faultline diff`; must not know which of the two is right. */
#include "orc_probe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stages in the order in which a difference travels: name, check of the same name that judges it
 * with bounds, and what is compared of it without. */
struct stage {
    enum orc_check_id check;
    enum orc_group groups[3];
    size_t group_count;
    enum orc_scalar scalars[2];
    size_t scalar_count;
};
static const struct stage stages[] = {
    {.check = ORC_CHECK_text},
    {.check = ORC_CHECK_tokens},
    {.check = ORC_CHECK_labels},
    {.check = ORC_CHECK_order},
    {.check = ORC_CHECK_activations, .groups = {ORC_GROUP_activations}, .group_count = 1},
    {.check = ORC_CHECK_loss,
     .scalars = {ORC_SCALAR_loss, ORC_SCALAR_eval_loss},
     .scalar_count = 2},
    {.check = ORC_CHECK_gradients,
     .groups = {ORC_GROUP_gradients},
     .group_count = 1,
     .scalars = {ORC_SCALAR_grad_norm},
     .scalar_count = 1},
    {.check = ORC_CHECK_schedule, .scalars = {ORC_SCALAR_lr, ORC_SCALAR_clip}, .scalar_count = 2},
    {.check = ORC_CHECK_updates, .groups = {ORC_GROUP_updates}, .group_count = 1},
    {.check = ORC_CHECK_state,
     .groups = {ORC_GROUP_parameters, ORC_GROUP_moment1, ORC_GROUP_moment2},
     .group_count = 3},
};
/* Those of the input come first; then what the device did wrong, which the numbers follow from. */
enum { STAGE_COUNT = sizeof stages / sizeof stages[0], INPUT_STAGES = 4 };

/* One comparison of numbers, exact; keeps the largest relative deviation beside it. */
struct exact {
    struct orc_probe probe;
    struct orc_verdict verdict;
    struct orc_divergence *out;
};

static void compare_number(struct exact *e, int step, const char *group, const char *name, double a,
                           double b, double scale)
{
    const struct orc_number x = {true, a}, y = {true, b};
    const bool same = orc_same_number(x, y);
    const double deviation = same ? 0.0 : fabs(a - b) / fabs(scale);
    orc_probe_exact(&e->probe, step, same, "%s%s%.90s: %.17g, other %.17g", group,
                    group[0] != '\0' ? " " : "", name, a, b);
    if (!(deviation <= e->out->worst) && !isnan(e->out->worst)) {
        e->out->worst = deviation;
        e->out->worst_step = step;
        (void)snprintf(e->out->worst_item, sizeof e->out->worst_item, "%s%s%.90s", group,
                       group[0] != '\0' ? " " : "", name);
    }
}

static const struct orc_sketch *find(const struct orc_sketches *list, size_t index,
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

static void compare_group(struct exact *e, const struct orc_step *a, const struct orc_step *b,
                          enum orc_group group)
{
    const struct orc_sketches *x = &a->group[group], *y = &b->group[group];
    const char *const name = orc_group_name(group);
    if (!x->given || !y->given) {
        return;
    }
    orc_probe_exact(&e->probe, a->number, x->count == y->count, "%s: %zu sketches, other %zu", name,
                    x->count, y->count);
    for (size_t i = 0; i < x->count; i++) {
        const struct orc_sketch *mine = &x->items[i], *theirs = find(y, i, mine->name);
        for (int p = 0; theirs != NULL && p < ORC_SKETCH_NUMBERS; p++) {
            const double scale =
                p == ORC_SKETCH_NONFINITE ? theirs->numbers[p] : theirs->numbers[ORC_SKETCH_NORM];
            compare_number(e, a->number, name, mine->name, mine->numbers[p], theirs->numbers[p],
                           scale);
        }
    }
}

static void compare_exactly(struct exact *e, const struct orc_case *c, const struct stage *stage)
{
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *a = orc_trace_step(c->subject, s);
        const struct orc_step *b = orc_trace_step(c->reference, s);
        for (size_t g = 0; a != NULL && b != NULL && g < stage->group_count; g++) {
            compare_group(e, a, b, stage->groups[g]);
        }
        for (size_t n = 0; a != NULL && b != NULL && n < stage->scalar_count; n++) {
            const enum orc_scalar which = stage->scalars[n];
            if (a->scalar[which].given && b->scalar[which].given) {
                compare_number(e, s, "", orc_scalar_name(which), a->scalar[which].value,
                               b->scalar[which].value, b->scalar[which].value);
            }
        }
    }
}

/* Keeps a verdict if it is the earliest so far; at equal steps the earlier stage stays. */
static void take(struct orc_divergence *out, const char *stage, const struct orc_verdict *verdict)
{
    out->compared += verdict->compared;
    if (!verdict->fired || (out->found && verdict->step >= out->step)) {
        return;
    }
    out->found = true;
    out->step = verdict->step;
    (void)snprintf(out->stage, sizeof out->stage, "%s", stage);
    (void)snprintf(out->detail, sizeof out->detail, "%s", verdict->detail);
    (void)snprintf(out->item, sizeof out->item, "%.*s", (int)strcspn(verdict->detail, ":"),
                   verdict->detail);
}

/* Races are facts of each run; one that only one of the two has is a difference. */
static void compare_races(struct orc_probe *probe, const struct orc_case *c)
{
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *a = orc_trace_step(c->subject, s);
        const struct orc_step *b = orc_trace_step(c->reference, s);
        if (a == NULL || b == NULL) {
            continue;
        }
        const struct orc_number x = a->scalar[ORC_SCALAR_race_count];
        const struct orc_number y = b->scalar[ORC_SCALAR_race_count];
        const struct orc_race *r = a->race_list_count > 0   ? &a->races[0]
                                   : b->race_list_count > 0 ? &b->races[0]
                                                            : NULL;
        if (x.given && y.given) {
            orc_probe_exact(probe, s, x.value == y.value, "%.0f unordered pairs, other %.0f%s%.40s",
                            x.value, y.value, r != NULL ? ": " : "", r != NULL ? r->buffer : "");
        } else if (x.given != y.given) { /* the other stack has no checker */
            const double count = x.given ? x.value : y.value;
            orc_probe_exact(probe, s, count == 0.0, "%.0f unordered pairs%s%.40s in the %s trace",
                            count, r != NULL ? ": " : "", r != NULL ? r->buffer : "",
                            x.given ? "first" : "second");
        }
    }
}

/* A stack's own hashes cover what sketches may not see; those of two stacks cannot be compared. */
static void compare_hashes(struct orc_probe *probe, const struct orc_case *c)
{
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    const bool one_stack = strcmp(c->subject->stack, c->reference->stack) == 0 &&
                           strcmp(c->subject->backend, c->reference->backend) == 0;
    for (int s = range.first; one_stack && s <= range.last; s++) {
        const struct orc_step *a = orc_trace_step(c->subject, s);
        const struct orc_step *b = orc_trace_step(c->reference, s);
        for (int h = 0; a != NULL && b != NULL && h < ORC_HASH_COUNT; h++) {
            if (a->hash_given[h] && b->hash_given[h]) {
                orc_probe_exact(probe, s, a->hash[h] == b->hash[h],
                                "%s hash: %016" PRIx64 ", other %016" PRIx64,
                                orc_hash_name((enum orc_hash)h), a->hash[h], b->hash[h]);
            }
        }
    }
}

/* Where the rules of memory are broken is a fact of each run; at most at the last common step, or
 * inside the one that a run stopped in. */
static void judge_memory(const orc_trace *trace, int last, struct orc_verdict *verdict)
{
    const struct orc_case alone = {.subject = trace};
    struct orc_probe probe = {
        .check = ORC_CHECK_memory, .verdict = verdict, .confounded_from = ORC_STEP_NEVER};
    orc_check_run(ORC_CHECK_memory)(&alone, &probe);
    verdict->fired = verdict->fired && verdict->step <= last + trace->stopped_inside;
}

/* A rule that both break at the same step is no difference. */
static void compare_memory(const struct orc_case *c, struct orc_divergence *out)
{
    struct orc_verdict a = {.fired = false}, b = {.fired = false};
    const int last = orc_range_common(c->subject, c->reference).last;
    judge_memory(c->subject, last, &a);
    judge_memory(c->reference, last, &b);
    if (a.fired && b.fired && a.step == b.step) {
        a.fired = b.fired = false;
    }
    take(out, orc_check_name(ORC_CHECK_memory), &a);
    take(out, orc_check_name(ORC_CHECK_memory), &b);
}

static void compare_device(const struct orc_case *c, struct orc_divergence *out)
{
    struct orc_verdict races = {.fired = false};
    struct orc_probe probe = {
        .check = ORC_CHECK_races, .verdict = &races, .confounded_from = ORC_STEP_NEVER};
    compare_races(&probe, c);
    take(out, orc_check_name(ORC_CHECK_races), &races);
    compare_memory(c, out);
}

static void compare_bits(const struct orc_case *c, struct orc_divergence *out)
{
    struct orc_verdict bits = {.fired = false};
    struct orc_probe probe = {.verdict = &bits, .confounded_from = ORC_STEP_NEVER};
    compare_hashes(&probe, c);
    take(out, "hashes", &bits);
}

static void compare_stage(const struct orc_case *c, const struct stage *stage,
                          const orc_bounds *bounds, size_t *seen, struct orc_divergence *out)
{
    struct exact e = {.out = out};
    e.probe = (struct orc_probe){.check = stage->check,
                                 .verdict = &e.verdict,
                                 .bounds = bounds,
                                 .seen = seen,
                                 .confounded_from = ORC_STEP_NEVER};
    if (bounds != NULL || !orc_check_is_bound(stage->check)) {
        orc_check_run(stage->check)(c, &e.probe);
    } else {
        compare_exactly(&e, c, stage);
    }
    take(out, orc_check_name(stage->check), &e.verdict);
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
        compare_stage(&c, &stages[i], bounds, seen, out);
        if (i + 1 == INPUT_STAGES) {
            compare_device(&c, out);
        }
    }
    if (bounds == NULL) {
        compare_bits(&c, out);
    }
    free(seen);
    if (!out->found) {
        (void)snprintf(out->detail, sizeof out->detail, "%s",
                       bounds != NULL ? "equal within the bounds"
                                      : "no difference, down to the last digit");
    }
    return ORC_OK;
}
