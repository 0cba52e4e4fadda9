/* Bounds to JSON text and back. Numbers are written so that they read back the same.
 * Called by the harness, which stores the text; must not know how bounds are made. */
#include "orc_bounds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orc_json.h"

/* Steps and classes of a bounds file that somebody else wrote are not trusted beyond these. */
enum { STEPS_MAX = 10000000, RUNS_MAX = 1000000 };

static bool add_number(cJSON *object, const char *key, double value)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%.17g", value);
    return cJSON_AddRawToObject(object, key, text) != NULL;
}

static bool add_numbers(cJSON *object, const char *key, const double *values, size_t count)
{
    cJSON *array = cJSON_AddArrayToObject(object, key);
    bool ok = array != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        char text[40];
        (void)snprintf(text, sizeof text, "%.17g", values[i]);
        cJSON *item = cJSON_CreateRaw(text);
        ok = item != NULL && cJSON_AddItemToArray(array, item);
    }
    return ok;
}

static bool write_class(cJSON *array, const struct orc_class *class_)
{
    cJSON *object = cJSON_CreateObject();
    if (object == NULL || !cJSON_AddItemToArray(array, object)) {
        cJSON_Delete(object);
        return false;
    }
    const struct orc_key *key = &class_->key;
    return cJSON_AddStringToObject(object, "check", orc_check_name(key->check)) != NULL &&
           cJSON_AddStringToObject(object, "group", key->group) != NULL &&
           cJSON_AddStringToObject(object, "class", key->name) != NULL &&
           cJSON_AddStringToObject(object, "part", key->part) != NULL &&
           cJSON_AddStringToObject(object, "regime", orc_regime_name(key->regime)) != NULL &&
           cJSON_AddBoolToObject(object, "level", key->level) != NULL &&
           cJSON_AddBoolToObject(object, "pooled", key->pooled) != NULL &&
           add_number(object, "floor", class_->floor) &&
           add_number(object, "items", (double)class_->items) &&
           add_number(object, "first_step", class_->first_step) &&
           add_numbers(object, "scales", class_->scales, class_->step_count) &&
           (!key->level || add_numbers(object, "centres", class_->centres, class_->step_count));
}

static bool write_strata(cJSON *root, const struct orc_bounds *bounds)
{
    cJSON *array = cJSON_AddArrayToObject(root, "bounds");
    bool ok = array != NULL;
    for (size_t i = 0; ok && i < bounds->stratum_count; i++) {
        const struct orc_stratum *stratum = &bounds->strata[i];
        cJSON *object = cJSON_CreateObject();
        if (object == NULL || !cJSON_AddItemToArray(array, object)) {
            cJSON_Delete(object);
            return false;
        }
        ok = cJSON_AddStringToObject(object, "check", orc_check_name(stratum->check)) != NULL &&
             cJSON_AddStringToObject(object, "part", stratum->part) != NULL &&
             cJSON_AddStringToObject(object, "regime", orc_regime_name(stratum->regime)) != NULL &&
             add_number(object, "margin", orc_regime_margin(stratum->regime)) &&
             add_number(object, "bound", stratum->bound) &&
             add_numbers(object, "maxima", stratum->maxima, bounds->runs);
    }
    return ok;
}

static bool write_root(cJSON *root, const struct orc_bounds *bounds)
{
    char hash[20];
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, bounds->recipe_hash);
    if (!add_number(root, "schema_version", ORC_BOUNDS_SCHEMA) ||
        cJSON_AddStringToObject(root, "recipe", bounds->recipe) == NULL ||
        (bounds->recipe_hash_given ? cJSON_AddStringToObject(root, "recipe_hash", hash)
                                   : cJSON_AddNullToObject(root, "recipe_hash")) == NULL ||
        cJSON_AddStringToObject(root, "mode", bounds->lockstep ? "lockstep" : "free") == NULL ||
        !add_number(root, "runs", (double)bounds->runs) ||
        !add_number(root, "quantile", bounds->quantile) || !write_strata(root, bounds)) {
        return false;
    }
    cJSON *classes = cJSON_AddArrayToObject(root, "classes");
    bool ok = classes != NULL;
    for (size_t i = 0; ok && i < bounds->classes.count; i++) {
        ok = write_class(classes, &bounds->classes.items[i]);
    }
    return ok;
}

