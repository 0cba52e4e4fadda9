/* The Llama model of corpus/RECIPE.md as compositions of tape operations. Called by the training
 * loop and by tests; knows nothing of files, optimizer or trace. */
#pragma once

#include "ref_params.h"
#include "ref_tape.h"

#include <stdint.h>

/* One micro-batch: arrays (rows, context), row-major; labels -100 where ignored. */
struct orc_ref_batch {
    size_t rows, context;
    int32_t *ids, *labels, *positions, *segments;
};

enum { ORC_REF_IGNORED = -100, ORC_REF_TAPS_OF_LAYER = 4 };

/* Taps in the order of the trace: embed, (qkv attn mid out) of each layer, norm, nll. */
size_t orc_ref_model_taps(const struct orc_ref_shape *shape);

/* Name of a tap, written into name. */
void orc_ref_model_tap_name(const struct orc_ref_shape *shape, size_t tap, char *name,
                            size_t bytes);

struct orc_ref_forward {
    double nll;                  /* sum over supervised positions */
    size_t supervised;           /* labels other than -100 */
    struct orc_ref_tensor *taps; /* values; memory of the tape */
};

/* Forward pass on an empty tape, and, if grad_scale is not 0, backward: adds
 * grad_scale * d nll / d parameter to params->grad. The tape must have been reset with gradients
 * on exactly when grad_scale is not 0. Fails only for lack of memory. */
enum orc_ref_status orc_ref_model_run(struct orc_ref_tape *tape, const struct orc_ref_shape *shape,
                                      struct orc_ref_params *params,
                                      const struct orc_ref_batch *batch, double grad_scale,
                                      struct orc_ref_forward *out,
                                      struct orc_ref_error *error) ORC_REF_MUST_USE;
