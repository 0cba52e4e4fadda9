/* Outcome rules as functions of facts.
 * Called by har_case.c and har_results.c; must not know traces, files or the database. */
#include "har_outcome.h"

#include <stdio.h>
#include <string.h>

static const char *const outcome_names[] = {
#define HAR_ROW_(name) #name,
    HAR_OUTCOMES(HAR_ROW_)
#undef HAR_ROW_
};
static const char *const role_names[] = {
#define HAR_ROW_(name) #name,
    HAR_ROLES(HAR_ROW_)
#undef HAR_ROW_
};

const char *har_outcome_name(enum har_outcome outcome)
{
    return outcome < HAR_OUTCOME_COUNT ? outcome_names[outcome] : "?";
}

bool har_outcome_find(const char *name, enum har_outcome *out)
{
    for (int i = 0; i < HAR_OUTCOME_COUNT; i++) {
        if (strcmp(outcome_names[i], name) == 0) {
            *out = (enum har_outcome)i;
            return true;
        }
    }
    return false;
}

const char *har_role_name(enum har_role role)
{
    return role < HAR_ROLE_COUNT ? role_names[role] : "?";
}

static void find_first_check(const struct har_facts *facts, struct har_decision *out)
{
    out->first_check = -1;
    out->detected = 0;
    for (int i = 0; facts->judged && i < ORC_CHECK_COUNT; i++) {
        const struct orc_verdict *const verdict = &facts->verdicts[i];
        if (facts->enabled[i] && verdict->applicable && verdict->fired &&
            (out->first_check < 0 || verdict->step < out->detected)) {
            out->first_check = i;
            out->detected = verdict->step;
        }
    }
}

/* The first run of the trainer that ended in a given way, -1 when none did. */
static int role_with(const struct har_facts *facts, enum har_end end)
{
    for (int i = 0; i < HAR_TRAINERS; i++) {
        if (facts->ends[i] == end) {
            return i;
        }
    }
    return -1;
}

/* A dead run: outcome and sentence; false when all runs lived. */
static bool decide_dead(const struct har_facts *facts, struct har_decision *out)
{
    static const struct {
        enum har_end end;
        enum har_outcome outcome;
    } deaths[] = {
        {HAR_END_crashed, HAR_OUTCOME_crashed},  {HAR_END_assertion, HAR_OUTCOME_crashed},
        {HAR_END_guarded, HAR_OUTCOME_crashed},  {HAR_END_refused, HAR_OUTCOME_crashed},
        {HAR_END_rejected, HAR_OUTCOME_crashed}, {HAR_END_timed_out, HAR_OUTCOME_timed_out},
    };
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++) {
        const int role = role_with(facts, deaths[i].end);
        if (role >= 0) {
            out->outcome = deaths[i].outcome;
            snprintf(out->detail, sizeof out->detail, "%s run %s",
                     har_role_name((enum har_role)role), har_end_text(deaths[i].end));
            return true;
        }
    }
    return false;
}

