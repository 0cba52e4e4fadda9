/* The training loop. See ref_train.h; the rules are those of corpus/RECIPE.md. */
#include "ref_train.h"

#include "ref_optimizer.h"
#include "ref_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_seconds(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static enum orc_ref_status no_memory(struct orc_ref_error *error)
{
    return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory for the run");
}

static struct orc_ref_rows_rule rows_rule(const struct orc_ref_options *options, bool shuffle)
{
    const struct orc_ref_recipe *const recipe = options->recipe;
    const struct orc_ref_rows_rule rule = {
        .context = recipe->model.context, .packing = recipe->data.packing,
        .truncate = recipe->data.truncate, .order = recipe->data.order,
        .on_unlearned = recipe->data.on_unlearned, .on_prefix = recipe->data.on_prefix,
        .files = shuffle ? recipe->data.train.list : recipe->data.eval.list,
        .weights = shuffle ? recipe->data.weights : NULL,
        .file_count = shuffle ? recipe->data.train.count : recipe->data.eval.count,
        .pad = options->pad, .shuffle = shuffle, .seed = options->seed};
    return rule;
}

/* The rows of some batches in order; the caller frees. NULL: no memory. */
static struct orc_ref_place *list_rows(struct orc_ref_batch *batches, size_t count, size_t rows)
{
    struct orc_ref_place *const list = calloc(count * rows + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < count * rows; i++)
        list[i] = (struct orc_ref_place){&batches[i / rows], i % rows};
    return list;
}

static enum orc_ref_status make_batches(struct orc_ref_run *run, struct orc_ref_error *error)
{
    const struct orc_ref_recipe *const recipe = run->options->recipe;
    const size_t micro = recipe->train.grad_accum;
    run->batches = calloc(micro, sizeof *run->batches);
    run->adopted = calloc(micro, sizeof *run->adopted);
    run->inputs = calloc(micro, sizeof *run->inputs);
    run->activations = calloc(orc_ref_model_taps(&recipe->model), sizeof *run->activations);
    run->sketches = calloc(run->params.count, sizeof *run->sketches);
    if (run->batches == NULL || run->adopted == NULL || run->inputs == NULL ||
        run->activations == NULL || run->sketches == NULL)
        return no_memory(error);
    for (size_t i = 0; i < micro; i++)
        if (!orc_ref_batch_init(&run->batches[i], recipe->train.rows, recipe->model.context) ||
            (run->options->follow != NULL &&
             !orc_ref_batch_init(&run->adopted[i], recipe->train.rows, recipe->model.context)))
            return no_memory(error);
    return ORC_REF_OK;
}

/* The evaluation set, in micro-batches of at most the training rows. */
static enum orc_ref_status make_eval(struct orc_ref_run *run, struct orc_ref_error *error)
{
    const struct orc_ref_recipe *const recipe = run->options->recipe;
    const size_t rows = recipe->train.rows, wanted = recipe->train.eval_rows;
    const struct orc_ref_rows_rule rule = rows_rule(run->options, false);
    struct orc_ref_row_log log = {0};
    enum orc_ref_status status = ORC_REF_OK;
    struct orc_ref_stream *const stream = orc_ref_stream_create(run->options->eval, &rule);
    const size_t batches = (wanted + rows - 1) / rows;
    struct orc_ref_place *list = NULL;
    size_t filled = 0;
    run->eval_batches = calloc(batches + 1, sizeof *run->eval_batches);
    if (stream == NULL || run->eval_batches == NULL) {
        status = no_memory(error);
        goto done;
    }
    for (; run->eval_batch_count < batches; run->eval_batch_count++)
        if (!orc_ref_batch_init(&run->eval_batches[run->eval_batch_count], rows,
                                recipe->model.context)) {
            status = no_memory(error);
            goto done;
        }
    list = list_rows(run->eval_batches, batches, rows);
    status = list == NULL ? no_memory(error)
                          : orc_ref_stream_step(stream, list, batches * rows, &log, &filled, error);
    if (status != ORC_REF_OK)
        goto done;
    filled = filled < wanted ? filled : wanted;
    /* Whole rows follow one another, so fewer rows are the same memory. */
    for (size_t i = 0; i < batches; i++) {
        const size_t left = filled > i * rows ? filled - i * rows : 0;
        run->eval_batches[i].rows = left < rows ? left : rows;
    }
    while (run->eval_batch_count > 0 && run->eval_batches[run->eval_batch_count - 1].rows == 0)
        orc_ref_batch_fini(&run->eval_batches[--run->eval_batch_count]);
done:
    free(list);
    orc_ref_stream_destroy(stream);
    orc_ref_row_log_fini(&log);
    return status;
}

