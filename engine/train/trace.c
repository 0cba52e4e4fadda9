/* The trainer's trace. Called by the loop; must not know how results are computed. */
#include "trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "arm.h"
#include "eng_features.h"
#include "linefile.h"
#include "trainer.h"

struct eng_trace {
    eng_linefile *file;
    struct timespec begin;
};

/* "key": of a member that is not the first. */
static void key(struct eng_text *t, const char *name)
{
    eng_text_puts(t, ",\"");
    eng_text_puts(t, name);
    eng_text_puts(t, "\":");
}

static void key_string(struct eng_text *t, const char *name, const char *value)
{
    key(t, name);
    eng_text_string(t, value);
}

static void key_int(struct eng_text *t, const char *name, int64_t value)
{
    key(t, name);
    eng_text_int(t, value);
}

static void key_uint(struct eng_text *t, const char *name, uint64_t value)
{
    key(t, name);
    eng_text_uint(t, value);
}

static void key_double(struct eng_text *t, const char *name, double value)
{
    key(t, name);
    eng_text_double(t, value);
}

static void key_hash(struct eng_text *t, const char *name, uint64_t value)
{
    key(t, name);
    eng_text_hash(t, value);
}

static void comma(struct eng_text *t, size_t index)
{
    if (index > 0) {
        eng_text_puts(t, ",");
    }
}

static enum eng_status write_line(struct eng_trace *trace, const struct eng_text *line,
                                  struct eng_error *error)
{
    if (line->failed) {
        return eng_fail(error, ENG_EHOSTMEM, "trace: host memory exhausted");
    }
    return eng_linefile_write(trace->file, line->data, line->size, error);
}

static void header_names(struct eng_text *h, const struct eng_trainer *t)
{
    key(h, "tensors");
    eng_text_puts(h, "[");
    for (int i = 0; i < t->params->tensor_count; i++) {
        comma(h, (size_t)i);
        eng_text_string(h, t->params->tensors[i].name);
    }
    eng_text_puts(h, "]");
    key(h, "taps");
    eng_text_puts(h, "[");
    for (size_t i = 0; i < eng_model_tap_count(t->model); i++) {
        comma(h, i);
        eng_text_string(h, eng_model_tap_name(t->model, i));
    }
    eng_text_puts(h, "]}");
}

static void header(struct eng_text *h, const struct eng_trainer *t)
{
    static const char *const drivers[] = {"single", "tasks"};
    static const char *const levels[] = {"none", "hashes", "full"};
    const struct eng_train_options *o = t->options;
    eng_text_puts(h, "{\"type\":\"header\",\"trace_version\":1,\"stack\":\"faultline-train\"");
    key_string(h, "recipe", t->recipe->name);
    key_uint(h, "seed", t->seed);
    key_hash(h, "recipe_hash", t->recipe->hash);
    key_string(h, "backend", t->options->device == DEV_KIND_CUDA ? "cuda" : "host");
    key_string(h, "precision", "fp32");
    key_string(h, "build", "compiler " __VERSION__);
    key_string(h, "fault", o->fault != NULL ? o->fault : "none");
    key_string(h, "schedule", dev_sched_name(o->sched));
    key_uint(h, "schedule_seed", o->schedule_seed);
    key_int(h, "threads", o->threads);
    key_string(h, "driver", drivers[o->driver]);
    key_string(h, "level", levels[o->level]);
    key_int(h, "first_step", t->first_step);
    key_int(h, "steps", t->last_step);
    header_names(h, t);
}

static enum eng_status open_trace(const struct eng_trainer *t, struct eng_trace **out,
                                  struct eng_error *error)
{
    struct eng_trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "trace: host memory exhausted");
    }
    struct eng_text line = {.data = NULL};
    clock_gettime(CLOCK_MONOTONIC, &trace->begin);
    enum eng_status status = eng_linefile_open(t->options->trace_path, &trace->file, error);
    if (status == ENG_OK) {
        header(&line, t);
        status = write_line(trace, &line, error);
    }
    eng_text_fini(&line);
    if (status != ENG_OK) {
        eng_linefile_close(trace->file, NULL);
        free(trace);
        return status;
    }
    *out = trace;
    return ENG_OK;
}

enum eng_status eng_trace_open(const struct eng_trainer *t, struct eng_trace **out,
                               struct eng_error *error)
{
    const unsigned before = eng_memory_enter(t->options->memory, ENG_COMPONENT_trace);
    const enum eng_status status = open_trace(t, out, error);
    eng_memory_leave(t->options->memory, before);
    return status;
}

