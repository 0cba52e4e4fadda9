/* The training loop. Called by train_main and tests through trainer.h; must not know file formats.
 *
 * A step is a list of tasks: per micro-batch `input` (stage the next block) and `pass` (forward and
 * backward), then `update`, a checkpoint and an evaluation when due, and `read-back` (copy this
 * step's results, read those of the step before). */
#include <stdio.h>
#include <string.h>

#include "arm.h"
#include "checkpoint.h"
#include "devstatus.h"
#include "eng_features.h"
#include "eval.h"
#include "fault.h"
#include "stats.h"
#include "timeline.h"
#include "trainer.h"
#include "update.h"

enum { STEP_RING = 3, PASS_TRIES = 2 };

static struct eng_step *step_at(struct eng_trainer *t, int number)
{
    return &t->step[number % STEP_RING];
}

static enum eng_status run_task(struct eng_trainer *t, enum eng_phase phase, dev_stream stream,
                                enum eng_status (*run)(void *, struct eng_error *),
                                struct eng_error *error)
{
    const struct eng_task task = {.phase = phase, .stream = stream, .run = run, .context = t};
    return eng_driver_run(t->driver, &task, error);
}

/* Reads the batch of step `number` unless it is there. */
static enum eng_status load_step(struct eng_trainer *t, int number, struct eng_error *error)
{
    struct eng_step *s = step_at(t, number);
    const struct eng_step_batch *batch = NULL;
    if (s->number == number) {
        return ENG_OK;
    }
    const struct eng_position start = eng_loader_position(t->loader);
    const enum eng_status status = eng_loader_next(t->loader, &batch, error);
    if (status != ENG_OK) {
        return status;
    }
    const struct eng_step *before = step_at(t, number - 1);
    eng_step_fill(s, number, batch);
    s->start = start;
    s->previous_supervised =
        before->number == number - 1 && number > 1 ? before->supervised : s->supervised;
    for (int m = 1; m < s->micro_count; m++) {
        s->features |=
            s->micro_supervised[m] != s->micro_supervised[0] ? ENG_FEATURE_accum_unequal : 0;
    }
    if (t->trace != NULL) {
        const unsigned caller = eng_memory_enter(t->options->memory, ENG_COMPONENT_trace);
        eng_trace_batch(s, batch, t->options->contents);
        eng_memory_leave(t->options->memory, caller);
    }
    return ENG_OK;
}

/* Task: loads and stages the next block, which may belong to the next step. */
static enum eng_status stage_next(void *context, struct eng_error *error)
{
    struct eng_trainer *t = context;
    const int step = t->next.step;
    if (step > t->last_step) {
        return ENG_OK;
    }
    enum eng_status status = load_step(t, step, error);
    if (status == ENG_OK) {
        const int micro = t->next.micro;
        const bool last = micro + 1 == t->recipe->train.grad_accum;
        t->next.step = last ? step + 1 : step;
        t->next.micro = last ? 0 : micro + 1;
        status = eng_feed_stage(&t->feed, 0, eng_step_block(step_at(t, step), micro), error);
    }
    return status;
}

/* Work for a later step runs under that step's number. */
static enum eng_status prefetch(struct eng_trainer *t, int running, struct eng_error *error)
{
    MUT_ENTER_STEP(t->next.step);
    const enum eng_status status = run_task(t, ENG_PHASE_INPUT, t->copy, stage_next, error);
    MUT_ENTER_STEP(running);
    return status;
}

/* The update leaves zeros behind; a pass that was given up does not. */
static enum eng_status clear_gradients(struct eng_trainer *t, struct eng_error *error)
{
    const struct eng_params *p = t->params;
    enum dev_status status = DEV_OK;
    if (FAULT(loop_clear_gradients, t->pass.spoilt)) {
        status = dev_fill(t->device, 0, p->grad, 0, (size_t)p->elements * sizeof(float),
                          "clear gradients");
    }
    t->pass.spoilt = false;
    return eng_train_device(t->device, status, error);
}

static enum eng_status forward_backward(struct eng_trainer *t, const struct eng_input *input,
                                        float *loss, struct eng_error *error)
{
    const struct eng_step *s = t->pass.step;
    const int micro = t->pass.micro;
    const struct eng_taps taps = {.fn = micro == 0 ? eng_stats_tap : NULL, .context = t};
    const float inv_count = FAULT(loop_inv_count, 1.0f / (float)s->supervised);
    const bool backward = FAULT(loop_backward, true);
    t->pass.tap = 0;
    enum eng_status status = eng_model_forward(t->model, 0, input, backward ? inv_count : 0.0f,
                                               loss, micro > 0, &taps, error);
    if (status == ENG_OK && backward) {
        status = eng_model_backward(t->model, 0, input, error);
    }
    return status;
}

