/* Where results come from: commit, compiler, processor, seeds, hashes, as JSON.
 * Called by har_run.c and doctor; must not know results. */
#pragma once

#include "har_lab.h"

/* *out: JSON text, caller frees. What cannot be found out is null. */
HAR_CHECKED enum har_status har_provenance_json(struct har_lab *lab, char **out,
                                                struct har_error *error);
/* Model name of the processor, "" when unknown. */
void har_provenance_cpu(char *out, size_t size);
