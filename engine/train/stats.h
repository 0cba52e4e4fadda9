/* Statistics of the running step on the side stream, and the taps of the forward pass.
 * Called by the loop; must not know the model's insides. */
#pragma once

#include "dev.h"
#include "eng_status.h"

struct eng_trainer;

ENG_CHECKED enum eng_status eng_stats_open(struct eng_trainer *t, struct eng_error *error);
/* An eng_tap_fn for micro-batch 0; context is the trainer. */
enum eng_status eng_stats_tap(void *context, const char *name, const float *x, int rows, int width,
                              struct eng_error *error);
/* Gives back the step's temporaries, late, as a finalizer would. */
ENG_CHECKED enum eng_status eng_stats_release(struct eng_trainer *t, struct eng_error *error);
