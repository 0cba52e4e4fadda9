/* Small readers over cJSON values, see the header.
 * Used by the trace reader and the bounds; must not know what the values mean. */
#include "orc_json.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum orc_status orc_bad(const struct orc_place *place, const char *format, ...)
{
    char message[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (place->line > 0) {
        return orc_fail(ORC_EFORMAT, place->error, "%s:%d: %s", place->path, place->line, message);
    }
    return orc_fail(ORC_EFORMAT, place->error, "%s: %s", place->path, message);
}

const cJSON *orc_json_get(const cJSON *object, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNull(value) ? NULL : value;
}

bool orc_json_as_number(const cJSON *value, double *out)
{
    if (cJSON_IsNumber(value)) {
        *out = value->valuedouble;
        return true;
    }
    if (!cJSON_IsString(value)) {
        return false;
    }
    if (strcmp(value->valuestring, "nan") == 0) {
        *out = (double)NAN;
    } else if (strcmp(value->valuestring, "inf") == 0) {
        *out = (double)INFINITY;
    } else if (strcmp(value->valuestring, "-inf") == 0) {
        *out = -(double)INFINITY;
    } else {
        return false;
    }
    return true;
}

bool orc_json_as_hash(const cJSON *value, uint64_t *out)
{
    if (!cJSON_IsString(value) || strlen(value->valuestring) != 16) {
        return false;
    }
    uint64_t hash = 0;
    for (const char *c = value->valuestring; *c != '\0'; c++) {
        unsigned digit = 0;
        if (*c >= '0' && *c <= '9') {
            digit = (unsigned)(*c - '0');
        } else if (*c >= 'a' && *c <= 'f') {
            digit = (unsigned)(*c - 'a') + 10;
        } else {
            return false;
        }
        hash = hash << 4 | digit;
    }
    *out = hash;
    return true;
}

enum orc_status orc_json_number(const struct orc_place *place, const cJSON *object, const char *key,
                                struct orc_number *out)
{
    const cJSON *value = orc_json_get(object, key);
    if (value == NULL) {
        return ORC_OK;
    }
    if (!orc_json_as_number(value, &out->value)) {
        return orc_bad(place, "\"%s\" is not a number", key);
    }
    out->given = true;
    return ORC_OK;
}

enum orc_status orc_json_int(const struct orc_place *place, const cJSON *object, const char *key,
                             int *out)
{
    struct orc_number number = {false, 0.0};
    const enum orc_status status = orc_json_number(place, object, key, &number);
    if (status != ORC_OK || !number.given) {
        return status;
    }
    if (!(number.value >= INT_MIN && number.value <= INT_MAX) ||
        number.value != floor(number.value)) {
        return orc_bad(place, "\"%s\" is not a small integer", key);
    }
    *out = (int)number.value;
    return ORC_OK;
}

enum orc_status orc_json_text(const struct orc_place *place, const cJSON *object, const char *key,
                              struct orc_arena *arena, const char **out)
{
    const cJSON *value = orc_json_get(object, key);
    if (value == NULL) {
        return ORC_OK;
    }
    if (!cJSON_IsString(value)) {
        return orc_bad(place, "\"%s\" is not a string", key);
    }
    *out = orc_arena_text(arena, value->valuestring);
    return *out != NULL ? ORC_OK : orc_fail(ORC_EMEMORY, place->error, "host memory exhausted");
}

enum orc_status orc_json_hash(const struct orc_place *place, const cJSON *object, const char *key,
                              bool *given, uint64_t *out)
{
    const cJSON *value = orc_json_get(object, key);
    if (value == NULL) {
        return ORC_OK;
    }
    if (!orc_json_as_hash(value, out)) {
        return orc_bad(place, "\"%s\" is not a hash of 16 hexadecimal digits", key);
    }
    *given = true;
    return ORC_OK;
}
