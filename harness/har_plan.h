/* Which fault runs on which recipe, and how: the cheapest recipe that has its trigger.
 * Called by har_run.c and har_control.c; must not know processes or the database. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "har_campaign.h"
#include "har_catalogue.h"
#include "har_status.h"
#include "orc_check.h"
#include "registry.h"

/* How a trainer is run, apart from recipe and seed. */
struct har_variant {
    enum har_schedule schedule;
    bool tasks; /* --driver tasks */
    bool lanes; /* the trainer with emulated lanes */
    bool also;  /* the campaign's second healthy build */
};
/* Schedule and driver reversed: what the repeat check runs. Lanes stay (their order is another one,
 * by the schedule seed), and so does the build. */
struct har_variant har_variant_other(struct har_variant variant);

/* A recipe as the plan sees it: what its healthy run contained. */
struct har_place {
    const char *recipe;
    const char *const *features;
    size_t feature_count;
    bool resumes; /* a checkpoint before the last step */
    double cost;
    const orc_trace *reach; /* reach-map run, NULL = unknown */
};

/* One line of the table: a fault at one dose. */
struct har_entry {
    const struct mut_fault *fault;
    char *id;        /* "site.name" or "site.name:dose"; owned; also the text of --fault */
    double dose;     /* NaN = none */
    size_t position; /* in the whole plan, of which a shard has a part */
    int place;       /* index of its recipe, -1 = none has the trigger */
    struct har_variant variant;
    char reason[160]; /* why it has no place */
};
struct har_plan {
    struct har_entry *entries; /* owned */
    size_t count;
};

/* Cheapest place whose features include the trigger (and whose reach map has the site, where one
 * such exists); -1 and a reason when there is none. lazy, pct, tasks, lanes and resumed are how,
 * not where. */
int har_plan_match(const struct mut_fault *fault, const struct har_place *places, size_t count,
                   enum har_schedule usual, struct har_variant *variant, char *reason,
                   size_t reason_size);
/* The plan of all faults the campaign selects. HAR_EUSAGE when a pattern selects nothing. */
HAR_CHECKED enum har_status har_plan_make(const struct har_campaign *campaign,
                                          const struct har_catalogue *catalogue,
                                          const struct har_place *places, size_t place_count,
                                          struct har_plan *out, struct har_error *error);
void har_plan_fini(struct har_plan *plan);

/* The shortest text that reads back as the same float. */
void har_plan_dose_text(float dose, char *out, size_t size);
