/* Rotary position embedding, half-rotation convention (Su et al. 2021; Hugging Face Llama): element
 * i < head_dim/2 is paired with i + head_dim/2 and turned by the angle
 * position * theta^(-2i/head_dim). */
#pragma once
#include <stdint.h>

/* Row = token; in place on the first `heads` heads of the row: x (tokens, stride).
 * cosine, sine (context, head_dim/2); positions (tokens). direction +1 turns (forward), -1 turns
 * back (backward: the inverse rotation of the gradient). */
struct k_rope_args {
    float *x;
    const float *cosine;
    const float *sine;
    const int32_t *positions;
    int stride;
    int heads;
    int head_dim;
    float direction;
};
