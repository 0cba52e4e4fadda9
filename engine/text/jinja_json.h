/* JSON values as values of templates.
 * Used by tests and benchmarks; must not know templates. */
#pragma once

#include <jansson.h>

#include "jinja_value.h"

/* `flags` (JS_CONTENT or 0) go to every text, keys too. Nesting is limited by the JSON reader. */
struct jv eng_jinja_from_json(struct jmem *m, const json_t *json, uint8_t flags);
