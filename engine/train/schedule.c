/* Warm-up, cosine, bias corrections. Called by the loop; must not know devices. */
#include "schedule.h"

#include <math.h>

#include "fault.h"

double eng_schedule_lr(const struct eng_schedule *s, int step)
{
    const int t = FAULT(sched_step, step);
    const int horizon = FAULT(sched_horizon, s->horizon);
    double lr = s->lr * t / s->warmup;
    if (t > s->warmup) {
        const double r = fmin(1.0, (double)(t - s->warmup) / (double)(horizon - s->warmup));
        const double pi = 3.14159265358979323846;
        lr = s->lr_min + (s->lr - s->lr_min) * (1.0 + FAULT(sched_cosine, cos(pi * r))) / 2.0;
    }
    return FAULT(sched_lr, lr);
}

static double power(double base, int exponent)
{
    double result = 1.0;
    for (int i = 0; i < exponent; i++) {
        result *= base;
    }
    return result;
}

struct eng_bias eng_schedule_bias(const struct eng_schedule *s, int t)
{
    const int n = FAULT(sched_bias_step, t);
    const double power1 = power(FAULT(sched_bias_beta, s->beta1), n);
    const double power2 = power(s->beta2, n);
    return (struct eng_bias){.bias1 = 1.0 / (1.0 - power1),
                             .bias2 = FAULT(sched_bias2, 1.0 / (1.0 - power2))};
}
