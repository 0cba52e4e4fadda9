/* An earlier campaign's results.json, to compare with.
 * Called by cmd_gate.c, cmd_run.c and har_select.c; must not know the database. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "har_outcome.h"
#include "har_status.h"

struct har_baseline_entry {
    char *id;
    enum har_outcome outcome;
};
struct har_baseline {
    char *path, *campaign;
    struct har_baseline_entry *entries; /* owned, sorted by id */
    size_t count;
};

/* HAR_EUSAGE when the file is missing or not JSON, HAR_EMISMATCH when it is not a results.json of
 * this version. Released by har_baseline_fini. */
HAR_CHECKED enum har_status har_baseline_load(const char *path, struct har_baseline *out,
                                              struct har_error *error);
void har_baseline_fini(struct har_baseline *baseline);
/* NULL when the earlier campaign had no such entry. */
const struct har_baseline_entry *har_baseline_find(const struct har_baseline *baseline,
                                                   const char *id);
