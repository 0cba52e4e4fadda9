/* Shape of the model and its parameters: names, sizes, values, gradients, optimizer state.
 * Filled from a safetensors file; used by model, optimizer and trace. */
#pragma once

#include "ref_arena.h"
#include "ref_error.h"

#include <stdbool.h>
#include <stddef.h>

struct orc_ref_shape {
    size_t layers, width, heads, kv_heads, ffn, context, vocab;
    bool tied;
    double norm_eps, rope_theta;
};

struct orc_ref_param {
    char name[80];
    size_t rows, cols; /* a vector is (1, cols) */
    size_t dims;       /* 1 or 2 */
    size_t offset;     /* of its first element in each array */
};

/* Order within a layer; the file's order is embedding, layers, norm, head. */
enum orc_ref_layer_param {
    ORC_REF_INPUT_NORM, ORC_REF_Q, ORC_REF_K, ORC_REF_V, ORC_REF_O,
    ORC_REF_POST_NORM, ORC_REF_GATE, ORC_REF_UP, ORC_REF_DOWN, ORC_REF_LAYER_PARAMS
};

struct orc_ref_params {
    struct orc_ref_param *list;
    size_t count, total; /* total: elements of each array, gaps (always 0) included */
    double *value, *grad, *moment1, *moment2, *update;
    struct orc_ref_arena *memory; /* of these arrays */
};

/* Lists the parameters and makes the arrays, all zero. Undo with orc_ref_params_fini(), also
 * after a failure. */
enum orc_ref_status orc_ref_params_init(struct orc_ref_params *params,
                                        const struct orc_ref_shape *shape,
                                        struct orc_ref_error *error) ORC_REF_MUST_USE;

void orc_ref_params_fini(struct orc_ref_params *params);

/* Index in the list. The head of a tied model is the embedding. */
size_t orc_ref_params_layer(size_t layer, enum orc_ref_layer_param which);
size_t orc_ref_params_norm(const struct orc_ref_shape *shape);
size_t orc_ref_params_head(const struct orc_ref_shape *shape);

size_t orc_ref_param_size(const struct orc_ref_param *param);

/* Reads the values from a safetensors file: exactly these tensors, fp32, of these shapes. */
enum orc_ref_status orc_ref_weights_load(const char *path, struct orc_ref_params *params,
                                         struct orc_ref_error *error) ORC_REF_MUST_USE;
