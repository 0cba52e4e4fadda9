/* The decoder on the device: parameters, forward, backward. Llama as in corpus/RECIPE.md.
 * Called by engine/train; must not know data files, the optimizer's schedule or the trace format.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev.h"
#include "eng_status.h"
#include "optimizer.h"

struct eng_model_config {
    int layers, width, heads, kv_heads, ffn, context, vocab;
    bool tied;
    float norm_eps;
    double rope_theta;
    int rows; /* rows of a micro-batch: sizes the activations */
};

/* One parameter tensor, Hugging Face name and shape, and its place in the flat buffers. Tensors
 * that are used as one product (q, k, v; gate, up) lie next to each other. */
struct eng_tensor {
    char name[96];
    int rows, cols; /* cols = 0 for a vector of `rows` */
    int64_t offset;
    int64_t elements;
    bool decay; /* weight decay applies: two-dimensional */
};

/* Flat device buffers, one element per parameter, and the chunk table over them. Order of tensors
 * as in corpus/RECIPE.md. */
struct eng_params {
    const struct eng_tensor *tensors;
    int tensor_count;
    int64_t elements;
    float *param, *grad, *moment1, *moment2;
    const struct k_chunk *chunks; /* device */
    int chunk_count;
    const int32_t *first_chunk; /* device, tensor_count + 1 */
};

/* A micro-batch in device memory, (rows, context) each. */
struct eng_input {
    const int32_t *ids, *labels, *positions, *first;
};

/* Called when an activation of the forward pass is ready on `stream`, in tap order
 * (oracles/TRACE.md). The buffer is a temporary of the pass: whoever reads it on another stream
 * must order itself and call dev_used_on before returning. */
typedef enum eng_status eng_tap_fn(void *context, const char *name, const float *x, int rows,
                                   int width, struct eng_error *error);
struct eng_taps {
    eng_tap_fn *fn; /* NULL: no taps */
    void *context;
};

typedef struct eng_model eng_model;

/* Pinned memory that a model takes from the device's budget, for loading and saving. */
enum { ENG_MODEL_PINNED_BYTES = 1 << 20 };

/* Allocates parameters, gradients, moments (zeroed) and tables on `stream`. */
ENG_CHECKED enum eng_status eng_model_create(dev *d, dev_stream stream,
                                             const struct eng_model_config *config, eng_model **out,
                                             struct eng_error *error);
void eng_model_destroy(eng_model *model); /* accepts NULL; device memory goes with the dev */
const struct eng_params *eng_model_params(const eng_model *model);
size_t eng_model_tap_count(const eng_model *model);
const char *eng_model_tap_name(const eng_model *model, size_t index);

/* Bytes of device memory that parameters and one micro-batch of activations need (the plan). */
size_t eng_model_plan_bytes(const struct eng_model_config *config);

/* Forward pass and loss. Adds the sum of nll to loss_sum[0] (device) when accumulate, else sets it.
 * With inv_count > 0 the activations are kept for eng_model_backward and logits become their
 * gradient. */
ENG_CHECKED enum eng_status eng_model_forward(eng_model *model, dev_stream stream,
                                              const struct eng_input *input, float inv_count,
                                              float *loss_sum, bool accumulate,
                                              const struct eng_taps *taps, struct eng_error *error);
/* Adds the gradient of the kept pass into params->grad and frees its activations. */
ENG_CHECKED enum eng_status eng_model_backward(eng_model *model, dev_stream stream,
                                               const struct eng_input *input,
                                               struct eng_error *error);

/* Safetensors (fp32) in and out, through pinned staging on `stream`; save returns after the data
 * has been written (eng_sync waits for the disk), load after it has arrived. which: the flat buffer
 * to fill or store. Names as in params. load checks names and shapes; an extra or missing tensor is
 * EINPUT. */
ENG_CHECKED enum eng_status eng_model_load(eng_model *model, dev_stream stream, const char *path,
                                           float *which, struct eng_error *error);
ENG_CHECKED enum eng_status eng_model_save(eng_model *model, dev_stream stream, const char *path,
                                           const float *which, struct eng_error *error);
/* config.json as Hugging Face's LlamaForCausalLM writes it. */
ENG_CHECKED enum eng_status eng_model_save_config(const eng_model *model, const char *path,
                                                  struct eng_error *error);
