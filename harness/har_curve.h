/* Training losses of one case by step, as text for the database and back.
 * Written when a case is judged, read by the reports; must not know outcomes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "orc_check.h"

/* More steps than this are cut: the file would grow without bound, and a plot shows no more. */
enum { HAR_CURVE_STEPS_MAX = 4096 };

/* JSON object {"first": step, "subject": [...], "healthy": [...], "reference": [...]}; a step
 * without a loss, or one that is not finite, is null; a trace that is NULL gives an empty list.
 * Caller frees; NULL when there is no step at all or no memory. */
char *har_curve_json(const orc_trace *subject, const orc_trace *healthy,
                     const orc_trace *reference);

#define HAR_CURVE_LINES(X) X(subject) X(healthy) X(reference)
/* Parsed: each line has `count` values from step `first` on, NaN where there is none. The subject
 * went through subject_count of these steps. */
struct har_curve {
    int first;
    size_t count, subject_count;
#define HAR_ROW_(name) double *name;
    HAR_CURVE_LINES(HAR_ROW_)
#undef HAR_ROW_
};
/* False when the text is no such object or memory is exhausted. Release by har_curve_fini. */
bool har_curve_parse(const char *json, struct har_curve *out);
void har_curve_fini(struct har_curve *curve);
