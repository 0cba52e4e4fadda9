/* Reads recipes with libcyaml. Called by train_main; must not know what a run does with them. */
#include "recipe.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECIPE_BYTES_MAX = 1 << 20, FILES_MAX = 256, TEXT_MAX = 4096 };

/* libcyaml takes any word for a bool, so yes and no are an enumeration here. */
static const cyaml_strval_t bool_words[] = {{"false", 0}, {"true", 1}};
static const cyaml_strval_t mask_words[] = {{"assistant", ENG_MASK_ASSISTANT},
                                            {"all", ENG_MASK_ALL}};
static const cyaml_strval_t truncate_words[] = {
    {"keep_start", ENG_KEEP_START}, {"keep_end", ENG_KEEP_END}, {"drop", ENG_DROP}};

#define INT(type, key) CYAML_FIELD_INT(#key, CYAML_FLAG_DEFAULT, struct type, key)
#define FLOAT(type, key) CYAML_FIELD_FLOAT(#key, CYAML_FLAG_DEFAULT, struct type, key)
#define WORD(type, key, words)                                                                     \
    CYAML_FIELD_ENUM(#key, CYAML_FLAG_STRICT, struct type, key, words, CYAML_ARRAY_LEN(words))
#define TEXT(type, key, member)                                                                    \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, struct type, member, 1, TEXT_MAX)

static const cyaml_schema_value_t file_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, TEXT_MAX)};

static const cyaml_schema_field_t model_fields[] = {TEXT(eng_recipe_model, "arch", arch),
                                                    INT(eng_recipe_model, layers),
                                                    INT(eng_recipe_model, width),
                                                    INT(eng_recipe_model, heads),
                                                    INT(eng_recipe_model, kv_heads),
                                                    INT(eng_recipe_model, ffn),
                                                    INT(eng_recipe_model, context),
                                                    INT(eng_recipe_model, vocab),
                                                    WORD(eng_recipe_model, tied, bool_words),
                                                    FLOAT(eng_recipe_model, norm_eps),
                                                    FLOAT(eng_recipe_model, rope_theta),
                                                    CYAML_FIELD_END};

static const cyaml_schema_field_t text_fields[] = {
    TEXT(eng_recipe_text, "tokenizer", tokenizer), TEXT(eng_recipe_text, "template", template_name),
    WORD(eng_recipe_text, mask, mask_words), CYAML_FIELD_END};

static const cyaml_schema_field_t data_fields[] = {
    CYAML_FIELD_SEQUENCE("train", CYAML_FLAG_POINTER, struct eng_recipe_data, train, &file_value, 1,
                         FILES_MAX),
    CYAML_FIELD_SEQUENCE("eval", CYAML_FLAG_POINTER, struct eng_recipe_data, eval, &file_value, 0,
                         FILES_MAX),
    WORD(eng_recipe_data, packing, bool_words),
    WORD(eng_recipe_data, truncate, truncate_words),
    TEXT(eng_recipe_data, "pad", pad),
    CYAML_FIELD_END};

static const cyaml_schema_field_t train_fields[] = {
    CYAML_FIELD_UINT("seed", CYAML_FLAG_DEFAULT, struct eng_recipe_train, seed),
    INT(eng_recipe_train, steps),
    INT(eng_recipe_train, rows),
    INT(eng_recipe_train, grad_accum),
    FLOAT(eng_recipe_train, lr),
    FLOAT(eng_recipe_train, lr_min),
    INT(eng_recipe_train, warmup),
    INT(eng_recipe_train, schedule_steps),
    FLOAT(eng_recipe_train, beta1),
    FLOAT(eng_recipe_train, beta2),
    FLOAT(eng_recipe_train, eps),
    FLOAT(eng_recipe_train, weight_decay),
    FLOAT(eng_recipe_train, clip),
    INT(eng_recipe_train, eval_every),
    INT(eng_recipe_train, eval_rows),
    INT(eng_recipe_train, checkpoint_every),
    CYAML_FIELD_END};

