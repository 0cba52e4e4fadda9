/* Small readers over cJSON values, with one way to say what was wrong.
 * Used by the trace reader and the bounds; must not know what the values mean. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "orc_trace.h"

/* Where the value under reading stands; becomes "path:line: message". line 0 = not a line. */
struct orc_place {
    const char *path;
    int line;
    struct orc_error *error;
};
__attribute__((format(printf, 2, 3))) enum orc_status orc_bad(const struct orc_place *place,
                                                              const char *format, ...);

/* A member that is there and not null, else NULL. */
const cJSON *orc_json_get(const cJSON *object, const char *key);

/* Each leaves *out as it is when the member is missing or null, and says EFORMAT for a wrong type.
 */
ORC_CHECKED enum orc_status orc_json_number(const struct orc_place *place, const cJSON *object,
                                            const char *key, struct orc_number *out);
ORC_CHECKED enum orc_status orc_json_int(const struct orc_place *place, const cJSON *object,
                                         const char *key, int *out);
ORC_CHECKED enum orc_status orc_json_text(const struct orc_place *place, const cJSON *object,
                                          const char *key, struct orc_arena *arena,
                                          const char **out);
ORC_CHECKED enum orc_status orc_json_hash(const struct orc_place *place, const cJSON *object,
                                          const char *key, bool *given, uint64_t *out);
/* The value itself instead of a member. */
bool orc_json_as_number(const cJSON *value, double *out);
bool orc_json_as_hash(const cJSON *value, uint64_t *out);
