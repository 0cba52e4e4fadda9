/* Reads NAME.jinja and tokenizer_config.json as transformers does.
 * Called by template; must not know how a template is rendered. */
#include "template_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 16 << 20, PATH_BYTES_MAX = 4096 };

const char *const eng_special_names[ENG_SPECIAL_COUNT] = {"bos_token", "eos_token", "pad_token",
                                                          "unk_token"};

static bool ends_in(const char *name, size_t size, const char *ending)
{
    const size_t length = strlen(ending);
    return size > length && memcmp(name + size - length, ending, length) == 0;
}

bool eng_template_is_file(const char *name)
{
    const size_t size = strcspn(name, "#");
    return ends_in(name, size, ".jinja") || ends_in(name, size, ".json");
}

static enum eng_status read_all(const char *path, char **out, size_t *size, struct eng_error *error)
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        return eng_fail(error, ENG_EIO, "%s: %s", path, strerror(errno));
    }
    char *const bytes = malloc(FILE_BYTES_MAX);
    const size_t read = bytes == NULL ? 0 : fread(bytes, 1, FILE_BYTES_MAX, file);
    const int cause = ferror(file) ? errno : 0;
    fclose(file);
    if (bytes == NULL || cause != 0 || read == FILE_BYTES_MAX) {
        free(bytes);
        return bytes == NULL ? eng_fail(error, ENG_EHOSTMEM, "%s: no memory", path)
               : cause != 0
                   ? eng_fail(error, ENG_EIO, "%s: %s", path, strerror(cause))
                   : eng_fail(error, ENG_EINPUT, "%s: more than %d bytes", path, FILE_BYTES_MAX);
    }
    char *const fitting = realloc(bytes, read + 1);
    *out = fitting == NULL ? bytes : fitting;
    *size = read;
    return ENG_OK;
}

static enum eng_status read_json(const char *path, json_t **out, struct eng_error *error)
{
    char *bytes = NULL;
    size_t size = 0;
    json_error_t cause;
    const enum eng_status status = read_all(path, &bytes, &size, error);
    if (status != ENG_OK) {
        return status;
    }
    *out = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &cause);
    free(bytes);
    if (*out == NULL) {
        return eng_fail(error, ENG_EINPUT, "%s:%d: not JSON: %s", path, cause.line, cause.text);
    }
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return eng_fail(error, ENG_EINPUT, "%s: not an object", path);
    }
    return ENG_OK;
}

/* A special token is a text or an object with its text as content; null is none. */
static enum eng_status take_tokens(const char *path, const json_t *config,
                                   struct eng_template_file *out, struct eng_error *error)
{
    for (size_t i = 0; i < ENG_SPECIAL_COUNT; i++) {
        const json_t *token = json_object_get(config, eng_special_names[i]);
        if (token == NULL || json_is_null(token)) {
            continue;
        }
        token = json_is_object(token) ? json_object_get(token, "content") : token;
        if (!json_is_string(token)) {
            return eng_fail(error, ENG_EINPUT, "%s: %s is no text", path, eng_special_names[i]);
        }
        out->tokens[i] = strdup(json_string_value(token));
        if (out->tokens[i] == NULL) {
            return eng_fail(error, ENG_EHOSTMEM, "%s: no memory", path);
        }
    }
    return ENG_OK;
}

/* The template called `name` among several, or the only one when name is NULL. */
static const json_t *chosen(const json_t *templates, const char *name)
{
    if (json_is_string(templates)) {
        return name == NULL ? templates : NULL;
    }
    for (size_t i = 0; i < json_array_size(templates); i++) {
        const json_t *const item = json_array_get(templates, i);
        const char *const called = json_string_value(json_object_get(item, "name"));
        if (called != NULL && strcmp(called, name == NULL ? "default" : name) == 0) {
            return json_object_get(item, "template");
        }
    }
    return NULL;
}

static enum eng_status read_config(const char *path, const char *name,
                                   struct eng_template_file *out, struct eng_error *error)
{
    json_t *config = NULL;
    enum eng_status status = read_json(path, &config, error);
    if (status != ENG_OK) {
        return status;
    }
    const json_t *const source = chosen(json_object_get(config, "chat_template"), name);
    if (!json_is_string(source)) {
        json_decref(config);
        return eng_fail(error, ENG_EINPUT, "%s: no chat_template%s%s", path,
                        name == NULL ? "" : " called ", name == NULL ? "" : name);
    }
    out->size = json_string_length(source);
    out->source = strdup(json_string_value(source));
    status = out->source == NULL ? eng_fail(error, ENG_EHOSTMEM, "%s: no memory", path)
                                 : take_tokens(path, config, out, error);
    json_decref(config);
    return status;
}

/* NAME.jinja, and the tokens of the configuration beside it where there is one. */
static enum eng_status read_jinja(const char *path, struct eng_template_file *out,
                                  struct eng_error *error)
{
    char beside[PATH_BYTES_MAX];
    json_t *config = NULL;
    enum eng_status status = read_all(path, &out->source, &out->size, error);
    const char *const slash = strrchr(path, '/');
    snprintf(beside, sizeof beside, "%.*stokenizer_config.json",
             slash == NULL ? 0 : (int)(slash + 1 - path), path);
    FILE *const there = status == ENG_OK ? fopen(beside, "rb") : NULL;
    if (there == NULL) {
        return status;
    }
    fclose(there);
    status = read_json(beside, &config, error);
    if (status == ENG_OK) {
        status = take_tokens(beside, config, out, error);
        json_decref(config);
    }
    return status;
}

enum eng_status eng_template_file_read(const char *name, struct eng_template_file *out,
                                       struct eng_error *error)
{
    char path[PATH_BYTES_MAX];
    const size_t size = strcspn(name, "#");
    const char *const variant = name[size] == '#' ? name + size + 1 : NULL;
    *out = (struct eng_template_file){0};
    if (size >= sizeof path) {
        return eng_fail(error, ENG_EUSAGE, "the path of a template is too long");
    }
    memcpy(path, name, size);
    path[size] = '\0';
    const enum eng_status status = ends_in(path, size, ".jinja")
                                       ? read_jinja(path, out, error)
                                       : read_config(path, variant, out, error);
    if (status != ENG_OK) {
        eng_template_file_fini(out);
    }
    return status;
}

void eng_template_file_fini(struct eng_template_file *file)
{
    free(file->source);
    for (size_t i = 0; i < ENG_SPECIAL_COUNT; i++) {
        free(file->tokens[i]);
    }
    *file = (struct eng_template_file){0};
}
