/* Limits on stored results, and which of them are broken.
 * Called by cmd_gate.c; must not know options or files. */
#pragma once

#include "har_results.h"
#include "har_text.h"

/* Limits; negative = none. */
struct har_limits {
    double fail_under;                     /* percent */
    double family_under[MUT_FAMILY_COUNT]; /* percent */
    double max_median_steps;
    int max_false_alarms; /* none given: 0 */
    int max_no_verdict;   /* none given: 0 */
};

/* Judges results by limits; one sentence per broken limit into findings. HAR_ECONTROL when the
 * stored controls failed or are missing, HAR_EALARM, HAR_EINCOMPLETE, HAR_EGATE, or HAR_OK. */
enum har_status har_gate_judge(const struct har_results *results, const struct har_limits *limits,
                               struct har_text *findings);
