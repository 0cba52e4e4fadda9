/* Recipes. A table says where each key goes and what it may be; everything else is an error that
 * names file and line. See ref_recipe.h. */
#include "ref_recipe.h"

#include "ref_file.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <libfyaml.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { TEXT, PATH, PATHS, TEMPLATE, COUNT, COUNTS, SEED, REAL, FLAG, CHOICE };

struct key {
    const char *section, *name;
    enum kind kind;
    size_t offset;
    double min, max;       /* inclusive, of numbers */
    const char *choices;   /* words with a space before and behind each; index goes to the enum */
};

struct reader {
    const char *path;
    struct orc_ref_arena *arena;
    struct orc_ref_recipe *recipe;
    struct orc_ref_error *error;
};

/* Rows hold at most 2^24 positions and a micro-batch's sizes stay far from overflow. */
#define SIZE_MAX_ALLOWED 16777216.0

#define AT(field) offsetof(struct orc_ref_recipe, field)

#define MASKS " assistant last completion all "
#define FORMATS " messages sharegpt alpaca completion "

static const struct key keys[] = {
    {"", "name", TEXT, AT(name), 0, 0, NULL},
    {"model", "arch", CHOICE, SIZE_MAX, 0, 0, " llama "},
    {"model", "layers", COUNT, AT(model.layers), 1, 1024, NULL},
    {"model", "width", COUNT, AT(model.width), 1, SIZE_MAX_ALLOWED, NULL},
    {"model", "heads", COUNT, AT(model.heads), 1, SIZE_MAX_ALLOWED, NULL},
    {"model", "kv_heads", COUNT, AT(model.kv_heads), 1, SIZE_MAX_ALLOWED, NULL},
    {"model", "ffn", COUNT, AT(model.ffn), 1, SIZE_MAX_ALLOWED, NULL},
    {"model", "context", COUNT, AT(model.context), 2, SIZE_MAX_ALLOWED, NULL},
    {"model", "vocab", COUNT, AT(model.vocab), 2, SIZE_MAX_ALLOWED, NULL},
    {"model", "tied", FLAG, AT(model.tied), 0, 0, NULL},
    {"model", "norm_eps", REAL, AT(model.norm_eps), 0, DBL_MAX, NULL},
    {"model", "rope_theta", REAL, AT(model.rope_theta), 1, DBL_MAX, NULL},
    {"text", "tokenizer", PATH, AT(text.tokenizer), 0, 0, NULL},
    {"text", "template", TEMPLATE, AT(text.template_path), 0, 0, NULL},
    {"text", "mask", CHOICE, AT(text.mask), 0, 0, MASKS},
    {"data", "train", PATHS, AT(data.train), 1, 0, NULL},
    {"data", "eval", PATHS, AT(data.eval), 0, 0, NULL},
    {"data", "packing", CHOICE, AT(data.packing), 0, 0, " false true first_fit wrapped "},
    {"data", "truncate", CHOICE, AT(data.truncate), 0, 0, " keep_start keep_end drop "},
    {"data", "pad", TEXT, AT(data.pad), 0, 0, NULL},
    {"data", "format", CHOICE, AT(data.format), 0, 0, FORMATS},
    {"data", "order", CHOICE, AT(data.order), 0, 0, " permutation cipher "},
    {"data", "on_unlearned", CHOICE, AT(data.on_unlearned), 0, 0, " skip error "},
    {"data", "on_prefix", CHOICE, AT(data.on_prefix), 0, 0, " ignore skip error "},
    {"data", "weights", COUNTS, AT(data.weights), 1, 1000, NULL},
    {"train", "seed", SEED, AT(train.seed), 0, 0, NULL},
    {"train", "steps", COUNT, AT(train.steps), 1, SIZE_MAX_ALLOWED, NULL},
    {"train", "rows", COUNT, AT(train.rows), 1, SIZE_MAX_ALLOWED, NULL},
    {"train", "grad_accum", COUNT, AT(train.grad_accum), 1, SIZE_MAX_ALLOWED, NULL},
    {"train", "lr", REAL, AT(train.lr), 0, DBL_MAX, NULL},
    {"train", "lr_min", REAL, AT(train.lr_min), 0, DBL_MAX, NULL},
    {"train", "warmup", COUNT, AT(train.warmup), 0, SIZE_MAX_ALLOWED, NULL},
    {"train", "schedule_steps", COUNT, AT(train.schedule_steps), 1, SIZE_MAX_ALLOWED, NULL},
    {"train", "beta1", REAL, AT(train.beta1), 0, 1, NULL},
    {"train", "beta2", REAL, AT(train.beta2), 0, 1, NULL},
    {"train", "eps", REAL, AT(train.eps), 0, DBL_MAX, NULL},
    {"train", "weight_decay", REAL, AT(train.weight_decay), 0, DBL_MAX, NULL},
    {"train", "clip", REAL, AT(train.clip), 0, DBL_MAX, NULL},
    {"train", "eval_every", COUNT, AT(train.eval_every), 0, SIZE_MAX_ALLOWED, NULL},
    {"train", "eval_rows", COUNT, AT(train.eval_rows), 0, SIZE_MAX_ALLOWED, NULL},
    {"train", "checkpoint_every", COUNT, AT(train.checkpoint_every), 0, SIZE_MAX_ALLOWED, NULL},
    {"device", "budget", COUNT, AT(device.budget), 0, 0x1p52, NULL},
    {"device", "oom_at", COUNT, AT(device.oom_at), 0, SIZE_MAX_ALLOWED, NULL},
};

