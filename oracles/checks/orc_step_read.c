/* One step line of a trace into struct orc_step.
 * Called by the trace reader; must not know files or lines. */
#include "orc_step_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum orc_status orc_json_texts(const struct orc_place *place, const cJSON *object, const char *key,
                               struct orc_arena *arena, bool *given, const char *const **out,
                               size_t *count)
{
    const cJSON *array = orc_json_get(object, key);
    if (array == NULL) {
        return ORC_OK;
    }
    if (!cJSON_IsArray(array)) {
        return orc_bad(place, "\"%s\" is not an array", key);
    }
    const char **texts = orc_arena_take(arena, (size_t)cJSON_GetArraySize(array), sizeof *texts);
    size_t n = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array)
    {
        if (!cJSON_IsString(item)) {
            return orc_bad(place, "\"%s\" holds something that is not a string", key);
        }
        if (texts != NULL) {
            texts[n++] = orc_arena_text(arena, item->valuestring);
        }
    }
    *out = texts;
    *count = n;
    if (given != NULL) {
        *given = true;
    }
    return ORC_OK;
}

/* Array under key, NULL when missing; sets *status to EFORMAT for anything else. */
static const cJSON *array_of(const struct orc_place *place, const cJSON *object, const char *key,
                             enum orc_status *status)
{
    const cJSON *array = orc_json_get(object, key);
    if (array != NULL && !cJSON_IsArray(array)) {
        *status = orc_bad(place, "\"%s\" is not an array", key);
        return NULL;
    }
    return array;
}

static enum orc_status read_records(struct orc_trace *t, struct orc_step *step, const cJSON *json,
                                    const struct orc_place *place)
{
    enum orc_status status = ORC_OK;
    const cJSON *array = array_of(place, json, "records", &status);
    if (array == NULL) {
        return status;
    }
    struct orc_record *records =
        orc_arena_take(&t->arena, (size_t)cJSON_GetArraySize(array), sizeof *records);
    if (records == NULL) {
        return orc_fail(ORC_EMEMORY, place->error, "host memory exhausted");
    }
    size_t n = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array)
    {
        struct orc_record *r = &records[n];
        struct orc_number epoch = {false, 0.0}, count = {false, 0.0};
        status = orc_json_text(place, item, "id", &t->arena, &r->id);
        if (status == ORC_OK && r->id == NULL) {
            status = orc_bad(place, "record %zu has no \"id\"", n);
        }
        if (status == ORC_OK) {
            status = orc_json_number(place, item, "epoch", &epoch);
        }
        if (status == ORC_OK) {
            status = orc_json_number(place, item, "count", &count);
        }
        if (status == ORC_OK) {
            status = orc_json_hash(place, item, "text", &r->text_given, &r->text);
        }
        if (status == ORC_OK) {
            status = orc_json_hash(place, item, "tokens", &r->tokens_given, &r->tokens);
        }
        if (status != ORC_OK) {
            return status;
        }
        r->epoch = fabs(epoch.value) < 9e15 ? (int64_t)epoch.value : -1;
        r->count = fabs(count.value) < 9e15 ? (int64_t)count.value : -1;
        r->count_given = count.given;
        n++;
    }
    step->records = records;
    step->record_count = n;
    step->records_given = true;
    return ORC_OK;
}

static enum orc_status read_batches(struct orc_trace *t, struct orc_step *step, const cJSON *json,
                                    const struct orc_place *place)
{
    for (int b = 0; b < ORC_BATCH_COUNT; b++) {
        enum orc_status status = ORC_OK;
        const char *const key = orc_batch_name((enum orc_batch)b);
        const cJSON *array = array_of(place, json, key, &status);
        if (array == NULL) {
            if (status != ORC_OK) {
                return status;
            }
            continue;
        }
        uint64_t *hashes =
            orc_arena_take(&t->arena, (size_t)cJSON_GetArraySize(array), sizeof *hashes);
        size_t n = 0;
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, array)
        {
            uint64_t hash = 0;
            if (!orc_json_as_hash(item, &hash)) {
                return orc_bad(place, "\"%s\" holds something that is not a hash", key);
            }
            if (hashes != NULL) {
                hashes[n++] = hash;
            }
        }
        step->batch[b] = (struct orc_hash_list){true, n, hashes};
    }
    return ORC_OK;
}

