/* Reads NAME.jinja and tokenizer_config.json as transformers does.
 * Called by template; must not know how a template is rendered. */
#include "template_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text_file.h"

enum { FILE_BYTES_MAX = 16 << 20, PATH_BYTES_MAX = 4096 };

const char *const eng_special_names[ENG_SPECIAL_COUNT] = {
    "bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token"};

static bool ends_in(const char *name, size_t size, const char *ending)
{
    const size_t length = strlen(ending);
    return size > length && memcmp(name + size - length, ending, length) == 0;
}

size_t eng_template_path_size(const char *name)
{
    const char *const mark = strrchr(name, '#');
    const bool variant =
        mark != NULL && strchr(mark, '/') == NULL && ends_in(name, (size_t)(mark - name), ".json");
    return variant ? (size_t)(mark - name) : strlen(name);
}

bool eng_template_is_file(const char *name)
{
    const size_t size = eng_template_path_size(name);
    return ends_in(name, size, ".jinja") || ends_in(name, size, ".json");
}

/* A configuration: its bytes and what they say. */
struct config {
    const char *path;
    char *bytes;
    size_t size;
    json_t *json;
};

static void close_config(struct config *config)
{
    json_decref(config->json);
    free(config->bytes);
}

/* To be closed also after a failure. */
static enum eng_status open_config(struct config *config, const char *path, struct eng_error *error)
{
    json_error_t cause;
    *config = (struct config){.path = path};
    const enum eng_status status =
        eng_text_file_read(path, FILE_BYTES_MAX, &config->bytes, &config->size, error);
    if (status != ENG_OK) {
        return status;
    }
    /* Whole numbers may be of any size: transformers writes 10^30 for "no limit". */
    config->json = json_loadb(config->bytes, config->size,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &cause);
    if (config->json == NULL) {
        return eng_fail(error, ENG_EINPUT, "%s:%d: not JSON: %s", path, cause.line, cause.text);
    }
    return json_is_object(config->json) ? ENG_OK
                                        : eng_fail(error, ENG_EINPUT, "%s: not an object", path);
}

/* The line on which a key stands first, from 1. */
static int line_of(const struct config *config, const char *key)
{
    char quoted[64];
    const int length = snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *const at = memmem(config->bytes, config->size, quoted, (size_t)length);
    int line = 1;
    for (const char *c = config->bytes; at != NULL && c < at; c++) {
        line += *c == '\n';
    }
    return line;
}

static enum eng_status refuse(const struct config *config, const char *key, const char *cause,
                              struct eng_error *error)
{
    return eng_fail(error, ENG_EINPUT, "%s:%d: %s %s", config->path, line_of(config, key), key,
                    cause);
}

/* A special token is a text or an object with its text as content. */
static enum eng_status take_token(const struct config *config, const char *key, const json_t *token,
                                  char **out, struct eng_error *error)
{
    token = json_is_object(token) ? json_object_get(token, "content") : token;
    if (!json_is_string(token)) {
        return refuse(config, key, "is no text", error);
    }
    *out = strdup(json_string_value(token));
    return *out == NULL ? eng_fail(error, ENG_EHOSTMEM, "%s: no memory", config->path) : ENG_OK;
}

/* additional_special_tokens: a list of them; an empty one is none, as in transformers. */
static enum eng_status take_more_tokens(const struct config *config, struct eng_template_file *out,
                                        struct eng_error *error)
{
    static const char key[] = "additional_special_tokens";
    const json_t *const list = json_object_get(config->json, key);
    const size_t count = json_array_size(list);
    if (list != NULL && !json_is_null(list) && !json_is_array(list)) {
        return refuse(config, key, "is no list", error);
    }
    if (count > 0 && (out->more = calloc(count, sizeof *out->more)) == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "%s: no memory", config->path);
    }
    for (size_t i = 0; i < count; i++) {
        const enum eng_status status =
            take_token(config, key, json_array_get(list, i), &out->more[i], error);
        if (status != ENG_OK) {
            return status;
        }
        out->more_count = i + 1;
    }
    return ENG_OK;
}

