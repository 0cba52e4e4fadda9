/* Misses that a gate knows of: which, why, and until when.
 * Called by cmd_gate.c; must not know results or limits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "har_status.h"

/* One entry of the file:
 *
 *   known:
 *     - fault: model_attention_scale.scaled:0.0001   # an id, an id with its dose, or a pattern
 *       reason: below what single precision does at initial weights
 *       expires: 2027-06-30                          # the last day on which it counts as known
 */
struct har_known_miss {
    char *fault, *reason, *expires;
    int day;     /* expires as days since 1970-01-01 */
    size_t used; /* entries of the plan it matched; for the caller */
};

struct har_known {
    struct har_known_miss *items; /* owned */
    size_t count;
};

/* HAR_EUSAGE names file, line and cause: unknown keys, an empty reason, a date that is none.
 * Released by har_known_fini. */
HAR_CHECKED enum har_status har_known_load(const char *path, struct har_known *out,
                                           struct har_error *error);
void har_known_fini(struct har_known *known);

/* Days since 1970-01-01 of "YYYY-MM-DD"; false when it is no date. */
bool har_known_day(const char *text, int *day);
