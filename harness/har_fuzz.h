/* How well the fuzzers notice faults: libFuzzer programs with a fault armed, run from their seeds
 * until their target notices or the budget is used up. Called by cmd_fuzz.c; must not know what a
 * target compares.
 *
 * A fuzzer is armed by the variable FAULTLINE_FAULT, whose value is the trainer's --fault. It
 * prints "fuzz: armed SPEC" and "fuzz: judges PATTERNS" (of sites whose output it compares with a
 * twin) at its start, "fuzz: reached SITE" at its end, "...: does not hold: ..." when its target
 * notices, and libFuzzer's final statistics. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "har_options.h"
#include "har_pool.h"
#include "har_status.h"
#include "registry.h"

/* How a run ended: name, meaning. */
#define HAR_FUZZ_ENDS(X)                                                                           \
    X(quiet, "used up its budget and noticed nothing")                                             \
    X(found, "the target noticed: a requirement did not hold")                                     \
    X(crashed, "a sanitizer, a signal or an assertion ended it")                                   \
    X(hung, "one input took too long or too much memory")                                          \
    X(no_verdict, "could not be run")
enum har_fuzz_end {
#define HAR_ROW_(name, text) HAR_FUZZ_##name,
    HAR_FUZZ_ENDS(HAR_ROW_)
#undef HAR_ROW_
        HAR_FUZZ_END_COUNT
};
const char *har_fuzz_end_name(enum har_fuzz_end end);
bool har_fuzz_end_find(const char *name, enum har_fuzz_end *out);

enum { HAR_FUZZ_BY_SIZE = 200 };
struct har_fuzz_run {
    bool done;
    uint64_t seed; /* libFuzzer's */
    enum har_fuzz_end end;
    double executions;         /* of the target, that of the finding included */
    double seconds;            /* of the process */
    bool reached;              /* the armed site ran */
    char by[HAR_FUZZ_BY_SIZE]; /* the requirement, or what ended it */
};

/* What a log holds; the caller frees; NULL when it cannot be read. */
char *har_fuzz_log_text(const char *path);
/* Purpose: fills end, executions, reached and by of a run from what the fuzzer printed and how it
 * ended. False when it says that it could not be armed; `by` then has its words. */
bool har_fuzz_read_log(const char *log, const struct har_exit *last, struct har_fuzz_run *out);

struct har_fuzz_target {
    char *name, *program;
    char *seeds; /* folder */
    char *words; /* libFuzzer's dictionary, NULL = none */
    size_t seed_count;
    uint64_t hash; /* of program, seeds and dictionary */
    bool armable;  /* it has fault sites */
    char *judges;  /* patterns of sites, blank separated */
    bool *reached; /* by the seeds; index as in mut_site_at() */
};

/* A fault in a target, with a run for each repeat. */
struct har_fuzz_cell {
    const struct har_fuzz_target *target;
    const struct mut_fault *fault; /* NULL = nothing armed: a control */
    char *spec;                    /* what FAULTLINE_FAULT says */
    struct har_fuzz_run *runs;
};

/* A fault that no chosen target can judge. */
struct har_fuzz_unjudged {
    const struct mut_fault *fault;
    const char *reached_in; /* a target whose seeds reach its site, NULL = none */
};

struct har_fuzz {
    double runs_max;
    int seconds_max, repeats;
    uint64_t seed;
    bool from_seeds;
    char *out;
    int store; /* descriptor of OUT/fuzz.jsonl, locked */
    struct har_pool pool;
    struct har_fuzz_target *targets;
    size_t target_count;
    struct har_fuzz_cell *cells; /* controls first */
    size_t cell_count;
    struct har_fuzz_unjudged *unjudged;
    size_t unjudged_count;
};

/* Finds the fuzzers, asks each what it reaches and judges, plans, loads what is stored. HAR_EUSAGE
 * names what is missing. Released by har_fuzz_close, also after a failure. */
HAR_CHECKED enum har_status har_fuzz_open(const struct har_options *options, struct har_fuzz *out,
                                          struct har_error *error);
/* Makes the runs that are not stored yet, each stored when it ends. */
HAR_CHECKED enum har_status har_fuzz_run_all(struct har_fuzz *fuzz, struct har_error *error);
void har_fuzz_close(struct har_fuzz *fuzz);

/* ---- parts, in files of their own */

/* har_fuzz_target.c: the targets that options choose. */
HAR_CHECKED enum har_status har_fuzz_find_targets(const struct har_options *options,
                                                  struct har_fuzz *fuzz, struct har_error *error);
bool har_fuzz_judges(const struct har_fuzz_target *target, const struct mut_fault *fault);
bool har_fuzz_reaches(const struct har_fuzz_target *target, const struct mut_fault *fault);
void har_fuzz_target_fini(struct har_fuzz_target *target);

/* har_fuzz_store.c: one line of JSON a run in OUT/fuzz.jsonl. Runs of other programs, seeds or
 * budgets stay in the file and do not count. A torn last line is left out and cut off. */
HAR_CHECKED enum har_status har_fuzz_store_open(struct har_fuzz *fuzz, struct har_error *error);
HAR_CHECKED enum har_status har_fuzz_store_load(struct har_fuzz *fuzz, struct har_error *error);
HAR_CHECKED enum har_status har_fuzz_store_add(const struct har_fuzz *fuzz,
                                               const struct har_fuzz_cell *cell,
                                               const struct har_fuzz_run *run,
                                               struct har_error *error);

/* har_fuzz_table.c: what the runs amount to. */
enum { HAR_FUZZ_POINTS = 5 };
struct har_fuzz_sum {
    int done, found, in_seeds, crashed, hung, no_verdict, reached;
    double executions;                /* of all runs */
    double median;                    /* executions to the finding; infinite = not seen */
    double median_seconds;            /* of the runs that found; NaN = none did */
    double mean, mean_deviation;      /* restricted mean of executions, up to the horizon */
    double horizon;                   /* the longest observation */
    double survival[HAR_FUZZ_POINTS]; /* share not found after har_fuzz_points[i] executions */
    const char *by;                   /* of the first finding, or of the first other end */
};
extern const double har_fuzz_points[HAR_FUZZ_POINTS];
/* False when memory is exhausted. */
HAR_CHECKED bool har_fuzz_sum(const struct har_fuzz *fuzz, const struct har_fuzz_cell *cell,
                              struct har_fuzz_sum *out);
HAR_CHECKED enum har_status har_fuzz_print_text(const struct har_fuzz *fuzz,
                                                struct har_error *error);
HAR_CHECKED enum har_status har_fuzz_print_json(const struct har_fuzz *fuzz,
                                                struct har_error *error);
