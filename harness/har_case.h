/* One case: a fault (or none) on a recipe with a seed: its runs, judged, stored.
 * Called by the stages of a campaign; must not know their order. */
#pragma once

#include "har_artifact.h"
#include "har_lab.h"
#include "har_outcome.h"

/* What a case is for; kinds of the database. */
#define HAR_CASES(X) X(fault) X(planted) X(alarm)
enum har_case_kind {
#define HAR_ROW_(name) HAR_CASE_##name,
    HAR_CASES(HAR_ROW_)
#undef HAR_ROW_
};

/* A look is a subject's run of few steps before the whole one. What it shows is believed up to the
 * step before its last, since the last one prefetches no batch for a step after it. */
enum { HAR_LOOK_STEPS = 2, HAR_LOOK_BELIEVED = HAR_LOOK_STEPS - 1 };

struct har_case {
    struct har_lab *lab;
    const struct har_bench *bench;
    enum har_case_kind kind;
    const char *entry; /* "id" or "id:dose", "none" for healthy ones */
    uint64_t seed;
    struct har_variant variant;
    /* the rest belongs to har_case.c */
    char *key, *kept, *folder, *weights, *reference, *healthy, *resume;
    char *states; /* what a reference of its own follows; NULL = it takes the cached one */
    char *answer; /* what the user's oracle printed */
    char *logs[HAR_ROLE_COUNT], *traces[HAR_ROLE_COUNT], *lines[HAR_ROLE_COUNT];
    struct har_exit ends[HAR_ROLE_COUNT];
    int role; /* the one running */
    double timeout_s;
    bool looking; /* the subject running is the short one that comes before the whole one */
    struct har_exit look;
    char *look_line; /* NULL = there was none, or it was enough and is the subject */
};

HAR_CHECKED enum har_status har_case_init(struct har_lab *lab, const struct har_bench *bench,
                                          enum har_case_kind kind, const char *entry, uint64_t seed,
                                          struct har_variant variant, struct har_case *out,
                                          struct har_error *error);
void har_case_fini(struct har_case *c);
/* Fills the command of one role, which is then the one running. */
HAR_CHECKED enum har_status har_case_command(struct har_case *c, enum har_role role,
                                             struct har_command *command, struct har_error *error);

/* Runs every case that is not stored yet. The artifacts must exist. */
HAR_CHECKED enum har_status har_cases_run(struct har_lab *lab, struct har_case *cases, size_t count,
                                          const char *label, struct har_error *error);
/* Artifacts that a case takes. */
void har_case_need(const struct har_case *c, struct har_artifacts *set);
/* Number of stored cases among these. */
HAR_CHECKED enum har_status har_cases_stored(struct har_lab *lab, const struct har_case *cases,
                                             size_t count, size_t *stored, struct har_error *error);
