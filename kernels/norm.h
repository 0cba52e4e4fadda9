/* RMSNorm (Zhang & Sennrich 2019): rstd = 1 / sqrt(mean(x^2) + eps), out = x * rstd * weight. */
#pragma once

/* Row = token. x, out (rows, width); weight (width); rstd (rows). out must not alias x. */
struct k_rmsnorm_fwd_args {
    const float *x;
    const float *weight;
    float *out;
    float *rstd;
    int width;
    float eps;
};

/* Row = chunk of K_NORM_ROWS tokens; rows = ceil(tokens / K_NORM_ROWS).
 * dx (tokens, width): overwritten, or added to when accumulate != 0 (the residual gradient).
 * dweight_part (chunks, width): overwritten with the chunk's share of dweight. No alias. */
enum { K_NORM_ROWS = 16 };
struct k_rmsnorm_bwd_args {
    const float *x;
    const float *weight;
    const float *rstd;
    const float *dout;
    float *dx;
    float *dweight_part;
    int tokens;
    int width;
    int accumulate;
};

/* Row = block of K_COLSUM_COLS columns; rows = ceil(width / K_COLSUM_COLS).
 * out (width) += sum over parts, in increasing order, of part (parts, width). */
enum { K_COLSUM_COLS = 256 };
struct k_colsum_args {
    const float *part;
    float *out;
    int parts;
    int width;
};
