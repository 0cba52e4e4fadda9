/* The null distribution: bounds from healthy runs, false alarms on other healthy runs.
 * Called by har_run.c; must not know faults. */
#pragma once

#include "har_lab.h"

/* Gives every used bench its bounds: stored ones, or new ones from `calibration` healthy runs, each
 * with its own seed, weights and reference. */
HAR_CHECKED enum har_status har_calibrate_bounds(struct har_lab *lab, struct har_error *error);
/* Judges `false_alarms` further healthy runs of each used bench with all checks, over schedules and
 * drivers in turn. Alarms are stored, not an error. */
HAR_CHECKED enum har_status har_calibrate_alarms(struct har_lab *lab, struct har_error *error);
