/* Reads the model section of a recipe with libyaml's document interface.
 * Called by init_main.c; must know nothing of weights. */
#include "cor_recipe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

enum value_kind { COUNT, SWITCH, NUMBER, LLAMA };

/* A key of the model section; offset is that of a size_t (COUNT) or a bool (SWITCH). */
struct key {
    const char *name;
    enum value_kind kind;
    size_t offset, max;
};

static const struct key model_keys[] = {
    {"arch", LLAMA, 0, 0},
    {"layers", COUNT, offsetof(struct cor_model, layers), 1024},
    {"width", COUNT, offsetof(struct cor_model, width), 65536},
    {"heads", COUNT, offsetof(struct cor_model, heads), 65536},
    {"kv_heads", COUNT, offsetof(struct cor_model, kv_heads), 65536},
    {"ffn", COUNT, offsetof(struct cor_model, ffn), 1 << 20},
    {"context", COUNT, SIZE_MAX, 1 << 24},
    {"vocab", COUNT, offsetof(struct cor_model, vocab), 1 << 24},
    {"tied", SWITCH, offsetof(struct cor_model, tied), 0},
    {"norm_eps", NUMBER, 0, 0},
    {"rope_theta", NUMBER, 0, 0},
};
enum { MODEL_KEYS = sizeof model_keys / sizeof model_keys[0] };

static const char *const sections[] = {"name", "model", "text", "data", "train", "device"};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

struct reader {
    const char *path;
    yaml_document_t *document;
    struct cor_error *error;
};

enum cor_status cor_fail(struct cor_error *error, enum cor_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return status;
}

static size_t line_of(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

static const char *text_of(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : "";
}

static enum cor_status fail_at(const struct reader *r, const yaml_node_t *node, const char *cause,
                               const char *what)
{
    return cor_fail(r->error, COR_EINPUT, "%s:%zu: %s: %.80s", r->path, line_of(node), cause, what);
}

static enum cor_status read_value(const struct reader *r, const struct key *key,
                                  const yaml_node_t *node, struct cor_model *model)
{
    const char *const text = text_of(node);
    const bool plain = node->type == YAML_SCALAR_NODE &&
                       node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && text[0] != '\0';
    char *end = NULL;

    if (key->kind == LLAMA) {
        return strcmp(text, "llama") == 0 ? COR_OK
                                          : fail_at(r, node, "arch must be llama, not", text);
    }
    if (!plain) {
        return fail_at(r, node, "needs a plain value", key->name);
    }
    if (key->kind == SWITCH) {
        const bool on = strcmp(text, "true") == 0;
        if (!on && strcmp(text, "false") != 0) {
            return fail_at(r, node, "must be true or false", key->name);
        }
        memcpy((char *)model + key->offset, &on, sizeof on);
        return COR_OK;
    }
    if (key->kind == NUMBER) {
        const double number = strtod(text, &end);
        return *end == '\0' && number > 0.0
                   ? COR_OK
                   : fail_at(r, node, "must be a number above 0", key->name);
    }
    errno = 0;
    const unsigned long long count = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || count == 0 ||
        count > key->max) {
        return cor_fail(r->error, COR_EINPUT,
                        "%s:%zu: %s must be an integer from 1 to %zu, not %.40s", r->path,
                        line_of(node), key->name, key->max, text);
    }
    if (key->offset != SIZE_MAX) {
        const size_t value = (size_t)count;
        memcpy((char *)model + key->offset, &value, sizeof value);
    }
    return COR_OK;
}

/* The index of text in a list of names given by stride, or count. */
static size_t find_name(const char *text, const void *names, size_t stride, size_t count)
{
    size_t index = 0;
    while (index < count &&
           strcmp(text, *(const char *const *)((const char *)names + index * stride)) != 0) {
        index++;
    }
    return index;
}

static enum cor_status check_shape(const struct reader *r, const yaml_node_t *node,
                                   const struct cor_model *m)
{
    if (m->width % m->heads != 0 || m->width / m->heads % 2 != 0) {
        return fail_at(r, node, "model", "width / heads must be an even integer");
    }
    if (m->heads % m->kv_heads != 0) {
        return fail_at(r, node, "model", "kv_heads must divide heads");
    }
    return COR_OK;
}

