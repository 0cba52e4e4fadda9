/* State of a run, shared by ref_train.c (what happens) and ref_report.c (what the trace says of
 * it); nobody else includes it. */
#pragma once

#include "ref_follow.h"
#include "ref_rows.h"
#include "ref_sketch.h"
#include "ref_tape.h"
#include "ref_train.h"

struct orc_ref_run {
    const struct orc_ref_options *options;
    struct orc_ref_trace *trace;
    struct orc_ref_params params;
    struct orc_ref_pool *pool;
    struct orc_ref_tape *tape;
    struct orc_ref_stream *stream;
    struct orc_ref_batch *batches; /* micro-batches of the step */
    struct orc_ref_follow *follow; /* NULL = this run follows nobody */
    struct orc_ref_batch *adopted; /* those of the run that is followed */
    struct orc_ref_batch *eval_batches;
    size_t eval_batch_count;
    struct orc_ref_row_log log;
    struct orc_ref_sketch *activations, *sketches; /* taps; one of each parameter */
    struct {
        uint64_t ids, labels, positions, segments;
        size_t supervised;
    } *inputs; /* of each micro-batch */
    /* of the step */
    size_t step, supervised, eval_supervised;
    size_t counted; /* supervised positions of the batch trained on; the loss is their mean */
    double nll, rate, norm, factor, hidden_rms, eval_nll;
    bool evaluated;
    /* of the run */
    struct {
        bool accum_unequal, packed, padded, truncated, skipped, clipped, two_epochs, eval,
            pad_is_eos, late_positions, split, refit, prefix_broken;
        unsigned text;
    } seen;
    size_t skips[ORC_REF_SKIPS]; /* records skipped, by reason */
    double seconds;
};

enum orc_ref_status orc_ref_report_header(struct orc_ref_run *run,
                                          struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Everything up to the sketches that must be taken before the optimizer's step. */
void orc_ref_report_before_update(struct orc_ref_run *run);

/* The sketches after it, and the rest; writes the line. */
enum orc_ref_status orc_ref_report_after_update(struct orc_ref_run *run,
                                                struct orc_ref_error *error) ORC_REF_MUST_USE;

/* `outcome` is "ok" or why the run stopped between two steps. */
enum orc_ref_status orc_ref_report_end(struct orc_ref_run *run, const char *outcome,
                                       struct orc_ref_error *error) ORC_REF_MUST_USE;
