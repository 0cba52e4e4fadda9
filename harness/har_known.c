/* Reads the file of known misses.
 * Called by cmd_gate.c; must not know results or limits. */
#include "har_known.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "har_yaml.h"

struct raw_miss {
    char *fault, *reason, *expires;
};
struct raw_known {
    struct raw_miss *known;
    unsigned known_count;
};

#define TEXT_FIELD(key)                                                                            \
    CYAML_FIELD_STRING_PTR(#key, CYAML_FLAG_POINTER, struct raw_miss, key, 1, CYAML_UNLIMITED)

static const cyaml_schema_field_t miss_fields[] = {TEXT_FIELD(fault), TEXT_FIELD(reason),
                                                   TEXT_FIELD(expires), CYAML_FIELD_END};
static const cyaml_schema_value_t miss_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_miss, miss_fields)};
static const cyaml_schema_field_t known_fields[] = {
    CYAML_FIELD_SEQUENCE("known", CYAML_FLAG_POINTER, struct raw_known, known, &miss_value, 0,
                         CYAML_UNLIMITED),
    CYAML_FIELD_END};
static const cyaml_schema_value_t known_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_known, known_fields)};

bool har_known_day(const char *text, int *day)
{
    enum { LENGTH = 10, SECONDS_A_DAY = 86400 };
    for (int i = 0; i < LENGTH; i++) {
        const bool dash = i == 4 || i == 7;
        if (dash ? text[i] != '-' : !isdigit((unsigned char)text[i])) {
            return false;
        }
    }
    struct tm date = {.tm_year = atoi(text) - 1900,
                      .tm_mon = atoi(text + 5) - 1,
                      .tm_mday = atoi(text + 8),
                      .tm_hour = 12};
    const struct tm asked = date;
    const time_t clock = timegm(&date); /* turns 31 June into 1 July: then it was no date */
    *day = (int)(clock / SECONDS_A_DAY);
    return text[LENGTH] == '\0' && clock >= 0 && date.tm_mon == asked.tm_mon &&
           date.tm_mday == asked.tm_mday;
}

static enum har_status take(const char *path, const struct raw_miss *from,
                            struct har_known_miss *to, struct har_error *error)
{
    if (from->reason[strspn(from->reason, " \t")] == '\0') {
        return har_fail(error, HAR_EUSAGE, "%s: %s: the reason is empty", path, from->fault);
    }
    if (!har_known_day(from->expires, &to->day)) {
        return har_fail(error, HAR_EUSAGE, "%s: %s: expires: '%s' is no date YYYY-MM-DD", path,
                        from->fault, from->expires);
    }
    to->fault = strdup(from->fault);
    to->reason = strdup(from->reason);
    to->expires = strdup(from->expires);
    return to->fault != NULL && to->reason != NULL && to->expires != NULL
               ? HAR_OK
               : har_fail(error, HAR_EMEMORY, "%s: no memory", path);
}

enum har_status har_known_load(const char *path, struct har_known *out, struct har_error *error)
{
    struct raw_known *raw = NULL;
    memset(out, 0, sizeof *out);
    enum har_status status = har_yaml_load(path, &known_schema, false, (void **)&raw, error);
    if (status == HAR_OK) {
        out->items = calloc(raw->known_count + 1, sizeof *out->items);
        status = out->items != NULL ? HAR_OK : har_fail(error, HAR_EMEMORY, "%s: no memory", path);
    }
    for (unsigned i = 0; status == HAR_OK && i < raw->known_count; i++) {
        out->count = i + 1;
        status = take(path, &raw->known[i], &out->items[i], error);
    }
    if (status != HAR_OK) {
        har_known_fini(out);
    }
    har_yaml_free(&known_schema, raw);
    return status;
}

void har_known_fini(struct har_known *known)
{
    for (size_t i = 0; i < known->count; i++) {
        free(known->items[i].fault);
        free(known->items[i].reason);
        free(known->items[i].expires);
    }
    free(known->items);
    memset(known, 0, sizeof *known);
}
