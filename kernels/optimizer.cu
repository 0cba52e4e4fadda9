/* Gradient norm, clipping factor and AdamW over chunks of flat buffers. Launched by the training
 * loop; must not know which tensors there are. */
#include "optimizer.h"

#include "row.h"

ROW_KERNEL(grad_sumsq, 256)
{
    const struct k_chunk chunk = a->chunks[row];
    const float *ROW_RESTRICT grad = a->grad + chunk.offset;
    float sum;
    ROW_DOT(sum, i, chunk.count, grad[i], grad[i]);
    ROW_ONE {
        a->part[row] = sum;
    }
}

ROW_KERNEL(clip_coef, 256)
{
    const float *ROW_RESTRICT part = a->part;
    const int parts = FAULT(clip_parts, a->parts);
    float sum;
    ROW_SUM(sum, i, parts, part[i]);
    const float norm = FAULT(clip_norm, sqrtf(sum));
    const float coef = a->max_norm / (norm + 1e-6f);
    const float at_most_one = 1.0f < coef ? 1.0f : coef; /* NaN stays */
    ROW_ONE {
        a->norm[0] = norm;
        a->coef[0] = a->max_norm > 0.0f ? at_most_one : 1.0f;
    }
}

/* What a step does to every element of a chunk; rest = 1 - beta. */
struct adamw_step {
    float clip, lr, beta1, beta2, rest1, rest2, eps, decay, bias1, bias2;
};

/* Advances the moments of one element by its clipped gradient g; returns what to add to param. */
ROW_FN float adamw_delta(const struct adamw_step *s, float param, float *m, float *v, float g,
                         float decay)
{
    const float square = FAULT(adamw_square, g * g);
    *m = fmaf(s->beta1, *m, s->rest1 * g);
    *v = fmaf(s->beta2, *v, s->rest2 * square);
    const float mean = FAULT(adamw_mean, *m * s->bias1);
    const float root = FAULT(adamw_root, sqrtf(*v * s->bias2) + s->eps);
    return -s->lr * fmaf(decay, param, mean / root);
}

ROW_FN float adamw_element(const struct adamw_step *s, float param, float *m, float *v, float grad)
{
    const float g = FAULT(adamw_clip, s->clip * grad);
    return FAULT(adamw_decoupled, adamw_delta(s, param, m, v, g, s->decay));
}

ROW_FN float adamw_moved(float param, float update)
{
    return FAULT(adamw_moved, param + update);
}

ROW_KERNEL(adamw, 256)
{
    const struct k_chunk chunk = a->chunks[row];
    const float beta2 = FAULT(adamw_beta2, a->beta2);
    const float decay = FAULT(adamw_decay, chunk.decay != 0 ? a->weight_decay : 0.0f);
    const struct adamw_step step = {a->coef[0],   a->lr, a->beta1, beta2,    1.0f - a->beta1,
                                    1.0f - beta2, a->eps, decay,   a->bias1, a->bias2};
    float *ROW_RESTRICT param = a->param + chunk.offset;
    float *ROW_RESTRICT m = a->moment1 + chunk.offset;
    float *ROW_RESTRICT v = a->moment2 + chunk.offset;
    float *ROW_RESTRICT grad = a->grad + chunk.offset;
    if (a->update != NULL) {
        float *ROW_RESTRICT update = a->update + chunk.offset;
        ROW_FOR(i, chunk.count) {
            update[i] = adamw_element(&step, param[i], &m[i], &v[i], grad[i]);
            param[i] = adamw_moved(param[i], update[i]);
        }
    } else {
        ROW_FOR(i, chunk.count) {
            const float update = adamw_element(&step, param[i], &m[i], &v[i], grad[i]);
            param[i] = adamw_moved(param[i], update);
        }
    }
    if (FAULT(adamw_zero, a->zero_grad != 0)) {
        ROW_FOR(i, chunk.count) {
            grad[i] = 0.0f;
        }
    }
}
