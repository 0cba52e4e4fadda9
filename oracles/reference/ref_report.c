/* What the trace says of a run: header, steps, end. See ref_run.h and oracles/TRACE.md. */
#include "ref_run.h"

#include "ref_file.h"

#include <string.h>
#include <sys/resource.h>

enum orc_ref_status orc_ref_report_header(struct orc_ref_run *run, struct orc_ref_error *error)
{
    struct orc_ref_trace *const t = run->trace;
    const struct orc_ref_recipe *const recipe = run->options->recipe;
    static const char *const unsaid[] = {"schedule", "schedule_seed", "threads", "driver"};
    orc_ref_trace_open_object(t, NULL);
    orc_ref_trace_text(t, "type", "header");
    orc_ref_trace_count(t, "trace_version", 1);
    orc_ref_trace_text(t, "stack", "faultline-ref");
    orc_ref_trace_text(t, "recipe", recipe->name);
    orc_ref_trace_count(t, "seed", run->options->seed);
    orc_ref_trace_hash(t, "recipe_hash", recipe->hash);
    orc_ref_trace_text(t, "backend", "reference");
    orc_ref_trace_text(t, "precision", "fp64");
    orc_ref_trace_text(t, "build", ORC_REF_BUILD);
    orc_ref_trace_text(t, "fault", "none");
    orc_ref_trace_text(t, "mode", run->follow != NULL ? "lockstep" : "free");
    for (size_t i = 0; i < sizeof unsaid / sizeof *unsaid; i++)
        orc_ref_trace_null(t, unsaid[i]);
    orc_ref_trace_text(t, "level", run->options->full ? "full" : "hashes");
    orc_ref_trace_count(t, "first_step", 1);
    orc_ref_trace_count(t, "steps", run->options->steps);
    orc_ref_trace_open_array(t, "tensors");
    for (size_t i = 0; i < run->params.count; i++)
        orc_ref_trace_text(t, NULL, run->params.list[i].name);
    orc_ref_trace_close_array(t);
    orc_ref_trace_open_array(t, "taps");
    for (size_t i = 0; i < orc_ref_model_taps(&recipe->model); i++) {
        char name[64];
        orc_ref_model_tap_name(&recipe->model, i, name, sizeof name);
        orc_ref_trace_text(t, NULL, name);
    }
    orc_ref_trace_close_array(t);
    orc_ref_trace_close_object(t);
    return orc_ref_trace_write(t, error);
}

static void write_records(struct orc_ref_run *run)
{
    struct orc_ref_trace *const t = run->trace;
    orc_ref_trace_open_array(t, "records");
    for (size_t i = 0; i < run->log.placed_count; i++) {
        const struct orc_ref_placed *const placed = &run->log.placed[i];
        orc_ref_trace_open_object(t, NULL);
        orc_ref_trace_text(t, "id", placed->document->id);
        orc_ref_trace_count(t, "epoch", placed->epoch);
        orc_ref_trace_hash(t, "text", placed->document->text_hash);
        orc_ref_trace_hash(t, "tokens", orc_ref_hash_ints(placed->ids, placed->count));
        orc_ref_trace_count(t, "count", placed->count);
        orc_ref_trace_close_object(t);
    }
    orc_ref_trace_close_array(t);
    orc_ref_trace_open_array(t, "skipped");
    for (size_t i = 0; i < run->log.skipped_count; i++)
        orc_ref_trace_text(t, NULL, run->log.skipped[i].document->id);
    orc_ref_trace_close_array(t);
    orc_ref_trace_open_array(t, "skip_reasons");
    for (size_t i = 0; i < run->log.skipped_count; i++)
        orc_ref_trace_text(t, NULL, orc_ref_skip_words[run->log.skipped[i].reason]);
    orc_ref_trace_close_array(t);
}

static const int32_t *batch_array(const struct orc_ref_batch *batch, size_t which)
{
    const int32_t *const arrays[] = {batch->ids, batch->labels, batch->positions, batch->segments};
    return arrays[which];
}

static const char *const array_names[] = {"ids", "labels", "positions", "segments"};
enum { ARRAYS = sizeof array_names / sizeof *array_names };

