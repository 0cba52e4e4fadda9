/* The table of checks and the judge.
 * Called by the harness and tests; must not know what a check compares. */
#include "orc_probe.h"

#include <stdlib.h>
#include <string.h>

#include "orc_fault.h"

enum check_kind { EXACT, BOUND };

static const struct {
    const char *name, *text;
    enum check_kind kind;
    orc_check_function *run;
} table[ORC_CHECK_COUNT] = {
#define ORC_ROW_(name, kind, text) {#name, text, kind, orc_check_run_##name},
    ORC_CHECKS(ORC_ROW_)
#undef ORC_ROW_
};

/* Confounding works in one pass because the checks of the input come first. */
_Static_assert(ORC_CHECK_text < ORC_CHECK_activations && ORC_CHECK_tokens < ORC_CHECK_activations &&
                   ORC_CHECK_labels < ORC_CHECK_activations &&
                   ORC_CHECK_order < ORC_CHECK_activations,
               "checks of the input stand before the numeric ones");

const char *orc_check_name(enum orc_check_id id)
{
    return table[id].name;
}

const char *orc_check_text(enum orc_check_id id)
{
    return table[id].text;
}

bool orc_check_is_bound(enum orc_check_id id)
{
    return table[id].kind == BOUND;
}

orc_check_function *orc_check_run(enum orc_check_id id)
{
    return table[id].run;
}

bool orc_check_find(const char *name, enum orc_check_id *out)
{
    for (int i = 0; name != NULL && i < ORC_CHECK_COUNT; i++) {
        if (strcmp(table[i].name, name) == 0) {
            *out = (enum orc_check_id)i;
            return true;
        }
    }
    return false;
}

static enum orc_status belongs(const orc_trace *subject, const orc_trace *other,
                               struct orc_error *error)
{
    if (other == NULL) {
        return ORC_OK;
    }
    if (subject->recipe_hash_given && other->recipe_hash_given &&
        subject->recipe_hash != other->recipe_hash) {
        return orc_fail(ORC_EMISMATCH, error, "%s and %s come from different recipes",
                        subject->path, other->path);
    }
    if (subject->seed.given && other->seed.given && subject->seed.value != other->seed.value) {
        return orc_fail(ORC_EMISMATCH, error, "%s has seed %.0f and %s has seed %.0f",
                        subject->path, subject->seed.value, other->path, other->seed.value);
    }
    return ORC_OK;
}

enum orc_status orc_case_check(const struct orc_case *c, const orc_bounds *bounds,
                               struct orc_error *error)
{
    if (c == NULL || c->subject == NULL) {
        return orc_fail(ORC_EARG, error, "no run to judge");
    }
    enum orc_status status = belongs(c->subject, c->reference, error);
    if (status == ORC_OK) {
        status = belongs(c->subject, c->repeat, error);
    }
    if (status == ORC_OK) {
        status = belongs(c->subject, c->resumed, error);
    }
    if (status == ORC_OK && bounds != NULL && bounds->recipe_hash_given &&
        c->subject->recipe_hash_given && bounds->recipe_hash != c->subject->recipe_hash) {
        status = orc_fail(ORC_EMISMATCH, error, "%s: the bounds are for another recipe, %s",
                          c->subject->path, bounds->recipe);
    }
    if (status == ORC_OK && bounds != NULL && c->reference != NULL &&
        bounds->lockstep != orc_trace_follows(c->reference)) {
        status = orc_fail(ORC_EMISMATCH, error,
                          "%s: the bounds are %s references that follow the run they judge",
                          c->reference->path, bounds->lockstep ? "for" : "not for");
    }
    return status;
}

enum orc_status orc_judge(const struct orc_case *c, const orc_bounds *bounds,
                          struct orc_verdict *verdicts, struct orc_error *error)
{
    size_t *seen = NULL;
    if (verdicts == NULL) {
        return orc_fail(ORC_EARG, error, "no place for the verdicts");
    }
    const enum orc_status status = orc_case_check(c, bounds, error);
    if (status != ORC_OK) {
        return status;
    }
    if (bounds != NULL) {
        seen = calloc(bounds->cells > 0 ? bounds->cells : 1, sizeof *seen);
        if (seen == NULL) {
            return orc_fail(ORC_EMEMORY, error, "host memory exhausted");
        }
    }
    int confounded_from = ORC_STEP_NEVER;
    memset(verdicts, 0, ORC_CHECK_COUNT * sizeof *verdicts);
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        struct orc_verdict *v = &verdicts[i];
        if (table[i].kind == BOUND && (bounds == NULL || !bounds->has_bound[i])) {
            continue;
        }
        struct orc_probe probe = {.check = (enum orc_check_id)i,
                                  .verdict = v,
                                  .bounds = bounds,
                                  .seen = seen,
                                  .confounded_from = confounded_from};
        table[i].run(c, &probe);
        v->applicable = ORC_FAULT(applicable, v->compared > 0);
        if (probe.confounds && v->fired && v->step < confounded_from) {
            confounded_from = v->step;
        }
    }
    free(seen);
    return ORC_OK;
}