/* layers.12.out -> layers.*.out */
static const char *class_of(struct orc_trace *t, const char *name)
{
    char *out = orc_arena_text(&t->arena, name);
    if (out == NULL) {
        return NULL;
    }
    char *to = out;
    const char *from = name;
    while (*from != '\0') {
        const size_t part = strcspn(from, ".");
        if (part > 0 && strspn(from, "0123456789") == part) {
            *to++ = '*';
        } else {
            memmove(to, from, part);
            to += part;
        }
        from += part;
        if (*from == '.') {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return out;
}

/* Names repeat from step to step in one order: the sketch at the same place of the step before has
 * the same name, and shares its strings. */
static bool name_sketch(struct orc_trace *t, struct orc_sketch *sketch, const char *name,
                        const struct orc_sketches *before, size_t index)
{
    if (before != NULL && index < before->count && strcmp(before->items[index].name, name) == 0) {
        sketch->name = before->items[index].name;
        sketch->class_name = before->items[index].class_name;
        return true;
    }
    sketch->name = orc_arena_text(&t->arena, name);
    sketch->class_name = class_of(t, name);
    return sketch->name != NULL && sketch->class_name != NULL;
}

static enum orc_status read_sketch_numbers(struct orc_sketch *sketch, const cJSON *array,
                                           const struct orc_place *place)
{
    size_t n = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array)
    {
        if (n == ORC_SKETCH_NUMBERS || !orc_json_as_number(item, &sketch->numbers[n])) {
            break;
        }
        n++;
    }
    if (item != NULL || n != ORC_SKETCH_NUMBERS) {
        return orc_bad(place, "sketch of \"%.100s\" is not %d numbers", sketch->name,
                       ORC_SKETCH_NUMBERS);
    }
    return ORC_OK;
}

static enum orc_status read_group(struct orc_trace *t, struct orc_step *step, enum orc_group group,
                                  const cJSON *sketches, const struct orc_place *place)
{
    const cJSON *object = orc_json_get(sketches, orc_group_name(group));
    if (object == NULL) {
        return ORC_OK;
    }
    if (!cJSON_IsObject(object)) {
        return orc_bad(place, "sketch \"%s\" is not an object", orc_group_name(group));
    }
    const struct orc_sketches *before =
        t->step_count > 0 ? &t->steps[t->step_count - 1].group[group] : NULL;
    struct orc_sketch *items =
        orc_arena_take(&t->arena, (size_t)cJSON_GetArraySize(object), sizeof *items);
    size_t n = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, object)
    {
        if (cJSON_IsNull(item)) {
            continue;
        }
        if (items == NULL || !name_sketch(t, &items[n], item->string, before, n)) {
            return orc_fail(ORC_EMEMORY, place->error, "host memory exhausted");
        }
        if (!cJSON_IsArray(item)) {
            return orc_bad(place, "sketch of \"%.100s\" is not an array", item->string);
        }
        const enum orc_status status = read_sketch_numbers(&items[n], item, place);
        if (status != ORC_OK) {
            return status;
        }
        n++;
    }
    step->group[group] = (struct orc_sketches){true, n, items};
    return ORC_OK;
}

static enum orc_status read_sketches(struct orc_trace *t, struct orc_step *step, const cJSON *json,
                                     const struct orc_place *place)
{
    const cJSON *sketches = orc_json_get(json, "sketch");
    enum orc_status status = ORC_OK;
    if (sketches != NULL && !cJSON_IsObject(sketches)) {
        return orc_bad(place, "\"sketch\" is not an object");
    }
    for (int g = 0; sketches != NULL && status == ORC_OK && g < ORC_GROUP_COUNT; g++) {
        status = read_group(t, step, (enum orc_group)g, sketches, place);
    }
    return status;
}

static enum orc_status read_ledger(struct orc_step *step, const cJSON *json,
                                   const struct orc_place *place)
{
    static const char *const keys[] = {
#define ORC_ROW_(name) #name,
        ORC_LEDGER(ORC_ROW_)
#undef ORC_ROW_
    };
    const cJSON *ledger = orc_json_get(json, "ledger");
    if (ledger == NULL) {
        return ORC_OK;
    }
    for (int k = 0; k < ORC_LEDGER_COUNT; k++) {
        struct orc_number number = {false, 0.0};
        const enum orc_status status = orc_json_number(place, ledger, keys[k], &number);
        if (status != ORC_OK) {
            return status;
        }
        if (!number.given) {
            return orc_bad(place, "ledger without \"%s\"", keys[k]);
        }
        step->ledger[k] = number.value;
    }
    step->ledger_given = true;
    return ORC_OK;
}

static enum orc_status read_host(struct orc_trace *t, struct orc_step *step, const cJSON *json,
                                 const struct orc_place *place)
{
    const cJSON *object = orc_json_get(json, "host");
    if (object == NULL) {
        return ORC_OK;
    }
    if (!cJSON_IsObject(object)) {
        return orc_bad(place, "\"host\" is not an object");
    }
    struct orc_host *host =
        orc_arena_take(&t->arena, (size_t)cJSON_GetArraySize(object), sizeof *host);
    size_t n = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, object)
    {
        if (host == NULL || (host[n].component = orc_arena_text(&t->arena, item->string)) == NULL) {
            return orc_fail(ORC_EMEMORY, place->error, "host memory exhausted");
        }
        if (!orc_json_as_number(item, &host[n].bytes)) {
            return orc_bad(place, "\"host\": \"%s\" is not a number", item->string);
        }
        n++;
    }
    step->host = host;
    step->host_count = n;
    return ORC_OK;
}

