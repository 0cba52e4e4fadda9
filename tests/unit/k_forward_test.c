/* Forward programs and sums against plain loops in double precision. */
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

static void run(enum k_id id, const void *args, int rows)
{
    k_kernel_at(id)->rows(args, 0, rows);
}

Test(k_forward, embed_copies_rows_of_the_table)
{
    enum { WIDTH = 45, VOCAB = 5, TOKENS = 4 };
    static const int32_t ids[TOKENS] = {3, 0, 3, 4};
    float table[VOCAB * WIDTH], out[TOKENS * WIDTH];
    k_fill(table, VOCAB * WIDTH, 1, 1.0f);
    const struct k_embed_fwd_args a = {ids, table, out, WIDTH};
    run(K_ID_embed_fwd, &a, TOKENS);
    for (int t = 0; t < TOKENS; t++) {
        cr_assert(memcmp(out + t * WIDTH, table + ids[t] * WIDTH, sizeof(float) * WIDTH) == 0);
    }
}

Test(k_forward, rmsnorm_divides_by_the_root_of_the_mean_square)
{
    enum { ROWS = 3, WIDTH = 333 };
    static float x[ROWS * WIDTH], weight[WIDTH], out[ROWS * WIDTH], rstd[ROWS];
    k_fill(x, ROWS * WIDTH, 1, 0.01f);
    k_fill(weight, WIDTH, 2, 2.0f);
    const struct k_rmsnorm_fwd_args a = {x, weight, out, rstd, WIDTH, 1e-5f};
    run(K_ID_rmsnorm_fwd, &a, ROWS);
    for (int r = 0; r < ROWS; r++) {
        double sumsq = 0.0;
        for (int i = 0; i < WIDTH; i++) {
            sumsq += (double)x[r * WIDTH + i] * (double)x[r * WIDTH + i];
        }
        const double exact = 1.0 / sqrt(sumsq / WIDTH + (double)a.eps);
        k_assert_close(rstd[r], exact, exact, WIDTH, "rstd", r);
        for (int i = 0; i < WIDTH; i++) {
            const double y = (double)x[r * WIDTH + i] * exact * (double)weight[i];
            k_assert_close(out[r * WIDTH + i], y, fabs(y), WIDTH + 2, "out", i);
        }
    }
}

Test(k_forward, rope_turns_halves_of_each_head_and_leaves_the_rest)
{
    enum { TOKENS = 5, HEADS = 2, DIM = 10, STRIDE = 27, CONTEXT = 9 };
    static const int32_t positions[TOKENS] = {0, 8, 3, 3, 1};
    float x[TOKENS * STRIDE], before[TOKENS * STRIDE], cosine[CONTEXT * DIM / 2],
        sine[CONTEXT * DIM / 2];
    k_fill(before, TOKENS * STRIDE, 1, 1.0f);
    memcpy(x, before, sizeof x);
    for (int i = 0; i < CONTEXT * DIM / 2; i++) {
        cosine[i] = cosf((float)i);
        sine[i] = sinf((float)i);
    }
    const struct k_rope_args a = {x, cosine, sine, positions, STRIDE, HEADS, DIM, -1.0f};
    run(K_ID_rope, &a, TOKENS);
    for (int i = 0; i < TOKENS * STRIDE; i++) {
        const int t = i / STRIDE, head = i % STRIDE / DIM, d = i % STRIDE % DIM;
        if (head >= HEADS) {
            cr_assert(x[i] == before[i]);
            continue;
        }
        const int entry = positions[t] * DIM / 2 + d % (DIM / 2);
        const double c = (double)cosine[entry] * (double)before[i];
        const double partner = (double)before[d < DIM / 2 ? i + DIM / 2 : i - DIM / 2];
        const double s = -(double)sine[entry] * partner * (d < DIM / 2 ? -1.0 : 1.0);
        k_assert_close(x[i], c + s, fabs(c) + fabs(s), 3, "rope", i);
    }
}

Test(k_forward, softmax_sees_its_document_up_to_itself)
{
    enum { BATCH = 2, HEADS = 2, TIME = 67, BORDER = 40, ALL = BATCH * HEADS * TIME * TIME };
    static float scores[ALL], raw[ALL];
    static int32_t first[BATCH * TIME];
    k_fill(raw, ALL, 1, 30.0f);
    memcpy(scores, raw, sizeof scores);
    for (int t = BORDER; t < TIME; t++) {
        first[TIME + t] = BORDER; /* the second batch row holds two documents */
    }
    const struct k_attn_softmax_fwd_args a = {scores, first, HEADS, TIME, 0.25f};
    run(K_ID_attn_softmax_fwd, &a, BATCH * HEADS * TIME);
    for (int row = 0; row < BATCH * HEADS * TIME; row++) {
        const int query = row % TIME, begin = first[row / TIME / HEADS * TIME + query];
        double largest = -DBL_MAX, sum = 0.0;
        for (int j = begin; j <= query; j++) {
            largest = fmax(largest, (double)raw[row * TIME + j]);
        }
        for (int j = begin; j <= query; j++) {
            sum += exp(((double)raw[row * TIME + j] - largest) * (double)a.scale);
        }
        for (int j = 0; j < TIME; j++) {
            const float got = scores[row * TIME + j];
            if (j < begin || j > query) {
                cr_assert(got == 0.0f, "row %d key %d", row, j);
                continue;
            }
            const double argument = ((double)raw[row * TIME + j] - largest) * (double)a.scale;
            const double exact = exp(argument) / sum;
            /* two roundings of the argument, each worth |argument| roundings of the result */
            k_assert_close(got, exact, exact, TIME + 8 + 2 * fabs(argument), "softmax", j);
        }
    }
}

