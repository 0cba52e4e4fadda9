/* Rotary position embedding, in place. Launched by the model, forward and backward; must not know
 * where queries and keys stand in a row. */
#include "rope.h"

#include "row.h"

/* Turns the pair (v[first], v[second]) by the angle with this cosine and sine. */
ROW_FN void rope_turn(float *v, int first, int second, float cosine, float sine)
{
    const float x = v[first];
    const float y = v[second];
    v[first] = fmaf(x, cosine, -(y * sine));
    v[second] = fmaf(y, cosine, x * sine);
}

ROW_KERNEL(rope, 32)
{
    const int half = a->head_dim / 2;
    const float direction = a->direction;
    const float *ROW_RESTRICT cosine = a->cosine + (int64_t)a->positions[row] * half;
    const float *ROW_RESTRICT sine = a->sine + (int64_t)a->positions[row] * half;
    for (int h = 0; h < a->heads; h++) {
        float *v = a->x + (int64_t)row * a->stride + (int64_t)h * a->head_dim;
        ROW_FOR(i, half) {
            const float s = direction * sine[i];
            FAULT(rope_pair, rope_turn(v, i, i + half, cosine[i], s));
        }
    }
}
