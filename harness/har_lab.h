/* Everything a campaign works with: programs, recipes, results folder, children.
 * Opened by the commands, used by the stages of a campaign; must not know their order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "har_campaign.h"
#include "har_catalogue.h"
#include "har_options.h"
#include "har_plan.h"
#include "har_pool.h"
#include "har_programs.h"
#include "har_recipe.h"
#include "har_spent.h"
#include "har_store.h"

/* A recipe in this campaign, with what is known of its healthy runs. */
struct har_bench {
    struct har_recipe recipe;
    char *folder;          /* of its cached files */
    int steps;             /* horizon of a run */
    int middle_checkpoint; /* step a resumed run starts from, 0 = none */
    bool lockstep;         /* each run has a reference of its own, which follows it */
    bool own;              /* the trainer is the user's */
    bool described;        /* the recipe is one of Faultline: weights can be made for it */
    enum har_reference_kind reference;
    const char *suffix; /* of traces: plain text where a command of the user reads or writes them */
    orc_trace *healthy; /* base seed, fifo; NULL before har_control_probe() */
    orc_trace *reach;   /* reach map, NULL before */
    orc_bounds *bounds; /* NULL before calibration */
    bool used;          /* the plan has a fault here */
    bool owned;         /* its false-alarm runs are made here, not in another shard */
};

/* Traces read last; cases of one seed take the same ones. */
enum { HAR_KEPT_TRACES = 8 };
struct har_kept {
    char *path;
    orc_trace *trace;
};

struct har_lab {
    struct har_options options; /* as given; its texts belong to the caller */
    struct har_programs programs;
    struct har_campaign campaign;
    struct har_bench *benches;
    size_t bench_count;
    struct har_catalogue catalogue;
    struct har_plan plan;
    har_store *store;
    struct har_pool pool;
    char *out;
    uint64_t programs_hash;
    uint64_t plan_hash;        /* of the whole plan, also in a shard */
    size_t entry_total;        /* entries of the whole plan */
    struct har_text selection; /* what narrowed it; empty = nothing */
    int child_mb;              /* what a run of a fault may allocate, 0 = no limit */
    bool keep_traces;
    bool enabled[ORC_CHECK_COUNT];
    double started_s;
    struct har_spent spent; /* of this session */
    struct har_kept kept[HAR_KEPT_TRACES];
};

/* Opens campaign, programs, recipes, database and children. Released by har_lab_close. */
HAR_CHECKED enum har_status har_lab_open(const struct har_options *options, struct har_lab *out,
                                         struct har_error *error);
/* The same for one recipe (options->recipe, or a default of the source tree) without a campaign,
 * with its files in `dir`. */
HAR_CHECKED enum har_status har_lab_open_recipe(const struct har_options *options,
                                                const char *otherwise, const char *dir,
                                                struct har_lab *out, struct har_error *error);
void har_lab_close(struct har_lab *lab); /* accepts a zeroed lab */

/* Loads one recipe into a bench of this lab. */
HAR_CHECKED enum har_status har_lab_load_bench(const struct har_lab *lab, const char *path,
                                               struct har_bench *out, struct har_error *error);
void har_bench_fini(struct har_bench *bench);

/* One run of the trainer. */
struct har_train {
    const char *program; /* which trainer */
    const char *fault;   /* text of --fault; NULL leaves the option out (production) */
    const char *weights, *trace;
    const char *checkpoints; /* folder, NULL = none */
    const char *resume;      /* checkpoint, NULL = from the start */
    const char *states;      /* for a reference that follows, NULL = none */
    uint64_t seed, schedule_seed;
    struct har_variant variant;
    int threads;
    int steps; /* where the run ends; 0 = where the recipe says. Schedules keep their horizon */
    bool full; /* full trace */
};
/* Fills args; log and limits are the caller's. */
void har_lab_train_args(const struct har_lab *lab, const struct har_bench *bench,
                        const struct har_train *train, struct har_args *args);
/* Steps to give to a run that goes to the horizon: 0 where the campaign does not move it. */
int har_lab_steps(const struct har_lab *lab, const struct har_bench *bench);
/* One run of a trainer of the user: FAULTLINE_FAULT and a few options (README). */
void har_lab_own_args(const struct har_user *user, const struct har_bench *bench,
                      const struct har_train *train, struct har_args *args);

/* Makes a folder and those above it. */
HAR_CHECKED enum har_status har_lab_make_folder(const char *path, struct har_error *error);
/* Removes a folder with all it holds, best effort; only below `root`. */
void har_lab_remove(const char *root, const char *path);
/* Removes what killed harnesses left half-done: run folders of a process, new- files of caches. */
void har_lab_remove_stale(const char *out);
/* Last line of a log that says something, "" when there is none. */
void har_lab_last_line(const char *path, char *out, size_t size);
/* Seconds since the lab was opened. */
double har_lab_seconds(const struct har_lab *lab);