static const cyaml_schema_field_t device_fields[] = {
    CYAML_FIELD_UINT("budget", CYAML_FLAG_DEFAULT, struct eng_recipe_device, budget),
    INT(eng_recipe_device, oom_at), CYAML_FIELD_END};

static const cyaml_schema_field_t recipe_fields[] = {
    TEXT(eng_recipe, "name", name),
    CYAML_FIELD_MAPPING("model", CYAML_FLAG_DEFAULT, struct eng_recipe, model, model_fields),
    CYAML_FIELD_MAPPING("text", CYAML_FLAG_DEFAULT, struct eng_recipe, text, text_fields),
    CYAML_FIELD_MAPPING("data", CYAML_FLAG_DEFAULT, struct eng_recipe, data, data_fields),
    CYAML_FIELD_MAPPING("train", CYAML_FLAG_DEFAULT, struct eng_recipe, train, train_fields),
    CYAML_FIELD_MAPPING("device", CYAML_FLAG_DEFAULT, struct eng_recipe, device, device_fields),
    CYAML_FIELD_END};

static const cyaml_schema_value_t recipe_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct eng_recipe, recipe_fields)};

/* What libcyaml says while it fails: a cause, then places from the inside out. */
struct complaint {
    char cause[256];
    char field[64];
    int line;
};

static void listen(cyaml_log_t level, void *context, const char *format, va_list args)
{
    struct complaint *c = context;
    char text[256];
    (void)level;
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = '\0';
    const char *place = strstr(text, "(line: ");
    if (place != NULL) {
        if (c->line == 0) {
            c->line = atoi(place + strlen("(line: "));
        }
        const char *name = strstr(text, "field '");
        if (name != NULL && c->field[0] == '\0') {
            sscanf(name, "field '%63[^']", c->field);
        }
        return;
    }
    const char *cause = strncmp(text, "Load: ", 6) == 0 ? text + 6 : text;
    if (c->cause[0] == '\0' && strncmp(cause, "Backtrace", 9) != 0) {
        snprintf(c->cause, sizeof c->cause, "%s", cause);
    }
}

static const cyaml_config_t base_config = {.log_fn = listen,
                                           .mem_fn = cyaml_mem,
                                           .log_level = CYAML_LOG_WARNING,
                                           .flags = CYAML_CFG_NO_ALIAS};

/* The bytes being read, for finding lines again. */
struct source {
    const char *path;
    char *bytes;
    size_t size;
    struct eng_error *error;
};

/* Line of `key` below `section` in block style, 0 when it cannot be told. */
static int line_of(const struct source *s, const char *section, const char *key)
{
    bool inside = section == NULL;
    int line = 0;
    const char *end = s->bytes + s->size;
    for (const char *p = s->bytes; p < end; line++) {
        const char *word = p + strspn(p, " ");
        const size_t length = strcspn(word, ":\n#");
        const bool top = word == p;
        if (top && section != NULL && length > 0) {
            inside = strlen(section) == length && strncmp(word, section, length) == 0;
        }
        if (inside && top == (section == NULL) && strlen(key) == length &&
            strncmp(word, key, length) == 0) {
            return line + 1;
        }
        const char *next = memchr(p, '\n', (size_t)(end - p));
        p = next == NULL ? end : next + 1;
    }
    return 0;
}

static enum eng_status reject(const struct source *s, const char *section, const char *key,
                              const char *rule)
{
    const int line = line_of(s, section, key);
    char place[32] = "";
    if (line > 0) {
        snprintf(place, sizeof place, ":%d", line);
    }
    return eng_fail(s->error, ENG_EUSAGE, "%s%s: %s%s%s %s", s->path, place,
                    section == NULL ? "" : section, section == NULL ? "" : ".", key, rule);
}

/* Ranges. One row a key; NaN is outside every range. */
struct range {
    const char *section, *key;
    double value, low, high;
};

static enum eng_status check_ranges(const struct source *s, const struct range *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!(rows[i].value >= rows[i].low && rows[i].value <= rows[i].high)) {
            char rule[96];
            snprintf(rule, sizeof rule, "is %g, must lie in [%g, %g]", rows[i].value, rows[i].low,
                     rows[i].high);
            return reject(s, rows[i].section, rows[i].key, rule);
        }
    }
    return ENG_OK;
}

