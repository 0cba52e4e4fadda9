/* The rules of outcomes: what one run of a fault amounts to, and several of them together.
 * Called by har_case.c and har_results.c; must not know traces, files or the database. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "har_spawn.h"
#include "orc_check.h"

/* flaky stands for several repeats only. */
#define HAR_OUTCOMES(X)                                                                            \
    X(detected)                                                                                    \
    X(missed) X(flaky) X(not_infected) X(not_reached) X(crashed) X(timed_out) X(no_verdict)
enum har_outcome {
#define HAR_ROW_(name) HAR_OUTCOME_##name,
    HAR_OUTCOMES(HAR_ROW_)
#undef HAR_ROW_
        HAR_OUTCOME_COUNT
};
const char *har_outcome_name(enum har_outcome outcome);
bool har_outcome_find(const char *name, enum har_outcome *out);

/* The runs of one case: the subject, the same with other schedule, threads and driver, the one
 * resumed from the subject's checkpoint; in lockstep, the reference that follows the subject; and
 * the user's oracle. The last two are no runs of the trainer. */
#define HAR_ROLES(X) X(subject) X(repeat) X(resumed) X(reference) X(external)
enum har_role {
#define HAR_ROW_(name) HAR_ROLE_##name,
    HAR_ROLES(HAR_ROW_)
#undef HAR_ROW_
        HAR_ROLE_COUNT
};
enum { HAR_TRAINERS = HAR_ROLE_reference }; /* roles of the trainer, the first ones */
const char *har_role_name(enum har_role role);

/* Everything that decides. */
struct har_facts {
    enum har_end ends[HAR_ROLE_COUNT];
    bool judged;      /* the checks ran */
    bool cut;         /* a run ended well, but left no complete trace */
    bool reach_known; /* every run left its end record, so "never reached" can be believed */
    int reached;      /* first step at which the site ran, 0 = set-up, -1 = never or unknown */
    int infected;     /* first step whose hashes differ from the healthy run's, 0 = none */
    bool enabled[ORC_CHECK_COUNT];
    struct orc_verdict verdicts[ORC_CHECK_COUNT];
    bool external_lost; /* the user's oracle ran and gave no verdict: its detail says why */
};

struct har_decision {
    enum har_outcome outcome;
    int detected;     /* first step at which an enabled check fired, 0 = none */
    int first_check;  /* enum orc_check_id, the first in pipeline order among equal steps; -1 = none
                       */
    char detail[256]; /* one sentence: what differed, or why there is no better outcome */
};
void har_outcome_decide(const struct har_facts *facts, struct har_decision *out);

/* What a run that was cut short tells: nothing that shows after step `last` is believed, since the
 * run itself ends soon after. */
void har_outcome_trim(struct har_facts *facts, int last);
/* Whether these facts stay what they are, whatever else could fire from `step` on, `check` being
 * the first of that step: the site ran, the step of infection is known, and enough has fired: any
 * check for the first verdict, else every enabled one. */
bool har_outcome_is_settled(const struct har_facts *facts, bool first_verdict, int step,
                            enum orc_check_id check);

/* Outcome of a fault over its repeats: detected only if every infected, latent or dead one was. */
enum har_outcome har_outcome_join(const enum har_outcome *repeats, size_t count, size_t *detected,
                                  size_t *relevant);
/* Steps from `from` to detection, both included; from 0 (set-up) counts as step 1. At least 1:
 * results are read back late, so a site may run in the step after the one whose record shows it. */
int har_outcome_steps(int from, int detected);