static enum orc_event_kind event_kind(const char *kind)
{
    static const char *const kinds[] = {"checkpoint", "skip", "oom", "retry"};
    for (int k = 0; k < ORC_EVENT_other; k++) {
        if (strcmp(kind, kinds[k]) == 0) {
            return (enum orc_event_kind)k;
        }
    }
    return ORC_EVENT_other;
}

static const char *first_text(struct orc_trace *t, const cJSON *object)
{
    static const char *const keys[] = {"reason", "name", "what"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        const cJSON *value = orc_json_get(object, keys[k]);
        if (cJSON_IsString(value)) {
            return orc_arena_text(&t->arena, value->valuestring);
        }
    }
    return "";
}

static enum orc_status read_events(struct orc_trace *t, struct orc_step *step, const cJSON *json,
                                   const struct orc_place *place)
{
    enum orc_status status = ORC_OK;
    const cJSON *array = array_of(place, json, "events", &status);
    if (array == NULL) {
        return status;
    }
    struct orc_event *events =
        orc_arena_take(&t->arena, (size_t)cJSON_GetArraySize(array), sizeof *events);
    size_t n = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array)
    {
        const cJSON *kind = orc_json_get(item, "kind");
        if (!cJSON_IsString(kind)) {
            return orc_bad(place, "event without a \"kind\"");
        }
        if (events == NULL) {
            return orc_fail(ORC_EMEMORY, place->error, "host memory exhausted");
        }
        struct orc_event *event = &events[n++];
        event->kind = event_kind(kind->valuestring);
        event->spurious = cJSON_IsTrue(orc_json_get(item, "spurious"));
        event->what = first_text(t, item);
        if (event->kind == ORC_EVENT_checkpoint) {
            status = orc_json_hash(place, item, "hash", &event->hash_given, &event->hash);
            if (status != ORC_OK) {
                return status;
            }
        }
    }
    step->events = events;
    step->event_count = n;
    step->events_given = true;
    return ORC_OK;
}

static enum orc_status read_races(struct orc_trace *t, struct orc_step *step, const cJSON *json,
                                  const struct orc_place *place)
{
    enum orc_status status = ORC_OK;
    const cJSON *array = array_of(place, json, "races", &status);
    if (array == NULL) {
        return status;
    }
    struct orc_race *races =
        orc_arena_take(&t->arena, (size_t)cJSON_GetArraySize(array), sizeof *races);
    size_t n = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array)
    {
        if (races == NULL) {
            return orc_fail(ORC_EMEMORY, place->error, "host memory exhausted");
        }
        struct orc_race *race = &races[n++];
        const struct {
            const char *key;
            const char **out;
        } texts[] = {
            {"first", &race->first},
            {"second", &race->second},
            {"buffer", &race->buffer},
            {"first_stream", &race->first_stream},
            {"second_stream", &race->second_stream},
            {"first_mode", &race->first_mode},
            {"second_mode", &race->second_mode},
        };
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
            *texts[k].out = "?";
            status = orc_json_text(place, item, texts[k].key, &t->arena, texts[k].out);
            if (status != ORC_OK) {
                return status;
            }
        }
    }
    step->races = races;
    step->race_list_count = n;
    step->races_given = true;
    return ORC_OK;
}

/* stats.supervised_trained and the labels in contents. */
static enum orc_status read_counts(struct orc_step *step, const cJSON *json,
                                   const struct orc_place *place)
{
    enum { IGNORED = -100 };
    const enum orc_status status =
        orc_json_number(place, orc_json_get(json, "stats"), "supervised_trained", &step->trained);
    const cJSON *labels = orc_json_get(orc_json_get(json, "contents"), "labels");
    if (status != ORC_OK || labels == NULL) {
        return status;
    }
    const cJSON *micro = NULL, *label = NULL;
    cJSON_ArrayForEach(micro, labels)
    {
        cJSON_ArrayForEach(label, micro)
        {
            step->label_count.value += cJSON_IsNumber(label) && label->valueint != IGNORED;
        }
    }
    step->label_count.given = true;
    return ORC_OK;
}

