/* A campaign from its first control to its last case.
 * Called by cmd_run.c, cmd_effect.c and doctor; must not know options or output. */
#pragma once

#include "har_lab.h"
#include "har_results.h"
#include "har_text.h"

/* Probes the recipes and makes the plan; marks the benches it uses. Every bench when all is set. */
HAR_CHECKED enum har_status har_run_plan(struct har_lab *lab, bool all, struct har_error *error);
/* Stores the plan, or compares it with the stored one: HAR_EMISMATCH when it is another. */
HAR_CHECKED enum har_status har_run_claim(struct har_lab *lab, struct har_error *error);
/* What a dry run says: each entry with its place, and the expected time. Makes one reference per
 * used recipe to know what one costs. */
HAR_CHECKED enum har_status har_run_describe(struct har_lab *lab, struct har_text *out,
                                             struct har_error *error);
/* Controls, bounds, false-alarm runs; with faults also the planted fault, all cases of the plan and
 * the oracle's self-test. What is stored already is not run again. */
HAR_CHECKED enum har_status har_run_stages(struct har_lab *lab, bool faults,
                                           struct har_error *error);
/* Books the time of this session. Called once, whatever happened. */
HAR_CHECKED enum har_status har_run_close(struct har_lab *lab, struct har_error *error);
