/* Cached files that many cases share: text stages, weights, references, healthy runs, control runs.
 * Called by the stages of a campaign; must not know faults. */
#pragma once

#include "har_lab.h"

/* In the order of dependence. healthy: the mutable trainer with nothing armed; followed: such a run
 * that hands over its states, made together with lockstep, the reference that follows it;
 * production: the trainer without sites; reach: every mutable twin, with the reach map; twin: one
 * file's mutable twin; lanes: the same with emulated lanes. */
#define HAR_ARTIFACTS(X)                                                                           \
    X(text)                                                                                        \
    X(eval_text)                                                                                   \
    X(weights)                                                                                     \
    X(reference) X(healthy) X(followed) X(lockstep) X(production) X(reach) X(twin) X(lanes)
enum har_artifact_kind {
#define HAR_ROW_(name) HAR_ARTIFACT_##name,
    HAR_ARTIFACTS(HAR_ROW_)
#undef HAR_ROW_
        HAR_ARTIFACT_COUNT
};

struct har_artifact {
    enum har_artifact_kind kind;
    const struct har_bench *bench;
    uint64_t seed;              /* all but the texts */
    struct har_variant variant; /* healthy */
    const char *file;           /* twin, lanes: the source file; kept by reference */
};

/* A growing set without duplicates; start with {0}. */
struct har_artifacts {
    struct har_artifact *items; /* owned */
    size_t count;
    bool failed; /* memory ran out */
};
/* What judging a run of (bench, seed, variant) takes: texts, weights, healthy run, and, unless each
 * run has a reference of its own, the reference. */
void har_artifacts_need(struct har_artifacts *set, const struct har_bench *bench, uint64_t seed,
                        struct har_variant variant);
/* A healthy run and its reference, for calibration; har_artifact_pair names the two files. */
void har_artifacts_need_pair(struct har_artifacts *set, const struct har_bench *bench,
                             uint64_t seed, struct har_variant variant);
/* One artifact of the trainer alone and the weights it takes. */
void har_artifacts_need_run(struct har_artifacts *set, const struct har_artifact *artifact);
void har_artifacts_fini(struct har_artifacts *set);
/* Makes what is missing, in the order of dependence; each file appears whole or not at all. */
HAR_CHECKED enum har_status har_artifacts_make(struct har_lab *lab, struct har_artifacts *set,
                                               struct har_error *error);

/* Reads a healthy run's or a reference's trace, which must be complete: what is cut would be
 * compared in part and pass for the whole. */
HAR_CHECKED enum har_status har_artifact_read(const struct har_bench *bench, const char *path,
                                              orc_trace **out, struct har_error *error);
/* The same, from those read last if it is among them. The lab's: good until HAR_KEPT_TRACES more
 * have been asked for. */
HAR_CHECKED enum har_status har_artifact_borrow(struct har_lab *lab, const struct har_bench *bench,
                                                const char *path, const orc_trace **out,
                                                struct har_error *error);
/* Where an artifact lies; caller frees, NULL without memory. */
char *har_artifact_path(const struct har_artifact *artifact);
/* Kinds of the files of a calibration pair in this bench's mode. */
struct har_pair {
    enum har_artifact_kind subject, reference;
};
struct har_pair har_artifact_pair(const struct har_bench *bench);

/* One run of the reference, its texts and weights taken from the cache. */
struct har_reference {
    uint64_t seed;
    const char *trace;
    const char *states; /* of the run it follows; NULL = none */
};
/* Fills args; log and limits are the caller's. */
void har_artifact_reference_args(const struct har_lab *lab, const struct har_bench *bench,
                                 const struct har_reference *reference, struct har_args *args);
