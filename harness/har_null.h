/* The null distribution as a table: what healthy calibration runs deviated by, per check and tensor
 * class, quantiles over runs and steps. Called by `faultline null`; must not know faults. */
#pragma once

#include "har_store.h"
#include "har_text.h"

/* Adds a line for each recipe, check, class and part stored. Nothing when none is. */
HAR_CHECKED enum har_status har_null_text(har_store *store, struct har_text *out,
                                          struct har_error *error);
