/* SwiGLU, forward and backward. Launched by the model; must not know the products around it. */
#include "mlp.h"

#include "row.h"

ROW_FN float mlp_sigmoid(float z)
{
    return 1.0f / (1.0f + row_exp(-z));
}

ROW_KERNEL(swiglu_fwd, 32)
{
    const int ffn = a->ffn;
    const float *ROW_RESTRICT gate = a->gate_up + (int64_t)row * 2 * ffn;
    const float *ROW_RESTRICT up = a->gate_up + ((int64_t)row * 2 + 1) * ffn;
    float *ROW_RESTRICT out = a->out + (int64_t)row * ffn;
    ROW_FOR(i, ffn) {
        const float z = gate[i];
        const float silu = FAULT(mlp_silu, z * mlp_sigmoid(z));
        out[i] = silu * up[i];
    }
}

ROW_KERNEL(swiglu_bwd, 32)
{
    const int ffn = a->ffn;
    const float *ROW_RESTRICT gate = a->gate_up + (int64_t)row * 2 * ffn;
    const float *ROW_RESTRICT up = a->gate_up + ((int64_t)row * 2 + 1) * ffn;
    const float *ROW_RESTRICT dout = a->dout + (int64_t)row * ffn;
    float *ROW_RESTRICT dgate = a->dgate_up + (int64_t)row * 2 * ffn;
    float *ROW_RESTRICT dup = a->dgate_up + ((int64_t)row * 2 + 1) * ffn;
    ROW_FOR(i, ffn) {
        const float z = gate[i];
        const float sigmoid = mlp_sigmoid(z);
        const float slope = FAULT(mlp_slope, sigmoid * fmaf(z, 1.0f - sigmoid, 1.0f));
        const float through_gate = FAULT(mlp_dgate, dout[i] * up[i]);
        dgate[i] = through_gate * slope;
        dup[i] = FAULT(mlp_dup, dout[i] * (z * sigmoid));
    }
}
