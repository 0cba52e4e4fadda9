/* Losses by step to JSON and back.
 * Called when a case is judged, and by the reports; must not know outcomes. */
#include "har_curve.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *line_json(const orc_trace *trace, int first, int last)
{
    json_t *const list = json_array();
    for (int step = first; trace != NULL && step <= last && step <= orc_trace_last_step(trace);
         step++) {
        const double loss = orc_trace_loss(trace, step);
        json_array_append_new(list, isfinite(loss) ? json_real(loss) : json_null());
    }
    return list;
}

char *har_curve_json(const orc_trace *subject, const orc_trace *healthy, const orc_trace *reference)
{
    const orc_trace *const any = healthy != NULL ? healthy : reference;
    const orc_trace *const base = any != NULL ? any : subject;
    if (base == NULL || orc_trace_last_step(base) < 1) {
        return NULL;
    }
    const int first = orc_trace_first_step(base);
    int last = orc_trace_last_step(base);
    last = last - first >= HAR_CURVE_STEPS_MAX ? first + HAR_CURVE_STEPS_MAX - 1 : last;
    json_t *const root = json_object();
    json_object_set_new(root, "first", json_integer(first));
#define HAR_ROW_(name) json_object_set_new(root, #name, line_json(name, first, last));
    HAR_CURVE_LINES(HAR_ROW_)
#undef HAR_ROW_
    /* Enough digits that a difference of a millionth of the band is still seen. */
    char *const text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(root);
    return text;
}

static double *parse_line(const json_t *root, const char *name, size_t count)
{
    const json_t *const list = json_object_get(root, name);
    double *const values = calloc(count + 1, sizeof *values);
    for (size_t i = 0; values != NULL && i < count; i++) {
        const json_t *const value = json_array_get(list, i);
        values[i] = json_is_number(value) ? json_number_value(value) : (double)NAN;
    }
    return values;
}

bool har_curve_parse(const char *json, struct har_curve *out)
{
    json_t *const root = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    memset(out, 0, sizeof *out);
    if (!json_is_integer(json_object_get(root, "first"))) {
        json_decref(root);
        return false;
    }
    out->first = (int)json_integer_value(json_object_get(root, "first"));
    bool whole = true;
#define HAR_ROW_(name)                                                                             \
    const size_t name##_count = json_array_size(json_object_get(root, #name));                     \
    out->count = name##_count > out->count ? name##_count : out->count;
    HAR_CURVE_LINES(HAR_ROW_)
#undef HAR_ROW_
    out->count = out->count > HAR_CURVE_STEPS_MAX ? HAR_CURVE_STEPS_MAX : out->count;
#define HAR_ROW_(name)                                                                             \
    out->name = parse_line(root, #name, out->count);                                               \
    whole = whole && out->name != NULL;
    HAR_CURVE_LINES(HAR_ROW_)
#undef HAR_ROW_
    out->subject_count = subject_count < out->count ? subject_count : out->count;
    json_decref(root);
    if (!whole) {
        har_curve_fini(out);
    }
    return whole;
}

void har_curve_fini(struct har_curve *curve)
{
#define HAR_ROW_(name) free(curve->name);
    HAR_CURVE_LINES(HAR_ROW_)
#undef HAR_ROW_
    memset(curve, 0, sizeof *curve);
}
