/* Two sets of results of the same faults side by side: which faults only one of them detects, which
 * detects earlier, by which checks, and what each cost. Made for results of the two modes; any two
 * campaigns that share entries will do. Called by cmd_report.c; must not know the database. */
#pragma once

#include "har_results.h"
#include "har_status.h"
#include "har_text.h"

enum { HAR_SIDES = 2 };

/* Of the entries that both have, on the same recipe and seed, and that count in both rates. */
struct har_compare {
    size_t entries;
    size_t
        apart; /* in both, but on another recipe, seed or horizon, or not counted in one of them */
    size_t detected[HAR_SIDES], only[HAR_SIDES]; /* by this side; by this side alone */
    size_t both, neither;
    size_t earlier[HAR_SIDES], tied; /* detected by both: at an earlier step by this side */
    double median_steps[HAR_SIDES];  /* from reached; of those detected by both; NaN = none */
    double mean_steps[HAR_SIDES];    /* the same */
    size_t alone[HAR_SIDES][ORC_CHECK_COUNT];      /* entries a check would have detected alone */
    size_t alone_only[HAR_SIDES][ORC_CHECK_COUNT]; /* of these, those the other side's did not */
};

/* False when memory is exhausted. */
bool har_compare_make(const struct har_results *const sides[HAR_SIDES], struct har_compare *out);
/* What a person reads: the faults that differ, counts, checks, costs. names say which is which. */
void har_compare_text(const struct har_results *const sides[HAR_SIDES],
                      const struct har_compare *compare, const char *const names[HAR_SIDES],
                      struct har_text *out);
