/* What the runs of a case so far amount to: their traces and the facts that decide.
 * Called by har_case.c; must not know how runs are started or where facts are kept. */
#pragma once

#include "har_case.h"

struct har_judged {
    const orc_trace *reference, *healthy; /* the lab's; in lockstep the reference is of `runs` */
    orc_trace *runs[HAR_ROLE_COUNT];      /* owned; NULL = not run, or died before its header */
    struct har_facts facts;
};

/* Judges what is there; of a look, what may be believed. Released by har_judged_fini, also after a
 * failure. */
HAR_CHECKED enum har_status har_case_judge(const struct har_case *c, struct har_judged *out,
                                           struct har_error *error);
void har_judged_fini(struct har_judged *judged);
/* First stage at which the subject parts from the reference, with the campaign's bounds: what
 * `faultline diff` would blame. False when there is nothing to compare. */
bool har_case_blame(const struct har_case *c, const struct har_judged *judged,
                    struct orc_divergence *out);
