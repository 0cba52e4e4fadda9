/* The readers of recipes: each refuses with a message that names the file, and what two of them
 * accept they read alike. The harness also looks for the files that a recipe names, so it refuses
 * most, and what both take they read alike. The input is a file. Called by libFuzzer and
 * replay_main.c. */
#include <math.h>
#include <string.h>

#include "cor_recipe.h"
#include "fuzz.h"
#include "har_recipe.h"
#include "recipe.h"
#include "ref_recipe.h"
#include "template_file.h"

static void same_text(const char *a, const char *b)
{
    fuzz_require(strcmp(a, b) == 0);
}

static void same_files(char *const *a, unsigned count, const struct orc_ref_paths *b)
{
    fuzz_require(count == b->count);
    for (unsigned i = 0; i < count; i++) {
        same_text(a[i], b->list[i]);
    }
}

static void check_trainer_alone(const struct eng_recipe *r)
{
    fuzz_require(r->model.width % r->model.heads == 0);
    fuzz_require(r->model.width / r->model.heads % 2 == 0);
    fuzz_require(r->model.heads % r->model.kv_heads == 0);
    fuzz_require(r->model.context >= 2 && r->model.layers >= 1 && r->model.vocab >= 2);
    fuzz_require(r->train.rows >= 1 && r->train.grad_accum >= 1 && r->train.steps >= 1);
    fuzz_require(r->train.schedule_steps > r->train.warmup && r->train.warmup >= 0);
    const double reals[] = {r->model.norm_eps, r->model.rope_theta,   r->train.lr,
                            r->train.lr_min,   r->train.beta1,        r->train.beta2,
                            r->train.eps,      r->train.weight_decay, r->train.clip};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        fuzz_require(isfinite(reals[i]) && reals[i] >= 0.0);
    }
    fuzz_require(r->data.train_count > 0);
}

static void same_model(const struct eng_recipe_model *a, const struct orc_ref_shape *b)
{
    fuzz_require((size_t)a->layers == b->layers);
    fuzz_require((size_t)a->width == b->width);
    fuzz_require((size_t)a->heads == b->heads);
    fuzz_require((size_t)a->kv_heads == b->kv_heads);
    fuzz_require((size_t)a->ffn == b->ffn);
    fuzz_require((size_t)a->context == b->context);
    fuzz_require((size_t)a->vocab == b->vocab);
    fuzz_require((a->tied != 0) == b->tied);
    fuzz_require(a->norm_eps == b->norm_eps && a->rope_theta == b->rope_theta);
}

static void same_train(const struct eng_recipe_train *a, const struct orc_ref_recipe *r)
{
    fuzz_require(a->seed == r->train.seed);
    fuzz_require((size_t)a->steps == r->train.steps);
    fuzz_require((size_t)a->rows == r->train.rows);
    fuzz_require((size_t)a->grad_accum == r->train.grad_accum);
    fuzz_require((size_t)a->warmup == r->train.warmup);
    fuzz_require((size_t)a->schedule_steps == r->train.schedule_steps);
    fuzz_require((size_t)a->eval_every == r->train.eval_every);
    fuzz_require((size_t)a->eval_rows == r->train.eval_rows);
    fuzz_require((size_t)a->checkpoint_every == r->train.checkpoint_every);
    fuzz_require(a->lr == r->train.lr && a->lr_min == r->train.lr_min);
    fuzz_require(a->beta1 == r->train.beta1 && a->beta2 == r->train.beta2);
    fuzz_require(a->eps == r->train.eps && a->weight_decay == r->train.weight_decay);
    fuzz_require(a->clip == r->train.clip);
}

/* Both enumerations list the words in the order of the page. */
static void same_data(const struct eng_recipe_data *a, const struct orc_ref_recipe *b)
{
    fuzz_require((int)a->packing == (int)b->data.packing);
    fuzz_require((int)a->truncate == (int)b->data.truncate);
    fuzz_require((int)a->format == (int)b->data.format);
    fuzz_require((int)a->order == (int)b->data.order);
    fuzz_require((a->on_unlearned == ENG_BREACH_ERROR) ==
                 (b->data.on_unlearned == ORC_REF_REFUSE_UNLEARNED));
    fuzz_require((int)a->on_prefix == (int)b->data.on_prefix);
    fuzz_require((a->weights == NULL) == (b->data.weights == NULL));
    for (size_t i = 0; a->weights != NULL && i < a->train_count; i++) {
        fuzz_require(a->weights[i] == b->data.weights[i]);
    }
}