static enum orc_status read_scalars(struct orc_step *step, const cJSON *json,
                                    const struct orc_place *place)
{
    enum orc_status status = ORC_OK;
    for (int s = 0; status == ORC_OK && s < ORC_SCALAR_COUNT; s++) {
        status =
            orc_json_number(place, json, orc_scalar_name((enum orc_scalar)s), &step->scalar[s]);
    }
    const cJSON *hashes = orc_json_get(json, "hash");
    for (int h = 0; hashes != NULL && status == ORC_OK && h < ORC_HASH_COUNT; h++) {
        status = orc_json_hash(place, hashes, orc_hash_name((enum orc_hash)h), &step->hash_given[h],
                               &step->hash[h]);
    }
    return status;
}

/* Raises *digits to what it takes to print the value so that it reads back the same. */
static void raise_digits(const struct orc_number *number, int *digits)
{
    while (number->given && isfinite(number->value) && *digits < ORC_DIGITS_MAX) {
        char text[40];
        (void)snprintf(text, sizeof text, "%.*g", *digits, number->value);
        if (strtod(text, NULL) == number->value) {
            return;
        }
        (*digits)++;
    }
}

static struct orc_step *append_step(struct orc_trace *t)
{
    if (t->step_count == t->step_capacity) {
        const size_t capacity = t->step_capacity == 0 ? 32 : t->step_capacity * 2;
        struct orc_step *steps = realloc(t->steps, capacity * sizeof *steps);
        if (steps == NULL) {
            return NULL;
        }
        t->steps = steps;
        t->step_capacity = capacity;
    }
    struct orc_step *step = &t->steps[t->step_count];
    memset(step, 0, sizeof *step);
    return step;
}

static enum orc_status read_happenings(struct orc_trace *t, struct orc_step *step,
                                       const cJSON *json, const struct orc_place *place)
{
    enum orc_status status = read_ledger(step, json, place);
    if (status == ORC_OK) {
        status = read_host(t, step, json, place);
    }
    if (status == ORC_OK) {
        status = read_events(t, step, json, place);
    }
    if (status == ORC_OK) {
        status = read_races(t, step, json, place);
    }
    return status;
}

enum orc_status orc_step_read_unfinished(struct orc_trace *t, const cJSON *json,
                                         const struct orc_place *place)
{
    memset(&t->unfinished, 0, sizeof t->unfinished);
    enum orc_status status = orc_json_int(place, json, "step", &t->unfinished.number);
    if (status == ORC_OK && t->unfinished.number < 1) {
        status = orc_bad(place, "\"unfinished\" without a positive \"step\"");
    }
    if (status == ORC_OK) {
        status = read_happenings(t, &t->unfinished, json, place);
    }
    t->stopped_inside = status == ORC_OK;
    return status;
}

static enum orc_status read_skip_reasons(struct orc_trace *t, struct orc_step *step,
                                         const cJSON *json, const struct orc_place *place)
{
    size_t count = 0;
    const enum orc_status status =
        orc_json_texts(place, json, "skip_reasons", &t->arena, &step->skip_reasons_given,
                       &step->skip_reasons, &count);
    return status == ORC_OK && step->skip_reasons_given && count != step->skipped_count
               ? orc_bad(place, "\"skip_reasons\" are not as many as \"skipped\"")
               : status;
}

enum { STEP_MAX = 10000000 }; /* checks go from step to step: a far one must not take hours */

enum orc_status orc_step_read(struct orc_trace *t, const cJSON *json, const struct orc_place *place)
{
    struct orc_step *step = append_step(t);
    if (step == NULL) {
        return orc_fail(ORC_EMEMORY, place->error, "%s: host memory exhausted", place->path);
    }
    enum orc_status status = orc_json_int(place, json, "step", &step->number);
    if (status == ORC_OK && (step->number < 1 || step->number > STEP_MAX)) {
        status = orc_bad(place, "\"step\" is missing or not in [1, %d]", STEP_MAX);
    }
    if (status == ORC_OK) {
        status = read_scalars(step, json, place);
    }
    if (status == ORC_OK) {
        status = read_records(t, step, json, place);
    }
    if (status == ORC_OK) {
        status = orc_json_texts(place, json, "skipped", &t->arena, &step->skipped_given,
                                &step->skipped, &step->skipped_count);
    }
    if (status == ORC_OK) {
        status = read_skip_reasons(t, step, json, place);
    }
    if (status == ORC_OK) {
        status = read_batches(t, step, json, place);
    }
    if (status == ORC_OK) {
        status = read_sketches(t, step, json, place);
    }
    if (status == ORC_OK) {
        status = read_happenings(t, step, json, place);
    }
    if (status == ORC_OK) {
        status = read_counts(step, json, place);
    }
    if (status == ORC_OK) {
        raise_digits(&step->scalar[ORC_SCALAR_lr], &t->lr_digits);
        raise_digits(&step->scalar[ORC_SCALAR_clip], &t->clip_digits);
        t->step_count++;
    }
    return status;
}
