/* What the backward pass uses of the forward pass. Not for other folders. */
#pragma once

#include "model_params.h"

/* Where the operands of the attention products lie for the nth query head of every key/value head;
 * element offsets and strides of batch dimensions (outer: row, inner: key/value head). */
struct eng_attention_strides {
    size_t query, query_outer, query_inner; /* within qkv; query and query_inner also within attn */
    size_t key, value, kv_inner;            /* within qkv; outer stride is query_outer */
    size_t probs, probs_outer, probs_inner;
    size_t out_outer; /* outer stride within attn */
};

/* Sets the batch counts of args and fills the strides. */
void eng_model_attention_batch(const struct eng_model *m, int nth, struct k_gemm_args *args,
                               struct eng_attention_strides *s);
void eng_model_norm(struct eng_chain *c, const float *x, const float *weight, float *out,
                    float *rstd, const char *what);
void eng_model_rope(struct eng_chain *c, float *qkv, const int32_t *positions, float direction,
                    const char *what);
void eng_model_free_layer(struct eng_chain *c, struct eng_layer_saved *s);
void eng_model_free_head(struct eng_chain *c, struct eng_head_saved *h);