enum orc_status orc_bounds_write(const orc_bounds *bounds, char **json_text)
{
    enum orc_status status = ORC_EMEMORY;
    cJSON *root = cJSON_CreateObject();
    if (root == NULL || !write_root(root, bounds)) {
        goto done;
    }
    char *text = cJSON_PrintUnformatted(root);
    if (text != NULL) {
        *json_text = text;
        status = ORC_OK;
    }
done:
    cJSON_Delete(root);
    return status;
}

/* A number of an array that must be finite and not below least. */
static enum orc_status read_numbers(const struct orc_place *place, const cJSON *object,
                                    const char *key, struct orc_arena *arena, double least,
                                    double **out, size_t *count)
{
    const cJSON *array = orc_json_get(object, key);
    if (!cJSON_IsArray(array)) {
        return orc_bad(place, "\"%s\" is not an array", key);
    }
    const size_t size = (size_t)cJSON_GetArraySize(array);
    if (size > STEPS_MAX) {
        return orc_bad(place, "\"%s\" is too long", key);
    }
    double *values = orc_arena_take(arena, size, sizeof *values);
    if (values == NULL) {
        return orc_fail(ORC_EMEMORY, place->error, "host memory exhausted");
    }
    size_t n = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array)
    {
        if (!cJSON_IsNumber(item) || !(isfinite(item->valuedouble) && item->valuedouble >= least)) {
            return orc_bad(place, "\"%s\" holds something that is not a number of this kind", key);
        }
        values[n++] = item->valuedouble;
    }
    *out = values;
    *count = size;
    return ORC_OK;
}

/* A number that must be there, finite and within [least, most]. */
static enum orc_status need_number(const struct orc_place *place, const cJSON *object,
                                   const char *key, double least, double most, double *out)
{
    const cJSON *value = orc_json_get(object, key);
    if (!cJSON_IsNumber(value) || !isfinite(value->valuedouble) ||
        !(value->valuedouble >= least && value->valuedouble <= most)) {
        return orc_bad(place, "\"%s\" is missing or out of range", key);
    }
    *out = value->valuedouble;
    return ORC_OK;
}

/* The same, and whole. */
static enum orc_status need_whole(const struct orc_place *place, const cJSON *object,
                                  const char *key, double least, double most, double *out)
{
    const enum orc_status status = need_number(place, object, key, least, most, out);
    return status == ORC_OK && *out != floor(*out)
               ? orc_bad(place, "\"%s\" is no whole number", key)
               : status;
}

/* check, part and regime: what a class and a bound have in common. */
static enum orc_status read_kind(const struct orc_place *place, const cJSON *object,
                                 struct orc_key *key)
{
    const cJSON *check = orc_json_get(object, "check");
    const cJSON *part = orc_json_get(object, "part");
    const cJSON *regime = orc_json_get(object, "regime");
    if (!cJSON_IsString(check) || !orc_check_find(check->valuestring, &key->check) ||
        !orc_check_is_bound(key->check)) {
        return orc_bad(place, "bound of something that is not a calibrated check");
    }
    if (!cJSON_IsString(part) || !cJSON_IsString(regime)) {
        return orc_bad(place, "bound without part or regime");
    }
    key->part = part->valuestring;
    for (int i = 0; i < ORC_REGIME_COUNT; i++) {
        if (strcmp(regime->valuestring, orc_regime_name((enum orc_regime)i)) == 0) {
            key->regime = (enum orc_regime)i;
            return ORC_OK;
        }
    }
    return orc_bad(place, "unknown regime \"%.40s\"", regime->valuestring);
}

