/* The study of a campaign as JSON, for results.json and the page.
 * Called by the report writers; must not know how results come about. */
#pragma once

#include <jansson.h>

#include "har_study.h"

/* New references. */
json_t *har_report_study_json(const struct har_results *results, const struct har_study *study);
/* Number, or null where it is not finite. */
json_t *har_report_number(double value);
/* Text, or null when it is empty or NULL. */
json_t *har_report_text_or_null(const char *text);

/* A whole document, indented, with a final newline. Takes root; NULL, or no memory, marks out as
 * failed. */
void har_report_put_json(struct har_text *out, json_t *root);
