/* Token embedding, forward and backward. Launched by the model; must not know the vocabulary. */
#include "embed.h"

#include "row.h"

ROW_KERNEL(embed_fwd, 32)
{
    const int width = a->width;
    const float *ROW_RESTRICT from = a->table + (int64_t)a->ids[row] * width;
    float *ROW_RESTRICT out = a->out + (int64_t)row * width;
    ROW_FOR(i, width) {
        out[i] = from[i];
    }
}

/* Lane = column: a column's sum is made by one lane in token order, so a repeated token is safe. */
ROW_KERNEL(embed_bwd, K_EMBED_COLS)
{
    const int width = a->width;
    const int first = row * K_EMBED_COLS;
    const int cols = width - first < K_EMBED_COLS ? width - first : K_EMBED_COLS;
    for (int t = 0; t < a->tokens; t++) {
        const int id = a->ids[t];
        const float *ROW_RESTRICT from = a->dout + (int64_t)t * width + first;
        float *ROW_RESTRICT to = a->dtable + (int64_t)id * width + first;
        if (FAULT(embed_add, true)) {
            ROW_FOR(i, cols) {
                const int column = FAULT(embed_column, i);
                to[column] += from[column];
            }
        }
    }
}
