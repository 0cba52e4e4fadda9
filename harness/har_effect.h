/* How far a fault moves the learning curve, measured with healthy eyes.
 * Called by cmd_effect.c; must not know output. */
#pragma once

#include "har_lab.h"
#include "har_stats.h"

/* One fault over the seeds. */
struct har_effect_row {
    const struct har_entry *entry;
    double *areas; /* per seed, nats x steps; NaN when a run died or a loss was not finite */
    size_t area_count;
    bool template_swap;
    bool finite; /* all areas are */
    double mean;
};
struct har_effect {
    struct har_effect_row *rows; /* row 0 is the template swap */
    size_t count;
    size_t seeds;
    size_t others; /* finite rows beside the template swap */
    struct har_ratio ratio;
    bool has_ratio;
};

/* Trains healthy and with each fault for each seed, evaluates every checkpoint with the healthy
 * trainer on the recipe's evaluation set, integrates the distance of the two curves. The lab's plan
 * must hold the faults; template_id names the swap. */
HAR_CHECKED enum har_status har_effect_run(struct har_lab *lab, const char *template_id,
                                           size_t seeds, struct har_effect *out,
                                           struct har_error *error);
void har_effect_fini(struct har_effect *effect);

/* Area between two curves sampled every `every` steps from the first sample on, both zero apart at
 * step 0; NaN when a value is not finite. */
double har_effect_area(const double *mutant, const double *healthy, size_t count, int every);
