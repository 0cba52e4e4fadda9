/* Reads what a replay wrote. Called by har_replay.c alone; must not know the database. */
#pragma once

#include "har_replay.h"

/* Races and number of steps. A trace that ends early counts as far as it goes; a missing one is
 * empty. */
HAR_CHECKED enum har_status har_replay_read_trace(const char *path, struct har_replay *out,
                                                  struct har_error *error);
HAR_CHECKED enum har_status har_replay_read_timeline(const char *path, struct har_replay *out,
                                                     struct har_error *error);
