/* Limits on stored results, and which of them are broken.
 * Called by cmd_gate.c; must not know options or files. */
#pragma once

#include "har_baseline.h"
#include "har_known.h"
#include "har_results.h"
#include "har_text.h"

/* Limits; negative = none. */
struct har_limits {
    double fail_under;                     /* percent */
    double family_under[MUT_FAMILY_COUNT]; /* percent */
    double max_median_steps;
    int max_false_alarms;                /* none given: 0 */
    int max_no_verdict;                  /* none given: 0 */
    struct har_known *known;             /* NULL: none; counts which of its entries are used */
    const struct har_baseline *baseline; /* NULL: none */
    int today;                           /* days since 1970-01-01 */
};

/* How a fault that should be detected stands. */
enum har_gate_place {
    HAR_GATE_fine,         /* detected, or it does not count */
    HAR_GATE_missed,       /* not detected */
    HAR_GATE_newly_missed, /* not detected, and the baseline detected it */
    HAR_GATE_known,        /* not detected, and the file of known misses has it */
    HAR_GATE_expired       /* the same, but its last day is over */
};
enum har_gate_place har_gate_place(const struct har_result *entry, const struct har_limits *limits);

/* Judges results by limits; one sentence per broken limit into findings. HAR_ECONTROL when the
 * stored controls failed, HAR_EMISMATCH when the baseline is of another campaign, HAR_EALARM,
 * HAR_EINCOMPLETE, HAR_EGATE, or HAR_OK. With a file of known misses, every miss must stand in it
 * and not be expired; with a baseline, what it detected must be detected. */
enum har_status har_gate_judge(const struct har_results *results, const struct har_limits *limits,
                               struct har_text *findings);
