/* faultline diff: the first divergence between two traces. */
#include <jansson.h>
#include <stdio.h>

#include "har_cmd.h"
#include "orc_check.h"

static enum har_status status_of(enum orc_status status)
{
    switch (status) {
    case ORC_OK:
        return HAR_OK;
    case ORC_EMEMORY:
        return HAR_EMEMORY;
    default:
        return HAR_EUSAGE;
    }
}

static void print_json(const struct orc_divergence *d)
{
    json_t *const o = json_object();
    json_object_set_new(o, "found", json_boolean(d->found));
    json_object_set_new(o, "step", d->found ? json_integer(d->step) : json_null());
    json_object_set_new(o, "stage", d->found ? json_string(d->stage) : json_null());
    json_object_set_new(o, "item", d->found ? json_string(d->item) : json_null());
    json_object_set_new(o, "detail", json_string(d->detail));
    json_object_set_new(o, "compared", json_integer((json_int_t)d->compared));
    json_dumpf(o, stdout, JSON_INDENT(1));
    fputc('\n', stdout);
    json_decref(o);
}

enum har_status har_cmd_diff(const struct har_options *options, struct har_error *error)
{
    orc_trace *traces[2] = {NULL, NULL};
    struct orc_error cause = {{0}};
    struct orc_divergence divergence = {0};
    enum orc_status status = ORC_OK;
    for (int i = 0; status == ORC_OK && i < 2; i++) {
        status = orc_trace_read(options->operands.items[i], &traces[i], &cause);
    }
    if (status == ORC_OK) {
        status = orc_diff(traces[0], traces[1], NULL, &divergence, &cause);
    }
    orc_trace_free(traces[0]);
    orc_trace_free(traces[1]);
    if (status != ORC_OK) {
        return har_fail(error, status_of(status), "%s", cause.text);
    }
    if (options->json) {
        print_json(&divergence);
    } else if (divergence.found) {
        printf("step %d, %s, %s: %s (%zu items compared)\n", divergence.step, divergence.stage,
               divergence.item, divergence.detail, divergence.compared);
    } else {
        printf("%s (%zu items compared)\n", divergence.detail, divergence.compared);
    }
    return divergence.compared > 0 || divergence.found
               ? HAR_OK
               : har_fail(error, HAR_EUSAGE, "the traces have nothing in common to compare");
}