static enum orc_ref_status open_followed(struct orc_ref_run *run, struct orc_ref_error *error)
{
    const struct orc_ref_recipe *const recipe = run->options->recipe;
    const struct orc_ref_followed want = {.recipe_hash = recipe->hash,
                                          .seed = run->options->seed,
                                          .steps = run->options->steps,
                                          .micro = recipe->train.grad_accum,
                                          .positions = recipe->train.rows * recipe->model.context,
                                          .vocab = recipe->model.vocab,
                                          .params = &run->params};
    return orc_ref_follow_open(run->options->follow, &want, &run->follow, error);
}

static enum orc_ref_status set_up(struct orc_ref_run *run, struct orc_ref_error *error)
{
    const struct orc_ref_options *const options = run->options;
    const struct orc_ref_recipe *const recipe = options->recipe;
    const struct orc_ref_rows_rule rule = rows_rule(options, true);
    enum orc_ref_status status = orc_ref_params_init(&run->params, &recipe->model, error);
    if (status != ORC_REF_OK)
        return status;
    status = orc_ref_weights_load(options->weights, &run->params, error);
    if (status != ORC_REF_OK)
        return status;
    run->pool = orc_ref_pool_create(options->threads);
    run->tape = run->pool != NULL ? orc_ref_tape_create(run->pool) : NULL;
    run->stream = orc_ref_stream_create(options->train, &rule);
    if (run->tape == NULL || run->stream == NULL)
        return no_memory(error);
    status = make_batches(run, error);
    if (status == ORC_REF_OK && options->eval != NULL && recipe->train.eval_every > 0)
        status = make_eval(run, error);
    if (status == ORC_REF_OK && options->follow != NULL)
        status = open_followed(run, error);
    return status;
}

static void tear_down(struct orc_ref_run *run)
{
    const size_t micro = run->options->recipe->train.grad_accum;
    orc_ref_follow_close(run->follow);
    for (size_t i = 0; run->batches != NULL && i < micro; i++)
        orc_ref_batch_fini(&run->batches[i]);
    for (size_t i = 0; run->adopted != NULL && i < micro; i++)
        orc_ref_batch_fini(&run->adopted[i]);
    for (size_t i = 0; i < run->eval_batch_count; i++)
        orc_ref_batch_fini(&run->eval_batches[i]);
    free(run->batches);
    free(run->adopted);
    free(run->eval_batches);
    free(run->inputs);
    free(run->activations);
    free(run->sketches);
    orc_ref_row_log_fini(&run->log);
    orc_ref_stream_destroy(run->stream);
    orc_ref_tape_destroy(run->tape);
    orc_ref_pool_destroy(run->pool);
    orc_ref_params_fini(&run->params);
}

/* ---- one step ---- */

