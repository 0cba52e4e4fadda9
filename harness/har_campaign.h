/* What a campaign asks for: a YAML file, then the command line, which wins.
 * Called by the commands; must not know how a campaign is run. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "har_options.h"
#include "har_status.h"
#include "har_user.h"
#include "registry.h"

/* How the trainer's operations are interleaved; names as the trainer's --schedule. */
#define HAR_SCHEDULES(X) X(fifo) X(lazy) X(pct)
enum har_schedule {
#define HAR_ROW_(name) HAR_SCHEDULE_##name,
    HAR_SCHEDULES(HAR_ROW_)
#undef HAR_ROW_
        HAR_SCHEDULE_COUNT
};
const char *har_schedule_name(enum har_schedule schedule);
bool har_schedule_find(const char *name, enum har_schedule *out);

/* How the reference runs: on its own from the initial weights, or starting each step from the state
 * and the batch of the run it is compared with (oracles/TRACE.md, "States"). */
#define HAR_MODES(X) X(free) X(lockstep)
enum har_mode {
#define HAR_ROW_(name) HAR_MODE_##name,
    HAR_MODES(HAR_ROW_)
#undef HAR_ROW_
        HAR_MODE_COUNT
};
const char *har_mode_name(enum har_mode mode);

/* Seeds of the three kinds of runs stand HAR_SEED_GAP apart, those of one recipe HAR_SEED_BLOCK: no
 * two healthy runs share a seed, since recipes that differ only in memory would run the same bits.
 */
enum { HAR_SEED_GAP = 1000000, HAR_SEED_BLOCK = 1000, HAR_DOSES_MAX = 3, HAR_DOSES_ASKED_MAX = 16 };

/* Who makes the traces that runs are compared with. */
enum har_reference_kind { HAR_REFERENCE_faultline, HAR_REFERENCE_command, HAR_REFERENCE_none };

struct har_campaign {
    char *name;
    char *path;     /* of the file */
    char **recipes; /* paths, resolved against the campaign's folder, cheapest first or not */
    size_t recipe_count;
    char **faults; /* glob patterns over ids; an entry takes part if one matches */
    size_t fault_count;
    const char *fault_source; /* who gave them, for messages: path, or the option */
    bool families[MUT_FAMILY_COUNT];
    char **checks; /* names; empty = all */
    size_t check_count;
    bool dose_smallest, dose_usual, dose_largest;
    enum har_mode mode;
    int repeats;
    uint64_t seed;
    int horizon; /* steps; 0 = the recipe's */
    int calibration;
    int false_alarms;
    int jobs;         /* 0 = one per core */
    char *planted;    /* id of the always-detected fault; NULL = chosen */
    char *also_train; /* second healthy build of the trainer, for half of the healthy runs; NULL */
    enum har_schedule schedules[MUT_FAMILY_COUNT]; /* for faults whose trigger names none */
    int timeout_factor;
    int timeout_min_s;
    int reference_timeout_s;
    int memory_mb; /* data limit of a child; 0 = none */
    bool first_verdict;
    float doses[HAR_DOSES_ASKED_MAX]; /* for every fault in whose range they lie */
    size_t dose_count;
    const char *changed_since, *baseline; /* NULL = none; of the command line */
    struct har_user external;             /* the user's oracle, none without words */
    int external_timeout_s;
    struct har_user trainer; /* the user's trainer, none without words */
    struct har_user second;  /* the user's second trainer */
    enum har_reference_kind reference;
    bool iterate;
    int shard, shards; /* K of N; 0 of 0 = the whole plan */
};

/* HAR_EUSAGE names file, line and key. Released by har_campaign_fini. */
HAR_CHECKED enum har_status har_campaign_load(const char *path, struct har_campaign *out,
                                              struct har_error *error);
/* A campaign of one recipe with everything else by default: what doctor and effect work with. */
HAR_CHECKED enum har_status har_campaign_of_recipe(const char *recipe, struct har_campaign *out,
                                                   struct har_error *error);
/* Overrides what the command line gave and checks the ranges of all values. */
HAR_CHECKED enum har_status har_campaign_apply(struct har_campaign *campaign,
                                               const struct har_options *options,
                                               struct har_error *error);
/* The second half of that: ranges, and what excludes what. */
HAR_CHECKED enum har_status har_campaign_check(const struct har_campaign *campaign,
                                               const struct har_options *options,
                                               struct har_error *error);
void har_campaign_fini(struct har_campaign *campaign);

/* Whether nothing of Faultline's own trainers takes part: recipes are then any files. */
bool har_campaign_is_own(const struct har_campaign *campaign);

/* Seeds: fault repeats, calibration runs and false-alarm runs are disjoint. */
uint64_t har_campaign_fault_seed(const struct har_campaign *campaign, int repeat);
uint64_t har_campaign_calibration_seed(const struct har_campaign *campaign, size_t recipe, int run);
uint64_t har_campaign_alarm_seed(const struct har_campaign *campaign, size_t recipe, int run);
