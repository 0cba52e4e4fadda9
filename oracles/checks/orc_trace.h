/* A trace in memory: what oracles/TRACE.md says, as compact arrays. Internal to the checks.
 * Filled by orc_trace_read.c, read by every check; must not know bounds or verdicts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "orc_arena.h"
#include "orc_check.h"

/* Groups of sketches: key in the trace. */
#define ORC_GROUPS(X) X(activations) X(gradients) X(updates) X(parameters) X(moment1) X(moment2)
enum orc_group {
#define ORC_ROW_(name) ORC_GROUP_##name,
    ORC_GROUPS(ORC_ROW_)
#undef ORC_ROW_
        ORC_GROUP_COUNT
};

/* Hashes of the arrays of a step, one per micro-batch. */
#define ORC_BATCHES(X) X(ids) X(labels) X(positions) X(segments)
enum orc_batch {
#define ORC_ROW_(name) ORC_BATCH_##name,
    ORC_BATCHES(ORC_ROW_)
#undef ORC_ROW_
        ORC_BATCH_COUNT
};

/* The stack's own hashes. */
#define ORC_HASHES(X) X(input) X(state) X(output) X(ledger)
enum orc_hash {
#define ORC_ROW_(name) ORC_HASH_##name,
    ORC_HASHES(ORC_ROW_)
#undef ORC_ROW_
        ORC_HASH_COUNT
};

/* Scalars of a step. */
#define ORC_SCALARS(X)                                                                             \
    X(loss) X(lr) X(grad_norm) X(clip) X(eval_loss) X(supervised) X(eval_supervised) X(race_count)
enum orc_scalar {
#define ORC_ROW_(name) ORC_SCALAR_##name,
    ORC_SCALARS(ORC_ROW_)
#undef ORC_ROW_
        ORC_SCALAR_COUNT
};

/* Entries of the ledger, bytes and counts. */
#define ORC_LEDGER(X)                                                                              \
    X(budget)                                                                                      \
    X(live)                                                                                        \
    X(cached) X(pending) X(deferred) X(free) X(peak) X(host) X(mallocs) X(frees) X(ooms)           \
        X(spurious_ooms) X(reclaims)
enum orc_ledger {
#define ORC_ROW_(name) ORC_LEDGER_##name,
    ORC_LEDGER(ORC_ROW_)
#undef ORC_ROW_
        ORC_LEDGER_COUNT
};

enum { ORC_SKETCH_NORM = 0, ORC_SKETCH_FIRST = 1, ORC_SKETCH_NONFINITE = 9, ORC_SKETCH_NUMBERS };

struct orc_number {
    bool given;
    double value;
};

struct orc_sketch {
    const char *name;
    const char *class_name; /* name with layer numbers replaced by * */
    double numbers[ORC_SKETCH_NUMBERS];
};

struct orc_sketches {
    bool given;
    size_t count;
    const struct orc_sketch *items;
};

struct orc_record {
    const char *id;
    int64_t epoch;
    int64_t count;
    uint64_t text, tokens;
    bool text_given, tokens_given, count_given;
};

struct orc_hash_list {
    bool given;
    size_t count;
    const uint64_t *items;
};

enum orc_event_kind {
    ORC_EVENT_checkpoint,
    ORC_EVENT_skip,
    ORC_EVENT_oom,
    ORC_EVENT_retry,
    ORC_EVENT_other
};
struct orc_event {
    enum orc_event_kind kind;
    bool spurious;
    bool hash_given;
    uint64_t hash;
    const char *what; /* reason of a skip, name of an allocation; "" when not given */
};

struct orc_race {
    const char *first, *second, *buffer, *first_stream, *second_stream, *first_mode, *second_mode;
};

struct orc_host {
    const char *component;
    double bytes;
};

struct orc_step {
    int number;
    int repeats; /* further lines with the same number; the first one counts */
    struct orc_number scalar[ORC_SCALAR_COUNT];
    struct orc_number trained;     /* stats.supervised_trained */
    struct orc_number label_count; /* labels other than -100 in contents.labels */
    struct orc_hash_list batch[ORC_BATCH_COUNT];
    struct orc_sketches group[ORC_GROUP_COUNT];
    bool hash_given[ORC_HASH_COUNT];
    uint64_t hash[ORC_HASH_COUNT];
    bool ledger_given;
    double ledger[ORC_LEDGER_COUNT];
    size_t host_count; /* host memory by component; 0 when not given */
    const struct orc_host *host;
    bool records_given, skipped_given, skip_reasons_given, events_given, races_given;
    size_t record_count, skipped_count, event_count, race_list_count;
    const struct orc_record *records;
    const char *const *skipped;
    const char *const *skip_reasons; /* one each of skipped */
    const struct orc_event *events;
    const struct orc_race *races;
};

struct orc_site_reach {
    const char *site;
    int step;
};

struct orc_trace {
    struct orc_arena arena;
    const char *path;
    const char *stack, *recipe, *backend, *precision, *level, *schedule, *driver;
    const char *mode; /* of a reference: "lockstep", "free" or "" */
    struct orc_number seed;
    bool recipe_hash_given;
    uint64_t recipe_hash;
    int first_step;
    struct orc_step *steps; /* sorted by number, no number twice */
    size_t step_count, step_capacity;
    bool stopped_inside;        /* the end record tells of a step that did not finish */
    struct orc_step unfinished; /* its number, ledger, races and events; nothing else is given */
    const struct orc_record **by_id; /* all records, sorted by id */
    size_t record_count;
    int lr_digits, clip_digits; /* significant digits with which they were printed, 9..17 */
    bool ended;
    int fault_reached;
    const struct orc_site_reach *reach;
    size_t reach_count;
    const char *const *features;
    size_t feature_count;
};

/* NULL when the trace has no such step. */
const struct orc_step *orc_trace_step(const orc_trace *trace, int number);
/* Any record with this id, NULL when there is none. Text and tokens of an id do not change. */
const struct orc_record *orc_trace_record(const orc_trace *trace, const char *id);
/* Whether it is a reference that starts every step from the other run's state and batch. Accepts
 * NULL. */
bool orc_trace_follows(const orc_trace *trace);
/* The unit roundoff of the trace's precision: no deviation below it means anything. */
double orc_trace_roundoff(const orc_trace *trace);
const char *orc_group_name(enum orc_group group);
const char *orc_batch_name(enum orc_batch batch);
const char *orc_hash_name(enum orc_hash hash);
const char *orc_scalar_name(enum orc_scalar scalar);

/* Equal as bits, all NaN alike: for runs that should be the same run. */
bool orc_same_number(struct orc_number a, struct orc_number b);

/* File to bytes (decompressed when the name ends in .zst). Caller frees. */
ORC_CHECKED enum orc_status orc_file_load(const char *path, char **bytes, size_t *size,
                                          struct orc_error *error);

/* Writes the message; error may be NULL. Returns status. */
__attribute__((format(printf, 3, 4))) enum orc_status
orc_fail(enum orc_status status, struct orc_error *error, const char *format, ...);
