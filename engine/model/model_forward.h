/* What the backward pass uses of the forward pass. Not for other folders. */
#pragma once

#include "model_params.h"

/* Where one operand of the attention products lies in its buffer: a matrix for each batch row
 * (outer) and key/value head (inner). Elements, not bytes. */
struct eng_place {
    size_t offset, outer, inner;
    int stride; /* from one row of the matrix to the next */
};

/* The nth query head of every key/value head: in qkv, in the attention output, in the scores. */
struct eng_place eng_place_query(const eng_model *m, int nth);
struct eng_place eng_place_attn(const eng_model *m, int nth);
struct eng_place eng_place_scores(const eng_model *m, int nth);
/* The key/value heads themselves, in qkv. */
struct eng_place eng_place_key(const eng_model *m);
struct eng_place eng_place_value(const eng_model *m);

/* C (+)= op(A) op(B) for all batch rows and key/value heads; op(A) is (m, k), op(B) is (k, n). */
struct eng_attention_product {
    const float *a, *b;
    float *c;
    struct eng_place a_place, b_place, c_place;
    int m, n, k;
    bool trans_a, trans_b, accumulate;
    enum k_gemm_mask mask; /* where `first` is not NULL */
    const int32_t *first;  /* (rows, context), as the softmax reads it */
};
void eng_chain_attention(struct eng_chain *c, const struct eng_attention_product *p,
                         const char *what);

void eng_model_norm(struct eng_chain *c, const float *x, const float *weight, float *out,
                    float *rstd, const char *what);
void eng_model_rope(struct eng_chain *c, float *qkv, const int32_t *positions, float direction,
                    const char *what);
void eng_model_free_layer(struct eng_chain *c, struct eng_layer_saved *s);
void eng_model_free_head(struct eng_chain *c, struct eng_head_saved *h);
