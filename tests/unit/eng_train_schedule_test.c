/* Learning rate and bias corrections against their definition in corpus/RECIPE.md. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "schedule.h"

static const struct eng_schedule plain = {.lr = 3e-3,
                                          .lr_min = 3e-4,
                                          .warmup = 4,
                                          .horizon = 16,
                                          .grad_accum = 2,
                                          .beta1 = 0.9,
                                          .beta2 = 0.95};

/* The formula has at most ten rounded operations, each within half an ulp of a value <= lr. */
static double rounding(double lr)
{
    return 10.0 * DBL_EPSILON / 2.0 * lr;
}

Test(train_schedule, warm_up_is_linear_and_reaches_the_rate)
{
    for (int t = 1; t <= plain.warmup; t++) {
        cr_assert_eq(eng_schedule_lr(&plain, t), plain.lr * t / plain.warmup);
    }
}

Test(train_schedule, cosine_falls_to_the_minimum_and_stays)
{
    size_t compared = 0;
    for (int t = plain.warmup + 1; t <= plain.horizon; t++) {
        const double r = (double)(t - plain.warmup) / (plain.horizon - plain.warmup);
        const double expected =
            plain.lr_min + (plain.lr - plain.lr_min) * (1.0 + cos(acos(-1.0) * r)) / 2.0;
        cr_assert(fabs(eng_schedule_lr(&plain, t) - expected) <= rounding(plain.lr));
        compared++;
    }
    cr_assert_gt(compared, 0);
    cr_assert(fabs(eng_schedule_lr(&plain, 16) - plain.lr_min) <= rounding(plain.lr));
    cr_assert_eq(eng_schedule_lr(&plain, 17), eng_schedule_lr(&plain, 16));
    cr_assert_eq(eng_schedule_lr(&plain, 1000), eng_schedule_lr(&plain, 16));
}

Test(train_schedule, no_warm_up_starts_with_the_cosine)
{
    struct eng_schedule s = plain;
    s.warmup = 0;
    const double expected =
        s.lr_min + (s.lr - s.lr_min) * (1.0 + cos(acos(-1.0) / s.horizon)) / 2.0;
    cr_assert(fabs(eng_schedule_lr(&s, 1) - expected) <= rounding(s.lr));
}

Test(train_schedule, bias_corrections_are_repeated_products)
{
    double power1 = 1.0;
    double power2 = 1.0;
    for (int t = 1; t <= 100; t++) {
        power1 *= plain.beta1;
        power2 *= plain.beta2;
        const struct eng_bias b = eng_schedule_bias(&plain, t);
        cr_assert_eq(b.bias1, 1.0 / (1.0 - power1));
        cr_assert_eq(b.bias2, 1.0 / (1.0 - power2));
    }
}
