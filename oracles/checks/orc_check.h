/* The differential oracle: reads traces, compares them, says which check fired at which step.
 * Called by the harness and tests; must not know engine, kernels, mutants, or the database.
 * Links nothing of the project; its status enum and small helpers are twins on purpose.
 * Ownership: what *out receives is the caller's, to be given to the _free of its type; texts and
 * arrays that a call returns live as long as the object they belong to. Errors: nothing is given
 * out, and error, where it is not NULL, names file, line and cause. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORC_STATUS(X)                                                                              \
    X(OK, "ok")                                                                                    \
    X(EIO, "trace cannot be read")                                                                 \
    X(EFORMAT, "trace is not valid")                                                               \
    X(EMISMATCH, "traces do not belong together")                                                  \
    X(EMEMORY, "host memory exhausted")                                                            \
    X(EARG, "bad argument")

enum orc_status {
#define ORC_ROW_(name, text) ORC_##name,
    ORC_STATUS(ORC_ROW_)
#undef ORC_ROW_
};
#define ORC_CHECKED __attribute__((warn_unused_result))

struct orc_error {
    char text[512];
};

/* name, kind (EXACT needs no bound; BOUND is calibrated), what it compares */
#define ORC_CHECKS(X)                                                                              \
    X(text, EXACT, "rendered bytes of each record")                                                \
    X(tokens, EXACT, "token ids of each record and of the batch")                                  \
    X(labels, EXACT, "labels, positions, segments, supervised count")                              \
    X(order, EXACT, "record ids in order, epochs, skipped records")                                \
    X(activations, BOUND, "sketches of activations against the reference")                         \
    X(loss, BOUND, "loss and evaluation loss against the reference")                               \
    X(gradients, BOUND, "sketches of gradients and the gradient norm against the reference")       \
    X(updates, BOUND, "sketches of updates against the reference")                                 \
    X(state, BOUND, "sketches of parameters and moments against the reference")                    \
    X(schedule, BOUND, "learning rate and clip factor against the reference")                      \
    X(memory, EXACT, "conservation, spurious OOM, leaks, every OOM answered")                      \
    X(races, EXACT, "happens-before violations")                                                   \
    X(repeat, EXACT, "same seed, other schedule, threads and driver: same hashes")                 \
    X(resume, EXACT, "stopped and resumed: same hashes as the straight run")                       \
    X(invariants, BOUND, "finite values, first loss near ln(vocab), token conservation")           \
    X(loss_only, BOUND, "training loss alone against the reference")                               \
    X(band, EXACT, "training loss alone within the fixed 0.2 % of the reference (case study)")     \
    X(curve, BOUND, "training loss within the band of healthy seeds; no reference")                \
    X(external, EXACT, "what an oracle outside this library says of the traces")

enum orc_check_id {
#define ORC_ROW_(name, kind, text) ORC_CHECK_##name,
    ORC_CHECKS(ORC_ROW_)
#undef ORC_ROW_
        ORC_CHECK_COUNT
};
const char *orc_check_name(enum orc_check_id id);
const char *orc_check_text(enum orc_check_id id);
bool orc_check_find(const char *name, enum orc_check_id *out);
bool orc_check_is_bound(enum orc_check_id id);

/* A trace in memory. Missing `end` or a cut last line is not an error (the process died). */
typedef struct orc_trace orc_trace;
ORC_CHECKED enum orc_status orc_trace_read(const char *path, orc_trace **out,
                                           struct orc_error *error);
void orc_trace_free(orc_trace *trace);                /* accepts NULL */
const char *orc_trace_recipe(const orc_trace *trace); /* its name, "" when not given */
int orc_trace_first_step(const orc_trace *trace);
int orc_trace_last_step(const orc_trace *trace);     /* last complete step, 0 = none */
bool orc_trace_ended(const orc_trace *trace);        /* has an end record with status ok */
int orc_trace_fault_reached(const orc_trace *trace); /* -1 = never or not recorded */
/* Step of the first visit of a site in a reach-map run, -1 = never. */
int orc_trace_site_reached(const orc_trace *trace, const char *site);
size_t orc_trace_features(const orc_trace *trace, const char *const **out);
double orc_trace_loss(const orc_trace *trace, int step);      /* NaN when the step is missing */
double orc_trace_eval_loss(const orc_trace *trace, int step); /* NaN when not evaluated */

/* First step at which the engine's own hashes (input, state, output, ledger) differ between two
 * runs of one stack; 0 when equal over all common steps and of equal length. *which names the hash.
 */
int orc_trace_first_difference(const orc_trace *a, const orc_trace *b, const char **which);

/* Everything known about one run that is to be judged. Members may be NULL: the checks that need
 * them are then not applicable (never "passed"). */
