/* Cross entropy over the vocabulary with ignored labels, and its sum:
 * nll = log(sum_v exp(z_v)) - z_label with the largest z taken out first. */
#pragma once
#include <stdint.h>

enum { K_LABEL_IGNORED = -100 };

/* Row = token. logits (rows, vocab): in place, the gradient out when inv_count > 0:
 * d = (softmax - onehot) * inv_count; left as they are when inv_count == 0 (evaluation).
 * labels (rows): K_LABEL_IGNORED gives nll 0 and gradient 0. nll (rows): nats, overwritten. No
 * alias. */
struct k_xent_args {
    float *logits;
    const int32_t *labels;
    float *nll;
    int vocab;
    float inv_count; /* 1 / supervised tokens of the whole optimizer step */
};

/* One row. out[0] (+)= sum of nll (count), added when accumulate != 0. */
struct k_loss_sum_args {
    const float *nll;
    float *out;
    int count;
    int accumulate;
};
