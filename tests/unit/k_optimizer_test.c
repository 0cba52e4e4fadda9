/* Clipping and AdamW against plain loops in double precision. */
#include <criterion/criterion.h>
#include <string.h>

#include "k_close.h"
#include "kernel.h"
#include "optimizer.h"

enum { FLAT = K_CHUNK + 777, CHUNKS = 3 };

/* Two tensors, the second without decay. */
static const struct k_chunk chunks[CHUNKS] = {
    {0, 0, K_CHUNK, 0, 1, 0},
    {K_CHUNK, K_CHUNK, 500, 0, 1, 0},
    {K_CHUNK + 500, 0, 277, 1, 0, 0},
};

static void run(enum k_id id, const void *args, int rows)
{
    k_kernel_at(id)->rows(args, 0, rows);
}

Test(k_optimizer, sums_of_squares_by_chunk)
{
    static float grad[FLAT];
    float part[CHUNKS];
    k_fill(grad, FLAT, 1, 3.0f);
    const struct k_grad_sumsq_args a = {grad, chunks, part};
    run(K_ID_grad_sumsq, &a, CHUNKS);
    for (int c = 0; c < CHUNKS; c++) {
        double exact = 0.0;
        for (int i = 0; i < chunks[c].count; i++) {
            const double g = (double)grad[chunks[c].offset + i];
            exact += g * g;
        }
        k_assert_close(part[c], exact, exact, chunks[c].count, "sumsq", c);
    }
}

Test(k_optimizer, clip_factor_follows_the_norm)
{
    const float part[3] = {9.0f, 16.0f, 11.0f};
    float norm = 0.0f, coef = 0.0f;
    struct k_clip_coef_args a = {part, 3, 1.5f, &norm, &coef};
    run(K_ID_clip_coef, &a, 1);
    cr_assert(norm == 6.0f);
    cr_assert(coef == 1.5f / (6.0f + 1e-6f));
    a.max_norm = 7.0f;
    run(K_ID_clip_coef, &a, 1);
    cr_assert(coef == 1.0f);
    a.max_norm = 0.0f;
    run(K_ID_clip_coef, &a, 1);
    cr_assert(norm == 6.0f && coef == 1.0f);
}

Test(k_optimizer, clip_factor_of_not_a_number_is_not_a_number)
{
    const float part[2] = {NAN, 1.0f};
    float norm = 0.0f, coef = 0.0f;
    const struct k_clip_coef_args a = {part, 2, 1.0f, &norm, &coef};
    run(K_ID_clip_coef, &a, 1);
    cr_assert(isnan(norm) && isnan(coef));
}

struct state {
    float param[FLAT], m[FLAT], v[FLAT], grad[FLAT], update[FLAT];
};

static void check_element(const struct k_adamw_args *a, const struct state *old,
                          const struct state *got, int i, bool decays)
{
    const double g = (double)old->grad[i] * (double)a->coef[0];
    const double m1 = (double)a->beta1 * (double)old->m[i], m2 = (1.0 - (double)a->beta1) * g;
    const double v = (double)a->beta2 * (double)old->v[i] + (1.0 - (double)a->beta2) * g * g;
    const double root = sqrt(v * (double)a->bias2) + (double)a->eps;
    const double decay = decays ? (double)a->weight_decay * (double)old->param[i] : 0.0;
    const double lr = (double)a->lr, mean = (m1 + m2) * (double)a->bias1;
    k_assert_close(got->m[i], m1 + m2, fabs(m1) + fabs(m2), 4, "moment1", i);
    k_assert_close(got->v[i], v, v, 6, "moment2", i);
    k_assert_close(got->update[i], -lr * (mean / root + decay),
                   lr * ((fabs(m1) + fabs(m2)) * (double)a->bias1 / root + fabs(decay)), 16,
                   "update", i);
    cr_assert(got->param[i] == old->param[i] + got->update[i], "param[%d]", i);
    cr_assert(got->grad[i] == (a->zero_grad != 0 ? 0.0f : old->grad[i]), "grad[%d]", i);
}

static void check_adamw(bool store_update, bool zero_grad)
{
    static struct state old, got, silent;
    const float coef = 0.75f;
    k_fill(old.param, FLAT, 1, 1.0f);
    k_fill(old.m, FLAT, 2, 0.1f);
    k_fill(old.grad, FLAT, 4, 0.1f);
    for (int i = 0; i < FLAT; i++) {
        old.v[i] = 0.01f * fabsf(k_random(3, (uint32_t)i, 1.0f));
    }
    got = old;
    struct k_adamw_args a = {got.param,
                             got.m,
                             got.v,
                             got.grad,
                             got.update,
                             chunks,
                             &coef,
                             1e-3f,
                             0.9f,
                             0.95f,
                             1e-8f,
                             0.1f,
                             1.0f / (1.0f - 0.81f),
                             1.0f / (1.0f - 0.9025f),
                             zero_grad};
    run(K_ID_adamw, &a, CHUNKS);
    size_t compared = 0;
    for (int c = 0; c < CHUNKS; c++) {
        for (int i = 0; i < chunks[c].count; i++) {
            check_element(&a, &old, &got, (int)chunks[c].offset + i, chunks[c].decay != 0);
            compared++;
        }
    }
    cr_assert(compared == FLAT);
    if (!store_update) {
        silent = old;
        a.param = silent.param, a.moment1 = silent.m, a.moment2 = silent.v, a.grad = silent.grad;
        a.update = NULL;
        run(K_ID_adamw, &a, CHUNKS);
        memcpy(silent.update, got.update, sizeof silent.update);
        cr_assert(memcmp(&silent, &got, sizeof got) == 0, "storing the update changes the step");
    }
}

Test(k_optimizer, adamw_moves_parameters_and_moments)
{
    check_adamw(true, false);
}

Test(k_optimizer, adamw_clears_gradients)
{
    check_adamw(true, true);
}

Test(k_optimizer, adamw_does_the_same_without_storing_updates)
{
    check_adamw(false, true);
}

Test(k_optimizer, adamw_passes_not_a_number_on)
{
    static struct state s;
    const float coef = NAN;
    const struct k_adamw_args a = {s.param, s.m,   s.v,   s.grad, NULL, chunks, &coef, 1e-3f,
                                   0.9f,    0.95f, 1e-8f, 0.1f,   1.0f, 1.0f,   0};
    s.grad[0] = 1.0f;
    run(K_ID_adamw, &a, 1);
    cr_assert(isnan(s.param[0]) && isnan(s.m[0]) && isnan(s.v[0]));
}
