/* Reads the keys of a recipe that the harness needs; ignores the others.
 * Called by har_lab.c; must not know campaigns. */
#include "har_recipe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "har_hash.h"
#include "har_programs.h"
#include "har_yaml.h"

struct raw_model {
    int layers, width, ffn, context, vocab;
};
struct raw_text {
    char *tokenizer, *template_name, *mask;
};
struct raw_data {
    char **train;
    char **eval;
    char *format, *on_prefix; /* NULL: left out */
    unsigned train_count, eval_count;
};
struct raw_train {
    int steps, rows, grad_accum, checkpoint_every;
};
struct raw_recipe {
    char *name;
    struct raw_model model;
    struct raw_text text;
    struct raw_data data;
    struct raw_train train;
};

#define STRING_FIELD(key, type, member)                                                            \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, type, member, 0, CYAML_UNLIMITED)

static const cyaml_schema_value_t string_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED)};
static const cyaml_schema_field_t model_fields[] = {
    CYAML_FIELD_INT("layers", CYAML_FLAG_DEFAULT, struct raw_model, layers),
    CYAML_FIELD_INT("width", CYAML_FLAG_DEFAULT, struct raw_model, width),
    CYAML_FIELD_INT("ffn", CYAML_FLAG_DEFAULT, struct raw_model, ffn),
    CYAML_FIELD_INT("context", CYAML_FLAG_DEFAULT, struct raw_model, context),
    CYAML_FIELD_INT("vocab", CYAML_FLAG_DEFAULT, struct raw_model, vocab),
    CYAML_FIELD_END};
static const cyaml_schema_field_t text_fields[] = {
    STRING_FIELD("tokenizer", struct raw_text, tokenizer),
    STRING_FIELD("template", struct raw_text, template_name),
    STRING_FIELD("mask", struct raw_text, mask), CYAML_FIELD_END};
static const cyaml_schema_field_t data_fields[] = {
    CYAML_FIELD_SEQUENCE("train", CYAML_FLAG_POINTER, struct raw_data, train, &string_value, 1,
                         CYAML_UNLIMITED),
    CYAML_FIELD_SEQUENCE("eval", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_data, eval,
                         &string_value, 0, CYAML_UNLIMITED),
    CYAML_FIELD_STRING_PTR("format", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_data,
                           format, 0, CYAML_UNLIMITED),
    CYAML_FIELD_STRING_PTR("on_prefix", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_data,
                           on_prefix, 0, CYAML_UNLIMITED),
    CYAML_FIELD_END};
static const cyaml_schema_field_t train_fields[] = {
    CYAML_FIELD_INT("steps", CYAML_FLAG_DEFAULT, struct raw_train, steps),
    CYAML_FIELD_INT("rows", CYAML_FLAG_DEFAULT, struct raw_train, rows),
    CYAML_FIELD_INT("grad_accum", CYAML_FLAG_DEFAULT, struct raw_train, grad_accum),
    CYAML_FIELD_INT("checkpoint_every", CYAML_FLAG_OPTIONAL, struct raw_train, checkpoint_every),
    CYAML_FIELD_END};
static const cyaml_schema_field_t recipe_fields[] = {
    STRING_FIELD("name", struct raw_recipe, name),
    CYAML_FIELD_MAPPING("model", CYAML_FLAG_DEFAULT, struct raw_recipe, model, model_fields),
    CYAML_FIELD_MAPPING("text", CYAML_FLAG_DEFAULT, struct raw_recipe, text, text_fields),
    CYAML_FIELD_MAPPING("data", CYAML_FLAG_DEFAULT, struct raw_recipe, data, data_fields),
    CYAML_FIELD_MAPPING("train", CYAML_FLAG_DEFAULT, struct raw_recipe, train, train_fields),
    CYAML_FIELD_END};
static const cyaml_schema_value_t recipe_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_recipe, recipe_fields)};

static bool resolve_list(const char *base, char **from, size_t count, char ***out)
{
    *out = calloc(count + 1, sizeof **out);
    if (*out == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        (*out)[i] = har_yaml_resolve(base, from[i]);
        if ((*out)[i] == NULL) {
            return false;
        }
    }
    return true;
}

/* Multiply-adds of forward and backward: three products per parameter and token. */
static double run_cost(const struct raw_recipe *raw)
{
    const double width = raw->model.width;
    const double layer = 4.0 * width * width + 3.0 * width * raw->model.ffn;
    const double parameters = raw->model.layers * layer + width * raw->model.vocab;
    return 3.0 * parameters * raw->model.context * raw->train.rows * raw->train.grad_accum *
           raw->train.steps;
}

