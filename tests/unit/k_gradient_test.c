/* Backward programs against finite differences of the forward formulas in double precision. */
#include <criterion/criterion.h>
#include <string.h>

#include "attention.h"
#include "embed.h"
#include "k_close.h"
#include "kernel.h"
#include "loss.h"
#include "mlp.h"
#include "norm.h"
#include "rope.h"

/* Inputs of a formula as doubles and the weights of its outputs in the loss sum_i weight_i out_i.
 */
struct formula {
    double (*loss)(const double *input, const float *weight);
    const float *weight;
};

static void run(enum k_id id, const void *args, int rows)
{
    k_kernel_at(id)->rows(args, 0, rows);
}

/* Compares gradient with central differences. Their error: h^2 times the third derivative, and
 * rounding of the loss divided by h, which for h = cbrt(DBL_EPSILON) is the same h^2; all
 * derivatives of these formulas are below `scale`, 8 for safety. Rounding of the float program:
 * `roundings`. */
static void check(const struct formula *f, const float *input, int inputs, const float *gradient,
                  double scale, double roundings)
{
    enum { INPUTS_MAX = 1024 };
    static double x[INPUTS_MAX], numeric[INPUTS_MAX];
    const double h = cbrt(DBL_EPSILON);
    double largest = 0.0;
    cr_assert(inputs > 0 && inputs <= INPUTS_MAX);
    for (int i = 0; i < inputs; i++) {
        x[i] = (double)input[i];
    }
    for (int i = 0; i < inputs; i++) {
        const double kept = x[i];
        x[i] = kept + h;
        const double above = f->loss(x, f->weight);
        x[i] = kept - h;
        const double below = f->loss(x, f->weight);
        x[i] = kept;
        numeric[i] = (above - below) / (2.0 * h);
        largest = fmax(largest, fabs(numeric[i]));
    }
    cr_assert(largest > 0.0);
    const double bound = roundings * (double)FLT_EPSILON * largest + 8.0 * scale * h * h;
    for (int i = 0; i < inputs; i++) {
        const double error = fabs((double)gradient[i] - numeric[i]);
        cr_assert(error <= bound, "[%d]: %.9g, by differences %.9g, bound %g", i,
                  (double)gradient[i], numeric[i], bound);
    }
}

enum { NORM_TOKENS = K_NORM_ROWS + 2, NORM_WIDTH = 13, NORM_X = NORM_TOKENS * NORM_WIDTH };

/* input: x, then weight */
static double norm_loss(const double *input, const float *weight)
{
    double loss = 0.0;
    for (int t = 0; t < NORM_TOKENS; t++) {
        const double *x = input + t * NORM_WIDTH, *gain = input + NORM_X;
        double sumsq = 0.0;
        for (int i = 0; i < NORM_WIDTH; i++) {
            sumsq += x[i] * x[i];
        }
        for (int i = 0; i < NORM_WIDTH; i++) {
            loss += (double)weight[t * NORM_WIDTH + i] * x[i] * gain[i] /
                    sqrt(sumsq / NORM_WIDTH + 1e-5);
        }
    }
    return loss;
}

Test(k_gradient, rmsnorm)
{
    enum { CHUNKS = 2 };
    static float input[NORM_X + NORM_WIDTH], gradient[NORM_X + NORM_WIDTH], dout[NORM_X],
        out[NORM_X];
    float rstd[NORM_TOKENS], part[CHUNKS * NORM_WIDTH];
    k_fill(input, NORM_X + NORM_WIDTH, 1, 1.0f);
    k_fill(dout, NORM_X, 2, 1.0f);
    const float *gain = input + NORM_X;
    const struct k_rmsnorm_fwd_args forward = {input, gain, out, rstd, NORM_WIDTH, 1e-5f};
    run(K_ID_rmsnorm_fwd, &forward, NORM_TOKENS);
    k_fill(gradient, NORM_X, 3, NAN); /* overwritten */
    struct k_rmsnorm_bwd_args a = {input, gain,        rstd,       dout, gradient,
                                   part,  NORM_TOKENS, NORM_WIDTH, 0};
    run(K_ID_rmsnorm_bwd, &a, CHUNKS);
    const struct k_colsum_args sum = {part, gradient + NORM_X, CHUNKS, NORM_WIDTH};
    run(K_ID_colsum, &sum, 1);
    const struct formula f = {norm_loss, dout};
    check(&f, input, NORM_X + NORM_WIDTH, gradient, NORM_X, 2 * NORM_X);
    static float twice[NORM_X];
    memcpy(twice, gradient, sizeof twice);
    a.dx = twice;
    a.accumulate = 1;
    run(K_ID_rmsnorm_bwd, &a, CHUNKS);
    for (int i = 0; i < NORM_X; i++) {
        cr_assert(twice[i] == 2.0f * gradient[i], "accumulated [%d]", i);
    }
}