static void batch_records(struct eng_text *l, const struct eng_step_batch *batch)
{
    key(l, "records");
    eng_text_puts(l, "[");
    for (size_t i = 0; i < batch->record_count; i++) {
        const struct eng_record *r = &batch->records[i];
        comma(l, i);
        eng_text_puts(l, "{\"id\":");
        eng_text_string(l, r->id);
        key_uint(l, "epoch", r->epoch);
        key_hash(l, "text", r->text_hash);
        key_hash(l, "tokens", r->tokens_hash);
        key_int(l, "count", r->count);
        eng_text_puts(l, "}");
    }
    eng_text_puts(l, "]");
    key(l, "skipped");
    eng_text_puts(l, "[");
    for (size_t i = 0; i < batch->skipped_count; i++) {
        comma(l, i);
        eng_text_string(l, batch->skipped[i].id);
    }
    eng_text_puts(l, "]");
    key(l, "skip_reasons");
    eng_text_puts(l, "[");
    for (size_t i = 0; i < batch->skipped_count; i++) {
        comma(l, i);
        eng_text_string(l, eng_skip_words[batch->skipped[i].reason]);
    }
    eng_text_puts(l, "]");
}

static void integers(struct eng_text *l, const int32_t *x, size_t count)
{
    eng_text_puts(l, "[");
    for (size_t i = 0; i < count; i++) {
        comma(l, i);
        eng_text_int(l, x[i]);
    }
    eng_text_puts(l, "]");
}

enum { BATCH_ARRAYS = 4 };

static void batch_arrays(struct eng_text *l, const struct eng_step_batch *batch, size_t tokens,
                         bool contents)
{
    static const char *const names[BATCH_ARRAYS] = {"ids", "labels", "positions", "segments"};
    const int32_t *const arrays[BATCH_ARRAYS] = {batch->ids, batch->labels, batch->positions,
                                                 batch->segments};
    for (size_t a = 0; a < BATCH_ARRAYS; a++) {
        eng_text_puts(l, contents && a == 0 ? "\"" : ",\"");
        eng_text_puts(l, names[a]);
        eng_text_puts(l, "\":[");
        for (int m = 0; m < batch->micro_count; m++) {
            const int32_t *x = arrays[a] + (size_t)m * tokens;
            comma(l, (size_t)m);
            if (contents) {
                integers(l, x, tokens);
            } else {
                eng_text_hash(l, eng_fnv1a(x, tokens * sizeof *x));
            }
        }
        eng_text_puts(l, "]");
    }
}

void eng_trace_batch(struct eng_step *step, const struct eng_step_batch *batch, bool contents)
{
    struct eng_text *l = &step->line;
    eng_text_clear(l);
    eng_text_puts(l, "{\"type\":\"step\"");
    key_int(l, "step", step->number);
    batch_records(l, batch);
    batch_arrays(l, batch, step->tokens, false);
    key_int(l, "supervised", batch->supervised);
    if (contents) {
        key(l, "contents");
        eng_text_puts(l, "{");
        batch_arrays(l, batch, step->tokens, true);
        eng_text_puts(l, "}");
    }
}

static void scalars(struct eng_text *l, const struct eng_trainer *t, const struct eng_step *step,
                    const struct eng_step_results *r)
{
    key_double(l, "loss", eng_step_loss(step, r));
    key_double(l, "lr", step->lr);
    key(l, "grad_norm");
    eng_text_float(l, r->grad_norm);
    key(l, "clip");
    eng_text_float(l, r->clip);
    if (step->evaluated) {
        key_double(l, "eval_loss", (double)r->eval_sum / (double)t->evaluation.supervised);
        key_int(l, "eval_supervised", t->evaluation.supervised);
    }
    eng_text_puts(l, ",\"stats\":{\"hidden_rms\":");
    eng_text_double(l, r->hidden_rms);
    eng_text_puts(l, "}");
}

static void sketch(struct eng_text *l, const struct k_sketch *s)
{
    eng_text_puts(l, "[");
    eng_text_float(l, sqrtf(s->sumsq));
    for (size_t i = 0; i < K_PROJECTIONS; i++) {
        eng_text_puts(l, ",");
        eng_text_float(l, s->projection[i]);
    }
    eng_text_puts(l, ",");
    eng_text_uint(l, s->nonfinite);
    eng_text_puts(l, "]");
}

