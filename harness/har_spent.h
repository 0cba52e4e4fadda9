/* Where the time of a campaign goes: processor seconds by kind of work, elapsed seconds by stage.
 * Filled by the stages of a campaign, read by the reports; must not know what is run. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Processor seconds, children's included. */
#define HAR_WORKS(X)                                                                               \
    X(trainer, "training runs, healthy and faulty")                                                \
    X(reference, "runs of the second trainer, each made once and cached")                          \
    X(inputs, "texts and weights, each made once and cached")                                      \
    X(checks, "reading traces and judging them")                                                   \
    X(store, "the database")                                                                       \
    X(harness, "planning, starting children, waiting for them to end")                             \
    X(idle, "cores times elapsed time, less all of these: nothing to do, or others had the core")
enum har_work {
#define HAR_ROW_(name, text) HAR_WORK_##name,
    HAR_WORKS(HAR_ROW_)
#undef HAR_ROW_
        HAR_WORK_COUNT
};
const char *har_work_name(enum har_work work);
bool har_work_find(const char *name, enum har_work *out);

/* Elapsed seconds. */
#define HAR_STAGES(X) X(plan) X(controls) X(bounds) X(alarms) X(faults) X(selftest)
enum har_stage {
#define HAR_ROW_(name) HAR_STAGE_##name,
    HAR_STAGES(HAR_ROW_)
#undef HAR_ROW_
        HAR_STAGE_COUNT
};
const char *har_stage_name(enum har_stage stage);
bool har_stage_find(const char *name, enum har_stage *out);

struct har_spent {
    double work_s[HAR_WORK_COUNT];
    double stage_s[HAR_STAGE_COUNT];
    double stage_busy_s[HAR_STAGE_COUNT]; /* processor seconds, of whatever work */
    double cases;                         /* of faults, judged: "mutants" */
};

/* Processor time of this process so far, without its children. */
double har_spent_clock_s(void);
/* Ends a stage: what passed since the last one ended is its own. */
void har_spent_stage(struct har_spent *spent, enum har_stage stage, double elapsed_s);
/* Gives the rest of this process to `harness` and what the cores had over to `idle`. */
void har_spent_close(struct har_spent *spent, double elapsed_s, int cores);
/* Judged cases of faults in a minute of their stage; NaN when there was none. */
double har_spent_per_minute(const struct har_spent *spent);
/* Part of all cores' time that went into one kind of work, in percent; NaN before the close. */
double har_spent_percent(const struct har_spent *spent, enum har_work work);