static void write_inputs(struct orc_ref_run *run)
{
    struct orc_ref_trace *const t = run->trace;
    const size_t micro = run->options->recipe->train.grad_accum;
    for (size_t which = 0; which < ARRAYS; which++) {
        orc_ref_trace_open_array(t, array_names[which]);
        for (size_t i = 0; i < micro; i++) {
            const struct orc_ref_batch *const batch = &run->batches[i];
            orc_ref_trace_hash(t, NULL, orc_ref_hash_ints(batch_array(batch, which),
                                                   batch->rows * batch->context));
        }
        orc_ref_trace_close_array(t);
    }
}

static void write_contents(struct orc_ref_run *run)
{
    struct orc_ref_trace *const t = run->trace;
    orc_ref_trace_open_object(t, "contents");
    for (size_t which = 0; which < ARRAYS; which++) {
        orc_ref_trace_open_array(t, array_names[which]);
        for (size_t i = 0; i < run->options->recipe->train.grad_accum; i++) {
            const struct orc_ref_batch *const batch = &run->batches[i];
            orc_ref_trace_open_array(t, NULL);
            for (size_t p = 0; p < batch->rows * batch->context; p++)
                orc_ref_trace_integer(t, NULL, batch_array(batch, which)[p]);
            orc_ref_trace_close_array(t);
        }
        orc_ref_trace_close_array(t);
    }
    orc_ref_trace_close_object(t);
}

static void write_sketch(struct orc_ref_trace *t, const char *name,
                         const struct orc_ref_sketch *sketch)
{
    orc_ref_trace_open_array(t, name);
    for (size_t j = 0; j + 1 < ORC_REF_SKETCH; j++)
        orc_ref_trace_number(t, NULL, sketch->result[j]);
    orc_ref_trace_count(t, NULL, (uint64_t)sketch->result[ORC_REF_SKETCH - 1]);
    orc_ref_trace_close_array(t);
}

/* Sketches of one array of the parameters. */
static void write_group(struct orc_ref_run *run, const char *name, const double *array)
{
    const struct orc_ref_params *const params = &run->params;
    for (size_t i = 0; i < params->count; i++)
        run->sketches[i] = (struct orc_ref_sketch){.data = array + params->list[i].offset,
                                                   .count = orc_ref_param_size(&params->list[i])};
    orc_ref_sketch_all(run->sketches, params->count, run->pool);
    orc_ref_trace_open_object(run->trace, name);
    for (size_t i = 0; i < params->count; i++)
        write_sketch(run->trace, params->list[i].name, &run->sketches[i]);
    orc_ref_trace_close_object(run->trace);
}

void orc_ref_report_before_update(struct orc_ref_run *run)
{
    struct orc_ref_trace *const t = run->trace;
    const struct orc_ref_shape *const shape = &run->options->recipe->model;
    orc_ref_trace_open_object(t, NULL);
    orc_ref_trace_text(t, "type", "step");
    orc_ref_trace_count(t, "step", run->step);
    write_records(run);
    write_inputs(run);
    if (run->options->contents)
        write_contents(run);
    if (!run->options->full)
        return;
    orc_ref_trace_open_object(t, "sketch");
    orc_ref_trace_open_object(t, "activations");
    for (size_t i = 0; i < orc_ref_model_taps(shape); i++) {
        char name[64];
        orc_ref_model_tap_name(shape, i, name, sizeof name);
        write_sketch(t, name, &run->activations[i]);
    }
    orc_ref_trace_close_object(t);
    write_group(run, "gradients", run->params.grad);
}

enum orc_ref_status orc_ref_report_after_update(struct orc_ref_run *run,
                                                struct orc_ref_error *error)
{
    struct orc_ref_trace *const t = run->trace;
    if (run->options->full) {
        write_group(run, "updates", run->params.update);
        write_group(run, "parameters", run->params.value);
        write_group(run, "moment1", run->params.moment1);
        write_group(run, "moment2", run->params.moment2);
        orc_ref_trace_close_object(t);
    }
    orc_ref_trace_count(t, "supervised", run->supervised);
    orc_ref_trace_number(t, "loss", run->nll / (double)run->counted);
    orc_ref_trace_number(t, "lr", run->rate);
    orc_ref_trace_number(t, "grad_norm", run->norm);
    orc_ref_trace_number(t, "clip", run->factor);
    if (run->evaluated) {
        if (run->eval_supervised > 0)
            orc_ref_trace_number(t, "eval_loss", run->eval_nll / (double)run->eval_supervised);
        else
            orc_ref_trace_null(t, "eval_loss");
        orc_ref_trace_count(t, "eval_supervised", run->eval_supervised);
    }
    orc_ref_trace_open_object(t, "stats");
    orc_ref_trace_number(t, "hidden_rms", run->hidden_rms);
    orc_ref_trace_close_object(t);
    orc_ref_trace_open_array(t, "events");
    orc_ref_trace_close_array(t);
    orc_ref_trace_close_object(t);
    return orc_ref_trace_write(t, error);
}

