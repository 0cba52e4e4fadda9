/* faultline diff: the first divergence between two traces. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "har_cmd.h"
#include "har_store.h"
#include "orc_check.h"

enum { BOUNDS_BYTES_MAX = 1 << 28 };

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

/* Bounds of a recipe out of a results folder. */
static enum har_status stored_text(const char *dir, const char *recipe, char **out,
                                   struct har_error *error)
{
    har_store *store = NULL;
    enum har_status status = har_store_open(dir, &store, error);
    if (status == HAR_OK) {
        status = har_store_get_bounds(store, recipe, out, error);
    }
    har_store_close(store);
    if (status == HAR_OK && *out == NULL) {
        status = har_fail(error, HAR_EUSAGE, "%s: no bounds for the recipe %s of the traces", dir,
                          recipe);
    }
    return status;
}

static enum har_status file_text(const char *path, char **out, struct har_error *error)
{
    struct stat facts;
    FILE *const file = fopen(path, "rbe");
    if (file == NULL || fstat(fileno(file), &facts) != 0) {
        const int cause = errno;
        if (file != NULL) {
            fclose(file);
        }
        return har_fail(error, cause == ENOENT ? HAR_EUSAGE : HAR_EIO, "%s: %s", path,
                        strerror(cause));
    }
    const size_t size =
        facts.st_size > 0 && facts.st_size < BOUNDS_BYTES_MAX ? (size_t)facts.st_size : 0;
    *out = calloc(size + 1, 1);
    const bool whole = *out != NULL && size > 0 && fread(*out, 1, size, file) == size;
    fclose(file);
    if (!whole) {
        return har_fail(error, *out == NULL ? HAR_EMEMORY : HAR_EIO,
                        "%s: is empty, too large or cannot be read", path);
    }
    return HAR_OK;
}

/* `from` is a results folder, or a file with what its table `bounds` holds. */
static enum har_status load_bounds(const char *from, const orc_trace *trace, orc_bounds **out,
                                   struct har_error *error)
{
    struct stat facts;
    struct orc_error cause = {{0}};
    char *json = NULL;
    const bool folder = stat(from, &facts) == 0 && S_ISDIR(facts.st_mode);
    enum har_status status = folder ? stored_text(from, orc_trace_recipe(trace), &json, error)
                                    : file_text(from, &json, error);
    if (status == HAR_OK) {
        const enum orc_status result = orc_bounds_parse(json, out, &cause);
        if (result != ORC_OK) {
            status = har_fail(error, result == ORC_EMEMORY ? HAR_EMEMORY : HAR_EUSAGE,
                              "%s: holds no bounds: %s", from, cause.text);
        }
    }
    free(json);
    return status;
}

static json_t *number_or_text(double value)
{
    return isfinite(value) ? json_real(value) : json_string(isnan(value) ? "nan" : "inf");
}

static void print_json(const struct orc_divergence *d, bool bounds)
{
    json_t *const o = json_object();
    json_object_set_new(o, "found", json_boolean(d->found));
    json_object_set_new(o, "step", d->found ? json_integer(d->step) : json_null());
    json_object_set_new(o, "stage", d->found ? json_string(d->stage) : json_null());
    json_object_set_new(o, "item", d->found ? json_string(d->item) : json_null());
    json_object_set_new(o, "detail", json_string(d->detail));
    json_object_set_new(o, "compared", json_integer((json_int_t)d->compared));
    json_object_set_new(o, "bounds", json_boolean(bounds));
    if (!bounds) {
        json_t *const worst = json_object();
        json_object_set_new(worst, "relative", number_or_text(d->worst));
        json_object_set_new(worst, "step", json_integer(d->worst_step));
        json_object_set_new(worst, "item", json_string(d->worst_item));
        json_object_set_new(o, "largest", worst);
    }
    json_dumpf(o, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    fputc('\n', stdout);
    json_decref(o);
}

static void print_text(const struct orc_divergence *d, bool bounds)
{
    if (d->found) {
        printf("step %d, %s: %s (%zu items compared%s)\n", d->step, d->stage, d->detail,
               d->compared, bounds ? "" : ", bit for bit");
    } else {
        printf("%s (%zu items compared)\n", d->detail, d->compared);
    }
    if (!bounds && d->worst_step > 0) {
        printf("largest difference of a number: %.3g relative, %s at step %d; --bounds says which "
               "are more than rounding\n",
               d->worst, d->worst_item, d->worst_step);
    }
}

static enum har_status compare(const struct har_options *options, const orc_trace *a,
                               const orc_trace *b, struct har_error *error)
{
    struct orc_divergence divergence = {0};
    struct orc_error cause = {{0}};
    orc_bounds *bounds = NULL;
    const bool bounded = options->bounds != NULL;
    enum har_status status = bounded ? load_bounds(options->bounds, a, &bounds, error) : HAR_OK;
    if (status != HAR_OK) {
        return status;
    }
    status = status_of(orc_diff(a, b, bounds, &divergence, &cause));
    orc_bounds_free(bounds);
    if (status != HAR_OK) {
        return har_fail(error, status, "%s", cause.text);
    }
    if (divergence.compared == 0) {
        return har_fail(error, HAR_EUSAGE, "the traces have nothing in common to compare");
    }
    if (options->json) {
        print_json(&divergence, bounded);
    } else {
        print_text(&divergence, bounded);
    }
    return divergence.found ? HAR_EDIFFER : HAR_OK;
}

enum har_status har_cmd_diff(const struct har_options *options, struct har_error *error)
{
    orc_trace *traces[2] = {NULL, NULL};
    struct orc_error cause = {{0}};
    enum orc_status read = ORC_OK;
    for (int i = 0; read == ORC_OK && i < 2; i++) {
        read = orc_trace_read(options->operands.items[i], &traces[i], &cause);
    }
    const enum har_status status = read == ORC_OK
                                       ? compare(options, traces[0], traces[1], error)
                                       : har_fail(error, status_of(read), "%s", cause.text);
    orc_trace_free(traces[0]);
    orc_trace_free(traces[1]);
    return status;
}
