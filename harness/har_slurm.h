/* A campaign as a Slurm job array: one task a shard.
 * Called by cmd_run.c; must not know how a shard is run. */
#pragma once

#include "har_options.h"
#include "har_status.h"

/* Writes DIR/slurm/array.sh, whose task k runs the same command with --shard k/N into DIR/shard-k;
 * unless dry_run is set submits it with `sbatch --wait`, waits, and merges the shards into DIR.
 * Options of sbatch come from its own variables (SBATCH_PARTITION, SBATCH_ACCOUNT, ...). The same
 * command again goes on in every shard. HAR_EIO when nothing could be submitted; HAR_EMISMATCH of
 * the merge when a task left no shard; HAR_EINTERRUPTED after Ctrl-C: the array goes on, and the
 * sentence names its job. */
HAR_CHECKED enum har_status har_slurm_run(const struct har_options *options, const char *dir,
                                          struct har_error *error);