Test(k_forward, softmax_of_not_a_number_is_not_a_number)
{
    enum { TIME = 3 };
    float scores[TIME * TIME] = {0.0f, 0.0f, 0.0f, NAN, 1.0f, 0.0f, 1.0f, INFINITY, 2.0f};
    const int32_t first[TIME] = {0, 0, 0};
    const struct k_attn_softmax_fwd_args a = {scores, first, 1, TIME, 1.0f};
    run(K_ID_attn_softmax_fwd, &a, TIME);
    cr_assert(scores[0] == 1.0f);
    cr_assert(isnan(scores[3]) && isnan(scores[4]) && isnan(scores[7]));
}

Test(k_forward, swiglu_multiplies_silu_of_the_gate_with_up)
{
    enum { ROWS = 2, FFN = 99 };
    float gate_up[ROWS * 2 * FFN], out[ROWS * FFN];
    k_fill(gate_up, ROWS * 2 * FFN, 1, 20.0f);
    const struct k_swiglu_fwd_args a = {gate_up, out, FFN};
    run(K_ID_swiglu_fwd, &a, ROWS);
    for (int i = 0; i < ROWS * FFN; i++) {
        const int row = i / FFN, column = i % FFN;
        const double z = (double)gate_up[row * 2 * FFN + column];
        const double exact = z / (1.0 + exp(-z)) * (double)gate_up[(row * 2 + 1) * FFN + column];
        k_assert_close(out[i], exact, fabs(exact), 8, "swiglu", i);
    }
}

Test(k_forward, cross_entropy_and_its_gradient)
{
    enum { ROWS = 4, VOCAB = 2500 };
    static float logits[ROWS * VOCAB], raw[ROWS * VOCAB];
    static const int32_t labels[ROWS] = {0, 2499, K_LABEL_IGNORED, 700};
    float nll[ROWS];
    k_fill(raw, ROWS * VOCAB, 1, 15.0f);
    memcpy(logits, raw, sizeof logits);
    struct k_xent_args a = {logits, labels, nll, VOCAB, 0.0f};
    run(K_ID_xent, &a, ROWS);
    cr_assert(memcmp(logits, raw, sizeof logits) == 0, "evaluation changed the logits");
    float evaluated[ROWS];
    memcpy(evaluated, nll, sizeof nll);
    a.inv_count = 0.125f;
    run(K_ID_xent, &a, ROWS);
    cr_assert(memcmp(evaluated, nll, sizeof nll) == 0, "training changes the loss");
    for (int r = 0; r < ROWS; r++) {
        const float *x = raw + r * VOCAB;
        double largest = -DBL_MAX, sum = 0.0;
        for (int i = 0; i < VOCAB; i++) {
            largest = fmax(largest, (double)x[i]);
        }
        for (int i = 0; i < VOCAB; i++) {
            sum += exp((double)x[i] - largest);
        }
        const bool counted = labels[r] != K_LABEL_IGNORED;
        const double below = counted ? largest - (double)x[labels[r]] : 0.0;
        const double exact = counted ? log(sum) + below : 0.0;
        k_assert_close(nll[r], exact, 1.0 + log(sum) + below, VOCAB, "nll", r);
        for (int i = 0; i < VOCAB; i++) {
            const double p = exp((double)x[i] - largest) / sum * (double)a.inv_count;
            const double hot = i == labels[r] ? (double)a.inv_count : 0.0;
            k_assert_close(logits[r * VOCAB + i], counted ? p - hot : 0.0, counted ? p + hot : 0.0,
                           VOCAB + 8 + largest - (double)x[i], "gradient", i);
        }
    }
}

Test(k_forward, cross_entropy_of_not_a_number_is_not_a_number)
{
    enum { VOCAB = 300 };
    float logits[VOCAB] = {0.0f};
    float nll = 0.0f;
    const int32_t label = 5;
    logits[2] = NAN;
    const struct k_xent_args a = {logits, &label, &nll, VOCAB, 1.0f};
    run(K_ID_xent, &a, 1);
    cr_assert(isnan(nll) && isnan(logits[0]) && isnan(logits[VOCAB - 1]));
}

Test(k_forward, sums_add_or_overwrite)
{
    enum { COUNT = 1777 };
    static float nll[COUNT];
    k_fill(nll, COUNT, 1, 9.0f);
    double sum = 0.0, magnitude = 0.0;
    for (int i = 0; i < COUNT; i++) {
        sum += (double)nll[i];
        magnitude += fabs((double)nll[i]);
    }
    float out = 1000.0f;
    struct k_loss_sum_args a = {nll, &out, COUNT, 0};
    run(K_ID_loss_sum, &a, 1);
    k_assert_close(out, sum, magnitude, COUNT, "sum", 0);
    a.accumulate = 1;
    run(K_ID_loss_sum, &a, 1);
    k_assert_close(out, 2.0 * sum, 2.0 * magnitude, COUNT + 1, "sum", 1);
}

Test(k_forward, column_sums_add_parts_in_order)
{
    enum { PARTS = 5, WIDTH = 600 };
    static float part[PARTS * WIDTH], out[WIDTH], exact[WIDTH];
    k_fill(part, PARTS * WIDTH, 1, 1.0f);
    k_fill(out, WIDTH, 2, 1.0f);
    memcpy(exact, out, sizeof exact);
    for (int i = 0; i < PARTS * WIDTH; i++) {
        exact[i % WIDTH] += part[i];
    }
    const struct k_colsum_args a = {part, out, PARTS, WIDTH};
    run(K_ID_colsum, &a, (WIDTH + K_COLSUM_COLS - 1) / K_COLSUM_COLS);
    cr_assert(memcmp(out, exact, sizeof exact) == 0);
}