enum { DIM_MAX = 1 << 20, STEPS_MAX = 1000000000 };

static enum eng_status check_model(const struct source *s, const struct eng_recipe *r)
{
    const struct eng_recipe_model *m = &r->model;
    const struct range rows[] = {{"model", "layers", m->layers, 1, 1024},
                                 {"model", "width", m->width, 2, DIM_MAX},
                                 {"model", "heads", m->heads, 1, 4096},
                                 {"model", "kv_heads", m->kv_heads, 1, 4096},
                                 {"model", "ffn", m->ffn, 1, DIM_MAX},
                                 {"model", "context", m->context, 2, DIM_MAX},
                                 {"model", "vocab", m->vocab, 2, 1 << 24},
                                 {"model", "norm_eps", m->norm_eps, 0.0, 1.0},
                                 {"model", "rope_theta", m->rope_theta, 1.0, 1e12}};
    const enum eng_status status = check_ranges(s, rows, sizeof rows / sizeof rows[0]);
    if (status != ENG_OK) {
        return status;
    }
    if (strcmp(m->arch, "llama") != 0) {
        return reject(s, "model", "arch", "must be llama");
    }
    if (m->width % m->heads != 0 || m->width / m->heads % 2 != 0) {
        return reject(s, "model", "heads", "must divide width into an even head_dim");
    }
    if (m->heads % m->kv_heads != 0) {
        return reject(s, "model", "kv_heads", "must divide heads");
    }
    return ENG_OK;
}

static enum eng_status check_train(const struct source *s, const struct eng_recipe *r)
{
    const struct eng_recipe_train *t = &r->train;
    const struct range rows[] = {{"train", "steps", t->steps, 1, STEPS_MAX},
                                 {"train", "rows", t->rows, 1, 65536},
                                 {"train", "grad_accum", t->grad_accum, 1, 65536},
                                 {"train", "lr", t->lr, 0.0, 1e6},
                                 {"train", "lr_min", t->lr_min, 0.0, 1e6},
                                 {"train", "warmup", t->warmup, 0, STEPS_MAX},
                                 {"train", "schedule_steps", t->schedule_steps, 1, STEPS_MAX},
                                 {"train", "beta1", t->beta1, 0.0, 0.9999999},
                                 {"train", "beta2", t->beta2, 0.0, 0.9999999},
                                 {"train", "eps", t->eps, 0.0, 1.0},
                                 {"train", "weight_decay", t->weight_decay, 0.0, 1e3},
                                 {"train", "clip", t->clip, 0.0, 1e30},
                                 {"train", "eval_every", t->eval_every, 0, STEPS_MAX},
                                 {"train", "eval_rows", t->eval_rows, 0, 1 << 20},
                                 {"train", "checkpoint_every", t->checkpoint_every, 0, STEPS_MAX},
                                 {"device", "oom_at", r->device.oom_at, 0, STEPS_MAX}};
    const enum eng_status status = check_ranges(s, rows, sizeof rows / sizeof rows[0]);
    if (status != ENG_OK) {
        return status;
    }
    if (t->schedule_steps <= t->warmup) {
        return reject(s, "train", "schedule_steps", "must exceed warmup");
    }
    if (t->eval_every > 0 && (r->data.eval_count == 0 || t->eval_rows == 0)) {
        return reject(s, "train", "eval_every", "needs data.eval files and eval_rows");
    }
    if ((int64_t)t->rows * r->model.context > INT32_MAX / 64) {
        return reject(s, "train", "rows", "times context is too large for one micro-batch");
    }
    return ENG_OK;
}