enum { KEYS = sizeof keys / sizeof *keys };

/* Left out, they are 0, the first of their choices. */
static const char *const optional_keys[] = {"format", "order", "on_unlearned", "on_prefix",
                                            "weights"};

static bool may_be_left_out(const struct key *key)
{
    bool found = false;
    for (size_t i = 0; i < sizeof optional_keys / sizeof *optional_keys; i++)
        found |= strcmp(key->section, "data") == 0 && strcmp(key->name, optional_keys[i]) == 0;
    return found;
}

/* First line of a node, from 1; of a collection, that of its first scalar. 0: unknown. */
static int line_of(struct fy_node *node)
{
    while (node != NULL && !fy_node_is_scalar(node))
        node = fy_node_is_sequence(node)
                   ? fy_node_sequence_get_by_index(node, 0)
                   : fy_node_pair_key(fy_node_mapping_get_by_index(node, 0));
    struct fy_token *const token = node != NULL ? fy_node_get_scalar_token(node) : NULL;
    const struct fy_mark *const mark = token != NULL ? fy_token_start_mark(token) : NULL;
    return mark != NULL ? mark->line + 1 : 0;
}

static enum orc_ref_status bad(const struct reader *r, int line, const char *subject,
                               const char *cause)
{
    if (line > 0)
        return orc_ref_fail(r->error, ORC_REF_BAD, "%s:%d: %s %s", r->path, line, subject, cause);
    return orc_ref_fail(r->error, ORC_REF_BAD, "%s: %s %s", r->path, subject, cause);
}

static const char *join(const struct reader *r, const char *path, size_t length)
{
    const char *const slash = strrchr(r->path, '/');
    const size_t folder = path[0] == '/' || slash == NULL ? 0 : (size_t)(slash - r->path) + 1;
    char *const joined = orc_ref_arena_take(r->arena, folder + length + 1, 1);
    if (joined != NULL)
        (void)snprintf(joined, folder + length + 1, "%.*s%.*s", (int)folder, r->path, (int)length,
                       path);
    return joined;
}

static enum orc_ref_status read_paths(const struct reader *r, const struct key *key, int line,
                                      struct fy_node *node, struct orc_ref_paths *out)
{
    if (!fy_node_is_sequence(node))
        return bad(r, line, key->name, "is not a list of files");
    const size_t count = (size_t)fy_node_sequence_item_count(node);
    if ((double)count < key->min)
        return bad(r, line, key->name, "names no file");
    out->list = orc_ref_arena_take(r->arena, count, sizeof *out->list);
    if (out->list == NULL)
        return orc_ref_fail(r->error, ORC_REF_INTERNAL, "%s: no memory", r->path);
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        struct fy_node *const item = fy_node_sequence_get_by_index(node, (int)i);
        const char *const text = fy_node_get_scalar(item, &length);
        if (text == NULL || length == 0 || memchr(text, '\0', length) != NULL)
            return bad(r, line, key->name, "holds something that is not a path");
        out->list[i] = join(r, text, length);
        if (out->list[i] == NULL)
            return orc_ref_fail(r->error, ORC_REF_INTERNAL, "%s: no memory", r->path);
    }
    out->count = count;
    return ORC_REF_OK;
}

