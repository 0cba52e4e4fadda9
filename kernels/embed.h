/* Token embedding: out[t] = table[ids[t]]; dtable[v] = sum of dout[t] over t with ids[t] = v. */
#pragma once
#include <stdint.h>

/* Row = token. ids (tokens); table (vocab, width); out (tokens, width), overwritten, no alias. */
struct k_embed_fwd_args {
    const int32_t *ids;
    const float *table;
    float *out;
    int width;
};

/* Row = block of K_EMBED_COLS columns; rows = ceil(width / K_EMBED_COLS).
 * Adds dout (tokens, width) into dtable (vocab, width) in token order: deterministic. */
enum { K_EMBED_COLS = 32 };
struct k_embed_bwd_args {
    const int32_t *ids;
    const float *dout;
    float *dtable;
    int tokens;
    int width;
};
