/* Learning rate, clipping, AdamW. See ref_optimizer.h. */
#include "ref_optimizer.h"

#include <math.h>
#include <stdlib.h>

/* Elements of a task: fixed, so that sums do not depend on threads. */
enum { PART = 65536 };

double orc_ref_schedule_rate(const struct orc_ref_recipe *recipe, size_t step)
{
    const double t = (double)step, warmup = (double)recipe->train.warmup;
    if (step <= recipe->train.warmup)
        return recipe->train.lr * t / warmup;
    const double done = (t - warmup) / ((double)recipe->train.schedule_steps - warmup);
    const double r = done < 1.0 ? done : 1.0;
    return recipe->train.lr_min +
           (recipe->train.lr - recipe->train.lr_min) * (1.0 + cos(M_PI * r)) / 2.0;
}

double orc_ref_clip_factor(double clip, double norm)
{
    if (clip == 0.0)
        return 1.0;
    const double factor = clip / (norm + 1e-6);
    return factor > 1.0 ? 1.0 : factor;
}

/* ---- norm ---- */

struct norm_job {
    const double *grad;
    size_t total;
    double *sums;
};

static void sum_squares(void *context, size_t task, size_t worker)
{
    (void)worker;
    enum { LANES = 8 };
    const struct norm_job *const job = context;
    const size_t begin = task * PART;
    const size_t end = begin + PART < job->total ? begin + PART : job->total;
    double lane[LANES] = {0};
    for (size_t i = begin; i < end; i += LANES) /* total is a multiple of the lanes */
        for (size_t j = 0; j < LANES; j++)
            lane[j] += job->grad[i + j] * job->grad[i + j];
    job->sums[task] = 0.0;
    for (size_t j = 0; j < LANES; j++)
        job->sums[task] += lane[j];
}

double orc_ref_grad_norm(const struct orc_ref_params *params, struct orc_ref_pool *pool)
{
    const size_t tasks = (params->total + PART - 1) / PART;
    /* The update is written only later in the step and serves as working memory until then. */
    struct norm_job job = {params->grad, params->total, params->update};
    orc_ref_pool_run(pool, tasks, sum_squares, &job);
    double sum = 0.0;
    for (size_t task = 0; task < tasks; task++) {
        sum += params->update[task];
        params->update[task] = 0.0;
    }
    return sqrt(sum);
}

/* ---- AdamW ---- */

struct step_job {
    const struct orc_ref_recipe *recipe;
    const struct orc_ref_params *params;
    double rate, factor, correction1, correction2;
    size_t param; /* shared out now */
};

static void step_part(void *context, size_t task, size_t worker)
{
    (void)worker;
    const struct step_job *const job = context;
    const struct orc_ref_param *const param = &job->params->list[job->param];
    const size_t size = orc_ref_param_size(param), begin = task * PART;
    const size_t count = begin + PART < size ? PART : size - begin;
    const size_t from = param->offset + begin;
    const double beta1 = job->recipe->train.beta1, beta2 = job->recipe->train.beta2;
    const double eps = job->recipe->train.eps, rate = job->rate, factor = job->factor;
    const double correction1 = job->correction1, correction2 = job->correction2;
    const double decay = param->dims > 1 ? job->recipe->train.weight_decay : 0.0;
    const double *restrict const grad = job->params->grad + from;
    double *restrict const value = job->params->value + from;
    double *restrict const m = job->params->moment1 + from;
    double *restrict const v = job->params->moment2 + from;
    double *restrict const update = job->params->update + from;
    for (size_t i = 0; i < count; i++) {
        const double g = grad[i] * factor;
        m[i] = beta1 * m[i] + (1.0 - beta1) * g;
        v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
        const double direction = m[i] / correction1 / (sqrt(v[i] / correction2) + eps);
        update[i] = -rate * (direction + decay * value[i]);
        value[i] += update[i];
    }
}

void orc_ref_optimizer_step(const struct orc_ref_recipe *recipe, size_t step, double rate,
                            double factor, struct orc_ref_params *params,
                            struct orc_ref_pool *pool)
{
    struct step_job job = {.recipe = recipe, .params = params, .rate = rate, .factor = factor};
    job.correction1 = 1.0 - pow(recipe->train.beta1, (double)step);
    job.correction2 = 1.0 - pow(recipe->train.beta2, (double)step);
    for (job.param = 0; job.param < params->count; job.param++) {
        const size_t size = orc_ref_param_size(&params->list[job.param]);
        orc_ref_pool_run(pool, (size + PART - 1) / PART, step_part, &job);
    }
}
