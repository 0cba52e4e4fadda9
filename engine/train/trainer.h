/* The trainer: everything one run owns, and its life. Called by train_main and tests.
 * The files of this folder share the struct; nobody else does. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev.h"
#include "driver.h"
#include "eng_memory.h"
#include "eng_status.h"
#include "input.h"
#include "loader.h"
#include "model.h"
#include "readback.h"
#include "recipe.h"
#include "schedule.h"
#include "sketches.h"
#include "states.h"
#include "stepdata.h"
#include "trace.h"

/* How to run a recipe; everything that is not part of it. Zero is a good default except for the
 * threads. Texts are kept by reference. */
struct eng_train_options {
    const char *weights;        /* initial weights, safetensors; NULL only with resume */
    const char *resume;         /* checkpoint folder, NULL = start at step 1 */
    const char *checkpoint_dir; /* NULL = no checkpoints */
    bool no_sync;               /* checkpoints may be lost with the machine */
    const char *trace_path;     /* NULL = no trace */
    const char *timeline_path;  /* NULL = no timeline */
    const char *states_path;    /* for a reference that follows, NULL = none */
    const char *fault;          /* for the header */
    const struct eng_memory *memory; /* where host memory is booked; NULL = nowhere */
    enum eng_level level;
    bool contents;
    bool seed_given;
    uint64_t seed;
    int steps; /* last step, 0 = the recipe's */
    enum dev_sched sched;
    uint64_t schedule_seed;
    const struct dev_aim *aims; /* of DEV_SCHED_AIMED, kept by reference */
    size_t aim_count;
    bool no_poison;
    bool guard;      /* see dev_conf */
    bool list_waits; /* test hook: list ordering calls at the end, and leave out the Nth */
    int omit_wait;   /* 0 = none */
    int threads;
    enum eng_driver_kind driver;
    enum dev_kind device;
    bool exact_products;
    uint64_t budget;     /* bytes, 0 = the recipe's */
    uint64_t quarantine; /* bytes, see dev_conf */
    bool perturb_ulp;    /* move each initial weight by one ulp */
    bool unchecked;      /* no race checker, no poison: for measuring speed */
};

/* Counters that a checkpoint keeps. */
struct eng_counters {
    int step;          /* steps done */
    int optimizer_t;   /* updates done: bias corrections */
    int schedule_step; /* steps the schedule has done */
};

struct eng_optimizer {
    float *part;   /* sums of squares per chunk */
    float *update; /* amounts added by the last update; NULL below ENG_LEVEL_FULL */
    float betas[2];
};

struct eng_evaluation {
    struct eng_feed feed;
    int32_t *blocks; /* batches input blocks */
    int batches;     /* 0 = nothing to evaluate */
    int supervised;
};

struct eng_trainer {
    const struct eng_recipe *recipe;
    const struct eng_train_options *options;
    uint64_t seed;
    int first_step, last_step;
    size_t tokens; /* positions of a micro-batch */
    struct eng_model_config config;
    dev *device;
    dev_stream compute, copy, side;
    eng_driver *driver;
    eng_model *model;
    const struct eng_params *params;
    eng_loader *loader;
    struct eng_schedule schedule;
    struct eng_counters counters;
    struct eng_feed feed;
    struct eng_optimizer optimizer;
    struct eng_evaluation evaluation;
    struct eng_results results;
    struct eng_sketches sketches;
    struct eng_states states;
    struct eng_trace *trace;       /* NULL = none */
    struct eng_timeline *timeline; /* NULL = none */
    struct eng_step step[3];  /* step n lies in step[n % 3]: being read back, computed, loaded */
    struct eng_step *pending; /* enqueued, results not yet read */
    struct {                  /* next block to stage */
        int step, micro;
    } next;
    struct { /* the pass at hand */
        struct eng_step *step;
        int micro;
        size_t tap;
        bool spoilt; /* gradients hold part of a pass that was given up */
    } pass;
    float *hidden_rms; /* device temporary of the statistics, NULL when none */
    dev_event stats_ready;
    size_t races_seen;
    uint64_t mallocs_seen;
    uint64_t features;
    size_t skips[ENG_SKIP_COUNT]; /* records skipped so far, by reason */
    int steps_done;
    double last_loss; /* of the last step read back */
    double first_loss;
    int64_t supervised_done, tokens_done;
};

/* What a run of this recipe needs. */
struct eng_plan {
    size_t model_bytes, train_bytes, total_bytes; /* device memory */
    size_t budget_bytes;                          /* what it would get */
    size_t pinned_bytes;
};
void eng_trainer_plan(const struct eng_recipe *recipe, const struct eng_train_options *options,
                      struct eng_plan *out);

/* Opens device, model, data and evaluation; loads weights or a checkpoint. recipe and options must
 * outlive it. */
ENG_CHECKED enum eng_status eng_trainer_create(const struct eng_recipe *recipe,
                                               const struct eng_train_options *options,
                                               struct eng_trainer **out, struct eng_error *error);
void eng_trainer_destroy(struct eng_trainer *t); /* accepts NULL */

/* Called after each step whose results are known. */
typedef void eng_progress_fn(void *context, const struct eng_trainer *t);

/* Trains to the last step. *stop becoming non-zero ends the run after the step at hand with
 * EINTERRUPTED. The trace gets its `end` in every case in which it can be written. */
ENG_CHECKED enum eng_status eng_trainer_run(struct eng_trainer *t,
                                            const volatile sig_atomic_t *stop,
                                            eng_progress_fn *progress, void *context,
                                            struct eng_error *error);

/* Mean nll of the evaluation set under the present weights. */
ENG_CHECKED enum eng_status eng_trainer_evaluate(struct eng_trainer *t, double *loss,
                                                 int *supervised, struct eng_error *error);
/* Writes model.safetensors and config.json into `dir`. */
ENG_CHECKED enum eng_status eng_trainer_save(struct eng_trainer *t, const char *dir,
                                             struct eng_error *error);