static void note_documents(struct orc_ref_run *run)
{
    for (size_t i = 0; i < run->log.placed_count; i++) {
        const struct orc_ref_placed *const placed = &run->log.placed[i];
        run->seen.text |= placed->document->features;
        run->seen.truncated |= placed->cut;
        run->seen.two_epochs |= placed->epoch > 0;
        run->seen.late_positions |= placed->count > run->options->recipe->model.context / 2;
        /* The mark that ends a turn is the one control token that is supervised. */
        for (size_t t = 0; t < placed->count; t++)
            run->seen.pad_is_eos |= placed->supervised[t] && placed->ids[t] == run->options->pad;
    }
    run->seen.skipped |= run->log.skipped_count > 0;
    run->seen.packed |= run->log.packed_rows > 0;
    run->seen.padded |= run->log.padded_rows > 0;
    run->seen.split |= run->log.split > 0;
    run->seen.refit |= run->log.refit > 0;
    run->seen.prefix_broken |= run->log.skips[ORC_REF_NO_PREFIX] > 0;
    for (size_t i = 0; i < ORC_REF_SKIPS; i++)
        run->skips[i] += run->log.skips[i];
}

static enum orc_ref_status fill_step(struct orc_ref_run *run, struct orc_ref_error *error)
{
    const struct orc_ref_recipe *const recipe = run->options->recipe;
    const size_t micro = recipe->train.grad_accum, rows = recipe->train.rows;
    struct orc_ref_place *const list = list_rows(run->batches, micro, rows);
    size_t filled;
    orc_ref_row_log_clear(&run->log);
    run->supervised = 0;
    if (list == NULL)
        return no_memory(error);
    const enum orc_ref_status status =
        orc_ref_stream_step(run->stream, list, micro * rows, &run->log, &filled, error);
    free(list);
    if (status != ORC_REF_OK)
        return status;
    for (size_t i = 0; i < micro; i++) {
        const struct orc_ref_batch *const batch = &run->batches[i];
        size_t supervised = 0;
        for (size_t p = 0; p < batch->rows * batch->context; p++)
            supervised += batch->labels[p] != ORC_REF_IGNORED;
        run->inputs[i].supervised = supervised;
        run->supervised += supervised;
        run->seen.accum_unequal |= supervised != run->inputs[0].supervised;
    }
    run->counted = run->supervised;
    note_documents(run);
    return ORC_REF_OK;
}

/* The batch of the run that is followed is trained on, and counted here. */
static enum orc_ref_status adopt_batch(struct orc_ref_run *run, struct orc_ref_error *error)
{
    if (run->follow == NULL)
        return ORC_REF_OK;
    const enum orc_ref_status status =
        orc_ref_follow_batch(run->follow, run->step, run->adopted, error);
    if (status != ORC_REF_OK)
        return status;
    run->counted = 0;
    for (size_t i = 0; i < run->options->recipe->train.grad_accum; i++) {
        const struct orc_ref_batch *const batch = &run->adopted[i];
        for (size_t p = 0; p < batch->rows * batch->context; p++)
            run->counted += batch->labels[p] != ORC_REF_IGNORED;
    }
    return ORC_REF_OK;
}

/* Taken while the tape of micro-batch 0 still stands. */
static void observe_activations(struct orc_ref_run *run, const struct orc_ref_forward *forward)
{
    const size_t taps = orc_ref_model_taps(&run->options->recipe->model);
    const struct orc_ref_tensor hidden = forward->taps[taps - 2];
    double sum = 0.0;
    for (size_t r = 0; r < hidden.rows; r++) {
        double square = 0.0;
        for (size_t c = 0; c < hidden.cols; c++)
            square += hidden.value[r * hidden.ld + c] * hidden.value[r * hidden.ld + c];
        sum += sqrt(square / (double)hidden.cols);
    }
    run->hidden_rms = sum / (double)hidden.rows;
    if (!run->options->full)
        return;
    for (size_t i = 0; i < taps; i++)
        run->activations[i] =
            (struct orc_ref_sketch){.data = forward->taps[i].value,
                                    .count = forward->taps[i].rows * forward->taps[i].cols};
    orc_ref_sketch_all(run->activations, taps, run->pool);
}

