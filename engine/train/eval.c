/* The evaluation set and its passes. Called by the loop; must not know the optimizer. */
#include "eval.h"

#include <stdlib.h>
#include <string.h>

#include "devstatus.h"
#include "fault.h"
#include "loss.h"
#include "trainer.h"

/* Copies the rows asked for; positions of rows beyond them count nothing. */
static enum eng_status take_batch(struct eng_trainer *t, const struct eng_step_batch *batch,
                                  struct eng_error *error)
{
    struct eng_evaluation *e = &t->evaluation;
    struct eng_step copy;
    const enum eng_status status = eng_step_init(&copy, batch->micro_count, t->tokens, error);
    if (status != ENG_OK) {
        return status;
    }
    eng_step_fill(&copy, 0, batch);
    const int rows_wanted = t->recipe->train.eval_rows;
    for (int m = 0; m < batch->micro_count; m++) {
        int32_t *labels = copy.blocks + (size_t)m * ENG_BLOCK_ARRAYS * t->tokens + t->tokens;
        for (size_t i = 0; i < t->tokens; i++) {
            const int row = m * batch->rows + (int)i / batch->context;
            if (row >= rows_wanted || row >= batch->rows_filled) {
                labels[i] = K_LABEL_IGNORED;
            }
            e->supervised += labels[i] != K_LABEL_IGNORED;
        }
    }
    e->blocks = copy.blocks;
    e->batches = batch->micro_count;
    copy.blocks = NULL;
    eng_step_fini(&copy);
    return e->supervised > 0
               ? ENG_OK
               : eng_fail(error, ENG_EINPUT, "%s: nothing supervised in the evaluation rows",
                          t->recipe->data.eval[0]);
}

enum eng_status eng_eval_open(struct eng_trainer *t, struct eng_error *error)
{
    const struct eng_recipe *r = t->recipe;
    if (r->data.eval_count == 0 || r->train.eval_rows == 0) {
        return ENG_OK;
    }
    struct eng_loader_options options = eng_recipe_loader_options(r);
    options.files = (const char *const *)r->data.eval;
    options.file_count = r->data.eval_count;
    options.seed = t->seed;
    options.rows = r->train.rows;
    options.micro_count = (r->train.eval_rows + r->train.rows - 1) / r->train.rows;
    options.lender = t->loader;
    options.memory = t->options->memory;
    eng_loader *loader = NULL;
    const struct eng_step_batch *batch = NULL;
    enum eng_status status = eng_loader_open(&options, &loader, error);
    if (status == ENG_OK) {
        status = eng_loader_next(loader, &batch, error);
    }
    if (status == ENG_OK) {
        status = take_batch(t, batch, error);
    }
    eng_loader_close(loader);
    if (status == ENG_OK) {
        status = eng_feed_open(&t->evaluation.feed, t->device, t->copy, t->tokens,
                               "evaluation input", error);
    }
    return status;
}

void eng_eval_fini(struct eng_trainer *t)
{
    free(t->evaluation.blocks);
    t->evaluation.blocks = NULL;
}

static enum eng_status run_batch(struct eng_trainer *t, struct eng_feed *feed, int batch,
                                 float *sum, struct eng_error *error)
{
    const int32_t *block = t->evaluation.blocks + (size_t)batch * ENG_BLOCK_ARRAYS * t->tokens;
    struct eng_input input;
    enum eng_status status = eng_feed_stage(feed, t->copy, block, error);
    if (status == ENG_OK) {
        status = eng_feed_take(feed, 0, &input, error);
    }
    if (status == ENG_OK) {
        status = eng_model_forward(t->model, 0, &input, 0.0f, sum, true, NULL, error);
    }
    return status != ENG_OK ? status : eng_feed_release(feed, 0, error);
}

enum eng_status eng_eval_run(struct eng_trainer *t, float *results, struct eng_error *error)
{
    struct eng_feed *feed = FAULT(eval_feed, &t->evaluation.feed);
    float *sum = &results[FAULT(eval_sum, ENG_RESULT_EVAL)];
    enum dev_status cleared = DEV_OK;
    if (FAULT(eval_clear, true)) {
        cleared = dev_fill(t->device, FAULT(eval_clear_stream, t->compute), sum, 0, sizeof *sum,
                           "clear evaluation loss");
    }
    enum eng_status status = eng_train_device(t->device, cleared, error);
    for (int i = 0; status == ENG_OK && i < t->evaluation.batches; i++) {
        status = run_batch(t, feed, i, sum, error);
    }
    return status;
}
