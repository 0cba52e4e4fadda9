/* Life of a trainer: device, model, data, weights. Called by train_main and tests; must not know
 * how a step goes. */
#include "trainer.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint.h"
#include "devstatus.h"
#include "eng_features.h"
#include "eng_sync.h"
#include "eval.h"
#include "stats.h"
#include "timeline.h"
#include "update.h"

enum { GRANULE = 256, PERTURB_FLOATS = 1 << 14, LATE_BLOCKS = 3 };

static size_t rounded(size_t bytes)
{
    return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

static struct eng_model_config model_config(const struct eng_recipe *r)
{
    const struct eng_recipe_model *m = &r->model;
    return (struct eng_model_config){.layers = m->layers,
                                     .width = m->width,
                                     .heads = m->heads,
                                     .kv_heads = m->kv_heads,
                                     .ffn = m->ffn,
                                     .context = m->context,
                                     .vocab = m->vocab,
                                     .tied = m->tied != 0,
                                     .norm_eps = (float)m->norm_eps,
                                     .rope_theta = m->rope_theta,
                                     .rows = r->train.rows};
}

static size_t parameter_count(const struct eng_recipe_model *m)
{
    const size_t width = (size_t)m->width;
    const size_t kv_width = width / (size_t)m->heads * (size_t)m->kv_heads;
    const size_t layer =
        2 * width + 2 * width * width + 2 * kv_width * width + 3 * width * (size_t)m->ffn;
    return (size_t)m->vocab * width * (m->tied != 0 ? 1 : 2) + width + layer * (size_t)m->layers;
}

void eng_trainer_plan(const struct eng_recipe *recipe, const struct eng_train_options *options,
                      struct eng_plan *out)
{
    const struct eng_model_config config = model_config(recipe);
    const size_t tokens = (size_t)config.rows * (size_t)config.context;
    const size_t parameters = parameter_count(&recipe->model);
    const size_t chunks = parameters / K_CHUNK + 9 * (size_t)config.layers + 3;
    const int micros = recipe->train.grad_accum;
    const bool full = options->level == ENG_LEVEL_FULL;
    out->model_bytes = eng_model_plan_bytes(&config);
    out->train_bytes = eng_results_bytes() + 2 * eng_feed_bytes(tokens) +
                       rounded(chunks * sizeof(float)) +
                       LATE_BLOCKS * rounded(tokens * sizeof(float)) +
                       eng_sketches_bytes(&config, options->level, micros) +
                       (full ? rounded(parameters * sizeof(float)) : 0);
    out->total_bytes = out->model_bytes + out->train_bytes;
    out->budget_bytes = options->budget > 0         ? options->budget
                        : recipe->device.budget > 0 ? recipe->device.budget
                                                    : out->total_bytes + out->total_bytes / 2;
    out->pinned_bytes = ENG_MODEL_PINNED_BYTES + PERTURB_FLOATS * sizeof(float) +
                        eng_results_pinned_bytes(tokens) + 2 * eng_feed_bytes(tokens) +
                        eng_sketches_pinned_bytes(&config, options->level, micros) +
                        (options->states_path != NULL ? eng_states_pinned_bytes(parameters) : 0);
    out->pinned_bytes += out->pinned_bytes / 8;
}

static enum eng_status open_device(struct eng_trainer *t, struct eng_error *error)
{
    const struct eng_train_options *o = t->options;
    struct eng_plan plan;
    eng_trainer_plan(t->recipe, o, &plan);
    char why[256] = "";
    if (plan.budget_bytes < DEV_HEAP_BYTES_MIN) {
        return eng_fail(error, ENG_EUSAGE, "a budget of %zu bytes: a device needs at least %d",
                        plan.budget_bytes, DEV_HEAP_BYTES_MIN);
    }
    const struct dev_conf conf = {.kind = o->device,
                                  .exact_products = o->exact_products,
                                  .heap_bytes = plan.budget_bytes,
                                  .pinned_bytes = plan.pinned_bytes,
                                  .sched = o->sched,
                                  .seed = o->schedule_seed,
                                  .threads = o->threads,
                                  .check_races = !o->unchecked,
                                  .poison = !o->unchecked && !o->no_poison,
                                  .quarantine_bytes = o->quarantine,
                                  .aims = o->aims,
                                  .aim_count = o->aim_count,
                                  .watch = t->timeline != NULL ? eng_timeline_moment : NULL,
                                  .watch_context = t->timeline,
                                  .guard = o->guard,
                                  .list_sites = o->list_waits,
                                  .omit_site = o->omit_wait,
                                  .oom_step = t->recipe->device.oom_at,
                                  .why = why,
                                  .why_bytes = sizeof why};
    enum dev_status status = dev_open(&conf, &t->device);
    if (status != DEV_OK) {
        return eng_fail(error,
                        status == DEV_EOOM        ? ENG_EDEVICEMEM
                        : status == DEV_ENODEVICE ? ENG_EUSAGE
                                                  : ENG_EDEVICE,
                        "device cannot be opened: %s",
                        why[0] != '\0' ? why : dev_status_text(status));
    }
    status = dev_stream_create(t->device, "compute", &t->compute);
    if (status == DEV_OK) {
        status = dev_stream_create(t->device, "copy", &t->copy);
    }
    if (status == DEV_OK) {
        status = dev_stream_create(t->device, "side", &t->side);
    }
    return eng_train_device(t->device, status, error);
}

static enum eng_status open_loader(struct eng_trainer *t, struct eng_error *error)
{
    const struct eng_recipe *r = t->recipe;
    struct eng_loader_options options = eng_recipe_loader_options(r);
    options.files = (const char *const *)r->data.train;
    options.weights = r->data.weights;
    options.file_count = r->data.train_count;
    options.shuffle = true;
    options.seed = t->seed;
    options.rows = r->train.rows;
    options.micro_count = r->train.grad_accum;
    options.memory = t->options->memory;
    return eng_loader_open(&options, &t->loader, error);
}

/* Moves every weight to a neighbour, up or down by a bit of its index. */
static enum eng_status perturb(struct eng_trainer *t, struct eng_error *error)
{
    float *pinned = NULL;
    const size_t count = (size_t)t->params->elements;
    enum dev_status status =
        dev_pinned(t->device, PERTURB_FLOATS * sizeof(float), "perturbation", (void **)&pinned);
    for (size_t done = 0; status == DEV_OK && done < count; done += PERTURB_FLOATS) {
        const size_t left = count - done;
        const size_t part = left < PERTURB_FLOATS ? left : PERTURB_FLOATS;
        const size_t bytes = part * sizeof(float);
        float *on_device = t->params->param + done;
        status = dev_copy(t->device, t->compute, pinned, on_device, bytes, "weights to host");
        if (status == DEV_OK) {
            status = dev_sync_stream(t->device, t->compute);
        }
        if (status == DEV_OK) {
            status = dev_host(t->device, pinned, bytes, DEV_READ_WRITE, "perturb weights");
        }
        for (size_t i = 0; status == DEV_OK && i < part; i++) {
            const uint32_t mixed = (uint32_t)(done + i) * 0x9E3779B1u;
            pinned[i] = nextafterf(pinned[i], (mixed >> 31) != 0 ? INFINITY : -INFINITY);
        }
        if (status == DEV_OK) {
            status = dev_copy(t->device, t->compute, on_device, pinned, bytes, "perturbed weights");
        }
    }
    return eng_train_device(t->device, status, error);
}

static enum eng_status load_weights(struct eng_trainer *t, const struct eng_checkpoint *from,
                                    struct eng_error *error)
{
    enum eng_status status;
    if (from != NULL) {
        status = eng_checkpoint_restore(t, from, error);
        t->features |= ENG_FEATURE_resumed;
        t->first_step = t->counters.step + 1;
    } else {
        status = eng_model_load(t->model, t->compute, t->options->weights, t->params->param, error);
    }
    if (status == ENG_OK && t->options->perturb_ulp) {
        status = perturb(t, error);
    }
    return status;
}

static enum eng_status open_parts(struct eng_trainer *t, struct eng_error *error)
{
    enum eng_status status = eng_model_create(t->device, t->compute, &t->config, &t->model, error);
    if (status != ENG_OK) {
        return status;
    }
    t->params = eng_model_params(t->model);
    status = eng_feed_open(&t->feed, t->device, t->copy, t->tokens, "input", error);
    if (status == ENG_OK) {
        status = eng_results_open(t, error);
    }
    if (status == ENG_OK) {
        status = eng_stats_open(t, error);
    }
    if (status == ENG_OK) {
        status = eng_update_open(t, error);
    }
    if (status == ENG_OK) {
        status = eng_sketches_open(&t->sketches, t->device, t->compute, t->model, &t->config,
                                   t->options->level, t->recipe->train.grad_accum, error);
    }
    if (status == ENG_OK) {
        status = eng_states_open(t, error);
    }
    if (status == ENG_OK) {
        status = eng_eval_open(t, error);
    }
    for (size_t i = 0; status == ENG_OK && i < sizeof t->step / sizeof t->step[0]; i++) {
        status = eng_step_init(&t->step[i], t->recipe->train.grad_accum, t->tokens, error);
    }
    return status;
}

/* What the recipe alone says about the run's features. */
static uint64_t recipe_features(const struct eng_trainer *t)
{
    const struct eng_recipe *r = t->recipe;
    const struct eng_recipe_model *m = &r->model;
    uint64_t f = m->tied != 0 ? ENG_FEATURE_tied : ENG_FEATURE_untied;
    f |= r->train.grad_accum > 1 ? ENG_FEATURE_accum : 0;
    f |= m->kv_heads > 1 && m->kv_heads < m->heads ? ENG_FEATURE_gqa : 0;
    f |= r->train.weight_decay > 0.0 ? ENG_FEATURE_weight_decay : 0;
    f |= r->train.warmup > 0 ? ENG_FEATURE_warmup : 0;
    f |= m->layers > 1 ? ENG_FEATURE_layers2 : 0;
    f |= ENG_FEATURE_square; /* heads * head_dim = width */
    f |= t->options->sched == DEV_SCHED_LAZY ? ENG_FEATURE_lazy : 0;
    f |= t->options->sched == DEV_SCHED_PCT ? ENG_FEATURE_pct : 0;
    f |= t->options->driver == ENG_DRIVER_TASKS ? ENG_FEATURE_tasks : 0;
    f |= k_lanes_emulated() ? ENG_FEATURE_lanes : 0;
    return f;
}

static void set_up(struct eng_trainer *t, const struct eng_recipe *recipe,
                   const struct eng_train_options *options)
{
    t->recipe = recipe;
    t->options = options;
    t->seed = options->seed_given ? options->seed : recipe->train.seed;
    t->first_step = 1;
    t->last_step = options->steps > 0 ? options->steps : recipe->train.steps;
    t->config = model_config(recipe);
    t->tokens = (size_t)t->config.rows * (size_t)t->config.context;
    t->features = recipe_features(t);
    t->schedule = (struct eng_schedule){.lr = recipe->train.lr,
                                        .lr_min = recipe->train.lr_min,
                                        .warmup = recipe->train.warmup,
                                        .horizon = recipe->train.schedule_steps,
                                        .grad_accum = recipe->train.grad_accum,
                                        .beta1 = recipe->train.beta1,
                                        .beta2 = recipe->train.beta2};
}

static enum eng_status find_checkpoint(struct eng_trainer *t, struct eng_checkpoint *c,
                                       struct eng_error *error)
{
    const enum eng_status status = eng_checkpoint_find(t->options->resume, c, error);
    if (status != ENG_OK) {
        return status;
    }
    if (c->recipe_hash != t->recipe->hash) {
        return eng_fail(error, ENG_EUSAGE, "%s: belongs to another recipe", c->folder);
    }
    if (t->options->seed_given && c->seed != t->seed) {
        return eng_fail(error, ENG_EUSAGE, "%s: belongs to seed %llu", c->folder,
                        (unsigned long long)c->seed);
    }
    t->seed = c->seed;
    return ENG_OK;
}

enum eng_status eng_trainer_create(const struct eng_recipe *recipe,
                                   const struct eng_train_options *options,
                                   struct eng_trainer **out, struct eng_error *error)
{
    struct eng_trainer *t = calloc(1, sizeof *t);
    struct eng_checkpoint *from = options->resume != NULL ? calloc(1, sizeof *from) : NULL;
    enum eng_status status = ENG_OK;
    if (t == NULL || (options->resume != NULL && from == NULL)) {
        status = eng_fail(error, ENG_EHOSTMEM, "trainer: host memory exhausted");
        goto done;
    }
    set_up(t, recipe, options);
    if (from != NULL) {
        status = find_checkpoint(t, from, error);
    }
    if (status == ENG_OK) {
        status = open_loader(t, error);
    }
    if (status == ENG_OK && options->timeline_path != NULL) {
        status = eng_timeline_open(options->timeline_path, &t->timeline, error);
    }
    if (status == ENG_OK) {
        status = open_device(t, error);
    }
    if (status == ENG_OK) {
        status = open_parts(t, error);
    }
    if (status == ENG_OK) {
        status = load_weights(t, from, error);
    }
    if (status == ENG_OK) {
        status = eng_driver_open(t->device, options->memory, options->driver, &t->driver, error);
    }
    if (status == ENG_OK) {
        struct dev_ledger ledger;
        dev_ledger(t->device, &ledger);
        t->mallocs_seen = ledger.mallocs;
    }
done:
    free(from);
    if (status != ENG_OK) {
        eng_trainer_destroy(t);
        return status;
    }
    *out = t;
    return ENG_OK;
}

void eng_trainer_destroy(struct eng_trainer *t)
{
    if (t == NULL) {
        return;
    }
    eng_driver_close(t->driver);
    for (size_t i = 0; i < sizeof t->step / sizeof t->step[0]; i++) {
        eng_step_fini(&t->step[i]);
    }
    eng_eval_fini(t);
    eng_loader_close(t->loader);
    eng_model_destroy(t->model);
    dev_close(t->device);
    eng_timeline_close(t->timeline);
    eng_states_close(&t->states);
    free(t);
}

enum eng_status eng_trainer_save(struct eng_trainer *t, const char *dir, struct eng_error *error)
{
    char path[PATH_MAX];
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        return eng_fail(error, ENG_EIO, "%s: %s", dir, strerror(errno));
    }
    if (snprintf(path, sizeof path, "%s/model.safetensors", dir) >= (int)sizeof path) {
        return eng_fail(error, ENG_EUSAGE, "%s: path is too long", dir);
    }
    enum eng_status status =
        eng_model_save(t->model, t->compute, path, t->params->param, error);
    if (status == ENG_OK) {
        status = eng_sync(path, error);
    }
    if (status != ENG_OK) {
        return status;
    }
    snprintf(path, sizeof path, "%s/config.json", dir);
    return eng_model_save_config(t->model, path, error);
}