static enum orc_ref_status differentiate(struct orc_ref_run *run, struct orc_ref_error *error)
{
    const struct orc_ref_shape *const shape = &run->options->recipe->model;
    const struct orc_ref_batch *const batches = run->follow != NULL ? run->adopted : run->batches;
    memset(run->params.grad, 0, run->params.total * sizeof *run->params.grad);
    run->nll = 0.0;
    for (size_t i = 0; i < run->options->recipe->train.grad_accum; i++) {
        struct orc_ref_forward forward;
        orc_ref_tape_reset(run->tape, true);
        const enum orc_ref_status status =
            orc_ref_model_run(run->tape, shape, &run->params, &batches[i],
                              1.0 / (double)run->counted, &forward, error);
        if (status != ORC_REF_OK)
            return status;
        run->nll += forward.nll;
        if (i == 0)
            observe_activations(run, &forward);
    }
    return ORC_REF_OK;
}

static enum orc_ref_status evaluate(struct orc_ref_run *run, struct orc_ref_error *error)
{
    const size_t every = run->options->recipe->train.eval_every;
    run->evaluated = run->eval_batch_count > 0 && every > 0 && run->step % every == 0;
    run->eval_nll = 0.0;
    run->eval_supervised = 0;
    for (size_t i = 0; run->evaluated && i < run->eval_batch_count; i++) {
        struct orc_ref_forward forward;
        orc_ref_tape_reset(run->tape, false);
        const enum orc_ref_status status =
            orc_ref_model_run(run->tape, &run->options->recipe->model, &run->params,
                              &run->eval_batches[i], 0.0, &forward, error);
        if (status != ORC_REF_OK)
            return status;
        run->eval_nll += forward.nll;
        run->eval_supervised += forward.supervised;
    }
    run->seen.eval |= run->evaluated;
    return ORC_REF_OK;
}

static enum orc_ref_status take_step(struct orc_ref_run *run, struct orc_ref_error *error)
{
    const struct orc_ref_recipe *const recipe = run->options->recipe;
    enum orc_ref_status status = fill_step(run, error);
    if (status == ORC_REF_OK)
        status = adopt_batch(run, error);
    if (status == ORC_REF_OK)
        status = differentiate(run, error);
    if (status != ORC_REF_OK)
        return status;
    run->norm = orc_ref_grad_norm(&run->params, run->pool);
    run->factor = orc_ref_clip_factor(recipe->train.clip, run->norm);
    run->rate = orc_ref_schedule_rate(recipe, run->step);
    run->seen.clipped |= run->factor < 1.0;
    orc_ref_report_before_update(run);
    orc_ref_optimizer_step(recipe, run->step, run->rate, run->factor, &run->params, run->pool);
    status = evaluate(run, error);
    if (status == ORC_REF_OK)
        status = orc_ref_report_after_update(run, error);
    /* What the other stack made of this step is where the next one starts. */
    if (status == ORC_REF_OK && run->follow != NULL)
        status = orc_ref_follow_state(run->follow, &run->params, error);
    return status;
}

enum orc_ref_status orc_ref_train(const struct orc_ref_options *options,
                                  struct orc_ref_trace *trace, struct orc_ref_error *error)
{
    struct orc_ref_run run = {.options = options, .trace = trace};
    const double start = now_seconds();
    enum orc_ref_status status = set_up(&run, error);
    if (status == ORC_REF_OK)
        status = orc_ref_report_header(&run, error);
    for (size_t step = 1; status == ORC_REF_OK && step <= options->steps; step++) {
        if (options->interrupted != NULL && options->interrupted(options->interrupted_context))
            status = orc_ref_fail(error, ORC_REF_INTERRUPTED, "interrupted before step %zu", step);
        else {
            run.step = step;
            status = take_step(&run, error);
        }
    }
    if (status == ORC_REF_OK && run.follow != NULL)
        status = orc_ref_follow_end(run.follow, error);
    run.seconds = now_seconds() - start;
    if (status == ORC_REF_OK)
        status = orc_ref_report_end(&run, "ok", error);
    else if (status == ORC_REF_INTERRUPTED &&
             orc_ref_report_end(&run, "interrupted", error) != ORC_REF_OK)
        status = ORC_REF_IO;
    tear_down(&run);
    return status;
}
