/* Evaluation on a held-out set, with a feed and an accumulator of its own.
 * Called by the loop; must not know the optimizer. */
#pragma once

#include "eng_status.h"

struct eng_trainer;

/* Reads the first eval_rows rows of the evaluation files, if the recipe has any. */
ENG_CHECKED enum eng_status eng_eval_open(struct eng_trainer *t, struct eng_error *error);
void eng_eval_fini(struct eng_trainer *t);
/* Enqueues an evaluation on the current stream; sum of nll goes into sum[0] (device). */
ENG_CHECKED enum eng_status eng_eval_run(struct eng_trainer *t, float *results,
                                         struct eng_error *error);