enum { TIME = 9, HEADS = 2, SCORES = HEADS * TIME * TIME };
static const int32_t first[TIME] = {0, 0, 0, 0, 4, 4, 4, 4, 4};
static const float scale = 0.5f;

static double attention_loss(const double *scores, const float *weight)
{
    double loss = 0.0;
    for (int row = 0; row < HEADS * TIME; row++) {
        const int query = row % TIME;
        double sum = 0.0;
        for (int j = first[query]; j <= query; j++) {
            sum += exp((double)scale * scores[row * TIME + j]);
        }
        for (int j = first[query]; j <= query; j++) {
            loss +=
                (double)weight[row * TIME + j] * exp((double)scale * scores[row * TIME + j]) / sum;
        }
    }
    return loss;
}

Test(k_gradient, attention_softmax)
{
    float input[SCORES], probs[SCORES], dprobs[SCORES], weight[SCORES];
    k_fill(input, SCORES, 1, 3.0f);
    k_fill(weight, SCORES, 2, 1.0f);
    memcpy(probs, input, sizeof probs);
    memcpy(dprobs, weight, sizeof dprobs);
    const struct k_attn_softmax_fwd_args forward = {probs, first, HEADS, TIME, scale};
    run(K_ID_attn_softmax_fwd, &forward, HEADS * TIME);
    const struct k_attn_softmax_bwd_args a = {probs, dprobs, first, HEADS, TIME, scale};
    run(K_ID_attn_softmax_bwd, &a, HEADS * TIME);
    const struct formula f = {attention_loss, weight};
    check(&f, input, SCORES, dprobs, SCORES, 4 * TIME);
    for (int i = 0; i < SCORES; i++) {
        const int query = i / TIME % TIME, key = i % TIME;
        cr_assert((key >= first[query] && key <= query) || dprobs[i] == 0.0f, "outside [%d]", i);
    }
}

enum { FFN_ROWS = 2, FFN = 20 };

static double swiglu_loss(const double *input, const float *weight)
{
    double loss = 0.0;
    for (int i = 0; i < FFN_ROWS * FFN; i++) {
        const double gate = input[i / FFN * 2 * FFN + i % FFN];
        const double up = input[(i / FFN * 2 + 1) * FFN + i % FFN];
        loss += (double)weight[i] * gate / (1.0 + exp(-gate)) * up;
    }
    return loss;
}

Test(k_gradient, swiglu)
{
    float input[FFN_ROWS * 2 * FFN], gradient[FFN_ROWS * 2 * FFN], dout[FFN_ROWS * FFN];
    k_fill(input, FFN_ROWS * 2 * FFN, 1, 4.0f);
    k_fill(dout, FFN_ROWS * FFN, 2, 1.0f);
    const struct k_swiglu_bwd_args a = {input, dout, gradient, FFN};
    run(K_ID_swiglu_bwd, &a, FFN_ROWS);
    const struct formula f = {swiglu_loss, dout};
    check(&f, input, FFN_ROWS * 2 * FFN, gradient, FFN_ROWS * FFN * 16, 16);
}

enum { VOCAB = 300, LABELS = 3 };
static const int32_t labels[LABELS] = {299, K_LABEL_IGNORED, 4};

static double xent_loss(const double *logits, const float *weight)
{
    double loss = 0.0;
    for (int r = 0; r < LABELS; r++) {
        double sum = 0.0;
        for (int i = 0; i < VOCAB; i++) {
            sum += exp(logits[r * VOCAB + i]);
        }
        loss += labels[r] < 0 ? 0.0 : (log(sum) - logits[r * VOCAB + labels[r]]) * (double)*weight;
    }
    return loss;
}

