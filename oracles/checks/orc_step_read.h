/* One step line of a trace. Internal to the reader. */
#pragma once

#include "orc_json.h"

/* oracles/TRACE.md: at least this many significant digits are printed. */
enum { ORC_DIGITS_MIN = 9, ORC_DIGITS_MAX = 17 };

/* Appends the step on this line to the trace. */
ORC_CHECKED enum orc_status orc_step_read(struct orc_trace *trace, const cJSON *json,
                                          const struct orc_place *place);
/* Reads what the end record tells of a step that did not finish: number, ledger, races, events. */
ORC_CHECKED enum orc_status orc_step_read_unfinished(struct orc_trace *trace, const cJSON *json,
                                                     const struct orc_place *place);
/* Sorts the steps, joins repeated ones, indexes the records. false when memory is exhausted. */
bool orc_steps_index(struct orc_trace *trace);

/* An array of strings; given may be NULL. */
ORC_CHECKED enum orc_status orc_json_texts(const struct orc_place *place, const cJSON *object,
                                           const char *key, struct orc_arena *arena, bool *given,
                                           const char *const **out, size_t *count);