static void sketches(struct eng_text *l, const struct eng_trainer *t, int slot)
{
    static const char *const kinds[ENG_SKETCHED_COUNT] = {"gradients", "parameters", "moment1",
                                                          "moment2", "updates"};
    eng_text_puts(l, ",\"sketch\":{\"activations\":{");
    for (size_t i = 0; i < t->sketches.tap_count; i++) {
        comma(l, i);
        eng_text_string(l, eng_model_tap_name(t->model, i));
        eng_text_puts(l, ":");
        sketch(l, eng_sketches_tap_at(&t->sketches, slot, i));
    }
    eng_text_puts(l, "}");
    for (int k = 0; k < ENG_SKETCHED_COUNT; k++) {
        key(l, kinds[k]);
        eng_text_puts(l, "{");
        for (size_t i = 0; i < t->sketches.tensor_count; i++) {
            comma(l, i);
            eng_text_string(l, t->params->tensors[i].name);
            eng_text_puts(l, ":");
            sketch(l, eng_sketches_tensor_at(&t->sketches, slot, (enum eng_sketched)k, i));
        }
        eng_text_puts(l, "}");
    }
    eng_text_puts(l, "}");
}

/* Only these numbers depend neither on how streams were interleaved nor on where the run began. */
static uint64_t ledger_hash(const struct eng_step *step)
{
    const uint64_t numbers[] = {step->ledger.budget_bytes, step->ledger.live_bytes, step->mallocs};
    return eng_fnv1a(numbers, sizeof numbers);
}

static uint64_t state_hash(const struct eng_trainer *t, int slot)
{
    uint64_t h = 0;
    for (int k = 0; k <= ENG_SKETCH_MOMENT2; k++) {
        for (size_t i = 0; i < t->sketches.tensor_count; i++) {
            const struct k_sketch *s =
                eng_sketches_tensor_at(&t->sketches, slot, (enum eng_sketched)k, i);
            const uint64_t words[] = {h, (uint64_t)s->hash_high << 32 | s->hash_low};
            h = eng_fnv1a(words, sizeof words);
        }
    }
    return h;
}

static void hashes(struct eng_text *l, const struct eng_trainer *t, const struct eng_step *step,
                   const struct eng_step_results *r, int slot)
{
    const float output[] = {r->loss_sum, r->grad_norm};
    eng_text_puts(l, ",\"hash\":{\"input\":");
    eng_text_hash(l, eng_fnv1a(eng_sketches_input_at(&t->sketches, slot, 0),
                               (size_t)step->micro_count * 2 * sizeof(uint32_t)));
    key_hash(l, "state", state_hash(t, slot));
    key_hash(l, "output", eng_fnv1a(output, sizeof output));
    key_hash(l, "ledger", ledger_hash(step));
    eng_text_puts(l, "}");
}

static void ledger(struct eng_text *l, const struct dev_ledger *m)
{
    eng_text_puts(l, ",\"ledger\":{\"budget\":");
    eng_text_uint(l, m->budget_bytes);
    key_uint(l, "live", m->live_bytes);
    key_uint(l, "cached", m->cached_bytes);
    key_uint(l, "pending", m->pending_bytes);
    key_uint(l, "deferred", m->deferred_bytes);
    key_uint(l, "free", m->free_bytes);
    key_uint(l, "peak", m->peak_bytes);
    key_uint(l, "host", m->host_bytes);
    key_uint(l, "mallocs", m->mallocs);
    key_uint(l, "frees", m->frees);
    key_uint(l, "ooms", m->ooms);
    key_uint(l, "spurious_ooms", m->spurious_ooms);
    key_uint(l, "reclaims", m->reclaims);
    eng_text_puts(l, "}");
}

static void host(struct eng_text *l, const struct eng_step *step)
{
    static const char *const names[] = {
#define ENG_ROW_(name) #name,
        ENG_COMPONENTS(ENG_ROW_)
#undef ENG_ROW_
    };
    key(l, "host");
    for (size_t c = 0; step->host_known && c < ENG_COMPONENT_COUNT; c++) {
        eng_text_puts(l, c == 0 ? "{\"" : ",\"");
        eng_text_puts(l, names[c]);
        eng_text_puts(l, "\":");
        eng_text_uint(l, step->host_bytes[c]);
    }
    eng_text_puts(l, step->host_known ? "}" : "null");
}

