/* Reads recipes with libcyaml. Called by train_main; must not know what a run does with them. */
#include "recipe.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout.h"
#include "template.h"
#include "template_file.h"

enum { RECIPE_BYTES_MAX = 1 << 20, FILES_MAX = 256, TEXT_MAX = 4096 };

/* The file as libcyaml gives it. Numbers stay texts: libcyaml reads "3.5" as the integer 3 and
 * takes any word for a bool, so numbers are read here and yes and no are an enumeration. */
struct raw {
    char *name;
    struct {
        char *arch, *layers, *width, *heads, *kv_heads, *ffn, *context, *vocab, *norm_eps,
            *rope_theta;
        int tied;
    } model;
    struct {
        char *tokenizer, *template_name;
        int mask;
    } text;
    struct {
        char **train, **eval, **weights, *pad;
        unsigned train_count, eval_count, weights_count;
        int packing, truncate, format, order, on_unlearned, on_prefix;
    } data;
    struct {
        char *seed, *steps, *rows, *grad_accum, *lr, *lr_min, *warmup, *schedule_steps, *beta1,
            *beta2, *eps, *weight_decay, *clip, *eval_every, *eval_rows, *checkpoint_every;
    } train;
    struct {
        char *budget, *oom_at;
    } device;
};

static const cyaml_strval_t bool_words[] = {{"false", 0}, {"true", 1}};
static const cyaml_strval_t mask_words[] = {{"assistant", ENG_MASK_ASSISTANT},
                                            {"last", ENG_MASK_LAST},
                                            {"completion", ENG_MASK_COMPLETION},
                                            {"all", ENG_MASK_ALL}};
static const cyaml_strval_t format_words[] = {{"messages", ENG_FORMAT_MESSAGES},
                                              {"sharegpt", ENG_FORMAT_SHAREGPT},
                                              {"alpaca", ENG_FORMAT_ALPACA},
                                              {"completion", ENG_FORMAT_COMPLETION}};
static const cyaml_strval_t packing_words[] = {{"false", ENG_PACK_NONE},
                                               {"true", ENG_PACK_NEXT},
                                               {"first_fit", ENG_PACK_FIRST_FIT},
                                               {"wrapped", ENG_PACK_WRAPPED}};
static const cyaml_strval_t order_words[] = {{"permutation", ENG_ORDER_PERMUTATION},
                                             {"cipher", ENG_ORDER_CIPHER}};
/* The first of each is 0, what a key left out is. */
static const cyaml_strval_t unlearned_words[] = {{"skip", 0}, {"error", 1}};
static const cyaml_strval_t prefix_words[] = {
    {"ignore", ENG_BREACH_IGNORE}, {"skip", ENG_BREACH_SKIP}, {"error", ENG_BREACH_ERROR}};
static const cyaml_strval_t truncate_words[] = {
    {"keep_start", ENG_KEEP_START}, {"keep_end", ENG_KEEP_END}, {"drop", ENG_DROP}};

/* Fields of struct raw, with offsets from its beginning also within a section. */
#define TEXT(key, member)                                                                          \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, struct raw, member, 1, TEXT_MAX)
#define WORD(key, member, words)                                                                   \
    CYAML_FIELD_ENUM(key, CYAML_FLAG_STRICT, struct raw, member, words, CYAML_ARRAY_LEN(words))
#define OPTION(key, member, words)                                                                 \
    CYAML_FIELD_ENUM(key, CYAML_FLAG_STRICT | CYAML_FLAG_OPTIONAL, struct raw, member, words,      \
                     CYAML_ARRAY_LEN(words))
#define FILES(key, member, least)                                                                  \
    CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER, struct raw, member, &file_value, least, FILES_MAX)
/* A section's members are found from the whole struct, so its own offset is 0. */
#define SECTION(name, fields)                                                                      \
    {                                                                                              \
        .key = name, .data_offset = 0, .value = {                                                  \
            CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw, fields)                            \
        }                                                                                          \
    }

