/* Options for an oracle of the user, and its answer.
 * Called by har_case.c; must not know how it is run. */
#include "har_external.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_text.h"

void har_external_add(struct har_args *args, const char *role, const char *trace)
{
    if (trace != NULL) {
        har_args_addf(args, "--%s", role);
        har_args_add(args, trace);
    }
}

bool har_external_spoke(const struct har_exit *end)
{
    return end->signal == 0 && end->end != HAR_END_timed_out &&
           (end->code == HAR_EXTERNAL_QUIET || end->code == HAR_EXTERNAL_ALARM);
}

/* The last line that opens with '{'; caller frees, NULL = none. */
static char *last_object(const char *path)
{
    char *line = NULL;
    char *found = NULL;
    size_t size = 0;
    FILE *const file = fopen(path, "rbe");
    while (file != NULL && getline(&line, &size, file) > 0) {
        if (line[0] == '{') {
            free(found);
            found = line;
            line = NULL;
            size = 0;
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* A whole number in [least, most], `otherwise` when the key is absent, -1 when it is another. */
static json_int_t number_of(const json_t *answer, const char *key, json_int_t least,
                            json_int_t most, json_int_t otherwise)
{
    const json_t *const value = json_object_get(answer, key);
    const json_int_t number = json_integer_value(value);
    return value == NULL                                                 ? otherwise
           : json_is_integer(value) && number >= least && number <= most ? number
                                                                         : -1;
}

static void refuse(struct orc_verdict *verdict, const char *why)
{
    memset(verdict, 0, sizeof *verdict);
    snprintf(verdict->detail, sizeof verdict->detail, "%s", why);
}

static void take(const json_t *answer, bool alarm, int last_step, struct orc_verdict *verdict)
{
    const json_int_t compared = number_of(answer, "compared", 0, INT32_MAX, 1);
    const json_int_t step = number_of(answer, "step", 1, last_step, -1);
    const char *const message = json_string_value(json_object_get(answer, "message"));
    if (compared < 0) {
        refuse(verdict, "\"compared\" is no count");
    } else if (compared == 0) {
        refuse(verdict, "it compared nothing");
    } else if (alarm && step < 0) {
        refuse(verdict, "an alarm without a \"step\" that the run has");
    } else if (alarm && message == NULL) {
        refuse(verdict, "an alarm without a \"message\"");
    } else {
        verdict->applicable = true;
        verdict->fired = alarm;
        verdict->step = alarm ? (int)step : 0;
        verdict->compared = (size_t)compared;
        snprintf(verdict->detail, sizeof verdict->detail, "%s", alarm ? message : "");
        har_text_clean(verdict->detail);
    }
}

enum har_status har_external_read(const struct har_exit *end, const char *path, int last_step,
                                  struct orc_verdict *verdict, struct har_error *error)
{
    memset(verdict, 0, sizeof *verdict);
    if (!har_external_spoke(end)) {
        char why[128];
        snprintf(why, sizeof why, "it ended with %s %d, neither 0 nor 2",
                 end->signal != 0 ? "signal" : "code", end->signal != 0 ? end->signal : end->code);
        refuse(verdict, end->end == HAR_END_timed_out ? "it ran past its time" : why);
        return HAR_OK;
    }
    const bool alarm = end->code == HAR_EXTERNAL_ALARM;
    char *const line = last_object(path);
    json_error_t cause;
    json_t *const answer = line != NULL ? json_loads(line, JSON_REJECT_DUPLICATES, &cause)
                           : alarm      ? NULL
                                        : json_object();
    if (answer == NULL && line == NULL && !alarm) {
        return har_fail(error, HAR_EMEMORY, "no memory for an answer");
    }
    if (answer == NULL) {
        refuse(verdict, line == NULL ? "an alarm without a line of JSON"
                                     : "its last line with '{' is no JSON");
    } else {
        take(answer, alarm, last_step, verdict);
    }
    json_decref(answer);
    free(line);
    return HAR_OK;
}