static enum har_status check_ranges(const char *path, const struct raw_recipe *raw,
                                    struct har_error *error)
{
    if (raw->train.steps < 1 || raw->train.checkpoint_every < 0 || raw->model.vocab < 1 ||
        raw->train.rows < 1 || raw->train.grad_accum < 1) {
        return har_fail(error, HAR_EUSAGE,
                        "%s: steps, rows, grad_accum and vocab must be at least 1", path);
    }
    if (raw->name[0] == '\0' || strchr(raw->name, '/') != NULL) {
        return har_fail(error, HAR_EUSAGE, "%s: name '%s' must be usable as a file name", path,
                        raw->name);
    }
    return HAR_OK;
}

static bool ends_in(const char *text, size_t size, const char *ending)
{
    const size_t length = strlen(ending);
    return size > length && memcmp(text + size - length, ending, length) == 0;
}

/* How many bytes of `name` are the path of a template, behind which #NAME may choose one of several
 * in a JSON file; 0: it is no path. */
static size_t template_path_size(const char *name)
{
    const char *const mark = strrchr(name, '#');
    const size_t size = strlen(name);
    if (ends_in(name, size, ".jinja") || ends_in(name, size, ".json")) {
        return size;
    }
    return mark != NULL && ends_in(name, (size_t)(mark - name), ".json") &&
                   strchr(mark, '/') == NULL
               ? (size_t)(mark - name)
               : 0;
}

/* A path is relative to the recipe. Templates with a name stand beside the recipe's folder; recipes
 * kept elsewhere use the source tree's. */
static char *find_template(const char *path, const char *name)
{
    char *layout = NULL;
    if (template_path_size(name) > 0) {
        return har_yaml_resolve(path, name);
    }
    if (asprintf(&layout, "../templates/%s.jinja", name) < 0) {
        return NULL;
    }
    char *beside = har_yaml_resolve(path, layout);
    free(layout);
    if (beside == NULL || access(beside, R_OK) == 0 ||
        asprintf(&layout, "corpus/templates/%s.jinja", name) < 0) {
        return beside;
    }
    char *const ours = har_programs_source(layout);
    free(layout);
    if (ours != NULL) {
        free(beside);
        beside = ours;
    }
    return beside;
}

static bool recipe_copy(const char *path, const struct raw_recipe *raw, struct har_recipe *out)
{
    out->path = strdup(path);
    out->name = strdup(raw->name);
    out->tokenizer = har_yaml_resolve(path, raw->text.tokenizer);
    out->template_name = strdup(raw->text.template_name);
    out->mask = strdup(raw->text.mask);
    out->format = strdup(raw->data.format != NULL ? raw->data.format : "messages");
    out->checks_prefix = raw->data.on_prefix != NULL && strcmp(raw->data.on_prefix, "ignore") != 0;
    out->template_path = find_template(path, raw->text.template_name);
    out->train_count = raw->data.train_count;
    out->eval_count = raw->data.eval_count;
    out->steps = raw->train.steps;
    out->checkpoint_every = raw->train.checkpoint_every;
    out->vocab = raw->model.vocab;
    out->cost = run_cost(raw);
    return resolve_list(path, raw->data.train, raw->data.train_count, &out->train) &&
           resolve_list(path, raw->data.eval, raw->data.eval_count, &out->eval) &&
           out->path != NULL && out->name != NULL && out->tokenizer != NULL &&
           out->template_name != NULL && out->template_path != NULL && out->mask != NULL &&
           out->format != NULL;
}

static enum har_status require_one(const char *path, struct har_error *error)
{
    return access(path, R_OK) == 0 ? HAR_OK
                                   : har_fail(error, HAR_EUSAGE, "%s: %s", path, strerror(errno));
}

/* Files without which nothing runs are errors here, with their names. */
static enum har_status require(const struct har_recipe *recipe, struct har_error *error)
{
    enum har_status status = require_one(recipe->tokenizer, error);
    for (size_t i = 0; status == HAR_OK && i < recipe->train_count; i++) {
        status = require_one(recipe->train[i], error);
    }
    for (size_t i = 0; status == HAR_OK && i < recipe->eval_count; i++) {
        status = require_one(recipe->eval[i], error);
    }
    return status;
}

/* Hashes the file a value of the recipe names, if it names one. */
static enum har_status hash_named(void *context, const char *value, struct har_error *error)
{
    struct har_recipe *const recipe = context;
    struct stat facts;
    char *const path = har_yaml_resolve(recipe->path, value);
    if (path == NULL) {
        return har_fail(error, HAR_EMEMORY, "%s: no memory", recipe->path);
    }
    enum har_status status = HAR_OK;
    if (value[0] != '\0' && stat(path, &facts) == 0 && S_ISREG(facts.st_mode)) {
        status = har_hash_file(path, &recipe->inputs_hash, error);
    }
    free(path);
    return status;
}