static const cyaml_schema_value_t file_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, TEXT_MAX)};

static const cyaml_schema_field_t model_fields[] = {TEXT("arch", model.arch),
                                                    TEXT("layers", model.layers),
                                                    TEXT("width", model.width),
                                                    TEXT("heads", model.heads),
                                                    TEXT("kv_heads", model.kv_heads),
                                                    TEXT("ffn", model.ffn),
                                                    TEXT("context", model.context),
                                                    TEXT("vocab", model.vocab),
                                                    WORD("tied", model.tied, bool_words),
                                                    TEXT("norm_eps", model.norm_eps),
                                                    TEXT("rope_theta", model.rope_theta),
                                                    CYAML_FIELD_END};
static const cyaml_schema_field_t text_fields[] = {
    TEXT("tokenizer", text.tokenizer), TEXT("template", text.template_name),
    WORD("mask", text.mask, mask_words), CYAML_FIELD_END};
static const cyaml_schema_field_t data_fields[] = {
    FILES("train", data.train, 1),
    FILES("eval", data.eval, 0),
    WORD("packing", data.packing, packing_words),
    WORD("truncate", data.truncate, truncate_words),
    TEXT("pad", data.pad),
    OPTION("format", data.format, format_words),
    OPTION("order", data.order, order_words),
    OPTION("on_unlearned", data.on_unlearned, unlearned_words),
    OPTION("on_prefix", data.on_prefix, prefix_words),
    CYAML_FIELD_SEQUENCE("weights", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw,
                         data.weights, &file_value, 1, FILES_MAX),
    CYAML_FIELD_END};
static const cyaml_schema_field_t train_fields[] = {
    TEXT("seed", train.seed),
    TEXT("steps", train.steps),
    TEXT("rows", train.rows),
    TEXT("grad_accum", train.grad_accum),
    TEXT("lr", train.lr),
    TEXT("lr_min", train.lr_min),
    TEXT("warmup", train.warmup),
    TEXT("schedule_steps", train.schedule_steps),
    TEXT("beta1", train.beta1),
    TEXT("beta2", train.beta2),
    TEXT("eps", train.eps),
    TEXT("weight_decay", train.weight_decay),
    TEXT("clip", train.clip),
    TEXT("eval_every", train.eval_every),
    TEXT("eval_rows", train.eval_rows),
    TEXT("checkpoint_every", train.checkpoint_every),
    CYAML_FIELD_END};
static const cyaml_schema_field_t device_fields[] = {
    TEXT("budget", device.budget), TEXT("oom_at", device.oom_at), CYAML_FIELD_END};
static const cyaml_schema_field_t recipe_fields[] = {TEXT("name", name),
                                                     SECTION("model", model_fields),
                                                     SECTION("text", text_fields),
                                                     SECTION("data", data_fields),
                                                     SECTION("train", train_fields),
                                                     SECTION("device", device_fields),
                                                     CYAML_FIELD_END};
static const cyaml_schema_value_t recipe_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw, recipe_fields)};

enum number_kind { NUMBER_INT, NUMBER_U64, NUMBER_DOUBLE };
enum {
    WEIGHT_MAX = 1000,
    DIM_MAX = 1 << 20,
    STEPS_MAX = 1000000000,
    ROWS_MAX = 1 << 16,
    VOCAB_MAX = 1 << 24
};

/* Where a number's text and its value lie, and its range. */
struct number {
    const char *section, *key;
    size_t raw, out;
    enum number_kind kind;
    double low, high;
};
#define NUMBER(section, key, kind, low, high)                                                      \
    {                                                                                              \
#section, #key, offsetof(struct raw, section.key),                                         \
            offsetof(struct eng_recipe, section.key), kind, low, high                              \
    }

