/* Softmax of attention scores and its gradient. Launched by the model; must not know the products
 * around it. */
#include "attention.h"

#include "row.h"

/* Query i of a batch row of `time` tokens sees keys [attn_begin, attn_end). */
ROW_FN int attn_begin(const int32_t *first, int i)
{
    return FAULT(attn_begin, first[i]);
}

ROW_FN int attn_end(ROW_UNUSED const int32_t *first, int i, ROW_UNUSED int time)
{
    return FAULT(attn_end, i + 1);
}

ROW_KERNEL(attn_softmax_fwd, 32)
{
    const int time = a->time;
    const float scale = a->scale;
    const int query = row % time;
    const int32_t *first = a->first + (int64_t)(row / time / a->heads) * time;
    const int begin = attn_begin(first, query);
    const int end = attn_end(first, query, time);
    float *ROW_RESTRICT s = a->scores + (int64_t)row * time;
    float largest;
    float sum;
    ROW_MAX(largest, j, end - begin, s[begin + j]);
    ROW_SUM(sum, j, end - begin, s[begin + j] = row_exp((s[begin + j] - largest) * scale));
    const float inverse = 1.0f / sum;
    ROW_FOR(j, begin) {
        s[j] = 0.0f;
    }
    ROW_FOR(j, end - begin) {
        s[begin + j] *= inverse;
    }
    ROW_FOR(j, time - end) {
        s[end + j] = 0.0f;
    }
}

ROW_KERNEL(attn_softmax_bwd, 32)
{
    const int time = a->time;
    const float scale = FAULT(attn_bwd_scale, a->scale);
    const int query = row % time;
    const int32_t *first = a->first + (int64_t)(row / time / a->heads) * time;
    const int begin = attn_begin(first, query);
    const int end = attn_end(first, query, time);
    float *ROW_RESTRICT d = a->dprobs + (int64_t)row * time;
    const float *ROW_RESTRICT p = a->probs + (int64_t)row * time;
    float sum;
    ROW_DOT(sum, j, end - begin, p[begin + j], d[begin + j]);
    const float mean = FAULT(attn_bwd_mean, sum);
    ROW_FOR(j, begin) {
        d[j] = 0.0f;
    }
    ROW_FOR(j, end - begin) {
        d[begin + j] = scale * p[begin + j] * (d[begin + j] - mean);
    }
    ROW_FOR(j, time - end) {
        d[end + j] = 0.0f;
    }
}
