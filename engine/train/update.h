/* Clipping and AdamW over the flat buffers. Called by the loop; must not know the schedule's shape.
 */
#pragma once

#include "eng_status.h"
#include "schedule.h"

struct eng_trainer;
struct eng_step;

ENG_CHECKED enum eng_status eng_update_open(struct eng_trainer *t, struct eng_error *error);
/* Enqueues the update of a step on the current stream: norm, factor, AdamW, zeroed gradients; with
 * sketches of gradients before and of the state after it. */
ENG_CHECKED enum eng_status eng_update_run(struct eng_trainer *t, const struct eng_step *step,
                                           struct eng_bias bias, struct eng_error *error);