static const struct number numbers[] = {NUMBER(model, layers, NUMBER_INT, 1, 1024),
                                        NUMBER(model, width, NUMBER_INT, 2, DIM_MAX),
                                        NUMBER(model, heads, NUMBER_INT, 1, 4096),
                                        NUMBER(model, kv_heads, NUMBER_INT, 1, 4096),
                                        NUMBER(model, ffn, NUMBER_INT, 1, DIM_MAX),
                                        NUMBER(model, context, NUMBER_INT, 2, DIM_MAX),
                                        NUMBER(model, vocab, NUMBER_INT, 2, VOCAB_MAX),
                                        NUMBER(model, norm_eps, NUMBER_DOUBLE, 0.0, 1.0),
                                        NUMBER(model, rope_theta, NUMBER_DOUBLE, 1.0, 1e12),
                                        NUMBER(train, seed, NUMBER_U64, 0.0, 0x1p64),
                                        NUMBER(train, steps, NUMBER_INT, 1, STEPS_MAX),
                                        NUMBER(train, rows, NUMBER_INT, 1, ROWS_MAX),
                                        NUMBER(train, grad_accum, NUMBER_INT, 1, ROWS_MAX),
                                        NUMBER(train, lr, NUMBER_DOUBLE, 0.0, 1e6),
                                        NUMBER(train, lr_min, NUMBER_DOUBLE, 0.0, 1e6),
                                        NUMBER(train, warmup, NUMBER_INT, 0, STEPS_MAX),
                                        NUMBER(train, schedule_steps, NUMBER_INT, 1, STEPS_MAX),
                                        NUMBER(train, beta1, NUMBER_DOUBLE, 0.0, 0.9999999),
                                        NUMBER(train, beta2, NUMBER_DOUBLE, 0.0, 0.9999999),
                                        NUMBER(train, eps, NUMBER_DOUBLE, 0.0, 1.0),
                                        NUMBER(train, weight_decay, NUMBER_DOUBLE, 0.0, 1e3),
                                        NUMBER(train, clip, NUMBER_DOUBLE, 0.0, 1e30),
                                        NUMBER(train, eval_every, NUMBER_INT, 0, STEPS_MAX),
                                        NUMBER(train, eval_rows, NUMBER_INT, 0, ROWS_MAX),
                                        NUMBER(train, checkpoint_every, NUMBER_INT, 0, STEPS_MAX),
                                        NUMBER(device, budget, NUMBER_U64, 0.0, 0x1p46),
                                        NUMBER(device, oom_at, NUMBER_INT, 0, STEPS_MAX)};