static enum cor_status read_model(const struct reader *r, const yaml_node_t *node,
                                  struct cor_model *model)
{
    struct cor_model found = {0};
    bool seen[MODEL_KEYS] = {false};
    if (node->type != YAML_MAPPING_NODE) {
        return fail_at(r, node, "must be a mapping", "model");
    }
    for (const yaml_node_pair_t *p = node->data.mapping.pairs.start;
         p < node->data.mapping.pairs.top; p++) {
        const yaml_node_t *const name = yaml_document_get_node(r->document, p->key);
        const size_t index = find_name(text_of(name), model_keys, sizeof model_keys[0], MODEL_KEYS);
        if (index == MODEL_KEYS) {
            return fail_at(r, name, "unknown key in model", text_of(name));
        }
        if (seen[index]) {
            return fail_at(r, name, "key occurs twice", text_of(name));
        }
        seen[index] = true;
        const enum cor_status status = read_value(
            r, &model_keys[index], yaml_document_get_node(r->document, p->value), &found);
        if (status != COR_OK) {
            return status;
        }
    }
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        if (!seen[i]) {
            return fail_at(r, node, "model lacks the key", model_keys[i].name);
        }
    }
    const enum cor_status status = check_shape(r, node, &found);
    if (status == COR_OK) {
        *model = found;
    }
    return status;
}

static enum cor_status read_sections(const struct reader *r, struct cor_model *model)
{
    const yaml_node_t *const root = yaml_document_get_root_node(r->document);
    const yaml_node_t *model_node = NULL;
    bool seen[SECTIONS] = {false};
    if (root == NULL || root->type != YAML_MAPPING_NODE) {
        return cor_fail(r->error, COR_EINPUT, "%s:1: a recipe must be a mapping", r->path);
    }
    for (const yaml_node_pair_t *p = root->data.mapping.pairs.start;
         p < root->data.mapping.pairs.top; p++) {
        const yaml_node_t *const name = yaml_document_get_node(r->document, p->key);
        const size_t index = find_name(text_of(name), sections, sizeof sections[0], SECTIONS);
        if (index == SECTIONS) {
            return fail_at(r, name, "unknown key", text_of(name));
        }
        if (seen[index]) {
            return fail_at(r, name, "key occurs twice", text_of(name));
        }
        seen[index] = true;
        if (strcmp(text_of(name), "model") == 0) {
            model_node = yaml_document_get_node(r->document, p->value);
        }
    }
    return model_node == NULL ? fail_at(r, root, "the recipe lacks the section", "model")
                              : read_model(r, model_node, model);
}

enum cor_status cor_recipe_read(const char *path, struct cor_model *model, struct cor_error *error)
{
    enum cor_status status = COR_OK;
    yaml_parser_t parser;
    yaml_document_t document;
    bool have_parser = false;
    bool have_document = false;
    FILE *const file = fopen(path, "rb");

    if (file == NULL) {
        return cor_fail(error, COR_EIO, "%s: %s", path, strerror(errno));
    }
    have_parser = yaml_parser_initialize(&parser) != 0;
    if (!have_parser) {
        status = cor_fail(error, COR_EIO, "%s: no memory", path);
        goto done;
    }
    yaml_parser_set_input_file(&parser, file);
    have_document = yaml_parser_load(&parser, &document) != 0;
    if (ferror(file)) {
        status = cor_fail(error, COR_EIO, "%s: cannot be read", path);
        goto done;
    }
    if (!have_document) {
        status = cor_fail(error, COR_EINPUT, "%s:%zu: %s", path, parser.problem_mark.line + 1,
                          parser.problem != NULL ? parser.problem : "not YAML");
        goto done;
    }
    const struct reader reader = {.path = path, .document = &document, .error = error};
    status = read_sections(&reader, model);
done:
    if (have_document) {
        yaml_document_delete(&document);
    }
    if (have_parser) {
        yaml_parser_delete(&parser);
    }
    fclose(file);
    return status;
}
