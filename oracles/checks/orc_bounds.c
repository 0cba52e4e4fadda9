/* The table of classes and what a set of bounds says about itself.
 * Used by probe, calibration and JSON; must not know traces. */
#include "orc_bounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *orc_regime_name(enum orc_regime regime)
{
    static const char *const names[] = {
#define ORC_ROW_(name) #name,
        ORC_REGIMES(ORC_ROW_)
#undef ORC_ROW_
    };
    return names[regime];
}

double orc_regime_margin(enum orc_regime regime)
{
    switch (regime) {
    case ORC_REGIME_later:
    case ORC_REGIME_amplified:
        return ORC_MARGIN_DRIFT;
    case ORC_REGIME_undivided:
        return ORC_MARGIN_LOSS;
    default:
        return ORC_MARGIN;
    }
}

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    }
    return (hash ^ 0xFF) * UINT64_C(0x100000001B3);
}

static uint64_t key_hash(const struct orc_key *key)
{
    uint64_t hash =
        UINT64_C(0xCBF29CE484222325) ^ (uint64_t)key->check ^ (uint64_t)key->regime << 8;
    hash = mix(hash, key->group);
    hash = mix(hash, key->name);
    return mix(hash, key->part);
}

static bool key_equal(const struct orc_key *a, const struct orc_key *b)
{
    return a->check == b->check && a->regime == b->regime && a->level == b->level &&
           a->pooled == b->pooled && strcmp(a->part, b->part) == 0 &&
           strcmp(a->name, b->name) == 0 && strcmp(a->group, b->group) == 0;
}

/* Slot of the key, or the empty slot where it belongs. slot_count is a power of two, never full. */
static size_t slot_of(const struct orc_classes *classes, const struct orc_key *key)
{
    size_t slot = (size_t)key_hash(key) & (classes->slot_count - 1);
    while (classes->slots[slot] != 0 &&
           !key_equal(&classes->items[classes->slots[slot] - 1].key, key)) {
        slot = (slot + 1) & (classes->slot_count - 1);
    }
    return slot;
}

ptrdiff_t orc_classes_find(const struct orc_classes *classes, const struct orc_key *key)
{
    if (classes->slot_count == 0) {
        return ORC_NO_CLASS;
    }
    return (ptrdiff_t)classes->slots[slot_of(classes, key)] - 1;
}

static bool classes_grow(struct orc_classes *classes)
{
    const size_t capacity = classes->capacity == 0 ? 128 : classes->capacity * 2;
    const size_t slot_count = capacity * 2;
    struct orc_class *items = realloc(classes->items, capacity * sizeof *items);
    if (items == NULL) {
        return false;
    }
    classes->items = items;
    size_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    free(classes->slots);
    classes->slots = slots;
    classes->slot_count = slot_count;
    classes->capacity = capacity;
    for (size_t i = 0; i < classes->count; i++) {
        slots[slot_of(classes, &items[i].key)] = i + 1;
    }
    return true;
}

ptrdiff_t orc_classes_add(struct orc_classes *classes, const struct orc_key *key)
{
    const ptrdiff_t found = orc_classes_find(classes, key);
    if (found != ORC_NO_CLASS) {
        return found;
    }
    if (classes->count == classes->capacity && !classes_grow(classes)) {
        return ORC_NO_CLASS;
    }
    struct orc_class class_ = {.key = *key};
    class_.key.group = orc_arena_text(&classes->arena, key->group);
    class_.key.name = orc_arena_text(&classes->arena, key->name);
    class_.key.part = orc_arena_text(&classes->arena, key->part);
    if (classes->arena.failed) {
        return ORC_NO_CLASS;
    }
    classes->slots[slot_of(classes, key)] = classes->count + 1;
    classes->items[classes->count] = class_;
    return (ptrdiff_t)classes->count++;
}

void orc_classes_fini(struct orc_classes *classes)
{
    orc_arena_fini(&classes->arena);
    free(classes->items);
    free(classes->slots);
}

size_t orc_bounds_stratum(struct orc_bounds *bounds, const struct orc_key *key)
{
    for (size_t i = 0; i < bounds->stratum_count; i++) {
        const struct orc_stratum *s = &bounds->strata[i];
        if (s->check == key->check && s->regime == key->regime && strcmp(s->part, key->part) == 0) {
            return i;
        }
    }
    struct orc_stratum *strata =
        realloc(bounds->strata, (bounds->stratum_count + 1) * sizeof *strata);
    if (strata == NULL) {
        return SIZE_MAX;
    }
    bounds->strata = strata;
    const char *part = orc_arena_text(&bounds->classes.arena, key->part);
    if (part == NULL) {
        return SIZE_MAX;
    }
    strata[bounds->stratum_count] =
        (struct orc_stratum){.check = key->check, .regime = key->regime, .part = part};
    bounds->has_bound[key->check] = true;
    return bounds->stratum_count++;
}

ptrdiff_t orc_class_cell(const struct orc_class *class_, int step)
{
    const long long index = (long long)(class_->key.pooled ? 0 : step) - class_->first_step;
    if (index < 0 || (size_t)index >= class_->step_count || class_->scales[index] <= 0.0) {
        return ORC_NO_CLASS;
    }
    return (ptrdiff_t)index;
}

void orc_bounds_seal(struct orc_bounds *bounds)
{
    bounds->cells = 0;
    for (size_t i = 0; i < bounds->classes.count; i++) {
        bounds->classes.items[i].offset = bounds->cells;
        bounds->cells += bounds->classes.items[i].step_count;
    }
    (void)snprintf(bounds->summary, sizeof bounds->summary,
                   "bounds for recipe %.100s from %zu healthy runs%s: %g times (after the first "
                   "step, for numbers that drift, %g times, for losses %g times) the quantile %g "
                   "of their largest normalised deviations; scales leave the run itself out",
                   bounds->recipe, bounds->runs,
                   bounds->lockstep ? " in lockstep with their references" : "", ORC_MARGIN,
                   ORC_MARGIN_DRIFT, ORC_MARGIN_LOSS, bounds->quantile);
}

void orc_bounds_free(orc_bounds *bounds)
{
    if (bounds == NULL) {
        return;
    }
    orc_classes_fini(&bounds->classes);
    free(bounds->strata);
    free(bounds);
}

const char *orc_bounds_summary(const orc_bounds *bounds)
{
    return bounds->summary;
}

size_t orc_bounds_runs(const orc_bounds *bounds)
{
    return bounds->runs;
}
