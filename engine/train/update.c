/* The optimizer step. Called by the loop; must not know the schedule's shape. */
#include "update.h"

#include "devstatus.h"
#include "fault.h"
#include "optimizer.h"
#include "trainer.h"

enum eng_status eng_update_open(struct eng_trainer *t, struct eng_error *error)
{
    struct eng_optimizer *o = &t->optimizer;
    const size_t chunks = (size_t)t->params->chunk_count;
    const size_t bytes = (size_t)t->params->elements * sizeof(float);
    o->betas[0] = (float)t->recipe->train.beta1;
    o->betas[1] = (float)t->recipe->train.beta2;
    enum dev_status status = dev_malloc(t->device, t->compute, chunks * sizeof(float),
                                        "gradient norm parts", (void **)&o->part);
    if (status == DEV_OK && t->options->level == ENG_LEVEL_FULL) {
        status = dev_malloc(t->device, t->compute, bytes, "updates", (void **)&o->update);
    }
    return eng_train_device(t->device, status, error);
}

static enum dev_status launch_clip(struct eng_trainer *t, float *results)
{
    const struct eng_params *p = t->params;
    const size_t chunks = (size_t)p->chunk_count;
    const struct k_grad_sumsq_args sum = {
        .grad = p->grad, .chunks = p->chunks, .part = t->optimizer.part};
    const struct dev_span sum_spans[] = {{p->grad, (size_t)p->elements * sizeof(float), DEV_READ},
                                         {p->chunks, chunks * sizeof *p->chunks, DEV_READ},
                                         {t->optimizer.part, chunks * sizeof(float), DEV_WRITE}};
    const struct k_clip_coef_args clip = {.part = t->optimizer.part,
                                          .parts = p->chunk_count,
                                          .max_norm = (float)t->recipe->train.clip,
                                          .norm = &results[ENG_RESULT_NORM],
                                          .coef = &results[ENG_RESULT_COEF]};
    const struct dev_span clip_spans[] = {{t->optimizer.part, chunks * sizeof(float), DEV_READ},
                                          {clip.norm, sizeof(float), DEV_WRITE},
                                          {clip.coef, sizeof(float), DEV_WRITE}};
    const enum dev_status status = dev_launch(t->device, 0, K_ID_grad_sumsq, p->chunk_count, &sum,
                                              sum_spans, 3, "gradient norm parts");
    return status != DEV_OK ? status
                            : dev_launch(t->device, FAULT(update_clip_stream, 0), K_ID_clip_coef, 1,
                                         &clip, clip_spans, 3, "clip factor");
}

/* zero_grad: clear the gradients in the same pass. */
static enum dev_status launch_adamw(struct eng_trainer *t, struct k_adamw_args *args, int zero_grad)
{
    const struct eng_params *p = t->params;
    const size_t bytes = (size_t)p->elements * sizeof(float);
    args->zero_grad = zero_grad;
    const struct dev_span spans[] = {
        {p->param, bytes, DEV_READ_WRITE},
        {p->moment1, bytes, DEV_READ_WRITE},
        {p->moment2, bytes, DEV_READ_WRITE},
        {p->grad, bytes, zero_grad != 0 ? DEV_READ_WRITE : DEV_READ},
        {p->chunks, (size_t)p->chunk_count * sizeof *p->chunks, DEV_READ},
        {args->coef, sizeof(float), DEV_READ},
        {args->update, bytes, DEV_WRITE}};
    const size_t count = sizeof spans / sizeof spans[0] - (args->update == NULL);
    return dev_launch(t->device, 0, K_ID_adamw, p->chunk_count, args, spans, count, "adamw");
}

static enum dev_status update(struct eng_trainer *t, const struct eng_step *step,
                              struct eng_bias bias, float *results)
{
    const struct eng_params *p = t->params;
    const struct eng_recipe_train *r = &t->recipe->train;
    const int first = FAULT(update_first_beta, 0);
    struct k_adamw_args args = {.param = p->param,
                                .moment1 = p->moment1,
                                .moment2 = p->moment2,
                                .grad = p->grad,
                                .update = t->optimizer.update,
                                .chunks = p->chunks,
                                .coef = &results[ENG_RESULT_COEF],
                                .lr = (float)step->lr,
                                .beta1 = t->optimizer.betas[first],
                                .beta2 = t->optimizer.betas[1 - first],
                                .eps = (float)r->eps,
                                .weight_decay = (float)r->weight_decay,
                                .bias1 = (float)bias.bias1,
                                .bias2 = (float)bias.bias2};
    const size_t bytes = (size_t)p->elements * sizeof(float);
    enum dev_status status = DEV_OK;
    (void)bytes; /* a fault clears the gradients elsewhere */
    status = FAULT(update_adamw, launch_adamw(t, &args, 1));
    return status;
}

enum eng_status eng_update_run(struct eng_trainer *t, const struct eng_step *step,
                               struct eng_bias bias, struct eng_error *error)
{
    const struct eng_params *p = t->params;
    const int slot = step->number % ENG_RING_SLOTS;
    float *results = eng_results_slot(t, step);
    enum eng_status status = eng_train_device(t->device, launch_clip(t, results), error);
    if (status == ENG_OK) {
        status = eng_sketches_tensors(&t->sketches, 0, slot, ENG_SKETCH_GRAD, p->grad, error);
    }
    if (status == ENG_OK) {
        status = eng_train_device(t->device, update(t, step, bias, results), error);
    }
    const float *const after[ENG_SKETCHED_COUNT] = {[ENG_SKETCH_PARAM] = p->param,
                                                    [ENG_SKETCH_MOMENT1] = p->moment1,
                                                    [ENG_SKETCH_MOMENT2] = p->moment2,
                                                    [ENG_SKETCH_UPDATE] = t->optimizer.update};
    for (int k = ENG_SKETCH_PARAM; status == ENG_OK && k < ENG_SKETCHED_COUNT; k++) {
        status = eng_sketches_tensors(&t->sketches, 0, slot, (enum eng_sketched)k, after[k], error);
    }
    return status;
}
