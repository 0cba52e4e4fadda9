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
    float *row_scores = a->scores + (int64_t)row * time;
    float *s = row_scores + begin;
    float largest;
    float sum;
    ROW_MAX(largest, j, end - begin, s[j]);
    ROW_SUM(sum, j, end - begin, s[j] = row_exp((s[j] - largest) * scale));
    const float inverse = 1.0f / sum;
    ROW_FOR(j, end - begin)
    {
        s[j] *= inverse;
    }
    ROW_FOR(j, begin)
    {
        row_scores[j] = 0.0f;
    }
    ROW_FOR(j, time - end)
    {
        row_scores[end + j] = 0.0f;
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
    float *row_grad = a->dprobs + (int64_t)row * time;
    float *ROW_RESTRICT d = a->dprobs + (int64_t)row * time + begin;
    const float *ROW_RESTRICT p = a->probs + (int64_t)row * time + begin;
    float sum;
    ROW_DOT(sum, j, end - begin, p[j], d[j]);
    const float mean = FAULT(attn_bwd_mean, sum);
    ROW_FOR(j, end - begin)
    {
        d[j] = scale * p[j] * (d[j] - mean);
    }
    ROW_FOR(j, begin)
    {
        row_grad[j] = 0.0f;
    }
    ROW_FOR(j, time - end)
    {
        row_grad[end + j] = 0.0f;
    }
}
