/* Reader of the states of a run that is followed (TRACE.md, "States"). Called by the training loop;
 * knows nothing of how a step goes. Reads in order and never seeks, so that a FIFO will do. */
#pragma once

#include "ref_model.h"
#include "ref_params.h"

#include <stdbool.h>
#include <stdint.h>

struct orc_ref_follow;

/* What the states must belong to. */
struct orc_ref_followed {
    uint64_t recipe_hash, seed;
    size_t steps, micro, positions; /* positions of a micro-batch */
    size_t vocab;
    const struct orc_ref_params *params; /* names and sizes */
};

/* Opens the file and checks its header. BAD names the file and what does not fit. The path must
 * outlive the object. */
enum orc_ref_status orc_ref_follow_open(const char *path, const struct orc_ref_followed *want,
                                        struct orc_ref_follow **out,
                                        struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Reads the batch of a step into `micro` batches. BAD when the file is cut here, has another step,
 * or a token outside the vocabulary. */
enum orc_ref_status orc_ref_follow_batch(struct orc_ref_follow *follow, size_t step,
                                         struct orc_ref_batch *batches,
                                         struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Reads values and moments as they were after that step. Not finite is as good as any. */
enum orc_ref_status orc_ref_follow_state(struct orc_ref_follow *follow,
                                         struct orc_ref_params *params,
                                         struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Reads the mark behind the last step. */
enum orc_ref_status orc_ref_follow_end(struct orc_ref_follow *follow,
                                       struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Accepts NULL. */
void orc_ref_follow_close(struct orc_ref_follow *follow);