static enum eng_status take_tokens(const struct config *config, struct eng_template_file *out,
                                   struct eng_error *error)
{
    for (size_t i = 0; i < ENG_SPECIAL_COUNT; i++) {
        const json_t *const token = json_object_get(config->json, eng_special_names[i]);
        const enum eng_status status =
            token == NULL || json_is_null(token)
                ? ENG_OK
                : take_token(config, eng_special_names[i], token, &out->tokens[i], error);
        if (status != ENG_OK) {
            return status;
        }
    }
    return take_more_tokens(config, out, error);
}

/* The template called `name` among several, or the only one when name is NULL. */
static enum eng_status choose(const struct config *config, const char *name, const json_t **out,
                              struct eng_error *error)
{
    static const char key[] = "chat_template";
    const json_t *const templates = json_object_get(config->json, key);
    *out = name == NULL && json_is_string(templates) ? templates : NULL;
    if (templates != NULL && !json_is_string(templates) && !json_is_array(templates)) {
        return refuse(config, key, "is neither a text nor a list of templates", error);
    }
    for (size_t i = 0; i < json_array_size(templates); i++) {
        const json_t *const item = json_array_get(templates, i);
        const char *const called = json_string_value(json_object_get(item, "name"));
        const json_t *const source = json_object_get(item, "template");
        if (called == NULL || !json_is_string(source)) {
            return refuse(config, key, "holds something that is no template with a name", error);
        }
        if (strcmp(called, name == NULL ? "default" : name) == 0) {
            *out = source;
        }
    }
    return *out != NULL ? ENG_OK
                        : eng_fail(error, ENG_EINPUT, "%s: no chat_template%s%s", config->path,
                                   name == NULL && json_is_array(templates) ? " called default"
                                   : name == NULL                           ? ""
                                                                            : " called ",
                                   name == NULL ? "" : name);
}

static enum eng_status read_config(const char *path, const char *name,
                                   struct eng_template_file *out, struct eng_error *error)
{
    struct config config;
    const json_t *source = NULL;
    enum eng_status status = open_config(&config, path, error);
    if (status == ENG_OK) {
        status = choose(&config, name, &source, error);
    }
    if (status == ENG_OK) {
        out->size = json_string_length(source);
        out->source = strdup(json_string_value(source));
        status = out->source == NULL ? eng_fail(error, ENG_EHOSTMEM, "%s: no memory", path)
                                     : take_tokens(&config, out, error);
    }
    close_config(&config);
    return status;
}

/* NAME.jinja, and the tokens of the configuration beside it where there is one. */
static enum eng_status read_jinja(const char *path, struct eng_template_file *out,
                                  struct eng_error *error)
{
    char beside[PATH_BYTES_MAX];
    struct config config;
    enum eng_status status =
        eng_text_file_read(path, FILE_BYTES_MAX, &out->source, &out->size, error);
    const char *const slash = strrchr(path, '/');
    snprintf(beside, sizeof beside, "%.*stokenizer_config.json",
             slash == NULL ? 0 : (int)(slash + 1 - path), path);
    if (status != ENG_OK || access(beside, F_OK) != 0) {
        return status;
    }
    status = open_config(&config, beside, error);
    if (status == ENG_OK) {
        status = take_tokens(&config, out, error);
    }
    close_config(&config);
    return status;
}

enum eng_status eng_template_file_read(const char *name, struct eng_template_file *out,
                                       struct eng_error *error)
{
    char path[PATH_BYTES_MAX];
    const size_t size = eng_template_path_size(name);
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
    for (size_t i = 0; i < file->more_count; i++) {
        free(file->more[i]);
    }
    free(file->more);
    *file = (struct eng_template_file){0};
}