static bool has_weight(const struct orc_ref_recipe *recipe)
{
    bool found = false;
    for (size_t i = 0; i < recipe->data.weight_count; i++)
        found |= recipe->data.weights[i] > 1;
    return found;
}

static void write_features(struct orc_ref_run *run)
{
    const struct orc_ref_recipe *const recipe = run->options->recipe;
    const struct orc_ref_shape *const model = &recipe->model;
    const struct {
        const char *name;
        bool had;
    } features[] = {
        {"accum", recipe->train.grad_accum > 1},
        {"accum_unequal", run->seen.accum_unequal},
        {"packed", run->seen.packed},
        {"padded", run->seen.padded},
        {"truncated", run->seen.truncated},
        {"skipped", run->seen.skipped},
        {"clipped", run->seen.clipped},
        {"tied", model->tied},
        {"untied", !model->tied},
        {"gqa", 1 < model->kv_heads && model->kv_heads < model->heads},
        {"two_epochs", run->seen.two_epochs},
        {"eval", run->seen.eval},
        {"weight_decay", recipe->train.weight_decay > 0.0},
        {"warmup", recipe->train.warmup > 0},
        {"decay", run->step > recipe->train.warmup},
        {"pad_is_eos", run->seen.pad_is_eos},
        {"layers2", model->layers >= 2},
        {"square", true}, /* heads * head_dim is always the width */
        {"late_positions", run->seen.late_positions},
        {"prefix_broken", run->seen.prefix_broken},
        {"split", run->seen.split},
        {"refit", run->seen.refit},
        {"weighted", has_weight(recipe)},
        {"masked_last", recipe->text.mask == ORC_REF_LAST},
        {"masked_completion", recipe->text.mask == ORC_REF_COMPLETION},
        {"cipher", recipe->data.order == ORC_REF_CIPHER},
        {"sharegpt", recipe->data.format == ORC_REF_SHAREGPT},
        {"alpaca", recipe->data.format == ORC_REF_ALPACA},
        {"prompts", recipe->data.format == ORC_REF_PROMPTS},
    };
#define NAME(feature) #feature,
    static const char *const of_text[] = {ORC_REF_TEXT_FEATURES(NAME)};
#undef NAME
    orc_ref_trace_open_array(run->trace, "features");
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (features[i].had)
            orc_ref_trace_text(run->trace, NULL, features[i].name);
    for (size_t i = 0; i < sizeof of_text / sizeof *of_text; i++)
        if (run->seen.text >> i & 1U)
            orc_ref_trace_text(run->trace, NULL, of_text[i]);
    orc_ref_trace_close_array(run->trace);
}

enum orc_ref_status orc_ref_report_end(struct orc_ref_run *run, const char *outcome,
                                       struct orc_ref_error *error)
{
    struct orc_ref_trace *const t = run->trace;
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    (void)getrusage(RUSAGE_SELF, &usage);
    orc_ref_trace_open_object(t, NULL);
    orc_ref_trace_text(t, "type", "end");
    orc_ref_trace_count(t, "steps", run->step);
    orc_ref_trace_text(t, "status", outcome);
    write_features(run);
    orc_ref_trace_open_object(t, "skips");
    for (size_t i = 0; i < ORC_REF_SKIPS; i++)
        orc_ref_trace_count(t, orc_ref_skip_words[i], run->skips[i]);
    orc_ref_trace_close_object(t);
    orc_ref_trace_number(t, "seconds", run->seconds);
    orc_ref_trace_count(t, "peak_host_bytes", (uint64_t)usage.ru_maxrss * 1024);
    orc_ref_trace_close_object(t);
    return orc_ref_trace_write(t, error);
}