/* Task: one micro-batch through the model. */
static enum eng_status pass(void *context, struct eng_error *error)
{
    struct eng_trainer *t = context;
    const struct eng_step *s = t->pass.step;
    float *loss = &eng_results_slot(t, s)[ENG_RESULT_LOSS];
    struct eng_input input;
    enum eng_status status = clear_gradients(t, error);
    if (status == ENG_OK) {
        status = eng_feed_take(&t->feed, 0, &input, error);
    }
    if (status != ENG_OK) {
        return status;
    }
    status = eng_sketches_input(&t->sketches, 0, s->number % ENG_RING_SLOTS, t->pass.micro,
                                input.ids, ENG_BLOCK_ARRAYS * t->tokens, error);
    if (status == ENG_OK) {
        status = forward_backward(t, &input, loss, error);
    }
    const enum eng_status released = eng_feed_release(&t->feed, 0, status == ENG_OK ? error : NULL);
    return status != ENG_OK ? status : released;
}

/* Out of device memory: give back what is due, then start the step's passes again from its first
 * micro-batch. The next allocations wait for what is in flight where they must. */
static enum eng_status start_again(struct eng_trainer *t, struct eng_step *s,
                                   struct eng_error *error)
{
    struct eng_text event = {.data = NULL};
    eng_text_puts(&event, "{\"kind\":\"retry\",\"micro\":");
    eng_text_int(&event, t->pass.micro);
    eng_text_puts(&event, "}");
    eng_step_event(s, &event);
    eng_text_fini(&event);
    eng_feed_rewind(&t->feed);
    t->next.step = s->number;
    t->next.micro = 0;
    t->pass.spoilt = true;
    const enum eng_status status = eng_stats_release(t, error);
    return status != ENG_OK ? status : prefetch(t, s->number, error);
}

static void report_oom(struct eng_trainer *t, struct eng_step *s, uint64_t spurious_before,
                       const struct eng_error *why)
{
    struct dev_ledger now;
    struct eng_text event = {.data = NULL};
    char name[64] = "";
    size_t bytes = 0;
    const char *quoted = strchr(why->text, '\'');
    dev_ledger(t->device, &now);
    eng_text_puts(&event, "{\"kind\":\"oom\",\"what\":");
    eng_text_string(&event, why->text);
    /* The device's sentence names the allocation: 'name' of N bytes. */
    if (quoted != NULL && sscanf(quoted, "'%63[^']' of %zu bytes", name, &bytes) == 2) {
        eng_text_puts(&event, ",\"allocation\":");
        eng_text_string(&event, name);
        eng_text_puts(&event, ",\"bytes\":");
        eng_text_uint(&event, bytes);
    }
    eng_text_puts(&event, now.spurious_ooms > spurious_before ? ",\"spurious\":true}"
                                                              : ",\"spurious\":false}");
    eng_step_event(s, &event);
    eng_text_fini(&event);
    t->features |= t->recipe->device.oom_at == s->number ? ENG_FEATURE_oom_at : 0;
}

static enum eng_status micro_batches(struct eng_trainer *t, struct eng_step *s,
                                     struct eng_error *error)
{
    enum eng_status status = ENG_OK;
    for (int m = 0; status == ENG_OK && m < s->micro_count; m++) {
        t->pass.step = s;
        t->pass.micro = m;
        status = prefetch(t, s->number, error);
        if (status == ENG_OK) {
            status = run_task(t, ENG_PHASE_PASS, t->compute, pass, error);
        }
        if (status == ENG_EDEVICEMEM) {
            status = FAULT(loop_oom_answer, status);
        }
    }
    return status;
}

static enum eng_status passes(struct eng_trainer *t, struct eng_step *s, struct eng_error *error)
{
    struct dev_ledger before;
    dev_ledger(t->device, &before);
    enum eng_status status = ENG_OK;
    for (int tried = 1; tried <= PASS_TRIES; tried++) {
        status = micro_batches(t, s, error);
        if (status != ENG_EDEVICEMEM) {
            break;
        }
        report_oom(t, s, before.spurious_ooms, error);
        if (tried < PASS_TRIES) {
            status = start_again(t, s, error);
        }
        if (status != ENG_OK) {
            break;
        }
    }
    return status;
}

