/* Masked softmax of attention scores (Vaswani et al. 2017). A query i of a row sees keys first[i]
 * <= j <= i: causal, and not across a document border. The two products around it are GEMMs. */
#pragma once
#include <stdint.h>

/* Row = (batch * heads + head) * time + i. scores (batch, heads, time, time), in place: raw
 * products in, probabilities out, exact zeros outside [first, i].
 * first (batch, time): index within the batch row of the first token of i's document. */
struct k_attn_softmax_fwd_args {
    float *scores;
    const int32_t *first;
    int heads;
    int time;
    float scale; /* 1 / sqrt(head_dim), applied to the raw products here */
};

/* Same rows. dprobs in place: gradient of probabilities in, gradient of the raw products out
 * (scale included): dS_j = scale * P_j * (dP_j - sum_k P_k dP_k), zero outside [first, i]. */
struct k_attn_softmax_bwd_args {
    const float *probs;
    float *dprobs;
    const int32_t *first;
    int heads;
    int time;
    float scale;
};
