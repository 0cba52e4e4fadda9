/* Controls: what must hold before any outcome is believed.
 * Called by har_run.c and doctor; must not know reports. */
#pragma once

#include "har_lab.h"

/* Runs each recipe healthy, with every twin, and in production; keeps the healthy trace and the
 * reach map in the benches. */
HAR_CHECKED enum har_status har_control_probe(struct har_lab *lab, struct har_error *error);
/* Unarmed equals production bit for bit: the trainer as it is, with every twin, and with the twin
 * of each file that holds a site, on the cheapest recipe that reaches one of its sites.
 * HAR_ECONTROL names the file, step and hash. */
HAR_CHECKED enum har_status har_control_identity(struct har_lab *lab, struct har_error *error);
/* The entry of the always-detected fault and where it runs. HAR_EUSAGE when no recipe has its
 * trigger. */
HAR_CHECKED enum har_status har_control_find_planted(const struct har_lab *lab, const char **id,
                                                     int *place, struct har_variant *variant,
                                                     struct har_error *error);
/* Runs it. HAR_ECONTROL when it is not detected. */
HAR_CHECKED enum har_status har_control_planted(struct har_lab *lab, struct har_error *error);
/* Features, cost and reach map of a bench, as the plan sees it. */
struct har_place har_control_place(const struct har_bench *bench);