Test(k_gradient, cross_entropy)
{
    static float input[LABELS * VOCAB], gradient[LABELS * VOCAB];
    float nll[LABELS];
    const float inv_count = 0.5f;
    k_fill(input, LABELS * VOCAB, 1, 4.0f);
    memcpy(gradient, input, sizeof gradient);
    const struct k_xent_args a = {gradient, labels, nll, VOCAB, inv_count};
    run(K_ID_xent, &a, LABELS);
    const struct formula f = {xent_loss, &inv_count};
    check(&f, input, LABELS * VOCAB, gradient, 16, VOCAB);
    const double loss = ((double)nll[0] + (double)nll[1] + (double)nll[2]) * (double)inv_count;
    static double x[LABELS * VOCAB];
    for (int i = 0; i < LABELS * VOCAB; i++) {
        x[i] = (double)input[i];
    }
    k_assert_close((float)loss, xent_loss(x, &inv_count), loss, VOCAB, "loss", 0);
}

enum { ROPE_TOKENS = 3, ROPE_HEADS = 2, DIM = 6, ROPE_STRIDE = ROPE_HEADS * DIM };
static const int32_t positions[ROPE_TOKENS] = {0, 1, 7};

static double angle(int token, int pair)
{
    return (double)positions[token] * pow(10000.0, -2.0 * pair / DIM);
}

static double rope_loss(const double *x, const float *weight)
{
    double loss = 0.0;
    for (int i = 0; i < ROPE_TOKENS * ROPE_STRIDE; i++) {
        const int d = i % DIM, pair = d % (DIM / 2);
        const double turn = angle(i / ROPE_STRIDE, pair);
        const double partner = d < DIM / 2 ? -x[i + DIM / 2] : x[i - DIM / 2];
        loss += (double)weight[i] * (x[i] * cos(turn) + partner * sin(turn));
    }
    return loss;
}

Test(k_gradient, rope_turned_back)
{
    enum { CONTEXT = 8, COUNT = ROPE_TOKENS * ROPE_STRIDE };
    float input[COUNT], gradient[COUNT], weight[COUNT];
    float cosine[CONTEXT * DIM / 2], sine[CONTEXT * DIM / 2];
    k_fill(input, COUNT, 1, 1.0f);
    k_fill(weight, COUNT, 2, 1.0f);
    memcpy(gradient, weight, sizeof gradient);
    for (int i = 0; i < CONTEXT * DIM / 2; i++) {
        const double turn = i / (DIM / 2) * pow(10000.0, -2.0 * (i % (DIM / 2)) / DIM);
        cosine[i] = (float)cos(turn);
        sine[i] = (float)sin(turn);
    }
    const struct k_rope_args a = {gradient,    cosine,     sine, positions,
                                  ROPE_STRIDE, ROPE_HEADS, DIM,  -1.0f};
    run(K_ID_rope, &a, ROPE_TOKENS);
    const struct formula f = {rope_loss, weight};
    check(&f, input, COUNT, gradient, COUNT, 8);
}

enum { EMBED_TOKENS = 7, EMBED_WIDTH = 40, EMBED_VOCAB = 4 };
static const int32_t ids[EMBED_TOKENS] = {1, 3, 1, 1, 0, 3, 1};

static double embed_loss(const double *table, const float *weight)
{
    double loss = 0.0;
    for (int i = 0; i < EMBED_TOKENS * EMBED_WIDTH; i++) {
        loss += (double)weight[i] * table[ids[i / EMBED_WIDTH] * EMBED_WIDTH + i % EMBED_WIDTH];
    }
    return loss;
}

Test(k_gradient, embedding_adds_repeated_tokens)
{
    float table[EMBED_VOCAB * EMBED_WIDTH], gradient[EMBED_VOCAB * EMBED_WIDTH] = {0.0f};
    float dout[EMBED_TOKENS * EMBED_WIDTH];
    k_fill(table, EMBED_VOCAB * EMBED_WIDTH, 1, 1.0f);
    k_fill(dout, EMBED_TOKENS * EMBED_WIDTH, 2, 1.0f);
    const struct k_embed_bwd_args a = {ids, dout, gradient, EMBED_TOKENS, EMBED_WIDTH};
    run(K_ID_embed_bwd, &a, (EMBED_WIDTH + K_EMBED_COLS - 1) / K_EMBED_COLS);
    const struct formula f = {embed_loss, dout};
    check(&f, table, EMBED_VOCAB * EMBED_WIDTH, gradient, EMBED_TOKENS * EMBED_WIDTH, EMBED_TOKENS);
    cr_assert(gradient[2 * EMBED_WIDTH] == 0.0f, "a token that does not occur has no gradient");
}
