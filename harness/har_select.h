/* What narrows a plan: a git revision, an earlier campaign, a shard.
 * Called by har_run.c; must not know how a plan is run. */
#pragma once

#include "har_lab.h"

/* Drops entries whose site's file (or its catalogue, mutants/<name>.def) is as it was in
 * --changed-since, and those that the baseline detected, with --iterate. Says in lab->selection
 * what was done. HAR_EUSAGE when git does not know the revision. */
HAR_CHECKED enum har_status har_select_apply(struct har_lab *lab, struct har_error *error);

/* Keeps the entries of the campaign's shard: entries in the order of their recipes, cut into n
 * equal runs, so that few recipes are calibrated in two shards. Positions stay those of the whole
 * plan. Marks in each bench whether this shard makes its false-alarm runs: the first one with an
 * entry there does, the first of all for benches without one. HAR_EUSAGE for more shards than
 * entries. */
HAR_CHECKED enum har_status har_select_shard(struct har_lab *lab, struct har_error *error);

/* "K/N" to numbers. HAR_EUSAGE: from 1, K at most N, N at most 1000. */
HAR_CHECKED enum har_status har_select_parse_shard(const char *text, int *k, int *n,
                                                   struct har_error *error);
