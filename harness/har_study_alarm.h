/* The alarms on the loss compared on the stored runs: e-process, CUSUM, the fixed 0.2 % band.
 * Made for the reports from stored losses; must not know formats. */
#pragma once

#include "har_results.h"

#define HAR_ALARM_METHODS(X)                                                                       \
    X(e_process, "e-process, may be read at any step")                                             \
    X(cusum, "CUSUM, limit from the calibration runs of this length")                              \
    X(band, "fixed band of 0.2 %")
enum har_alarm_method {
#define HAR_ROW_(name, text) HAR_ALARM_##name,
    HAR_ALARM_METHODS(HAR_ROW_)
#undef HAR_ROW_
        HAR_ALARM_METHOD_COUNT
};
const char *har_alarm_method_name(enum har_alarm_method method);
const char *har_alarm_method_text(enum har_alarm_method method);

struct har_alarm_count {
    size_t false_alarms; /* of the healthy runs */
    struct har_interval false_interval;
    size_t detected; /* of the faulty runs */
    struct har_interval interval;
    double median_steps; /* from reaching the site, of the runs it detected; NaN = none */
};
struct har_study_alarms {
    double alpha;
    size_t healthy;     /* false-alarm runs judged */
    size_t faulty;      /* runs of counted entries with stored losses */
    size_t calibration; /* fewest runs behind a null */
    struct har_alarm_count methods[HAR_ALARM_METHOD_COUNT];
};
/* False only when memory is exhausted. All counts are 0 where no losses are stored. */
bool har_study_alarms_make(const struct har_results *results, struct har_study_alarms *out);