void har_outcome_decide(const struct har_facts *facts, struct har_decision *out)
{
    memset(out, 0, sizeof *out);
    find_first_check(facts, out);
    const int lost = role_with(facts, HAR_END_no_verdict);
    const bool subject_lost = facts->ends[HAR_ROLE_subject] == HAR_END_no_verdict ||
                              facts->ends[HAR_ROLE_subject] == HAR_END_not_run;
    if (out->first_check >= 0 && !subject_lost) {
        const bool impossible = facts->reach_known && facts->reached < 0;
        out->outcome = impossible ? HAR_OUTCOME_no_verdict : HAR_OUTCOME_detected;
        snprintf(out->detail, sizeof out->detail, "%s%s",
                 impossible ? "false alarm, the site never ran: " : "",
                 facts->verdicts[out->first_check].detail);
        return;
    }
    if (subject_lost || lost >= 0) {
        out->outcome = HAR_OUTCOME_no_verdict;
        snprintf(out->detail, sizeof out->detail, "%s run %s",
                 har_role_name(lost >= 0 ? (enum har_role)lost : HAR_ROLE_subject),
                 har_end_text(lost >= 0 ? facts->ends[lost] : facts->ends[HAR_ROLE_subject]));
        return;
    }
    if (decide_dead(facts, out)) {
        return;
    }
    const enum har_end reference = facts->ends[HAR_ROLE_reference];
    if (reference != HAR_END_done && reference != HAR_END_not_run) {
        out->outcome = HAR_OUTCOME_no_verdict;
        snprintf(out->detail, sizeof out->detail, "the reference that follows %s",
                 har_end_text(reference));
    } else if (facts->cut) {
        out->outcome = HAR_OUTCOME_no_verdict;
        snprintf(out->detail, sizeof out->detail, "a run ended well but left no complete trace");
    } else if (!facts->judged) {
        out->outcome = HAR_OUTCOME_no_verdict;
        snprintf(out->detail, sizeof out->detail, "the traces could not be judged");
    } else if (facts->reached < 0 && facts->infected > 0) {
        out->outcome = HAR_OUTCOME_no_verdict;
        snprintf(out->detail, sizeof out->detail,
                 "hashes differ from the healthy run's at step %d though the site never ran",
                 facts->infected);
    } else if (facts->reached < 0) {
        out->outcome = HAR_OUTCOME_not_reached;
        snprintf(out->detail, sizeof out->detail, "the site never ran");
    } else if (facts->external_lost) {
        out->outcome = HAR_OUTCOME_no_verdict;
        snprintf(out->detail, sizeof out->detail,
                 "no check fired, the external one has no verdict: %s",
                 facts->verdicts[ORC_CHECK_external].detail);
    } else if (facts->infected == 0) {
        out->outcome = HAR_OUTCOME_not_infected;
        snprintf(out->detail, sizeof out->detail, "ran, and every hash equals the healthy run's");
    } else {
        out->outcome = HAR_OUTCOME_missed;
        snprintf(out->detail, sizeof out->detail, "infected from step %d on, no check fired",
                 facts->infected);
    }
}

void har_outcome_trim(struct har_facts *facts, int last)
{
    facts->infected = facts->infected <= last ? facts->infected : 0;
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        struct orc_verdict *const verdict = &facts->verdicts[i];
        if (verdict->fired && verdict->step > last) {
            *verdict = (struct orc_verdict){.applicable = verdict->applicable};
        }
    }
}

bool har_outcome_is_settled(const struct har_facts *facts, bool first_verdict, int step,
                            enum orc_check_id check)
{
    struct har_decision decision;
    bool all = true;
    har_outcome_decide(facts, &decision);
    if (decision.outcome != HAR_OUTCOME_detected || facts->reached < 0 || facts->infected == 0 ||
        facts->ends[HAR_ROLE_subject] != HAR_END_done) {
        return false;
    }
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        all = all && (!facts->enabled[i] || facts->verdicts[i].fired);
    }
    const bool earlier = decision.detected < step ||
                         (decision.detected == step && decision.first_check < (int)check);
    return all || (first_verdict && earlier);
}

enum har_outcome har_outcome_join(const enum har_outcome *repeats, size_t count, size_t *detected,
                                  size_t *relevant)
{
    size_t counts[HAR_OUTCOME_COUNT] = {0};
    for (size_t i = 0; i < count; i++) {
        counts[repeats[i]]++;
    }
    *detected = counts[HAR_OUTCOME_detected];
    *relevant = *detected + counts[HAR_OUTCOME_missed] + counts[HAR_OUTCOME_crashed] +
                counts[HAR_OUTCOME_timed_out];
    if (count == 0 || counts[HAR_OUTCOME_no_verdict] > 0) {
        return HAR_OUTCOME_no_verdict;
    }
    if (*relevant > 0 && *detected == *relevant) {
        return HAR_OUTCOME_detected;
    }
    if (*detected > 0) {
        return HAR_OUTCOME_flaky;
    }
    static const enum har_outcome order[] = {HAR_OUTCOME_missed, HAR_OUTCOME_timed_out,
                                             HAR_OUTCOME_crashed, HAR_OUTCOME_not_infected};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (counts[order[i]] > 0) {
            return order[i];
        }
    }
    return HAR_OUTCOME_not_reached;
}

int har_outcome_steps(int from, int detected)
{
    const int steps = detected - (from > 0 ? from : 1) + 1;
    return steps > 1 ? steps : 1;
}
