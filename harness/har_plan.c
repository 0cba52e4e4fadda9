/* Selects faults, gives each dose a line, matches triggers with recipes.
 * Called by har_run.c and har_control.c; must not know processes or the database. */
#include "har_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_text.h"

struct har_variant har_variant_other(struct har_variant variant)
{
    const struct har_variant other = {
        .schedule = variant.schedule == HAR_SCHEDULE_fifo ? HAR_SCHEDULE_pct : HAR_SCHEDULE_fifo,
        .tasks = !variant.tasks,
        .lanes = variant.lanes,
        .also = variant.also,
    };
    return other;
}

static bool has_feature(const struct har_place *place, const char *word, size_t length)
{
    for (size_t i = 0; i < place->feature_count; i++) {
        if (strlen(place->features[i]) == length &&
            strncmp(place->features[i], word, length) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(name, word, length) == 0;
}

/* Calls for each word of a trigger; stops at false. */
static bool each_word(const char *trigger, bool (*visit)(void *, const char *, size_t),
                      void *context)
{
    const char *p = trigger + strspn(trigger, " ");
    while (*p != '\0') {
        const size_t length = strcspn(p, " ");
        if (!visit(context, p, length)) {
            return false;
        }
        p += length;
        p += strspn(p, " ");
    }
    return true;
}

static bool take_variant(void *context, const char *word, size_t length)
{
    struct har_variant *const variant = context;
    if (is_word(word, length, "lazy")) {
        variant->schedule = HAR_SCHEDULE_lazy;
    } else if (is_word(word, length, "pct")) {
        variant->schedule = HAR_SCHEDULE_pct;
    } else if (is_word(word, length, "tasks")) {
        variant->tasks = true;
    } else if (is_word(word, length, "lanes")) {
        variant->lanes = true;
    }
    return true;
}

static bool place_has(void *context, const char *word, size_t length)
{
    const struct har_place *const place = context;
    if (is_word(word, length, "lazy") || is_word(word, length, "pct") ||
        is_word(word, length, "tasks") || is_word(word, length, "lanes")) {
        return true;
    }
    if (is_word(word, length, "resumed")) {
        return place->resumes;
    }
    return has_feature(place, word, length);
}

/* Cheapest place with the trigger; with_reach asks that the reach map has the site as well. */
static int cheapest(const struct mut_fault *fault, const struct har_place *places, size_t count,
                    bool with_reach)
{
    int best = -1;
    for (size_t i = 0; i < count; i++) {
        struct har_place place = places[i];
        if (!each_word(fault->trigger, place_has, &place)) {
            continue;
        }
        if (with_reach &&
            (place.reach == NULL || orc_trace_site_reached(place.reach, fault->site) < 0)) {
            continue;
        }
        if (best < 0 || place.cost < places[best].cost) {
            best = (int)i;
        }
    }
    return best;
}

int har_plan_match(const struct mut_fault *fault, const struct har_place *places, size_t count,
                   enum har_schedule usual, struct har_variant *variant, char *reason,
                   size_t reason_size)
{
    *variant = (struct har_variant){.schedule = usual};
    (void)each_word(fault->trigger, take_variant, variant);
    int place = cheapest(fault, places, count, true);
    if (place < 0) {
        place = cheapest(fault, places, count, false);
    }
    reason[0] = '\0';
    if (place < 0) {
        snprintf(reason, reason_size, "no recipe of the campaign has its trigger: %s",
                 fault->trigger);
    }
    return place;
}

void har_plan_dose_text(float dose, char *out, size_t size)
{
    enum { DIGITS_MAX = 9, PLAIN_MAX = 6 }; /* up to six digits "10" is better than "1e+01" */
    for (int digits = 1; digits <= DIGITS_MAX; digits++) {
        snprintf(out, size, "%.*g", digits, (double)dose);
        if (strtof(out, NULL) == dose && (strchr(out, 'e') == NULL || digits >= PLAIN_MAX)) {
            return;
        }
    }
}

static bool selected(const struct har_campaign *campaign, const struct mut_fault *fault,
                     const char *id)
{
    if (!campaign->families[fault->family]) {
        return false;
    }
    for (size_t i = 0; i < campaign->fault_count; i++) {
        if (har_text_matches(campaign->faults[i], fault->id) ||
            har_text_matches(campaign->faults[i], id)) {
            return true;
        }
    }
    return false;
}

/* Adds a line; true unless memory ran out. dose NaN = none. */
static bool add_entry(struct har_plan *plan, const struct mut_fault *fault, double dose)
{
    char text[32] = "";
    struct har_entry *const entries =
        realloc(plan->entries, (plan->count + 1) * sizeof *plan->entries);
    if (entries == NULL) {
        return false;
    }
    plan->entries = entries;
    struct har_entry *const entry = &entries[plan->count];
    memset(entry, 0, sizeof *entry);
    if (!isnan(dose)) {
        har_plan_dose_text((float)dose, text, sizeof text);
    }
    if (asprintf(&entry->id, "%s%s%s", fault->id, text[0] != '\0' ? ":" : "", text) < 0) {
        return false;
    }
    entry->fault = fault;
    entry->dose = dose;
    entry->place = -1;
    plan->count++;
    return true;
}

/* Keeps a just added line only if the campaign selects it and no line has its id. */
static void keep_selected(const struct har_campaign *campaign, struct har_plan *plan)
{
    struct har_entry *const last = &plan->entries[plan->count - 1];
    bool keep = selected(campaign, last->fault, last->id);
    for (size_t i = 0; i + 1 < plan->count; i++) {
        keep = keep && strcmp(plan->entries[i].id, last->id) != 0;
    }
    if (!keep) {
        free(last->id);
        plan->count--;
    }
}

/* A pattern "id:dose" asks for a dose of its own. */
static bool add_asked_doses(const struct har_campaign *campaign, const struct mut_fault *fault,
                            struct har_plan *plan)
{
    const size_t length = strlen(fault->id);
    for (size_t i = 0; i < campaign->fault_count; i++) {
        const char *const pattern = campaign->faults[i];
        char *end = NULL;
        if (strncmp(pattern, fault->id, length) != 0 || pattern[length] != ':') {
            continue;
        }
        const float dose = strtof(pattern + length + 1, &end);
        if (end != pattern + length + 1 && *end == '\0' && dose >= fault->dose.smallest &&
            dose <= fault->dose.largest) {
            if (!add_entry(plan, fault, (double)dose)) {
                return false;
            }
            keep_selected(campaign, plan);
        }
    }
    return true;
}

static bool add_fault(const struct har_campaign *campaign, const struct mut_fault *fault,
                      struct har_plan *plan)
{
    if (fault->dose.unit == NULL) {
        if (!add_entry(plan, fault, (double)NAN)) {
            return false;
        }
        keep_selected(campaign, plan);
        return true;
    }
    const struct {
        bool wanted;
        float dose;
    } doses[HAR_DOSES_MAX] = {
        {campaign->dose_smallest, fault->dose.smallest},
        {campaign->dose_usual, fault->dose.usual},
        {campaign->dose_largest, fault->dose.largest},
    };
    for (int i = 0; i < HAR_DOSES_MAX; i++) {
        if (doses[i].wanted) {
            if (!add_entry(plan, fault, (double)doses[i].dose)) {
                return false;
            }
            keep_selected(campaign, plan);
        }
    }
    for (size_t i = 0; i < campaign->dose_count; i++) {
        if (campaign->doses[i] >= fault->dose.smallest &&
            campaign->doses[i] <= fault->dose.largest) {
            if (!add_entry(plan, fault, (double)campaign->doses[i])) {
                return false;
            }
            keep_selected(campaign, plan);
        }
    }
    return add_asked_doses(campaign, fault, plan);
}

static int compare_entries(const void *a, const void *b)
{
    const struct har_entry *const x = a;
    const struct har_entry *const y = b;
    if (x->fault->family != y->fault->family) {
        return x->fault->family < y->fault->family ? -1 : 1;
    }
    if (x->fault->number != y->fault->number) {
        return x->fault->number < y->fault->number ? -1 : 1;
    }
    return (x->dose > y->dose) - (x->dose < y->dose);
}

/* The first fault of the catalogue, of whatever family, that a pattern means. */
static const struct mut_fault *first_match(const struct har_catalogue *catalogue,
                                           const char *pattern)
{
    char id[128];
    snprintf(id, sizeof id, "%.*s", (int)strcspn(pattern, ":"), pattern);
    for (size_t i = 0; i < har_catalogue_count(catalogue); i++) {
        if (har_text_matches(id, har_catalogue_at(catalogue, i)->id)) {
            return har_catalogue_at(catalogue, i);
        }
    }
    return NULL;
}

static enum har_status check_patterns(const struct har_campaign *campaign,
                                      const struct har_catalogue *catalogue,
                                      const struct har_plan *plan, struct har_error *error)
{
    for (size_t i = 0; i < campaign->fault_count; i++) {
        const char *const pattern = campaign->faults[i];
        bool used = strcmp(pattern, "*") == 0;
        for (size_t e = 0; !used && e < plan->count; e++) {
            used = har_text_matches(pattern, plan->entries[e].fault->id) ||
                   har_text_matches(pattern, plan->entries[e].id);
        }
        const struct mut_fault *const known = used ? NULL : first_match(catalogue, pattern);
        if (known != NULL && !campaign->families[known->family]) {
            return har_fail(error, HAR_EUSAGE,
                            "%s: '%s' selects nothing: %s is of family %s, which is not selected",
                            campaign->fault_source, pattern, known->id,
                            mut_family_name(known->family));
        }
        if (!used) {
            return har_fail(error, HAR_EUSAGE,
                            "%s: unknown fault: '%s' selects nothing (faultline list shows all)",
                            campaign->fault_source, pattern);
        }
    }
    return HAR_OK;
}

enum har_status har_plan_make(const struct har_campaign *campaign,
                              const struct har_catalogue *catalogue, const struct har_place *places,
                              size_t place_count, struct har_plan *out, struct har_error *error)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < har_catalogue_count(catalogue); i++) {
        if (!add_fault(campaign, har_catalogue_at(catalogue, i), out)) {
            har_plan_fini(out);
            return har_fail(error, HAR_EMEMORY, "no memory for the plan");
        }
    }
    const enum har_status status = check_patterns(campaign, catalogue, out, error);
    if (status != HAR_OK) {
        har_plan_fini(out);
        return status;
    }
    if (out->count > 0) {
        qsort(out->entries, out->count, sizeof *out->entries, compare_entries);
    }
    for (size_t i = 0; i < out->count; i++) {
        struct har_entry *const entry = &out->entries[i];
        entry->place = har_plan_match(entry->fault, places, place_count,
                                      campaign->schedules[entry->fault->family], &entry->variant,
                                      entry->reason, sizeof entry->reason);
    }
    return HAR_OK;
}

void har_plan_fini(struct har_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->entries[i].id);
    }
    free(plan->entries);
    memset(plan, 0, sizeof *plan);
}
