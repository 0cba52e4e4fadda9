/* The command line of every subcommand: one table gives parsing and --help.
 * Called by har_main.c and the commands; must not know what the values are used for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "har_status.h"
#include "har_text.h"
#include "registry.h"

#define HAR_SUBCOMMANDS(X)                                                                         \
    X(list, "", "the catalogue of faults")                                                         \
    X(explain, "FAULT", "one fault: healthy line, faulty text, trigger, source, history")          \
    X(doctor, "", "tools, programs, disk space and controls of this installation")                 \
    X(run, "", "run a campaign: controls, calibration, faults, report")                            \
    X(null, "", "healthy runs only: calibrate bounds, measure false alarms")                       \
    X(report, "", "rebuild every report from the stored results")                                  \
    X(gate, "", "compare stored results with limits; the exit code says")                          \
    X(replay, "RUN", "a stored run again, with its racing operations as a timeline")               \
    X(merge, "DIR...", "join the results of all shards of a campaign into --out")                  \
    X(diff, "TRACE TRACE", "first divergence between two traces")                                  \
    X(effect, "", "how far faults move the learning curve, template swap against the others")      \
    X(fuzz, "", "how many executions the fuzzers need to notice faults of text and data")

enum har_subcommand {
#define HAR_ROW_(name, operands, text) HAR_SUBCOMMAND_##name,
    HAR_SUBCOMMANDS(HAR_ROW_)
#undef HAR_ROW_
        HAR_SUBCOMMAND_COUNT
};
const char *har_subcommand_name(enum har_subcommand command);
bool har_subcommand_find(const char *name, enum har_subcommand *out);

enum { HAR_PATTERNS_MAX = 256 };
struct har_patterns {
    const char *items[HAR_PATTERNS_MAX]; /* point into argv */
    size_t count;
};

/* Values as given; numbers are -1 and pointers NULL when absent. */
struct har_options {
    const char *campaign, *out, *checks, *recipe, *format, *template_fault, *bounds, *schedule;
    const char *mode, *against, *known, *baseline, *annotations, *summary, *shard, *doses,
        *changed_since, *fuzzers;
    struct har_patterns faults, families, operands, expects, targets;
    int repeats, horizon, jobs, calibration, false_alarms, seeds, pair, slurm, seconds;
    int64_t seed, runs;
    bool resume, iterate, dry_run, first_verdict, json, keep_traces, quiet, help, all, no_seeds;
    double fail_under, max_median_steps;
    double family_under[MUT_FAMILY_COUNT]; /* -1 = no limit */
    int max_false_alarms, max_no_verdict;
    const char *external;
    /* programs; NULL = beside the faultline program or from the environment */
    const char *train, *train_production, *train_lanes, *ref, *init, *text_stage, *python;
    const char *also_train; /* a second healthy build */
};

/* Parses argv[0] = command name, then options. HAR_EUSAGE with a sentence. */
HAR_CHECKED enum har_status har_options_parse(enum har_subcommand command, int argc, char **argv,
                                              struct har_options *out, struct har_error *error);
/* The words that give these options to a command: what parse reads back as the same. Operands and
 * what is absent are left out. */
void har_options_words(enum har_subcommand command, const struct har_options *options,
                       struct har_args *out);
void har_options_help(enum har_subcommand command, FILE *stream);
void har_options_overview(FILE *stream);
