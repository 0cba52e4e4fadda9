/* What the stored results amount to: survival by check, log-rank against the single-stack baseline,
 * sets of checks that are enough, dose-response, subsumption, rates, localisation.
 * Made for the reports from har_results; must not know formats.
 *
 * The unit is a catalogue entry (a fault at a dose) that stands in the denominator of the detection
 * rate; repeats of one entry are joined first, since they are no independent faults. */
#pragma once

#include "har_results.h"
#include "har_stat_cover.h"
#include "har_stat_dose.h"
#include "har_stat_survival.h"
#include "har_study_alarm.h"

/* One check, or all together. */
struct har_study_check {
    size_t detected; /* entries it would have detected alone */
    struct har_survival curve;
    struct har_mean mean; /* restricted to har_study.horizon */
    double median;        /* infinite = beyond the horizon */
    /* Against the baseline check `curve`: log-rank takes the two as independent groups, though both
     * saw the same faults; the sign test pairs them (earlier, or at all, against later or never).
     */
    struct har_log_rank rank;
    size_t earlier, later, tied;
    double sign_p;
};

struct har_study_rate {
    const char *name;
    size_t detected, n;
    struct har_interval interval;
};

enum { HAR_STUDY_GOALS = 5, HAR_STUDY_DOSES_MAX = 64 };
/* The smallest and the cheapest set of checks that detect at least `share` of the entries. */
struct har_study_goal {
    double share;
    size_t need;
    bool possible;
    uint32_t smallest, cheapest;
    double smallest_seconds, cheapest_seconds; /* of the runs they look at, a case */
};

struct har_study_dose {
    const char *fault, *unit;
    struct har_dose_point points[HAR_STUDY_DOSES_MAX], loss_only[HAR_STUDY_DOSES_MAX];
    size_t count;
    struct har_dose_fit fit, loss_only_fit;
};

/* Which stage `faultline diff` blames, by what the catalogue says shows first. */
struct har_study_blame {
    size_t n, right;                     /* entries with a stored comparison; blamed rightly */
    size_t by_class[MUT_CLASS_COUNT][2]; /* n, right */
    struct har_interval interval;
};

struct har_study {
    size_t count; /* entries that count */
    double horizon;
    struct har_study_check any, checks[ORC_CHECK_COUNT];
    const struct har_result **entries; /* the counted ones, owned array */
    uint32_t *masks;                   /* checks that detect each, owned */
    size_t *representative;            /* owned */
    bool *root;                        /* owned */
    size_t roots, roots_detected_by_curve;
    uint32_t smallest; /* set that detects all that any detects */
    struct har_cover_cost cost;
    struct har_study_goal goals[HAR_STUDY_GOALS];
    struct har_study_rate families[MUT_FAMILY_COUNT], classes[MUT_CLASS_COUNT];
    struct har_study_dose *doses; /* owned */
    size_t dose_count;
    struct har_study_blame blame;
    struct har_study_alarms alarms;
};

/* False when memory is exhausted. results must outlive the study. */
bool har_study_make(const struct har_results *results, struct har_study *out);
void har_study_fini(struct har_study *study);
/* Whether a stage that a comparison blames is where a class first shows. */
bool har_study_blames_rightly(const char *class_, const char *stage);
