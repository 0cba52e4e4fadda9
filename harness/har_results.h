/* The stored facts as the reports and the gate see them: entries with joined outcomes, and a
 * summary. Called by reports, gate and explain; must not know how the facts came about. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "har_catalogue.h"
#include "har_outcome.h"
#include "har_stats.h"
#include "har_store.h"
#include "registry.h"

struct har_result {
    char *id, *fault, *recipe, *schedule, *driver, *reason, *detail, *reproduce;
    unsigned number;
    double dose; /* NaN = none */
    enum mut_family family;
    char class_[16], expectation[16];
    int horizon;
    enum har_outcome outcome;
    bool run;                 /* at least one case is stored */
    size_t repeats, relevant; /* stored, and those that were infected, latent or dead */
    size_t detected_repeats;
    int reached, infected, detected;  /* medians over repeats; -1, 0, 0 = unknown or none */
    int first_check;                  /* enum orc_check_id, -1 = none */
    int check_steps[ORC_CHECK_COUNT]; /* step at which the check fired in every relevant repeat; 0
                                       */
    bool applicable[ORC_CHECK_COUNT];
    size_t tried;                        /* repeats that reached the site and have a verdict */
    size_t check_fired[ORC_CHECK_COUNT]; /* repeats in which the check fired */
    uint64_t seed;                       /* of the first repeat, whose losses and blame follow */
    char *curve;                         /* losses by step as JSON, "" = none stored */
    char *blame, *blame_item;            /* stage `faultline diff` names first, "" = none */
    int blame_step;
};

/* Healthy runs not used for the bounds, by check: the family is all checks together. */
struct har_alarms {
    size_t runs;  /* in which the check compared something */
    size_t fired; /* of these */
};

struct har_oracle_result {
    char *id, *why, *detail;
    bool killed;
};

/* What a check may look at: roles of stored runs. */
#define HAR_INPUTS(X) X(subject) X(reference) X(repeat) X(resumed) X(external)
enum har_input {
#define HAR_ROW_(name) HAR_INPUT_##name,
    HAR_INPUTS(HAR_ROW_)
#undef HAR_ROW_
        HAR_INPUT_COUNT
};
const char *har_input_name(enum har_input input);

struct har_summary {
    size_t entries, kill, equivalent, gap;
    size_t outcomes[HAR_OUTCOME_COUNT]; /* of entries expected KILL */
    size_t rate_below;                  /* denominator of the detection rate */
    double rate;                        /* NaN when nothing counts */
    struct har_interval rate_interval;
    size_t alone[ORC_CHECK_COUNT]; /* entries that this check alone would have detected */
    size_t healthy_runs, false_alarms, healthy_lost;
    struct har_interval alarm_interval;
    struct har_alarms alarms[ORC_CHECK_COUNT];
    double child_seconds;     /* of all child processes, cached ones included */
    double reference_seconds; /* of these, of the references */
    size_t references;
    size_t external_asked,
        external_lost;    /* cases the user's oracle was run on, and without verdict */
    bool external_killed; /* it fired on the planted fault */
    double role_seconds[HAR_INPUT_COUNT]; /* mean of a run in each role, NaN = none stored */
    double
        median_steps; /* from reached; infinite when beyond the horizon, NaN when nothing counts */
    double seconds;
    struct har_spent spent; /* zeros in a database of before it was measured */
    size_t missing;         /* cases of the plan without a stored outcome */
};

/* Losses of one run and what it was for. */
enum har_losses_kind { HAR_LOSSES_calibration, HAR_LOSSES_alarm, HAR_LOSSES_fault };
struct har_losses {
    enum har_losses_kind kind;
    int entry;    /* index of a faulty run's entry, -1 for healthy runs */
    bool counted; /* not a faulty run without an effect */
    int reached;
    char *recipe, *json;
};

struct har_results {
    struct har_catalogue catalogue; /* the faults that the campaign knew */
    struct har_losses *losses;
    size_t loss_count;
    struct har_result *entries;
    size_t count;
    struct har_oracle_result *oracle;
    size_t oracle_count;
    size_t cut; /* detected repeats whose run stopped before the horizon: no losses, no blame */
    char *name, *provenance, *plan_hash, *planted, *controls,
        *finished,  /* stored texts, may be "" */
        *shard,     /* "k/n" when only that part of the plan ran */
        *mode,      /* "free" or "lockstep", "" in an old database: free */
        *selection, /* why the plan is not the whole campaign: changed since, iterated */
        *stop;      /* "first verdict" when runs stopped there, "" when they went on */
    struct har_summary summary;
};

HAR_CHECKED enum har_status har_results_load(har_store *store, struct har_results *out,
                                             struct har_error *error);
void har_results_fini(struct har_results *results);
/* Whether runs stopped at the first verdict: then only `detected` and `first_check` are known of an
 * entry, no other check's steps, and nothing that needs them or whole runs may be reported. */
bool har_results_first_verdict(const struct har_results *results);
/* The catalogue of a stored campaign alone. Released by har_catalogue_fini. */
HAR_CHECKED enum har_status har_results_catalogue(har_store *store, struct har_catalogue *out,
                                                  struct har_error *error);
/* Detection rate and interval of one family; n = 0 when none counts. */
double har_results_family_rate(const struct har_results *results, enum mut_family family,
                               size_t *detected, size_t *n);
/* Whether an entry stands in the denominator of the detection rate. */
bool har_results_counts(const struct har_result *result);
/* Exit status of a campaign: alarms, then missing verdicts. */
enum har_status har_results_status(const struct har_results *results);