/* The trainer has layouts built in, so that a name may stay a name; the reference finds its file. */
static void same_template(const struct eng_recipe *a, const struct orc_ref_recipe *b)
{
    const char *const name = a->text.template_name;
    if (eng_template_is_file(name)) {
        same_text(a->text.template_source, b->text.template_path);
        return;
    }
    const char *const slash = strrchr(b->text.template_file, '/');
    const char *const file = slash == NULL ? b->text.template_file : slash + 1;
    fuzz_require(strncmp(file, name, strlen(name)) == 0);
    same_text(file + strlen(name), ".jinja");
}

static void same_recipe(const struct eng_recipe *a, const struct orc_ref_recipe *b)
{
    same_text(a->name, b->name);
    fuzz_require(a->hash == b->hash);
    same_model(&a->model, &b->model);
    same_train(&a->train, b);
    same_text(a->text.tokenizer, b->text.tokenizer);
    same_template(a, b);
    fuzz_require((int)a->text.mask == (int)b->text.mask);
    same_files(a->data.train, a->data.train_count, &b->data.train);
    same_files(a->data.eval, a->data.eval_count, &b->data.eval);
    same_data(&a->data, b);
    same_text(a->data.pad, b->data.pad);
    fuzz_require(a->device.budget == b->device.budget);
    fuzz_require((size_t)a->device.oom_at == b->device.oom_at);
}

static void same_shape(const struct cor_model *a, const struct orc_ref_shape *b)
{
    fuzz_require(a->layers == b->layers && a->width == b->width && a->heads == b->heads);
    fuzz_require(a->kv_heads == b->kv_heads && a->ffn == b->ffn && a->vocab == b->vocab);
    fuzz_require(a->tied == b->tied);
}

static void check_refusal(const char *text, const char *path)
{
    fuzz_require(strncmp(text, path, strlen(path)) == 0);
    fuzz_require(strlen(text) > strlen(path) + 2);
}

static void check_harness(const char *path, const struct eng_recipe *trainer)
{
    struct har_recipe recipe;
    struct har_error error = {""};
    const enum har_status status = har_recipe_load(path, &recipe, &error);
    fuzz_require(status == HAR_OK || status == HAR_EUSAGE || status == HAR_EIO);
    fuzz_require((status == HAR_OK) == (error.text[0] == '\0'));
    if (status == HAR_OK && trainer != NULL) {
        same_text(recipe.name, trainer->name);
        fuzz_require(recipe.steps == trainer->train.steps);
        fuzz_require(recipe.vocab == trainer->model.vocab);
        fuzz_require(recipe.checkpoint_every == trainer->train.checkpoint_every);
        fuzz_require(recipe.train_count == trainer->data.train_count);
        fuzz_require(recipe.file_hash == trainer->hash);
    }
    if (status == HAR_OK) {
        har_recipe_fini(&recipe);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_file file = fuzz_file_open(data, size);
    struct eng_error trainer_error = {""};
    struct orc_ref_error reference_error = {""};
    struct cor_error weights_error = {""};
    struct eng_recipe *trainer = NULL;
    struct orc_ref_recipe reference = {.name = NULL};
    struct cor_model weights = {.layers = 0};
    struct orc_ref_arena *const arena = orc_ref_arena_create(1 << 16);
    fuzz_require(arena != NULL);
    const bool by_trainer = eng_recipe_read(file.path, &trainer, &trainer_error) == ENG_OK;
    const bool by_reference =
        orc_ref_recipe_load(file.path, arena, &reference, &reference_error) == ORC_REF_OK;
    const bool by_weights = cor_recipe_read(file.path, &weights, &weights_error) == COR_OK;
    fuzz_require(by_trainer == (trainer != NULL));
    if (by_trainer) {
        check_trainer_alone(trainer);
    } else {
        check_refusal(trainer_error.text, file.path);
    }
    if (!by_reference) {
        check_refusal(reference_error.text, file.path);
    }
    if (!by_weights) {
        check_refusal(weights_error.text, file.path);
    }
    if (by_trainer && by_reference) {
        same_recipe(trainer, &reference);
    }
    if (by_weights && by_reference) {
        same_shape(&weights, &reference.model);
    }
    check_harness(file.path, trainer);
    eng_recipe_free(trainer);
    orc_ref_arena_destroy(arena);
    fuzz_file_close(&file);
    return 0;
}
