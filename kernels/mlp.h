/* SwiGLU (Shazeer 2020): out = silu(gate) * up with silu(z) = z / (1 + exp(-z)). */
#pragma once

/* Row = token. gate_up (rows, 2 * ffn): gate first, then up. out (rows, ffn), overwritten. */
struct k_swiglu_fwd_args {
    const float *gate_up;
    float *out;
    int ffn;
};

/* Row = token. dgate_up (rows, 2 * ffn), overwritten; may not alias gate_up. */
struct k_swiglu_bwd_args {
    const float *gate_up;
    const float *dout;
    float *dgate_up;
    int ffn;
};
