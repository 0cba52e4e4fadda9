/* Traces and timelines of a replay, line by line. Called by har_replay.c; must not know the
 * database.
 */
#include "har_replay_read.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOMENTS_MAX = 10000000 };

static char *text_of(const json_t *object, const char *key)
{
    const char *const text = json_string_value(json_object_get(object, key));
    return strdup(text != NULL ? text : "");
}

static uint64_t number_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* Calls `take` with each whole line; a cut last line is dropped. */
typedef bool take_fn(struct har_replay *r, const json_t *line);
static enum har_status each_line(const char *path, take_fn *take, struct har_replay *r,
                                 struct har_error *error)
{
    FILE *const file = fopen(path, "rbe");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length = 0;
    bool ok = true;
    if (file == NULL) {
        return errno == ENOENT ? HAR_OK : har_fail(error, HAR_EIO, "%s: %s", path, strerror(errno));
    }
    while (ok && (length = getline(&line, &capacity, file)) > 0) {
        json_t *const object = json_loadb(line, (size_t)length, 0, NULL);
        ok = object == NULL || take(r, object);
        json_decref(object);
    }
    free(line);
    fclose(file);
    return ok ? HAR_OK : har_fail(error, HAR_EMEMORY, "%s: no memory for its lines", path);
}

static bool take_side(const json_t *race, const char *which, struct har_replay_side *out)
{
    char key[32];
    const char *const names[] = {"", "_stream", "_mode", "_where"};
    char **const places[] = {&out->what, &out->stream, &out->mode, &out->where};
    bool ok = true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(key, sizeof key, "%s%s", which, names[i]);
        *places[i] = text_of(race, key);
        ok = ok && *places[i] != NULL;
    }
    snprintf(key, sizeof key, "%s_step", which);
    out->step = (int)number_of(race, key);
    snprintf(key, sizeof key, "%s_op", which);
    out->op = number_of(race, key);
    return ok;
}

static bool take_race(struct har_replay *r, const json_t *race)
{
    struct har_replay_race *const grown = realloc(r->races, (r->race_count + 1) * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    r->races = grown;
    struct har_replay_race *const out = &grown[r->race_count++];
    memset(out, 0, sizeof *out);
    out->buffer = text_of(race, "buffer");
    return take_side(race, "first", &out->side[0]) && take_side(race, "second", &out->side[1]) &&
           out->buffer != NULL;
}

static bool take_step(struct har_replay *r, const json_t *line)
{
    const char *const type = json_string_value(json_object_get(line, "type"));
    const json_t *step = line;
    if (type != NULL && strcmp(type, "end") == 0) {
        step = json_object_get(line, "unfinished");
    } else if (type == NULL || strcmp(type, "step") != 0) {
        return true;
    } else {
        r->steps++;
    }
    size_t i;
    const json_t *race;
    bool ok = true;
    json_array_foreach(json_object_get(step, "races"), i, race)
    {
        ok = ok && take_race(r, race);
    }
    if (json_object_get(step, "race_count") != NULL) {
        r->race_total = number_of(step, "race_count");
    }
    return ok;
}

enum har_status har_replay_read_trace(const char *path, struct har_replay *out,
                                      struct har_error *error)
{
    return each_line(path, take_step, out, error);
}

static bool take_moment(struct har_replay *r, const json_t *line)
{
    enum { FIRST = 1024 };
    const char *const kind = json_string_value(json_object_get(line, "kind"));
    if (kind == NULL || r->moment_count == MOMENTS_MAX) {
        return true;
    }
    /* A power of two: the table is full. */
    if (r->moment_count % FIRST == 0 && (r->moment_count & (r->moment_count - 1)) == 0) {
        const size_t room = r->moment_count == 0 ? FIRST : 2 * r->moment_count;
        struct har_replay_moment *const grown = realloc(r->moments, room * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        r->moments = grown;
    }
    struct har_replay_moment *const m = &r->moments[r->moment_count++];
    *m = (struct har_replay_moment){.ran = strcmp(kind, "run") == 0,
                                    .op = number_of(line, "op"),
                                    .what = text_of(line, "what"),
                                    .stream = text_of(line, "stream"),
                                    .step = (int)number_of(line, "step")};
    return m->what != NULL && m->stream != NULL;
}

enum har_status har_replay_read_timeline(const char *path, struct har_replay *out,
                                         struct har_error *error)
{
    return each_line(path, take_moment, out, error);
}