struct orc_verdict;
struct orc_case {
    const orc_trace *subject;   /* the run under judgement */
    const orc_trace *reference; /* second stack, same recipe and seed; may follow the subject */
    const orc_trace *repeat;    /* subject's stack again: other schedule, threads, driver */
    const orc_trace *resumed;   /* subject's stack resumed from subject's checkpoint */
    /* what an oracle outside said of these traces: fired, step, compared, detail */
    const struct orc_verdict *external;
};

struct orc_verdict {
    bool applicable; /* the inputs were there and at least one item was compared */
    bool fired;
    int step;         /* first step at which it fired; 0 when it did not */
    double worst;     /* BOUND: largest deviation / bound */
    size_t compared;  /* items compared */
    char detail[200]; /* what differed first: tensor, values, race pair, ... */
};

/* Calibrated bounds for one recipe: made from healthy runs, stored as JSON text. */
typedef struct orc_bounds orc_bounds;

/* Collects healthy cases (subject + reference, seeds all different) and makes bounds of them. */
typedef struct orc_calibration orc_calibration;
ORC_CHECKED enum orc_status orc_calibration_create(orc_calibration **out);
void orc_calibration_free(orc_calibration *calibration);
/* EMISMATCH: of another recipe than the first one, or not healthy: it differs from its reference in
 * text, tokens, labels, order or finiteness. */
ORC_CHECKED enum orc_status orc_calibration_add(orc_calibration *calibration,
                                                const struct orc_case *c, struct orc_error *error);
ORC_CHECKED enum orc_status orc_calibration_finish(orc_calibration *calibration, orc_bounds **out,
                                                   struct orc_error *error);
/* What healthy runs deviated by in one class of tensors at one step: the null distribution. */
struct orc_null {
    enum orc_check_id check;
    const char *group,
        *class_name;      /* "gradients", "model.layers.*.mlp.up_proj.weight"; may be "" */
    const char *part;     /* "norm", "projection", "loss", ... */
    int step;             /* 0 = one scale for all steps */
    bool level;           /* values are levels, not deviations */
    const double *values; /* one per run: its largest; count of them */
    size_t count;
};
typedef void orc_null_visit(void *context, const struct orc_null *cell);
/* Calls visit for every class and step, after orc_calibration_finish. */
ORC_CHECKED enum orc_status orc_calibration_visit(const orc_calibration *calibration,
                                                  orc_null_visit *visit, void *context,
                                                  struct orc_error *error);
ORC_CHECKED enum orc_status orc_bounds_write(const orc_bounds *bounds,
                                             char **json_text); /* caller frees */
ORC_CHECKED enum orc_status orc_bounds_parse(const char *json_text, orc_bounds **out,
                                             struct orc_error *error);
void orc_bounds_free(orc_bounds *bounds);
/* How many healthy runs they were made from, and the quantile and margin used, as a sentence. */
const char *orc_bounds_summary(const orc_bounds *bounds);
size_t orc_bounds_runs(const orc_bounds *bounds);
/* Healthy runs counted so far; a run equal to a counted one adds nothing. */
size_t orc_calibration_runs(const orc_calibration *calibration);

/* Judges a case with all checks. verdicts has ORC_CHECK_COUNT entries. bounds NULL: BOUND checks
 * are not applicable. After a difference of text, tokens, labels or order at step s, the numeric
 * checks against the reference get no credit from step s on (confounded): they may only fire before
 * s. Not so where the reference follows the subject (lockstep): it trained on the same batch, and
 * only its evaluation set is its own. Bounds of the other mode are EMISMATCH. */
ORC_CHECKED enum orc_status orc_judge(const struct orc_case *c, const orc_bounds *bounds,
                                      struct orc_verdict *verdicts, struct orc_error *error);

/* First divergence between any two traces, by pipeline stage: text, tokens, labels, order, races,
 * memory (a rule that only one of the two breaks), activations, loss, gradients, schedule, updates,
 * state, hashes (of one stack); at equal steps the earlier stage. Prints nothing; fills a sentence.
 * With bounds, found = false when equal within them, and a stack's own hashes are not looked at.
 * Without, every number and hash must be the same; worst is then the largest relative deviation of
 * a number (0 = all equal, NaN possible) and where it stands. */
struct orc_divergence {
    bool found;
    int step;
    char stage[24];
    char item[128];
    char detail[256];
    size_t compared;
    double worst;
    int worst_step;
    char worst_item[128];
};
ORC_CHECKED enum orc_status orc_diff(const orc_trace *a, const orc_trace *b,
                                     const orc_bounds *bounds, struct orc_divergence *out,
                                     struct orc_error *error);

/* Self-test of the oracle (faults 0xF000..): arms a fault of the comparator in this process. "none"
 * disarms. */
ORC_CHECKED enum orc_status orc_fault_select(const char *id, struct orc_error *error);
size_t orc_fault_count(void);
const char *orc_fault_id(size_t index);
const char *orc_fault_why(size_t index);