static enum orc_status read_key(const struct orc_place *place, const cJSON *object,
                                struct orc_key *key)
{
    const cJSON *group = orc_json_get(object, "group");
    const cJSON *name = orc_json_get(object, "class");
    if (!cJSON_IsString(group) || !cJSON_IsString(name)) {
        return orc_bad(place, "class without group or class");
    }
    key->group = group->valuestring;
    key->name = name->valuestring;
    key->level = cJSON_IsTrue(orc_json_get(object, "level"));
    key->pooled = cJSON_IsTrue(orc_json_get(object, "pooled"));
    return read_kind(place, object, key);
}

static enum orc_status read_class(const struct orc_place *place, const cJSON *object,
                                  struct orc_bounds *bounds)
{
    struct orc_key key = {.level = false};
    double items = 0.0, first_step = 0.0, floor_ = 0.0;
    double *scales = NULL, *centres = NULL;
    size_t scale_count = 0, centre_count = 0;
    enum orc_status status = read_key(place, object, &key);
    if (status == ORC_OK) {
        status = need_whole(place, object, "items", 0.0, STEPS_MAX, &items);
    }
    if (status == ORC_OK) {
        status = need_whole(place, object, "first_step", 0.0, STEPS_MAX, &first_step);
    }
    if (status == ORC_OK) {
        status = need_number(place, object, "floor", 0.0, 1.0, &floor_);
    }
    if (status == ORC_OK) {
        status = read_numbers(place, object, "scales", &bounds->classes.arena, 0.0, &scales,
                              &scale_count);
    }
    if (status == ORC_OK && key.level) {
        status = read_numbers(place, object, "centres", &bounds->classes.arena, -HUGE_VAL, &centres,
                              &centre_count);
        if (status == ORC_OK && centre_count != scale_count) {
            status =
                orc_bad(place, "class with %zu scales and %zu centres", scale_count, centre_count);
        }
    }
    if (status != ORC_OK) {
        return status;
    }
    const size_t classes = bounds->classes.count;
    const ptrdiff_t index = orc_classes_add(&bounds->classes, &key);
    if (index == ORC_NO_CLASS) {
        return orc_fail(ORC_EMEMORY, place->error, "host memory exhausted");
    }
    if (bounds->classes.count == classes) {
        return orc_bad(place, "class %.60s given twice", key.name);
    }
    struct orc_class *class_ = &bounds->classes.items[index];
    const size_t strata = bounds->stratum_count;
    class_->stratum = orc_bounds_stratum(bounds, &key);
    if (bounds->stratum_count != strata || class_->stratum == SIZE_MAX) {
        return orc_bad(place, "class without a bound");
    }
    class_->items = (size_t)items;
    class_->first_step = (int)first_step;
    class_->floor = floor_;
    class_->scales = scales;
    class_->centres = centres;
    class_->step_count = scale_count;
    return ORC_OK;
}

static enum orc_status read_stratum(const struct orc_place *place, const cJSON *object,
                                    struct orc_bounds *bounds)
{
    struct orc_key key = {.level = false};
    double bound = 0.0, *maxima = NULL;
    size_t count = 0;
    enum orc_status status = read_kind(place, object, &key);
    if (status == ORC_OK) {
        status = need_number(place, object, "bound", 0.0, HUGE_VAL, &bound);
    }
    if (status == ORC_OK) {
        status =
            read_numbers(place, object, "maxima", &bounds->classes.arena, 0.0, &maxima, &count);
    }
    if (status == ORC_OK && count != bounds->runs) {
        status = orc_bad(place, "%zu maxima of %zu runs", count, bounds->runs);
    }
    if (status != ORC_OK) {
        return status;
    }
    const size_t strata = bounds->stratum_count;
    const size_t index = orc_bounds_stratum(bounds, &key);
    if (index == SIZE_MAX) {
        return orc_fail(ORC_EMEMORY, place->error, "host memory exhausted");
    }
    if (index != strata) {
        return orc_bad(place, "bound of %s %.60s given twice", orc_check_name(key.check), key.part);
    }
    bounds->strata[index].bound = bound;
    bounds->strata[index].maxima = maxima;
    return ORC_OK;
}

