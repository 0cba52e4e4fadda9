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
void har_yaml_free(const cyaml_schema_value_t *schema, void *data);

/* `base`'s folder joined with a relative `path`, or a copy of an absolute one; caller frees. */
char *har_yaml_resolve(const char *base, const char *path);
