/* Reads a trace: the file as lines, each line as one JSON object, each object into compact arrays.
 * Called by everybody who judges; knows the header and the end, orc_step_read.c knows the steps. */
#include "orc_step_read.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum orc_status read_header(struct orc_trace *t, const cJSON *json,
                                   const struct orc_place *place)
{
    int version = 0;
    enum orc_status status = orc_json_int(place, json, "trace_version", &version);
    if (status == ORC_OK && version != 1) {
        status = orc_bad(place, "trace_version is not 1");
    }
    const struct {
        const char *key;
        const char **out;
    } texts[] = {
        {"stack", &t->stack},         {"recipe", &t->recipe}, {"backend", &t->backend},
        {"precision", &t->precision}, {"level", &t->level},   {"schedule", &t->schedule},
        {"driver", &t->driver},       {"mode", &t->mode},
    };
    for (size_t i = 0; status == ORC_OK && i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i].out = "";
        status = orc_json_text(place, json, texts[i].key, &t->arena, texts[i].out);
    }
    if (status == ORC_OK) {
        status = orc_json_number(place, json, "seed", &t->seed);
    }
    if (status == ORC_OK) {
        status = orc_json_hash(place, json, "recipe_hash", &t->recipe_hash_given, &t->recipe_hash);
    }
    t->first_step = 1;
    if (status == ORC_OK) {
        status = orc_json_int(place, json, "first_step", &t->first_step);
    }
    if (status == ORC_OK && t->first_step < 1) {
        status = orc_bad(place, "first_step is not positive");
    }
    return status;
}

static enum orc_status read_reach(struct orc_trace *t, const cJSON *json,
                                  const struct orc_place *place)
{
    const cJSON *reach = orc_json_get(json, "reach");
    if (reach == NULL) {
        return ORC_OK;
    }
    if (!cJSON_IsObject(reach)) {
        return orc_bad(place, "\"reach\" is not an object");
    }
    struct orc_site_reach *sites =
        orc_arena_take(&t->arena, (size_t)cJSON_GetArraySize(reach), sizeof *sites);
    size_t count = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, reach)
    {
        if (!cJSON_IsNumber(item)) {
            return orc_bad(place, "\"reach\" holds something that is not a step");
        }
        if (sites != NULL) {
            sites[count].site = orc_arena_text(&t->arena, item->string);
            sites[count].step = item->valueint;
            count++;
        }
    }
    t->reach = sites;
    t->reach_count = count;
    return ORC_OK;
}

static enum orc_status read_end(struct orc_trace *t, const cJSON *json,
                                const struct orc_place *place)
{
    const char *status_text = "";
    enum orc_status status = orc_json_text(place, json, "status", &t->arena, &status_text);
    if (status == ORC_OK) {
        t->ended = strcmp(status_text, "ok") == 0;
        status = orc_json_int(place, json, "fault_reached", &t->fault_reached);
    }
    if (status == ORC_OK && t->fault_reached < -1) {
        status = orc_bad(place, "\"fault_reached\" is not a step");
    }
    if (status == ORC_OK) {
        status = orc_json_texts(place, json, "features", &t->arena, NULL, &t->features,
                                &t->feature_count);
    }
    if (status == ORC_OK) {
        status = read_reach(t, json, place);
    }
    const cJSON *unfinished = orc_json_get(json, "unfinished");
    if (status == ORC_OK && cJSON_IsObject(unfinished)) {
        status = orc_step_read_unfinished(t, unfinished, place);
    }
    return status;
}

struct lines {
    bool header_seen, end_seen;
};

static enum orc_status read_object(struct orc_trace *t, struct lines *seen, const cJSON *json,
                                   const struct orc_place *place)
{
    const cJSON *type = orc_json_get(json, "type");
    if (!cJSON_IsString(type)) {
        return orc_bad(place, "line without a \"type\"");
    }
    const char *const name = type->valuestring;
    if (seen->end_seen) {
        return orc_bad(place, "line after the end record");
    }
    if (!seen->header_seen) {
        if (strcmp(name, "header") != 0) {
            return orc_bad(place, "first line is not a header");
        }
        seen->header_seen = true;
        return read_header(t, json, place);
    }
    if (strcmp(name, "step") == 0) {
        return orc_step_read(t, json, place);
    }
    if (strcmp(name, "end") == 0) {
        seen->end_seen = true;
        return read_end(t, json, place);
    }
    return orc_bad(place, "unexpected line of type \"%.40s\"", name);
}

/* The object on the line; NULL when it is not exactly one JSON object. Caller deletes it. */
static cJSON *parse_line(const char *line, size_t length)
{
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithLengthOpts(line, length, &end, false);
    if (json == NULL) {
        return NULL;
    }
    for (; end < line + length; end++) {
        if (*end != ' ' && *end != '\t' && *end != '\r') {
            cJSON_Delete(json);
            return NULL;
        }
    }
    if (!cJSON_IsObject(json)) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

static enum orc_status read_lines(struct orc_trace *t, const char *bytes, size_t size,
                                  struct orc_place *place)
{
    struct lines seen = {false, false};
    size_t at = 0;
    while (at < size) {
        const char *line = bytes + at;
        const char *newline = memchr(line, '\n', size - at);
        const size_t length = newline != NULL ? (size_t)(newline - line) : size - at;
        at += length + 1;
        place->line++;
        cJSON *json = parse_line(line, length);
        if (json == NULL) {
            if (newline == NULL) {
                break; /* cut by the death of its writer */
            }
            return orc_bad(place, "not one JSON object");
        }
        const enum orc_status status = read_object(t, &seen, json, place);
        cJSON_Delete(json);
        if (status != ORC_OK) {
            return status;
        }
        if (t->arena.failed) {
            return orc_fail(ORC_EMEMORY, place->error, "%s: host memory exhausted", place->path);
        }
    }
    if (!seen.header_seen) {
        place->line = 0;
        return orc_bad(place, "no complete header");
    }
    return ORC_OK;
}

enum orc_status orc_trace_read(const char *path, orc_trace **out, struct orc_error *error)
{
    char *bytes = NULL;
    size_t size = 0;
    if (path == NULL || out == NULL) {
        return orc_fail(ORC_EARG, error, "no path or no place for the trace");
    }
    struct orc_trace *t = calloc(1, sizeof *t);
    enum orc_status status = ORC_EMEMORY;
    if (t == NULL) {
        (void)orc_fail(status, error, "%s: host memory exhausted", path);
        goto done;
    }
    t->fault_reached = -1;
    t->lr_digits = t->clip_digits = ORC_DIGITS_MIN;
    status = orc_file_load(path, &bytes, &size, error);
    if (status != ORC_OK) {
        goto done;
    }
    t->path = orc_arena_text(&t->arena, path);
    struct orc_place place = {path, 0, error};
    status = read_lines(t, bytes, size, &place);
    if (status == ORC_OK && !orc_steps_index(t)) {
        status = orc_fail(ORC_EMEMORY, error, "%s: host memory exhausted", path);
    }
    if (status == ORC_OK) {
        *out = t;
        t = NULL;
    }
done:
    free(bytes);
    orc_trace_free(t);
    return status;
}
