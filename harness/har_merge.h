/* Joins the results of the shards of one plan.
 * Called by cmd_merge.c and har_slurm.c; must not know how a shard is run. */
#pragma once

#include <stddef.h>

#include "har_status.h"

/* Makes DIR/results.sqlite of the shards' folders; what stood there must be an earlier merge of the
 * same plan, and is replaced only when all is well. HAR_EMISMATCH, and nothing changed, when a
 * shard is missing, doubled, of another plan or another number of shards, when its bounds are not
 * those of the others, or entries are missing. A shard that did not come to its end leaves the
 * merged campaign unfinished; a failed control stays a failed control. */
HAR_CHECKED enum har_status har_merge_shards(const char *dir, const char *const *shards,
                                             size_t count, struct har_error *error);
