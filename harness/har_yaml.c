/* libcyaml with readable errors; paths relative to a file.
 * Called by har_campaign.c and har_recipe.c; must not know their keys. */
#include "har_yaml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <yaml.h>

/* What libcyaml said: its first message is the cause, the first place of the backtrace the line. */
struct yaml_log {
    char cause[256];
    char key[64]; /* of the value in question; "" when the place is no value */
    int line;
};

/* Takes line and key from "in mapping field 'KEY' (line: N, column: M)". */
static void take_place(struct yaml_log *log, const char *text, const char *place)
{
    static const char field[] = "mapping field '";
    const char *const key = strstr(text, field);
    log->line = atoi(place + strlen("(line: "));
    if (key != NULL) {
        const char *const start = key + strlen(field);
        snprintf(log->key, sizeof log->key, "%.*s", (int)strcspn(start, "'"), start);
    }
}

static void yaml_log_add(cyaml_log_t level, void *context, const char *format, va_list args)
{
    struct yaml_log *const log = context;
    char message[256];
    (void)level;
    vsnprintf(message, sizeof message, format, args);
    message[strcspn(message, "\n")] = '\0';
    const char *const text = strncmp(message, "Load: ", 6) == 0 ? message + 6 : message;
    const char *const place = strstr(text, "(line: ");
    if (place != NULL) {
        if (log->line == 0) {
            take_place(log, text, place);
        }
    } else if (log->cause[0] == '\0' && strncmp(text, "Backtrace", 9) != 0) {
        snprintf(log->cause, sizeof log->cause, "%s", text);
    }
}

/* libcyaml names the place before an unknown key; the key itself stands on that line or below. */
static int yaml_key_line(const char *path, const char *key, int from)
{
    FILE *const file = fopen(path, "rbe");
    if (file == NULL) {
        return from;
    }
    char line[4096];
    int found = from;
    for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        const char *const start = line + strspn(line, " -{\"'");
        if (number >= from && strncmp(start, key, strlen(key)) == 0 &&
            strchr(" :\"'", start[strlen(key)]) != NULL) {
            found = number;
            break;
        }
    }
    fclose(file);
    return found;
}

enum har_status har_yaml_load(const char *path, const cyaml_schema_value_t *schema,
                              bool ignore_unknown, void **out, struct har_error *error)
{
    static const char unexpected[] = "Unexpected key: ";
    struct yaml_log log = {.cause = "", .line = 0};
    const cyaml_config_t config = {
        .log_fn = yaml_log_add,
        .log_ctx = &log,
        .log_level = CYAML_LOG_ERROR,
        .mem_fn = cyaml_mem,
        .flags = ignore_unknown ? CYAML_CFG_IGNORE_UNKNOWN_KEYS : CYAML_CFG_DEFAULT,
    };
    if (access(path, R_OK) != 0) {
        return har_fail(error, HAR_EUSAGE, "%s: %s", path, strerror(errno));
    }
    const cyaml_err_t result = cyaml_load_file(path, &config, schema, out, NULL);
    if (result == CYAML_OK && *out != NULL) {
        return HAR_OK;
    }
    if (result == CYAML_OK) {
        return har_fail(error, HAR_EUSAGE, "%s: is empty", path);
    }
    if (strncmp(log.cause, unexpected, strlen(unexpected)) == 0) {
        const char *const key = log.cause + strlen(unexpected);
        log.line = yaml_key_line(path, key, log.line);
        return har_fail(error, HAR_EUSAGE, "%s:%d: unknown key '%s'", path, log.line, key);
    }
    return har_fail(error, HAR_EUSAGE, "%s:%d: %s%s%s", path, log.line, log.key,
                    log.key[0] != '\0' ? ": " : "",
                    log.cause[0] != '\0' ? log.cause : cyaml_strerror(result));
}

enum har_status har_yaml_each_value(const char *path, har_yaml_visit *visit, void *context,
                                    struct har_error *error)
{
    yaml_parser_t parser;
    yaml_event_t event;
    enum har_status status = HAR_OK;
    bool more = true;
    FILE *const file = fopen(path, "rbe");
    if (file == NULL) {
        return har_fail(error, HAR_EUSAGE, "%s: %s", path, strerror(errno));
    }
    if (yaml_parser_initialize(&parser) == 0) {
        fclose(file);
        return har_fail(error, HAR_EMEMORY, "%s: no memory", path);
    }
    yaml_parser_set_input_file(&parser, file);
    while (status == HAR_OK && more) {
        if (yaml_parser_parse(&parser, &event) == 0) {
            status = har_fail(error, HAR_EUSAGE, "%s:%zu: %s", path, parser.problem_mark.line + 1,
                              parser.problem != NULL ? parser.problem : "not YAML");
            break;
        }
        if (event.type == YAML_SCALAR_EVENT) {
            status = visit(context, (const char *)event.data.scalar.value, error);
        }
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    fclose(file);
    return status;
}

void har_yaml_free(const cyaml_schema_value_t *schema, void *data)
{
    const cyaml_config_t config = {.mem_fn = cyaml_mem};
    if (data != NULL) {
        (void)cyaml_free(&config, schema, data, 0);
    }
}

char *har_yaml_resolve(const char *base, const char *path)
{
    const char *const slash = strrchr(base, '/');
    char *joined = NULL;
    if (path[0] == '/' || slash == NULL) {
        return strdup(path);
    }
    if (asprintf(&joined, "%.*s/%s", (int)(slash - base), base, path) < 0) {
        return NULL;
    }
    return joined;
}
