/* A stored run again, from its seeds: which operations race, and in which order they ran.
 * Called by cmd_replay.c; must not know output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "har_options.h"
#include "har_spawn.h"

/* A stored run. */
struct har_replay_run {
    int64_t id;
    char *key, *role, *recipe; /* of its case: "fault/ENTRY/RECIPE/SEED" */
    char *ending;              /* name of its enum har_end */
    struct har_args args;      /* its command, word by word */
    double seconds;
};

/* One side of a pair. */
struct har_replay_side {
    char *what, *stream, *mode, *where;
    int step;
    uint64_t op;
};
struct har_replay_race {
    struct har_replay_side side[2]; /* in issue order */
    char *buffer;
};

/* A line of the timeline. */
struct har_replay_moment {
    bool ran; /* else: issued by the host, or the host's own access */
    uint64_t op;
    char *what, *stream;
    int step;
};

struct har_replay {
    struct har_replay_run run;
    struct har_exit end; /* of the replay */
    int steps;           /* steps it wrote */
    struct har_replay_race *races;
    size_t race_count; /* distinct pairs */
    uint64_t race_total;
    struct har_replay_moment *moments;
    size_t moment_count;
    char *schedule, *schedule_seed; /* as replayed */
};

/* Purpose: finds `which` in the database of `options->out`: the id of a run, or ENTRY/RECIPE/SEED,
 * optionally with /ROLE (subject), runs its command again with traces of its own, under
 * options->schedule when that is given, and reads what came out. HAR_EUSAGE: no such run, or it
 * cannot be run again here; the sentence says why. Released by har_replay_fini in every case. */
HAR_CHECKED enum har_status har_replay_do(const struct har_options *options, const char *which,
                                          struct har_replay *out, struct har_error *error);
void har_replay_fini(struct har_replay *replay);

/* Where an operation was issued and ran: indices into moments, moment_count when it did not. The
 * host's own accesses run where they are issued. */
struct har_replay_place {
    size_t issued, ran;
};
struct har_replay_place har_replay_find(const struct har_replay *replay,
                                        const struct har_replay_side *side);
