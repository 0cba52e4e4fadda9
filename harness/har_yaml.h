/* Loads YAML through libcyaml and turns its messages into one sentence with file, line and key.
 * Called by har_campaign.c and har_recipe.c; must not know their keys. */
#pragma once

#include <cyaml/cyaml.h>
#include <stdbool.h>

#include "har_status.h"

/* Loads `path` by `schema` into *out (freed with har_yaml_free). Unknown keys are errors unless
 * ignore_unknown. HAR_EUSAGE: "FILE:LINE: cause". */
HAR_CHECKED enum har_status har_yaml_load(const char *path, const cyaml_schema_value_t *schema,
                                          bool ignore_unknown, void **out, struct har_error *error);
/* Calls for every scalar of a file, keys and values alike, in order; stops at the first error. */
typedef enum har_status har_yaml_visit(void *context, const char *value, struct har_error *error);
HAR_CHECKED enum har_status har_yaml_each_value(const char *path, har_yaml_visit *visit,
                                                void *context, struct har_error *error);
void har_yaml_free(const cyaml_schema_value_t *schema, void *data);

/* `base`'s folder joined with a relative `path`, or a copy of an absolute one; caller frees. */
char *har_yaml_resolve(const char *base, const char *path);