static enum eng_status read_bytes(struct source *s)
{
    FILE *f = fopen(s->path, "rb");
    if (f == NULL) {
        return eng_fail(s->error, ENG_EIO, "%s: cannot be read: %s", s->path, strerror(errno));
    }
    enum eng_status status = ENG_OK;
    s->bytes = malloc(RECIPE_BYTES_MAX + 1);
    if (s->bytes == NULL) {
        status = eng_fail(s->error, ENG_EHOSTMEM, "%s: host memory exhausted", s->path);
        goto done;
    }
    s->size = fread(s->bytes, 1, RECIPE_BYTES_MAX, f);
    s->bytes[s->size] = '\0';
    if (ferror(f)) {
        status = eng_fail(s->error, ENG_EIO, "%s: cannot be read: %s", s->path, strerror(errno));
    } else if (s->size == RECIPE_BYTES_MAX) {
        status = eng_fail(s->error, ENG_EUSAGE, "%s: larger than a recipe may be (%d bytes)",
                          s->path, RECIPE_BYTES_MAX);
    }
done:
    fclose(f);
    return status;
}

static enum eng_status parse(const struct source *s, struct eng_recipe **out)
{
    struct complaint c = {.line = 0};
    cyaml_config_t config = base_config;
    cyaml_data_t *data = NULL;
    config.log_ctx = &c;
    const cyaml_err_t result =
        cyaml_load_data((const uint8_t *)s->bytes, s->size, &config, &recipe_value, &data, NULL);
    if (result == CYAML_OK && data != NULL) {
        *out = data;
        return ENG_OK;
    }
    if (result == CYAML_OK) {
        return eng_fail(s->error, ENG_EUSAGE, "%s: is empty", s->path);
    }
    char place[32] = "";
    if (c.line > 0) {
        snprintf(place, sizeof place, ":%d", c.line);
    }
    const bool named = c.field[0] != '\0' && strstr(c.cause, "key: ") == NULL &&
                       strstr(c.cause, "field: ") == NULL && strstr(c.cause, "seen: ") == NULL;
    return eng_fail(s->error, ENG_EUSAGE, "%s%s: %s%s%s", s->path, place, named ? c.field : "",
                    named ? ": " : "", c.cause[0] != '\0' ? c.cause : cyaml_strerror(result));
}

/* Replaces *text by its path seen from the recipe's folder. */
static bool resolve(const char *recipe_path, char **text)
{
    const char *slash = strrchr(recipe_path, '/');
    if (**text == '/' || slash == NULL) {
        return true;
    }
    const size_t folder = (size_t)(slash - recipe_path) + 1;
    char *joined = malloc(folder + strlen(*text) + 1);
    if (joined == NULL) {
        return false;
    }
    memcpy(joined, recipe_path, folder);
    strcpy(joined + folder, *text);
    free(*text);
    *text = joined;
    return true;
}

static bool resolve_all(const char *path, struct eng_recipe *r)
{
    bool ok = resolve(path, &r->text.tokenizer);
    for (unsigned i = 0; i < r->data.train_count; i++) {
        ok = ok && resolve(path, &r->data.train[i]);
    }
    for (unsigned i = 0; i < r->data.eval_count; i++) {
        ok = ok && resolve(path, &r->data.eval[i]);
    }
    return ok;
}

enum eng_status eng_recipe_read(const char *path, struct eng_recipe **out, struct eng_error *error)
{
    struct source s = {.path = path, .error = error};
    struct eng_recipe *r = NULL;
    enum eng_status status = read_bytes(&s);
    if (status == ENG_OK) {
        status = parse(&s, &r);
    }
    if (status == ENG_OK) {
        status = check_model(&s, r);
    }
    if (status == ENG_OK) {
        status = check_train(&s, r);
    }
    if (status == ENG_OK && !resolve_all(path, r)) {
        status = eng_fail(error, ENG_EHOSTMEM, "%s: host memory exhausted", path);
    }
    if (status == ENG_OK) {
        r->hash = eng_fnv1a(s.bytes, s.size);
        *out = r;
        r = NULL;
    }
    free(s.bytes);
    eng_recipe_free(r);
    return status;
}

void eng_recipe_free(struct eng_recipe *recipe)
{
    if (recipe != NULL) {
        cyaml_free(&base_config, &recipe_value, recipe, 0);
    }
}