/* Task: the optimizer step. */
static enum eng_status update(void *context, struct eng_error *error)
{
    struct eng_trainer *t = context;
    struct eng_step *s = t->pass.step;
    t->counters.step = s->number;
    t->counters.optimizer_t++;
    t->counters.schedule_step++;
    s->lr = eng_schedule_lr(&t->schedule, t->counters.schedule_step);
    t->features |= s->features;
    for (size_t i = 0; i < ENG_SKIP_COUNT; i++) {
        t->skips[i] += s->skips[i];
    }
    t->features |= t->counters.schedule_step > t->schedule.warmup ? ENG_FEATURE_decay : 0;
    const struct eng_bias bias = eng_schedule_bias(&t->schedule, t->counters.optimizer_t);
    const enum eng_status status = eng_update_run(t, s, bias, error);
    return status == ENG_OK ? eng_states_enqueue(t, s, error) : status;
}

/* Task: the evaluation. */
static enum eng_status evaluate(void *context, struct eng_error *error)
{
    struct eng_trainer *t = context;
    t->pass.step->evaluated = true;
    t->features |= ENG_FEATURE_eval;
    return eng_eval_run(t, eng_results_slot(t, t->pass.step), error);
}

/* Reads the results of the step that was enqueued before and writes its line. */
static enum eng_status collect(struct eng_trainer *t, struct eng_error *error)
{
    struct eng_step *s = t->pending;
    struct eng_step_results results;
    if (s == NULL) {
        return ENG_OK;
    }
    t->pending = NULL;
    enum eng_status status = eng_results_collect(t, s, &results, error);
    if (status != ENG_OK) {
        return status;
    }
    t->features |= results.clip < 1.0f ? ENG_FEATURE_clipped : 0;
    t->last_loss = eng_step_loss(s, &results);
    if (t->steps_done++ == 0) {
        t->first_loss = t->last_loss;
    }
    t->supervised_done += s->supervised;
    t->tokens_done += (int64_t)s->micro_count * (int64_t)t->tokens;
    if (t->trace != NULL) {
        if (s->number == t->last_step) {
            s->race_count = dev_race_count(t->device);
            (void)dev_races(t->device, &s->race_end);
        }
        status = eng_trace_step(t->trace, t, s, &results, error);
    }
    return status == ENG_OK ? eng_states_write(t, s, error) : status;
}

/* Task: sends off this step's results, then reads those of the step before. */
static enum eng_status read_back(void *context, struct eng_error *error)
{
    struct eng_trainer *t = context;
    enum eng_status status = eng_results_enqueue(t, t->pass.step, error);
    if (status == ENG_OK) {
        status = eng_stats_release(t, error);
    }
    return status != ENG_OK ? status : collect(t, error);
}

/* Task: a checkpoint after the step at hand. */
static enum eng_status checkpoint(void *context, struct eng_error *error)
{
    struct eng_trainer *t = context;
    struct eng_step *s = t->pass.step;
    const struct eng_step *following = step_at(t, s->number + 1);
    const struct eng_position next =
        following->number == s->number + 1 ? following->start : eng_loader_position(t->loader);
    char path[4200];
    uint64_t hash = 0;
    const enum eng_status status = eng_checkpoint_save(t, next, path, sizeof path, &hash, error);
    if (status != ENG_OK) {
        return status;
    }
    struct eng_text event = {.data = NULL};
    eng_text_puts(&event, "{\"kind\":\"checkpoint\",\"hash\":");
    eng_text_hash(&event, hash);
    eng_text_puts(&event, ",\"path\":");
    eng_text_string(&event, path);
    eng_text_puts(&event, "}");
    eng_step_event(s, &event);
    eng_text_fini(&event);
    t->features |= ENG_FEATURE_checkpoint;
    return ENG_OK;
}

static bool due(int every, int step)
{
    return every > 0 && step % every == 0;
}

/* What the device knows at the end of a step. */
static void close_step(struct eng_trainer *t, struct eng_step *s)
{
    dev_ledger(t->device, &s->ledger);
    s->host_known = eng_memory_bytes(t->options->memory, s->host_bytes);
    s->mallocs = s->ledger.mallocs - t->mallocs_seen;
    t->mallocs_seen = s->ledger.mallocs;
    s->race_begin = t->races_seen;
    (void)dev_races(t->device, &s->race_end);
    s->race_count = dev_race_count(t->device);
    t->races_seen = s->race_end;
    t->features |= s->ledger.peak_bytes > s->ledger.budget_bytes / 4 * 3 ? ENG_FEATURE_tight : 0;
}

