/* Results of a step on their way to the host: device slots, pinned slots, events. Step n is read
 * while step n + 1 is computed. Called by the loop; must not know the trace's format. */
#pragma once

#include "dev.h"
#include "eng_status.h"

enum eng_result {
    ENG_RESULT_LOSS,
    ENG_RESULT_NORM,
    ENG_RESULT_COEF,
    ENG_RESULT_EVAL,
    ENG_RESULT_COUNT
};
enum { ENG_RESULT_SLOTS = 2 };

struct eng_results {
    float *device[ENG_RESULT_SLOTS]; /* ENG_RESULT_COUNT floats each */
    float *host[ENG_RESULT_SLOTS];   /* pinned */
    float *rms[ENG_RESULT_SLOTS];    /* pinned, (tokens) */
    dev_event ready;                 /* the step's results are complete on the compute stream */
    dev_event arrived[ENG_RESULT_SLOTS];
};

/* Sums and scalars of one step as the host sees them. */
struct eng_step_results {
    float loss_sum, grad_norm, clip, eval_sum;
    double hidden_rms;
};

struct eng_trainer;
struct eng_step;

size_t eng_results_bytes(void);
size_t eng_results_pinned_bytes(size_t tokens);
ENG_CHECKED enum eng_status eng_results_open(struct eng_trainer *t, struct eng_error *error);
/* Where the running step puts its results. */
float *eng_results_slot(struct eng_trainer *t, const struct eng_step *step);
/* Enqueues the copies of a computed step on the side stream. */
ENG_CHECKED enum eng_status eng_results_enqueue(struct eng_trainer *t, const struct eng_step *step,
                                                struct eng_error *error);
/* Waits until they have arrived and reads them. */
ENG_CHECKED enum eng_status eng_results_collect(struct eng_trainer *t, const struct eng_step *step,
                                                struct eng_step_results *out,
                                                struct eng_error *error);
/* Loss of the step: nats per supervised token. */
double eng_step_loss(const struct eng_step *step, const struct eng_step_results *r);
