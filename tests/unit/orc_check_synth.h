/* Synthetic traces for tests of the comparator: a small invented training run, healthy or with one
 * planted difference. Used by the orc_check tests; must not know the comparator's insides. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "orc_check.h"

enum {
    SYNTH_STEPS = 16,
    SYNTH_PLANT_STEP = 5, /* where differences are planted */
    SYNTH_EVAL_EVERY = 8, /* evaluation and checkpoint */
    SYNTH_LAYERS = 2,
    SYNTH_BACKLOG_SEEN = SYNTH_PLANT_STEP + 3,  /* fourth record in a row */
    SYNTH_HOST_LEAK_SEEN = SYNTH_PLANT_STEP + 9 /* tenth */
};

/* name: what is planted at SYNTH_PLANT_STEP (the evaluation ones at SYNTH_EVAL_EVERY) */
#define SYNTH_PLANTS(X)                                                                            \
    X(none)                                                                                        \
    X(text)                                                                                        \
    X(tokens)                                                                                      \
    X(count)                                                                                       \
    X(ids)                                                                                         \
    X(labels) X(positions) X(supervised) X(eval_supervised) X(order) X(epoch) X(record_missing)    \
        X(skipped) X(skip_reason) X(step_missing) X(step_repeated) X(activation) X(loss)           \
            X(eval_loss) X(eval_missing) X(gradient) X(grad_norm) X(update) X(update_one)          \
                X(update_stray) X(parameter) X(moment) X(tensor_missing) X(lr) X(clip)             \
                    X(conservation) X(spurious) X(leak) X(backlog) X(host_leak) X(oom_unanswered)  \
                        X(oom_counted) X(skip_after_oom) X(untrained) X(race) X(hash_input)        \
                            X(hash_state) X(hash_output) X(hash_ledger) X(checkpoint) X(loss_nan)  \
                                X(sketch_nan) X(nonfinite) X(first_loss) X(curve) X(band)          \
                                    X(no_labels) X(clip_above_one) X(micro_missing) X(all_nan)     \
                                        X(records_absent) X(batches_absent) X(sketches_empty)      \
                                            X(sketches_absent) X(external)
enum synth_plant {
#define SYNTH_ROW_(name) SYNTH_##name,
    SYNTH_PLANTS(SYNTH_ROW_)
#undef SYNTH_ROW_
        SYNTH_PLANT_COUNT
};
const char *synth_plant_name(enum synth_plant plant);

struct synth {
    uint64_t seed;
    bool reference; /* exact values; else with the noise of single precision */
    bool hashes;    /* the engine's own hashes and ledger; level "hashes" leaves sketches out */
    bool bare;      /* level "hashes" */
    int first_step; /* 0 = 1 */
    int steps;      /* last step; 0 = SYNTH_STEPS, negative = header only */
    bool lockstep;  /* a reference that follows, or a run that is followed: noise does not grow */
    bool dies;      /* no end record */
    bool oom;       /* an answered OOM at step 3 */
    enum synth_plant plant;
    double scales;  /* size of a planted numeric difference in standard deviations of the noise */
    int plant_step; /* 0 = SYNTH_PLANT_STEP */
    uint64_t recipe_hash; /* 0 = the usual one */
};

/* The usual subject and reference of a seed. */
struct synth synth_subject(uint64_t seed);
struct synth synth_reference(uint64_t seed);

/* JSON Lines of the run. Caller frees. */
char *synth_text(const struct synth *synth);
/* Written to a temporary file and read back; fails the test when that does not work. */
orc_trace *synth_trace(const struct synth *synth);
/* The same for given text. suffix ".jsonl" or ".jsonl.zst" (compressed as a whole). */
enum orc_status synth_read(const char *text, size_t size, const char *suffix, orc_trace **out,
                           struct orc_error *error);
/* Bounds of count healthy runs with seeds from first_seed. */
orc_bounds *synth_bounds(uint64_t first_seed, int count);
/* The same of runs with references that follow them. */
orc_bounds *synth_lockstep_bounds(uint64_t first_seed, int count);
