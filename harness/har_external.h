/* What an oracle of the user is given, and what it answered.
 * Called by har_case.c; must not know how it is run. */
#pragma once

#include "har_spawn.h"
#include "har_status.h"
#include "orc_check.h"

enum { HAR_EXTERNAL_QUIET = 0, HAR_EXTERNAL_ALARM = 2 }; /* exit codes; others are no verdict */

/* Adds the option that names a trace, nothing where there is none (NULL). */
void har_external_add(struct har_args *args, const char *role, const char *trace);
/* Whether the oracle ended with one of the two codes by itself. */
bool har_external_spoke(const struct har_exit *end);
/* Reads the answer: the last line of `path` that opens with '{' is one JSON object with `step`
 * (from 1 to last_step) and `message` when it is an alarm, `compared` (1) if it likes. verdict:
 * applicable and perhaps fired; where there is no verdict, not applicable and detail says why.
 * Fails without memory only. */
HAR_CHECKED enum har_status har_external_read(const struct har_exit *end, const char *path,
                                              int last_step, struct orc_verdict *verdict,
                                              struct har_error *error);
