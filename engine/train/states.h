/* What a run hands over to a reference that follows it (oracles/TRACE.md, "States"): each step's
 * batch, and parameters and moments after its update. Called by the loop; must not know who reads.
 *
 * Copies are operations on the compute stream into pinned memory, behind the update. The host reads
 * them when it reads the step's results, which arrive later: no host wait and no cross-stream order
 * of their own. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "eng_status.h"
#include "readback.h"

struct eng_trainer;
struct eng_step;

/* All zero = the run hands over nothing, and every call below does nothing. */
struct eng_states {
    FILE *file;
    float *host[ENG_RESULT_SLOTS]; /* pinned: parameters, first moments, second moments */
};

/* Pinned memory for a model of so many parameters. */
size_t eng_states_pinned_bytes(size_t parameters);
/* Opens options->states_path, unless it is NULL, and writes the header. A FIFO waits for its
 * reader. */
ENG_CHECKED enum eng_status eng_states_open(struct eng_trainer *t, struct eng_error *error);
/* Enqueues the copies behind the update of `step`. */
ENG_CHECKED enum eng_status eng_states_enqueue(struct eng_trainer *t, const struct eng_step *step,
                                               struct eng_error *error);
/* Writes the record of a step whose results have arrived. */
ENG_CHECKED enum eng_status eng_states_write(struct eng_trainer *t, const struct eng_step *step,
                                             struct eng_error *error);
/* Marks the end of a run that went to its last step, and closes. */
ENG_CHECKED enum eng_status eng_states_finish(struct eng_trainer *t, struct eng_error *error);
/* Closes without the mark; accepts what was never opened. */
void eng_states_close(struct eng_states *s);