static void races(struct eng_text *l, const struct eng_trainer *t, const struct eng_step *step)
{
    static const char *const modes[] = {"none", "read", "write", "read_write"};
    size_t count = 0;
    const struct dev_race *all = dev_races(t->device, &count);
    key(l, "races");
    eng_text_puts(l, "[");
    for (size_t i = step->race_begin; i < step->race_end && i < count; i++) {
        const struct dev_race *r = &all[i];
        comma(l, i - step->race_begin);
        eng_text_puts(l, "{\"first\":");
        eng_text_string(l, r->first_what);
        key_string(l, "second", r->second_what);
        key_string(l, "buffer", r->buffer);
        key_string(l, "first_stream", r->first_stream);
        key_string(l, "second_stream", r->second_stream);
        key_string(l, "first_mode", modes[r->first_mode]);
        key_string(l, "second_mode", modes[r->second_mode]);
        key_int(l, "first_step", r->first_step);
        key_int(l, "second_step", r->second_step);
        key_string(l, "first_where", r->first_where);
        key_string(l, "second_where", r->second_where);
        key_uint(l, "first_op", r->first_op);
        key_uint(l, "second_op", r->second_op);
        eng_text_puts(l, "}");
    }
    eng_text_puts(l, "]");
    key_uint(l, "race_count", step->race_count);
}

/* What a step says beside its numbers, also when it did not finish. */
static void happenings(struct eng_text *l, const struct eng_trainer *t, const struct eng_step *step)
{
    ledger(l, &step->ledger);
    host(l, step);
    races(l, t, step);
    key(l, "events");
    eng_text_puts(l, "[");
    eng_text_put(l, step->events.data, step->events.size);
    eng_text_puts(l, "]");
    l->failed = l->failed || step->events.failed;
}

enum eng_status eng_trace_step(struct eng_trace *trace, const struct eng_trainer *t,
                               struct eng_step *step, const struct eng_step_results *results,
                               struct eng_error *error)
{
    struct eng_text *l = &step->line;
    const int slot = step->number % ENG_RING_SLOTS;
    const unsigned before = eng_memory_enter(t->options->memory, ENG_COMPONENT_trace);
    scalars(l, t, step, results);
    if (t->options->level == ENG_LEVEL_FULL) {
        sketches(l, t, slot);
    }
    hashes(l, t, step, results, slot);
    happenings(l, t, step);
    eng_text_puts(l, "}");
    const enum eng_status status = write_line(trace, l, error);
    eng_memory_leave(t->options->memory, before);
    return status;
}

static void end_features(struct eng_text *l, uint64_t features)
{
    static const char *const names[] = {
#define ENG_ROW_(name) #name,
        ENG_FEATURES(ENG_ROW_)
#undef ENG_ROW_
    };
    size_t written = 0;
    key(l, "features");
    eng_text_puts(l, "[");
    for (size_t i = 0; i < ENG_FEATURE_COUNT; i++) {
        if ((features >> i & 1u) != 0) {
            comma(l, written++);
            eng_text_string(l, names[i]);
        }
    }
    eng_text_puts(l, "]");
}

static void end_skips(struct eng_text *l, const size_t skips[ENG_SKIP_COUNT])
{
    key(l, "skips");
    eng_text_puts(l, "{");
    for (size_t i = ENG_SKIP_NOT + 1; i < ENG_SKIP_COUNT; i++) {
        comma(l, i - 1);
        eng_text_string(l, eng_skip_words[i]);
        eng_text_puts(l, ":");
        eng_text_int(l, (int64_t)skips[i]);
    }
    eng_text_puts(l, "}");
}

enum eng_status eng_trace_close(struct eng_trace *trace, const struct eng_trainer *t,
                                const char *status, const struct eng_step *unfinished,
                                struct eng_error *error)
{
    if (trace == NULL) {
        return ENG_OK;
    }
    struct eng_text line = {.data = NULL};
    struct timespec now;
    struct rusage usage;
    clock_gettime(CLOCK_MONOTONIC, &now);
    getrusage(RUSAGE_SELF, &usage);
    eng_text_puts(&line, "{\"type\":\"end\"");
    key_int(&line, "steps", t->steps_done);
    key_string(&line, "status", status);
    end_features(&line, t->features);
    end_skips(&line, t->skips);
    key_double(&line, "seconds",
               (double)(now.tv_sec - trace->begin.tv_sec) +
                   1e-9 * (double)(now.tv_nsec - trace->begin.tv_nsec));
    key_int(&line, "peak_host_bytes", (int64_t)usage.ru_maxrss * 1024);
    eng_arm_report(&line);
    if (unfinished != NULL) {
        eng_text_puts(&line, ",\"unfinished\":{\"step\":");
        eng_text_int(&line, unfinished->number);
        happenings(&line, t, unfinished);
        eng_text_puts(&line, "}");
    }
    eng_text_puts(&line, "}");
    enum eng_status result = write_line(trace, &line, error);
    eng_text_fini(&line);
    const enum eng_status closed = eng_linefile_close(trace->file, result == ENG_OK ? error : NULL);
    free(trace);
    return result != ENG_OK ? result : closed;
}
