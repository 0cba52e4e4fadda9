/* RMSNorm, forward and backward. Launched by the model; must not know layers. */
#include "norm.h"

#include "row.h"

ROW_KERNEL(rmsnorm_fwd, 32)
{
    const int width = a->width;
    const float eps = a->eps;
    const float *ROW_RESTRICT x = a->x + (int64_t)row * width;
    const float *ROW_RESTRICT weight = a->weight;
    float *ROW_RESTRICT out = a->out + (int64_t)row * width;
    float sumsq;
    ROW_DOT(sumsq, i, width, x[i], x[i]);
    const float rstd = FAULT(norm_rstd, 1.0f / sqrtf(sumsq / (float)width + eps));
    ROW_FOR(i, width) {
        out[i] = x[i] * rstd * FAULT(norm_gain, weight[i]);
    }
    ROW_ONE {
        a->rstd[row] = rstd;
    }
}

/* dx_i = rstd (g_i - x_i rstd^2 mean(g x)), g = dout weight */
ROW_FN float norm_dx(float g, float x, float rstd, float coef)
{
    return FAULT(norm_dx, fmaf(g, rstd, -(coef * x)));
}

ROW_KERNEL(rmsnorm_bwd, 32)
{
    const int width = a->width;
    const int first = row * K_NORM_ROWS;
    const int last = first + K_NORM_ROWS < a->tokens ? first + K_NORM_ROWS : a->tokens;
    const bool accumulate = a->accumulate != 0;
    const float *ROW_RESTRICT weight = a->weight;
    float *ROW_RESTRICT part = a->dweight_part + (int64_t)row * width;
    ROW_FOR(i, width) {
        part[i] = 0.0f;
    }
    for (int t = first; t < last; t++) {
        const float *ROW_RESTRICT x = a->x + (int64_t)t * width;
        const float *ROW_RESTRICT dout = a->dout + (int64_t)t * width;
        float *ROW_RESTRICT dx = a->dx + (int64_t)t * width;
        const float rstd = a->rstd[t];
        float dot;
        ROW_DOT(dot, i, width, dout[i] * weight[i], x[i]);
        const float coef = FAULT(norm_bwd_coef, dot * rstd * rstd * rstd / (float)width);
        ROW_FOR(i, width) {
            part[i] = fmaf(dout[i] * x[i], rstd, part[i]);
        }
        if (accumulate) {
            ROW_FOR(i, width) {
                dx[i] += norm_dx(dout[i] * weight[i], x[i], rstd, coef);
            }
        } else {
            ROW_FOR(i, width) {
                dx[i] = norm_dx(dout[i] * weight[i], x[i], rstd, coef);
            }
        }
    }
}

ROW_KERNEL(colsum, K_COLSUM_COLS)
{
    const int first = row * K_COLSUM_COLS;
    const int cols = a->width - first < K_COLSUM_COLS ? a->width - first : K_COLSUM_COLS;
    const int parts = FAULT(norm_gain_parts, a->parts);
    float *ROW_RESTRICT out = a->out + first;
    for (int p = 0; p < parts; p++) {
        const float *ROW_RESTRICT part = a->part + (int64_t)p * a->width + first;
        ROW_FOR(i, cols) {
            out[i] = FAULT(norm_gain_add, out[i] + part[i]);
        }
    }
}
