/* Learning rate and bias corrections of a step, in double: corpus/RECIPE.md, "Training".
 * Called by the loop; must not know devices. */
#pragma once

struct eng_schedule {
    double lr, lr_min;
    int warmup, horizon; /* steps; horizon > warmup */
    int grad_accum;      /* micro-batches of a step */
    double beta1, beta2;
};

/* Learning rate of schedule step `step`, from 1. */
double eng_schedule_lr(const struct eng_schedule *s, int step);

struct eng_bias {
    double bias1, bias2; /* 1 / (1 - beta^t) */
};
/* Corrections of optimizer step t, from 1. Powers are made by repeated multiplication. */
struct eng_bias eng_schedule_bias(const struct eng_schedule *s, int t);