/* Whole numbers in a list; their count goes behind the list's field. */
static enum orc_ref_status read_counts(const struct reader *r, const struct key *key, int line,
                                       struct fy_node *node)
{
    if (!fy_node_is_sequence(node) || fy_node_sequence_item_count(node) < 1)
        return bad(r, line, key->name, "is not a list of whole numbers");
    const size_t count = (size_t)fy_node_sequence_item_count(node);
    size_t *const list = orc_ref_arena_take(r->arena, count, sizeof *list);
    if (list == NULL)
        return orc_ref_fail(r->error, ORC_REF_INTERNAL, "%s: no memory", r->path);
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        const char *const text =
            fy_node_get_scalar(fy_node_sequence_get_by_index(node, (int)i), &length);
        list[i] = 0;
        for (size_t c = 0; text != NULL && c < length && length <= 4; c++) {
            if (!isdigit((unsigned char)text[c]))
                return bad(r, line, key->name, "holds something that is no whole number");
            list[i] = 10 * list[i] + (size_t)(text[c] - '0');
        }
        if (!((double)list[i] >= key->min && (double)list[i] <= key->max))
            return bad(r, line, key->name, "holds a number out of range");
    }
    r->recipe->data.weights = list;
    r->recipe->data.weight_count = count;
    return ORC_REF_OK;
}

static enum orc_ref_status read_number(const struct reader *r, const struct key *key, int line,
                                       const char *text, void *field)
{
    char *end = NULL;
    errno = 0;
    if (key->kind == REAL) {
        const double value = strtod(text, &end);
        if (strspn(text, "0123456789.eE+-") != strlen(text) || *end != '\0' || end == text ||
            !isfinite(value))
            return bad(r, line, key->name, "is not a number");
        if (!(value >= key->min && value <= key->max))
            return bad(r, line, key->name, "is out of range");
        *(double *)field = value;
        return ORC_REF_OK;
    }
    const unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0)
        return bad(r, line, key->name, "is not a whole number");
    if (key->kind == SEED) {
        *(uint64_t *)field = value;
        return ORC_REF_OK;
    }
    if (!((double)value >= key->min && (double)value <= key->max))
        return bad(r, line, key->name, "is out of range");
    *(size_t *)field = (size_t)value;
    return ORC_REF_OK;
}

static enum orc_ref_status read_choice(const struct reader *r, const struct key *key, int line,
                                       const char *text, void *field)
{
    int index = 0;
    for (const char *word = key->choices + 1; *word != '\0'; index++) {
        const size_t length = strcspn(word, " ");
        if (strlen(text) == length && strncmp(word, text, length) == 0) {
            if (key->offset != SIZE_MAX) /* every enumeration has the size of an int */
                memcpy(field, &index, sizeof index);
            return ORC_REF_OK;
        }
        word += length + 1;
    }
    return orc_ref_fail(r->error, ORC_REF_BAD, "%s:%d: %s is none of%.*s", r->path, line,
                        key->name, (int)strlen(key->choices) - 1, key->choices);
}

static bool ends_in(const char *text, size_t length, const char *end)
{
    const size_t size = strlen(end);
    return length > size && memcmp(text + length - size, end, size) == 0;
}

/* A template by its path: NAME.jinja, or a tokenizer's configuration in JSON behind whose path the
 * name of one of its templates may stand, as #NAME. */
static enum orc_ref_status template_by_path(const struct reader *r, int line, const char *given,
                                            size_t file_length)
{
    const char *const path = join(r, given, strlen(given));
    const size_t rest = strlen(given) - file_length;
    const char *const file =
        path != NULL ? orc_ref_arena_text(r->arena, path, strlen(path) - rest) : NULL;
    if (file == NULL)
        return orc_ref_fail(r->error, ORC_REF_INTERNAL, "%s: no memory", r->path);
    if (access(file, R_OK) != 0)
        return orc_ref_fail(r->error, ORC_REF_BAD, "%s:%d: template %s: %s", r->path, line, file,
                            strerror(errno));
    r->recipe->text.template_path = path;
    r->recipe->text.template_file = file;
    return ORC_REF_OK;
}

/* A template by its name stands beside the recipe's folder; recipes kept elsewhere use those of
 * this tree. */