static enum eng_status run_step(struct eng_trainer *t, int number, struct eng_error *error)
{
    struct eng_step *s = step_at(t, number);
    MUT_ENTER_STEP(number);
    dev_step(t->device, number);
    enum eng_status status = passes(t, s, error);
    if (status == ENG_OK) {
        status = run_task(t, ENG_PHASE_UPDATE, t->compute, update, error);
    }
    if (status == ENG_OK && t->options->checkpoint_dir != NULL &&
        due(t->recipe->train.checkpoint_every, number)) {
        status = run_task(t, ENG_PHASE_OTHER, t->compute, checkpoint, error);
    }
    if (status == ENG_OK && due(t->recipe->train.eval_every, number)) {
        status = run_task(t, ENG_PHASE_OTHER, t->compute, evaluate, error);
    }
    if (status == ENG_OK) {
        status = run_task(t, ENG_PHASE_READBACK, t->side, read_back, error);
        t->pending = status == ENG_OK ? s : NULL;
    }
    close_step(t, s);
    return status;
}

static enum eng_status steps(struct eng_trainer *t, const volatile sig_atomic_t *stop,
                             eng_progress_fn *progress, void *context, struct eng_error *error)
{
    t->next.step = t->first_step;
    t->next.micro = 0;
    enum eng_status status = prefetch(t, 0, error);
    for (int n = t->first_step; status == ENG_OK && n <= t->last_step; n++) {
        status = run_step(t, n, error);
        if (status == ENG_OK && progress != NULL) {
            progress(context, t);
        }
        if (status == ENG_OK && stop != NULL && *stop != 0 && n < t->last_step) {
            status = eng_fail(error, ENG_EINTERRUPTED, "interrupted after step %d", n);
        }
    }
    return status;
}

static const char *end_text(enum eng_status status, const struct eng_error *error)
{
    return status == ENG_OK ? "ok" : status == ENG_EINTERRUPTED ? "interrupted" : error->text;
}

enum eng_status eng_trainer_run(struct eng_trainer *t, const volatile sig_atomic_t *stop,
                                eng_progress_fn *progress, void *context, struct eng_error *error)
{
    struct eng_error local = {.text = ""};
    enum eng_status status = ENG_OK;
    if (eng_arm_too_early()) {
        return eng_fail(error, ENG_EUSAGE,
                        "--fault: the site runs before the first step, so '@step' "
                        "makes no sense");
    }
    if (t->options->trace_path != NULL && t->options->level != ENG_LEVEL_NONE) {
        status = eng_trace_open(t, &t->trace, &local);
    }
    if (status == ENG_OK) {
        status = steps(t, stop, progress, context, &local);
    }
    const bool stopped_inside = status != ENG_OK && status != ENG_EINTERRUPTED;
    const struct eng_step *unfinished = stopped_inside ? t->pass.step : NULL;
    /* Also after a failure the finished step before it is worth its line. */
    struct eng_error last = {.text = ""};
    const enum eng_status collected = collect(t, &last);
    if (status == ENG_OK) {
        status = collected;
        local = last;
    }
    if (status == ENG_OK) {
        status = eng_states_finish(t, &local);
    }
    dev_collect_reach(t->device);
    const enum eng_status closed =
        eng_trace_close(t->trace, t, end_text(status, &local), unfinished, &last);
    t->trace = NULL;
    if (status == ENG_OK) {
        status = closed;
        local = last;
    }
    if (status == ENG_OK) {
        status = eng_timeline_status(t->timeline, &local);
    }
    if (status != ENG_OK) {
        *error = local;
    }
    return status;
}

enum eng_status eng_trainer_evaluate(struct eng_trainer *t, double *loss, int *supervised,
                                     struct eng_error *error)
{
    struct eng_step *s = step_at(t, 0);
    struct eng_step_results results;
    if (t->evaluation.batches == 0) {
        return eng_fail(error, ENG_EUSAGE, "the recipe has no evaluation set");
    }
    t->pass.step = s;
    enum eng_status status = run_task(t, ENG_PHASE_OTHER, t->compute, evaluate, error);
    if (status == ENG_OK) {
        status = run_task(t, ENG_PHASE_READBACK, t->side, read_back, error);
    }
    if (status == ENG_OK) {
        status = eng_results_collect(t, s, &results, error);
    }
    if (status == ENG_OK) {
        *loss = (double)results.eval_sum / (double)t->evaluation.supervised;
        *supervised = t->evaluation.supervised;
    }
    return status;
}