/* An array under key, each element read by one function. */
static enum orc_status read_each(const struct orc_place *place, const cJSON *root, const char *key,
                                 struct orc_bounds *bounds,
                                 enum orc_status (*read_one)(const struct orc_place *,
                                                             const cJSON *, struct orc_bounds *))
{
    enum orc_status status = ORC_OK;
    const cJSON *array = orc_json_get(root, key);
    if (!cJSON_IsArray(array)) {
        return orc_bad(place, "\"%s\" is not an array", key);
    }
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array)
    {
        if (status == ORC_OK) {
            status = read_one(place, item, bounds);
        }
    }
    return status;
}

static enum orc_status read_root(const struct orc_place *place, const cJSON *root,
                                 struct orc_bounds *bounds)
{
    double version = 0.0, runs = 0.0;
    const char *recipe = "", *mode = "";
    enum orc_status status = need_number(place, root, "schema_version", 0.0, HUGE_VAL, &version);
    if (status == ORC_OK && version != ORC_BOUNDS_SCHEMA) {
        status = orc_bad(place, "schema_version is %g, not %d", version, ORC_BOUNDS_SCHEMA);
    }
    if (status == ORC_OK) {
        status = orc_json_text(place, root, "recipe", &bounds->classes.arena, &recipe);
    }
    if (status == ORC_OK) {
        status = orc_json_hash(place, root, "recipe_hash", &bounds->recipe_hash_given,
                               &bounds->recipe_hash);
    }
    if (status == ORC_OK) {
        status = orc_json_text(place, root, "mode", &bounds->classes.arena, &mode);
    }
    if (status == ORC_OK && strcmp(mode, "free") != 0 && strcmp(mode, "lockstep") != 0) {
        status = orc_bad(place, "mode is neither free nor lockstep");
    }
    if (status == ORC_OK) {
        status = need_whole(place, root, "runs", ORC_RUNS_MIN, RUNS_MAX, &runs);
    }
    if (status == ORC_OK) {
        status = need_number(place, root, "quantile", 0.0, 1.0, &bounds->quantile);
    }
    if (status != ORC_OK) {
        return status;
    }
    bounds->runs = (size_t)runs;
    bounds->lockstep = strcmp(mode, "lockstep") == 0;
    bounds->recipe = orc_arena_text(&bounds->classes.arena, recipe);
    status = read_each(place, root, "bounds", bounds, read_stratum);
    return status == ORC_OK ? read_each(place, root, "classes", bounds, read_class) : status;
}

enum orc_status orc_bounds_parse(const char *json_text, orc_bounds **out, struct orc_error *error)
{
    const struct orc_place place = {"bounds", 0, error};
    cJSON *root = NULL;
    struct orc_bounds *bounds = NULL;
    enum orc_status status = ORC_OK;
    if (json_text == NULL) {
        return orc_fail(ORC_EARG, error, "no bounds");
    }
    root = cJSON_ParseWithOpts(json_text, NULL, true);
    if (!cJSON_IsObject(root)) {
        status = orc_bad(&place, "not a JSON object");
        goto done;
    }
    bounds = calloc(1, sizeof *bounds);
    if (bounds == NULL) {
        status = orc_fail(ORC_EMEMORY, error, "host memory exhausted");
        goto done;
    }
    status = read_root(&place, root, bounds);
    if (status == ORC_OK && bounds->classes.arena.failed) {
        status = orc_fail(ORC_EMEMORY, error, "host memory exhausted");
    }
    if (status == ORC_OK) {
        orc_bounds_seal(bounds);
        *out = bounds;
        bounds = NULL;
    }
done:
    orc_bounds_free(bounds);
    cJSON_Delete(root);
    return status;
}