static enum orc_ref_status template_by_name(const struct reader *r, int line, const char *given)
{
    char name[512];
    if (strspn(given, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(given))
        return bad(r, line, "template",
                   "is neither a name of small letters, digits, _ and - nor a path that ends in "
                   ".jinja or .json");
    const int length = snprintf(name, sizeof name, "../templates/%s.jinja", given);
    const char *path = NULL;
    if (length > 0 && (size_t)length < sizeof name)
        path = join(r, name, (size_t)length);
    if (path != NULL && access(path, R_OK) != 0) {
        const int whole = snprintf(name, sizeof name, "%s/%s.jinja", ORC_REF_TEMPLATES, given);
        path = whole > 0 && (size_t)whole < sizeof name
                   ? orc_ref_arena_text(r->arena, name, (size_t)whole)
                   : NULL;
    }
    if (path == NULL)
        return bad(r, line, "template", "has too long a name");
    if (access(path, R_OK) != 0)
        return orc_ref_fail(r->error, ORC_REF_BAD, "%s:%d: no template %s: %s", r->path, line, path,
                            strerror(errno));
    r->recipe->text.template_path = r->recipe->text.template_file = path;
    return ORC_REF_OK;
}

static enum orc_ref_status find_template(const struct reader *r, int line, const char *given)
{
    const size_t length = strlen(given);
    const char *const mark = strrchr(given, '#');
    if (ends_in(given, length, ".jinja") || ends_in(given, length, ".json"))
        return template_by_path(r, line, given, length);
    if (mark != NULL && strchr(mark, '/') == NULL &&
        ends_in(given, (size_t)(mark - given), ".json"))
        return template_by_path(r, line, given, (size_t)(mark - given));
    return template_by_name(r, line, given);
}

static enum orc_ref_status read_value(const struct reader *r, const struct key *key, int line,
                                      struct fy_node *node)
{
    void *const field =
        key->offset == SIZE_MAX ? NULL : (void *)((char *)r->recipe + key->offset);
    if (key->kind == PATHS)
        return read_paths(r, key, line, node, field);
    if (key->kind == COUNTS)
        return read_counts(r, key, line, node);
    size_t length = 0;
    const char *const scalar = node != NULL ? fy_node_get_scalar(node, &length) : NULL;
    if (scalar == NULL || length == 0 || memchr(scalar, '\0', length) != NULL)
        return bad(r, line, key->name, "has no value");
    const char *const text = key->kind == PATH ? join(r, scalar, length)
                                               : orc_ref_arena_text(r->arena, scalar, length);
    if (text == NULL)
        return orc_ref_fail(r->error, ORC_REF_INTERNAL, "%s: no memory", r->path);
    switch (key->kind) {
    case COUNT:
    case SEED:
    case REAL:
        return read_number(r, key, line, text, field);
    case FLAG:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return bad(r, line, key->name, "is neither true nor false");
        *(bool *)field = text[0] == 't';
        return ORC_REF_OK;
    case CHOICE:
        return read_choice(r, key, line, text, field);
    case TEMPLATE:
        return find_template(r, line, text);
    case TEXT:
    case PATH:
    case PATHS:
    case COUNTS:
        break;
    }
    *(const char **)field = text;
    return ORC_REF_OK;
}

/* Reads the keys of one mapping; seen[] marks what was found. */
static enum orc_ref_status read_mapping(const struct reader *r, struct fy_node *mapping,
                                        const char *section, bool seen[KEYS])
{
    void *state = NULL;
    for (struct fy_node_pair *pair; (pair = fy_node_mapping_iterate(mapping, &state)) != NULL;) {
        struct fy_node *const name = fy_node_pair_key(pair);
        struct fy_node *const value = fy_node_pair_value(pair);
        const int line = line_of(name);
        const char *const text = name != NULL ? fy_node_get_scalar0(name) : NULL;
        if (text == NULL)
            return bad(r, line, "a key", "is not text");
        bool is_section = false;
        size_t i = 0;
        for (; i < KEYS; i++) {
            is_section = is_section || (section[0] == '\0' && strcmp(keys[i].section, text) == 0);
            if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, text) == 0)
                break;
        }
        enum orc_ref_status status;
        if (i < KEYS) {
            seen[i] = true;
            status = read_value(r, &keys[i], line, value);
        } else if (is_section && text[0] != '\0') {
            if (!fy_node_is_mapping(value))
                return bad(r, line, text, "is not a mapping");
            status = read_mapping(r, value, text, seen);
        } else {
            return bad(r, line, text, "is not a key of a recipe");
        }
        if (status != ORC_REF_OK)
            return status;
    }
    return ORC_REF_OK;
}

static enum orc_ref_status check_seen(const struct reader *r, const bool seen[KEYS])
{
    for (size_t i = 0; i < KEYS; i++)
        if (!seen[i] && !may_be_left_out(&keys[i]))
            return orc_ref_fail(r->error, ORC_REF_BAD, "%s: %s%s%s is missing", r->path,
                                keys[i].section, keys[i].section[0] == '\0' ? "" : ".",
                                keys[i].name);
    return ORC_REF_OK;
}