/* What libcyaml says while it fails: a cause, then places from the inside out. */
struct complaint {
    char cause[256];
    char field[64];   /* innermost key */
    char section[64]; /* outermost key */
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
        if (name != NULL) {
            sscanf(name, "field '%63[^']", c->section);
            if (c->field[0] == '\0') {
                snprintf(c->field, sizeof c->field, "%s", c->section);
            }
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

/* Reads one number strictly: the whole text, in range, and never NaN. */
static enum eng_status read_number(const struct source *s, const struct number *n, const char *text,
                                   void *out)
{
    char rule[160];
    char *end = NULL;
    errno = 0;
    const double value = strtod(text, &end);
    const char *digits = text + (text[0] == '-');
    const bool whole = digits[0] != '\0' && strspn(digits, "0123456789") == strlen(digits);
    if (text[0] == '\0' || *end != '\0' || (n->kind != NUMBER_DOUBLE && !whole)) {
        snprintf(rule, sizeof rule, "'%.64s' is not a %s", text,
                 n->kind == NUMBER_DOUBLE ? "number" : "whole number");
        return reject(s, n->section, n->key, rule);
    }
    if (!(value >= n->low && value <= n->high)) {
        snprintf(rule, sizeof rule, "%.64s does not lie in [%g, %g]", text, n->low, n->high);
        return reject(s, n->section, n->key, rule);
    }
    errno = 0;
    if (n->kind == NUMBER_INT) {
        *(int *)out = (int)value;
    } else if (n->kind == NUMBER_DOUBLE) {
        *(double *)out = value;
    } else {
        *(uint64_t *)out = strtoull(text, NULL, 10);
    }
    return errno == 0 ? ENG_OK : reject(s, n->section, n->key, "is too large");
}

static enum eng_status read_numbers(const struct source *s, const struct raw *raw,
                                    struct eng_recipe *r)
{
    enum eng_status status = ENG_OK;
    for (size_t i = 0; status == ENG_OK && i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct number *n = &numbers[i];
        char *const *text = (char *const *)(const void *)((const char *)raw + n->raw);
        status = read_number(s, n, *text, (char *)r + n->out);
    }
    return status;
}

static enum eng_status read_weights(const struct source *s, const struct raw *raw,
                                    struct eng_recipe *r)
{
    const unsigned count = raw->data.weights_count;
    if (count == 0) {
        return ENG_OK;
    }
    if (count != r->data.train_count) {
        return reject(s, "data", "weights", "must be as many as data.train");
    }
    r->data.weights = calloc(count, sizeof *r->data.weights);
    if (r->data.weights == NULL) {
        return eng_fail(s->error, ENG_EHOSTMEM, "%s: host memory exhausted", s->path);
    }
    for (unsigned i = 0; i < count; i++) {
        const char *const text = raw->data.weights[i];
        const size_t digits = strspn(text, "0123456789");
        const unsigned long value = digits <= 4 ? strtoul(text, NULL, 10) : 0;
        if (text[digits] != '\0' || value < 1 || value > WEIGHT_MAX) {
            return reject(s, "data", "weights", "must be whole numbers from 1 to 1000");
        }
        r->data.weights[i] = (unsigned)value;
    }
    return ENG_OK;
}

static enum eng_status check_model(const struct source *s, const struct eng_recipe *r)
{
    const struct eng_recipe_model *m = &r->model;
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

static enum eng_status check_text(const struct source *s, const struct eng_recipe *r)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    const char *const name = r->text.template_name;
    enum eng_layout layout = ENG_LAYOUT_COUNT;
    struct eng_error cause = {""};
    if (eng_layout_find(name, &layout, &cause) == ENG_OK) {
        return ENG_OK;
    }
    if (!eng_template_is_file(name) && strspn(name, known) != strlen(name)) {
        return reject(s, "text", "template", cause.text);
    }
    char *const path = strdup(r->text.template_source);
    if (path == NULL) {
        return eng_fail(s->error, ENG_EHOSTMEM, "%s: host memory exhausted", s->path);
    }
    path[eng_template_path_size(path)] = '\0';
    const bool there = access(path, R_OK) == 0;
    if (!there) {
        snprintf(cause.text, sizeof cause.text, "%.300s: %s", path, strerror(errno));
    }
    free(path);
    return there ? ENG_OK : reject(s, "text", "template", cause.text);
}

static enum eng_status check_train(const struct source *s, const struct eng_recipe *r)
{
    const struct eng_recipe_train *t = &r->train;
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

/* libcyaml's places lag behind: a key it complains about stands on a later line than it says. */
static int line_after(const struct source *s, int line, const char *key)
{
    int at = 0;
    const char *end = s->bytes + s->size;
    for (const char *p = s->bytes; p < end;) {
        const char *word = p + strspn(p, " ");
        const size_t length = strcspn(word, ":\n#");
        if (++at > line && length == strlen(key) && strncmp(word, key, length) == 0) {
            return at;
        }
        const char *next = memchr(p, '\n', (size_t)(end - p));
        p = next == NULL ? end : next + 1;
    }
    return line;
}

static enum eng_status complain(const struct source *s, const struct complaint *c,
                                cyaml_err_t result)
{
    static const char *const with_key[] = {"Unexpected key: ", "Mapping field already seen: "};
    const char *cause = c->cause[0] != '\0' ? c->cause : cyaml_strerror(result);
    bool named = strstr(cause, "field: ") != NULL;
    int line = c->line;
    for (size_t i = 0; i < sizeof with_key / sizeof with_key[0]; i++) {
        if (strncmp(cause, with_key[i], strlen(with_key[i])) == 0) {
            line = line_after(s, line, cause + strlen(with_key[i]));
            named = true;
        }
    }
    char place[32] = "";
    if (line > 0) {
        snprintf(place, sizeof place, ":%d", line);
    }
    const bool prefix = !named && c->field[0] != '\0';
    return eng_fail(s->error, ENG_EUSAGE, "%s%s: %s%s%s%s%s%s", s->path, place,
                    prefix ? c->field : "", prefix ? ": " : "", cause, named ? " (in " : "",
                    named ? c->section : "", named ? ")" : "");
}

static enum eng_status parse(const struct source *s, struct raw **out)
{
    struct complaint c = {.line = 0, .section = "recipe"};
    cyaml_config_t config = base_config;
    cyaml_data_t *data = NULL;
    config.log_ctx = &c;
    const cyaml_err_t result =
        cyaml_load_data((const uint8_t *)s->bytes, s->size, &config, &recipe_value, &data, NULL);
    if (result != CYAML_OK) {
        return complain(s, &c, result);
    }
    if (data == NULL) {
        return eng_fail(s->error, ENG_EUSAGE, "%s: is empty", s->path);
    }
    *out = data;
    return ENG_OK;
}

/* Moves a text or list out of the raw recipe. */
static void *take(void *member)
{
    void **from = member;
    void *value = *from;
    *from = NULL;
    return value;
}

static struct eng_recipe *take_texts(struct raw *raw)
{
    struct eng_recipe *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return NULL;
    }
    r->name = take(&raw->name);
    r->model.arch = take(&raw->model.arch);
    r->model.tied = raw->model.tied;
    r->text.tokenizer = take(&raw->text.tokenizer);
    r->text.template_name = take(&raw->text.template_name);
    r->text.mask = (enum eng_mask)raw->text.mask;
    r->data.train_count = raw->data.train_count;
    r->data.train = take(&raw->data.train);
    r->data.eval_count = raw->data.eval_count;
    r->data.eval = take(&raw->data.eval);
    raw->data.train_count = 0;
    raw->data.eval_count = 0;
    r->data.packing = (enum eng_packing)raw->data.packing;
    r->data.truncate = (enum eng_truncate)raw->data.truncate;
    r->data.format = (enum eng_format)raw->data.format;
    r->data.order = (enum eng_order)raw->data.order;
    r->data.on_unlearned = raw->data.on_unlearned == 1 ? ENG_BREACH_ERROR : ENG_BREACH_SKIP;
    r->data.on_prefix = (enum eng_breach)raw->data.on_prefix;
    r->data.pad = take(&raw->data.pad);
    return r;
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
    struct raw *raw = NULL;
    struct eng_recipe *r = NULL;
    enum eng_status status = read_bytes(&s);
    if (status == ENG_OK) {
        status = parse(&s, &raw);
    }
    if (status == ENG_OK) {
        r = take_texts(raw);
        if (r != NULL) {
            r->text.template_source = eng_template_locate(path, r->text.template_name);
        }
        status = r != NULL && r->text.template_source != NULL
                     ? read_numbers(&s, raw, r)
                     : eng_fail(error, ENG_EHOSTMEM, "%s: host memory exhausted", path);
    }
    if (status == ENG_OK) {
        status = read_weights(&s, raw, r);
    }
    if (status == ENG_OK) {
        status = check_model(&s, r);
    }
    if (status == ENG_OK) {
        status = check_text(&s, r);
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
    if (raw != NULL) {
        cyaml_free(&base_config, &recipe_value, raw, 0);
    }
    eng_recipe_free(r);
    return status;
}
