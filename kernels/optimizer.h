/* Global-norm clipping and AdamW (Loshchilov & Hutter 2019) over flat parameter buffers.
 * A flat buffer holds all tensors of the model; a table of chunks names what lies where. */
#pragma once
#include <stdint.h>

/* At most K_CHUNK consecutive elements of one tensor. Tables are sorted by tensor, then offset. */
enum { K_CHUNK = 4096 };
struct k_chunk {
    int64_t offset; /* first element in the flat buffer */
    int64_t index;  /* index of that element within its tensor */
    int32_t count;
    int32_t tensor;
    int32_t decay; /* 1: weight decay applies to this tensor */
    int32_t pad;
};

/* Row = chunk. part (chunks): sum of squares of the chunk's gradients. */
struct k_grad_sumsq_args {
    const float *grad;
    const struct k_chunk *chunks;
    float *part;
};

/* One row. norm[0] = sqrt(sum of part, in order); coef[0] = min(1, max_norm / (norm + 1e-6)), the
 * convention of torch.nn.utils.clip_grad_norm_; max_norm <= 0 means no clipping (coef 1). */
struct k_clip_coef_args {
    const float *part;
    int parts;
    float max_norm;
    float *norm;
    float *coef;
};

/* Row = chunk. With g = grad * coef[0]:
 * m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
 * delta = -lr * ( (m * bias1) / (sqrt(v * bias2) + eps) + decay * weight_decay * param ).
 * param += delta; delta is stored in `update` unless NULL; grad is set to 0 when zero_grad != 0.
 * bias1 = 1 / (1 - beta1^t), bias2 = 1 / (1 - beta2^t) with t = 1 at the first update.
 * param, moment1, moment2, grad, update: flat buffers of one layout; no alias. */
struct k_adamw_args {
    float *param;
    float *moment1;
    float *moment2;
    float *grad;
    float *update;
    const struct k_chunk *chunks;
    const float *coef;
    float lr;
    float beta1;
    float beta2;
    float eps;
    float weight_decay;
    float bias1;
    float bias2;
    int zero_grad;
};