/* The file of a template and the special tokens beside it. A layout's file may be missing, for the
 * trainer has it built in. */
static enum har_status hash_template(struct har_recipe *recipe, struct har_error *error)
{
    const bool by_path = template_path_size(recipe->template_name) > 0;
    char *const file = strdup(recipe->template_path);
    char *const beside = har_yaml_resolve(recipe->template_path, "tokenizer_config.json");
    enum har_status status = HAR_OK;
    if (file == NULL || beside == NULL) {
        status = har_fail(error, HAR_EMEMORY, "%s: no memory", recipe->path);
        goto done;
    }
    if (by_path) {
        file[template_path_size(file)] = '\0';
        status = require_one(file, error);
    }
    if (status == HAR_OK && access(file, R_OK) == 0) {
        status = har_hash_file(file, &recipe->inputs_hash, error);
    }
    if (status == HAR_OK && access(beside, R_OK) == 0) {
        status = har_hash_file(beside, &recipe->inputs_hash, error);
    }
done:
    free(file);
    free(beside);
    return status;
}

/* Everything a run can read: the recipe, its template, and whatever else its values name, known to
 * this program or not. A changed template must not find the references of the old one. */
static enum har_status hash_inputs(struct har_recipe *recipe, struct har_error *error)
{
    recipe->file_hash = HAR_HASH_START;
    enum har_status status = har_hash_file(recipe->path, &recipe->file_hash, error);
    recipe->inputs_hash = recipe->file_hash;
    if (status == HAR_OK) {
        status = require(recipe, error);
    }
    if (status == HAR_OK) {
        status = hash_template(recipe, error);
    }
    if (status == HAR_OK) {
        status = har_yaml_each_value(recipe->path, hash_named, recipe, error);
    }
    return status;
}

enum har_status har_recipe_load(const char *path, struct har_recipe *out, struct har_error *error)
{
    struct raw_recipe *raw = NULL;
    memset(out, 0, sizeof *out);
    enum har_status status = har_yaml_load(path, &recipe_schema, true, (void **)&raw, error);
    if (status == HAR_OK) {
        status = check_ranges(path, raw, error);
    }
    if (status == HAR_OK && !recipe_copy(path, raw, out)) {
        status = har_fail(error, HAR_EMEMORY, "%s: no memory", path);
    }
    if (status == HAR_OK) {
        status = hash_inputs(out, error);
    }
    if (status != HAR_OK) {
        har_recipe_fini(out);
    }
    har_yaml_free(&recipe_schema, raw);
    return status;
}

enum har_status har_recipe_load_own(const char *path, int steps, struct har_recipe *out,
                                    struct har_error *error)
{
    const char *const slash = strrchr(path, '/');
    const char *const name = slash != NULL ? slash + 1 : path;
    const char *const dot = strrchr(name, '.');
    memset(out, 0, sizeof *out);
    out->path = strdup(path);
    out->name = strndup(name, dot != NULL && dot > name ? (size_t)(dot - name) : strlen(name));
    out->steps = steps;
    out->cost = 1.0;
    enum har_status status = out->path != NULL && out->name != NULL
                                 ? HAR_OK
                                 : har_fail(error, HAR_EMEMORY, "%s: no memory", path);
    out->file_hash = HAR_HASH_START;
    if (status == HAR_OK) {
        status = require_one(path, error);
    }
    if (status == HAR_OK) {
        status = har_hash_file(path, &out->file_hash, error);
        out->inputs_hash = out->file_hash;
    }
    if (status == HAR_OK) {
        status = har_yaml_each_value(path, hash_named, out, error);
        status = status == HAR_EUSAGE ? HAR_OK : status; /* neither YAML nor JSON */
    }
    if (status != HAR_OK) {
        har_recipe_fini(out);
    }
    return status;
}

static void free_list(char **list, size_t count)
{
    for (size_t i = 0; list != NULL && i < count; i++) {
        free(list[i]);
    }
    free(list);
}

void har_recipe_fini(struct har_recipe *recipe)
{
    free(recipe->path);
    free(recipe->name);
    free(recipe->tokenizer);
    free(recipe->template_name);
    free(recipe->template_path);
    free(recipe->mask);
    free(recipe->format);
    free_list(recipe->train, recipe->train_count);
    free_list(recipe->eval, recipe->eval_count);
    memset(recipe, 0, sizeof *recipe);
}

int har_recipe_middle_checkpoint(int checkpoint_every, int steps)
{
    if (checkpoint_every < 1 || checkpoint_every >= steps) {
        return 0;
    }
    const int middle = steps / 2 / checkpoint_every * checkpoint_every;
    return middle > 0 ? middle : checkpoint_every;
}
