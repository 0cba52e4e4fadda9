/* Reads an earlier results.json.
 * Called by cmd_gate.c, cmd_run.c and har_select.c; must not know the database. */
#include "har_baseline.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_report.h"

static int by_id(const void *a, const void *b)
{
    const struct har_baseline_entry *const x = a, *const y = b;
    return strcmp(x->id, y->id);
}

static enum har_status take_entries(const json_t *faults, struct har_baseline *out,
                                    struct har_error *error)
{
    out->entries = calloc(json_array_size(faults) + 1, sizeof *out->entries);
    for (size_t i = 0; out->entries != NULL && i < json_array_size(faults); i++) {
        const json_t *const fault = json_array_get(faults, i);
        const char *const id = json_string_value(json_object_get(fault, "id"));
        const char *const outcome = json_string_value(json_object_get(fault, "outcome"));
        struct har_baseline_entry *const e = &out->entries[i];
        if (id == NULL || outcome == NULL || !har_outcome_find(outcome, &e->outcome)) {
            return har_fail(error, HAR_EMISMATCH,
                            "%s: fault number %zu has no id or no known outcome", out->path, i + 1);
        }
        e->id = strdup(id);
        if (e->id == NULL) {
            break;
        }
        out->count = i + 1;
    }
    if (out->count != json_array_size(faults)) {
        return har_fail(error, HAR_EMEMORY, "%s: no memory", out->path);
    }
    if (out->count > 0) {
        qsort(out->entries, out->count, sizeof *out->entries, by_id);
    }
    return HAR_OK;
}

enum har_status har_baseline_load(const char *path, struct har_baseline *out,
                                  struct har_error *error)
{
    json_error_t cause;
    memset(out, 0, sizeof *out);
    if (access(path, R_OK) != 0) {
        return har_fail(error, HAR_EUSAGE, "%s: %s", path, strerror(errno));
    }
    json_t *const root = json_load_file(path, JSON_REJECT_DUPLICATES, &cause);
    if (root == NULL) {
        return har_fail(error, HAR_EUSAGE, "%s:%d: %s", path, cause.line, cause.text);
    }
    const char *const campaign = json_string_value(json_object_get(root, "campaign"));
    const json_t *const faults = json_object_get(root, "faults");
    enum har_status status = HAR_OK;
    if (json_integer_value(json_object_get(root, "schema_version")) != HAR_RESULTS_SCHEMA ||
        campaign == NULL || !json_is_array(faults)) {
        status = har_fail(error, HAR_EMISMATCH,
                          "%s: is no results.json of schema_version %d with its faults", path,
                          HAR_RESULTS_SCHEMA);
    }
    if (status == HAR_OK) {
        out->path = strdup(path);
        out->campaign = strdup(campaign);
        status = out->path != NULL && out->campaign != NULL
                     ? take_entries(faults, out, error)
                     : har_fail(error, HAR_EMEMORY, "%s: no memory", path);
    }
    json_decref(root);
    if (status != HAR_OK) {
        har_baseline_fini(out);
    }
    return status;
}

void har_baseline_fini(struct har_baseline *baseline)
{
    for (size_t i = 0; i < baseline->count; i++) {
        free(baseline->entries[i].id);
    }
    free(baseline->entries);
    free(baseline->path);
    free(baseline->campaign);
    memset(baseline, 0, sizeof *baseline);
}

const struct har_baseline_entry *har_baseline_find(const struct har_baseline *baseline,
                                                   const char *id)
{
    const struct har_baseline_entry key = {.id = (char *)id};
    return baseline->count > 0
               ? bsearch(&key, baseline->entries, baseline->count, sizeof key, by_id)
               : NULL;
}