static enum orc_ref_status check_whole(const struct reader *r)
{
    const struct orc_ref_recipe *const recipe = r->recipe;
    const struct orc_ref_shape *const model = &recipe->model;
    if (model->width % model->heads != 0 || model->width / model->heads % 2 != 0)
        return bad(r, 0, "model:", "width / heads is not an even whole number");
    if (model->heads % model->kv_heads != 0)
        return bad(r, 0, "model:", "kv_heads does not divide heads");
    if (recipe->data.weights != NULL && recipe->data.weight_count != recipe->data.train.count)
        return bad(r, 0, "data.weights", "are not as many as the training files");
    if (recipe->train.schedule_steps <= recipe->train.warmup)
        return bad(r, 0, "train:", "schedule_steps does not exceed warmup");
    if (recipe->train.eval_every > 0 &&
        (recipe->data.eval.count == 0 || recipe->train.eval_rows == 0))
        return bad(r, 0, "train.eval_every", "needs data.eval files and eval_rows");
    if (!(recipe->train.beta1 < 1.0) || !(recipe->train.beta2 < 1.0))
        return bad(r, 0, "train:", "beta1 and beta2 must be less than 1");
    if ((double)recipe->train.rows * (double)model->context > SIZE_MAX_ALLOWED)
        return bad(r, 0, "train:", "rows * context is out of range");
    return ORC_REF_OK;
}

/* The first message the parser collected. */
static enum orc_ref_status syntax_error(const struct reader *r, struct fy_diag *diag)
{
    void *state = NULL;
    const struct fy_diag_error *const first = fy_diag_errors_iterate(diag, &state);
    if (first == NULL || first->msg == NULL)
        return bad(r, 0, "the file", "is not YAML");
    return orc_ref_fail(r->error, ORC_REF_BAD, "%s:%d: %s", r->path, first->line, first->msg);
}

/* libfyaml reads some control characters and cut directives without end, so neither may come. */
static enum orc_ref_status check_characters(const struct reader *r, const char *text, size_t size)
{
    int line = 1;
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F)
            return bad(r, line, "the file", "holds a control character");
        if (c == '%' && (i == 0 || text[i - 1] == '\n' || text[i - 1] == '\r'))
            return bad(r, line, "the file", "holds a directive");
        line += c == '\n';
    }
    return ORC_REF_OK;
}

enum orc_ref_status orc_ref_recipe_load(const char *path, struct orc_ref_arena *arena,
                                        struct orc_ref_recipe *recipe, struct orc_ref_error *error)
{
    const struct reader r = {path, arena, recipe, error};
    bool seen[KEYS] = {false};
    char *file = NULL;
    size_t bytes = 0;
    struct fy_document *document = NULL;
    struct fy_diag_cfg config;
    fy_diag_cfg_default(&config);
    config.fp = NULL;
    config.colorize = false;
    struct fy_diag *const diag = fy_diag_create(&config);
    *recipe = (struct orc_ref_recipe){0};
    enum orc_ref_status status = orc_ref_file_read(path, &file, &bytes, error);
    if (status != ORC_REF_OK)
        goto done;
    if (diag == NULL) {
        status = orc_ref_fail(error, ORC_REF_INTERNAL, "%s: no memory", path);
        goto done;
    }
    if ((status = check_characters(&r, file, bytes)) != ORC_REF_OK)
        goto done;
    fy_diag_set_collect_errors(diag, true);
    const struct fy_parse_cfg parse = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG, .diag = diag};
    document = fy_document_build_from_string(&parse, file, bytes);
    if (document == NULL) {
        status = syntax_error(&r, diag);
        goto done;
    }
    struct fy_node *const root = fy_document_root(document);
    if (root == NULL || !fy_node_is_mapping(root)) {
        status = bad(&r, 0, "the file", "is not a mapping");
        goto done;
    }
    recipe->hash = orc_ref_hash(ORC_REF_HASH_START, file, bytes);
    if ((status = read_mapping(&r, root, "", seen)) == ORC_REF_OK &&
        (status = check_seen(&r, seen)) == ORC_REF_OK)
        status = check_whole(&r);
done:
    fy_document_destroy(document);
    fy_diag_destroy(diag);
    free(file);
    return status;
}

const char *orc_ref_mask_word(enum orc_ref_mask mask)
{
    static const char *const words[] = {"assistant", "last", "completion", "all"};
    return words[mask];
}

const char *orc_ref_format_word(enum orc_ref_format format)
{
    static const char *const words[] = {"messages", "sharegpt", "alpaca", "completion"};
    return words[format];
}
