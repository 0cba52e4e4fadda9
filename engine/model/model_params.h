/* What the files of engine/model share: the model's insides. Not for other folders. */
#pragma once

#include "model.h"

/* Activations of one layer that the backward pass reads, all (tokens, ...) in device memory. */
struct eng_layer_saved {
    float *input;     /* residual stream before the layer (tokens, width) */
    float *attn_norm; /* normed input (tokens, width) */
    float *attn_rstd; /* (tokens) */
    float *qkv;       /* query, key, value after rotation (tokens, qkv_width) */
    float *probs;     /* (rows, heads, context, context) */
    float *attn;      /* attention output before o_proj (tokens, heads * head_dim) */
    float *mid;       /* residual stream after attention (tokens, width) */
    float *mlp_norm;  /* (tokens, width) */
    float *mlp_rstd;  /* (tokens) */
    float *gate_up;   /* (tokens, 2 * ffn) */
    float *mlp;       /* (tokens, ffn) */
};

/* What follows the last layer. */
struct eng_head_saved {
    float *input;  /* residual stream after the last layer (tokens, width) */
    float *norm;   /* (tokens, width) */
    float *rstd;   /* (tokens) */
    float *logits; /* (tokens, vocab); their gradient after the loss */
    float *nll;    /* (tokens) */
};

struct eng_model {
    dev *device;
    struct eng_model_config config;
    struct eng_params params;
    struct eng_tensor *tensors;
    int head_dim, qkv_width, tokens;
    float *cosine, *sine; /* (context, head_dim / 2) */
    struct eng_layer_saved *saved;
    struct eng_head_saved head;
    bool kept; /* saved holds a pass that backward may use */
    char (*tap_names)[32];
    size_t tap_count;
    unsigned char *staging; /* pinned, ENG_MODEL_PINNED_BYTES */
};

/* Index of a tensor of layer `layer` in the table: which = ENG_W_*. */
enum eng_weight {
    ENG_W_ATTN_NORM,
    ENG_W_Q,
    ENG_W_K,
    ENG_W_V,
    ENG_W_O,
    ENG_W_MLP_NORM,
    ENG_W_GATE,
    ENG_W_UP,
    ENG_W_DOWN,
    ENG_W_PER_LAYER
};
int64_t eng_model_layer_offset(const eng_model *model, int layer, enum eng_weight which);
int64_t eng_model_norm_offset(const eng_model *model);
int64_t eng_model_head_offset(const eng_model *model); /* of the embedding when tied */

/* Turns a device status into the engine's, with the device's own sentence. */
enum eng_status eng_model_device_status(const eng_model *model, enum dev_status status,
                                        struct eng_error *error);

/* A chain of device operations that stops at the first failure: operations of a failed chain do
 * nothing, so a pass reads as the list of its steps and is checked once. */
struct eng_chain {
    eng_model *model;
    dev_stream stream;
    enum dev_status status;
    const char *where; /* source line of the step at hand; NULL = unknown */
};
/* Notes the source line of the next step, for race reports. Returns c. */
static inline struct eng_chain *eng_chain_at(struct eng_chain *c, const char *where)
{
    c->where = where;
    return c;
}
float *eng_chain_malloc(struct eng_chain *c, size_t elements, const char *what);
void eng_chain_free(struct eng_chain *c, float **ptr); /* sets *ptr to NULL; accepts NULL */
void eng_chain_copy(struct eng_chain *c, float *dst, const float *src, size_t elements,
                    const char *what);
void eng_chain_gemm(struct eng_chain *c, const struct k_gemm_args *args, const char *what);
void eng_chain_launch(struct eng_chain *c, enum k_id kernel, int rows, const void *args,
                      const struct dev_span *spans, size_t span_count, const char *what);
/* y (tokens, out) (+)= x (tokens, in) W^T with W (out, in): a linear layer, and its product. */
struct k_gemm_args eng_linear_product(const struct eng_model *m, float *y, const float *x,
                                      const float *weight, int out, int in);
void eng_chain_linear(struct eng_chain *c, float *y, const float *x, const float *weight, int out,
                      int in, bool accumulate, const char *what);
#define eng_chain_malloc(c, ...) eng_chain_malloc(eng_chain_at(c, DEV_HERE_), __VA_ARGS__)
#define eng_chain_free(c, ...) eng_chain_free(eng_chain_at(c, DEV_HERE_), __VA_ARGS__)
#define eng_chain_copy(c, ...) eng_chain_copy(eng_chain_at(c, DEV_HERE_), __VA_ARGS__)
#define eng_chain_gemm(c, ...) eng_chain_gemm(eng_chain_at(c, DEV_HERE_), __VA_ARGS__)
#define eng_chain_launch(c, ...) eng_chain_launch(eng_chain_at(c, DEV_HERE_), __VA_ARGS__)
#define eng_chain_linear(c, ...) eng_chain_linear(eng_chain_at(c, DEV_HERE_), __VA_ARGS__)

/* Marks for a product that may leave out what the program writes as zeros or does not read; NULL
 * when its twin runs, whose faults write and read something else. */
const int32_t *eng_model_marks(enum k_id program, const int32_t *marks);

#define ENG_SPAN(ptr, elements, mode)                                                              \
    {                                                                                              \
        (ptr), (size_t)(elements) * sizeof(float), (mode)                                          \
    }
#define ENG_SPANS(spans) (spans), sizeof(spans) / sizeof((spans)[0])
