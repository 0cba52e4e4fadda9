/* Reads and checks a published catalogue; looks faults up.
 * Used by plan, controls and reports; must not know how a trainer is run. */
#include "har_catalogue.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_hash.h"
#include "har_text.h"
#include "har_yaml.h"

/* One fault being read. */
struct reading {
    const char *name; /* of the publisher */
    size_t number;    /* of the fault, from 1 */
    const json_t *object;
    struct har_error *error;
};

static enum har_status bad(const struct reading *r, const char *cause, const char *value)
{
    char id[64];
    const char *const text = json_string_value(json_object_get(r->object, "id"));
    snprintf(id, sizeof id, "%s", text != NULL ? text : "without id");
    har_text_clean(id);
    return har_fail(r->error, HAR_EUSAGE, "%s: fault %zu (%s): %s%.100s", r->name, r->number, id,
                    cause, value);
}

/* The text of a key; `otherwise` when it is absent or null, NULL = the key must be there. */
static enum har_status text_of(const struct reading *r, const char *key, const char *otherwise,
                               const char **out)
{
    const json_t *const value = json_object_get(r->object, key);
    *out = json_string_value(value);
    if (*out != NULL) {
        return HAR_OK;
    }
    *out = otherwise;
    return otherwise != NULL && (value == NULL || json_is_null(value))
               ? HAR_OK
               : bad(r, "needs a text as ", key);
}

static enum har_status check_keys(const struct reading *r)
{
    static const char *const known[] = {"id",     "number", "family", "class",   "expectation",
                                        "reason", "why",    "faulty", "healthy", "file",
                                        "line",   "source", "dose",   "trigger"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)r->object, key, value)
    {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            found = found || strcmp(known[i], key) == 0;
        }
        if (!found) {
            return bad(r, "unknown key ", key);
        }
    }
    return HAR_OK;
}

/* Ids become file names, and ':' parts them from a dose. */
static enum har_status take_id(const struct reading *r, struct mut_fault *fault)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_.+-";
    enum { ID_MAX = 100 };
    const enum har_status status = text_of(r, "id", NULL, &fault->id);
    if (status != HAR_OK) {
        return status;
    }
    if (fault->id[0] == '\0' || fault->id[0] == '.' || strlen(fault->id) > ID_MAX ||
        strspn(fault->id, allowed) != strlen(fault->id) || strcmp(fault->id, "none") == 0) {
        return bad(r, "an id has up to 100 letters, digits and _ . + -, not ", fault->id);
    }
    fault->site = fault->id;
    return HAR_OK;
}

/* The place of a text among names; -1 = it is none of them. */
static int place_of(const char *text, const char *(*name)(int), int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(text, name(i)) == 0) {
            return i;
        }
    }
    return -1;
}
static const char *family_name(int i)
{
    return mut_family_name((enum mut_family)i);
}
static const char *class_name(int i)
{
    return mut_class_name((enum mut_class)i);
}
static const char *expect_name(int i)
{
    return mut_expect_name((enum mut_expect)i);
}

static enum har_status take_kind(const struct reading *r, struct mut_fault *fault)
{
    const struct {
        const char *key, *otherwise;
        const char *(*name)(int);
        int count;
    } kinds[] = {{"family", NULL, family_name, MUT_FAMILY_COUNT},
                 {"class", NULL, class_name, MUT_CLASS_COUNT},
                 {"expectation", "KILL", expect_name, MUT_EXPECT_GAP + 1}};
    int places[3];
    for (size_t i = 0; i < 3; i++) {
        const char *text = NULL;
        const enum har_status status = text_of(r, kinds[i].key, kinds[i].otherwise, &text);
        if (status != HAR_OK) {
            return status;
        }
        places[i] = place_of(text, kinds[i].name, kinds[i].count);
        if (places[i] < 0) {
            struct har_text cause = {0};
            har_text_addf(&cause, "%s is one of", kinds[i].key);
            for (int k = 0; k < kinds[i].count; k++) {
                har_text_addf(&cause, "%s %s", k > 0 ? "," : "", kinds[i].name(k));
            }
            har_text_add(&cause, "; not ");
            const enum har_status failed = bad(r, har_text_get(&cause), text);
            har_text_fini(&cause);
            return failed;
        }
    }
    fault->family = (enum mut_family)places[0];
    fault->class_ = (enum mut_class)places[1];
    fault->expect = (enum mut_expect)places[2];
    return HAR_OK;
}

static enum har_status take_texts(const struct reading *r, struct mut_fault *fault,
                                  struct mut_site_info *site)
{
    const char *reason = "";
    const char *file = "";
    const struct {
        const char *key, *otherwise;
        const char **place;
    } texts[] = {{"why", NULL, &fault->why},
                 {"faulty", "", &fault->faulty},
                 {"source", "", &fault->source},
                 {"trigger", "", &fault->trigger},
                 {"healthy", "", &site->healthy},
                 {"reason", "", &reason},
                 {"file", "", &file}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const enum har_status status = text_of(r, texts[i].key, texts[i].otherwise, texts[i].place);
        if (status != HAR_OK) {
            return status;
        }
    }
    fault->expect_reason = reason[0] != '\0' ? reason : NULL;
    if (fault->expect != MUT_EXPECT_KILL && reason[0] == '\0') {
        return bad(r, "an expectation other than KILL needs a ", "reason");
    }
    site->site = fault->id;
    site->file = file[0] != '\0' ? file : NULL;
    return HAR_OK;
}

static enum har_status take_dose(const struct reading *r, struct mut_dose_range *dose)
{
    static const char *const keys[] = {"smallest", "usual", "largest"};
    float *const places[] = {&dose->smallest, &dose->usual, &dose->largest};
    const json_t *const object = json_object_get(r->object, "dose");
    if (object == NULL || json_is_null(object)) {
        return HAR_OK;
    }
    dose->unit = json_string_value(json_object_get(object, "unit"));
    bool good = dose->unit != NULL && json_object_size(object) == 4;
    float least = 0.0f;
    for (size_t i = 0; i < 3; i++) {
        const json_t *const value = json_object_get(object, keys[i]);
        *places[i] = (float)json_number_value(value);
        good = good && json_is_number(value) && isfinite(*places[i]) && *places[i] >= least;
        least = *places[i];
    }
    return good
               ? HAR_OK
               : bad(r, "a dose has unit, smallest, usual and largest, numbers from 0 that do not ",
                     "fall");
}

/* A whole number of at least 1, `otherwise` when the key is absent. */
static enum har_status take_count(const struct reading *r, const char *key, int otherwise, int *out)
{
    const json_t *const value = json_object_get(r->object, key);
    const json_int_t number = value != NULL ? json_integer_value(value) : otherwise;
    *out = (int)number;
    return value == NULL || json_is_null(value) ||
                   (json_is_integer(value) && number >= 1 && number <= INT32_MAX)
               ? HAR_OK
               : bad(r, "needs a whole number from 1 as ", key);
}

static enum har_status take_fault(const struct reading *r, struct mut_fault *fault,
                                  struct mut_site_info *site)
{
    int number = 0;
    if (!json_is_object(r->object)) {
        return bad(r, "is no object", "");
    }
    enum har_status status = check_keys(r);
    status = status == HAR_OK ? take_id(r, fault) : status;
    status = status == HAR_OK ? take_kind(r, fault) : status;
    status = status == HAR_OK ? take_texts(r, fault, site) : status;
    status = status == HAR_OK ? take_dose(r, &fault->dose) : status;
    status = status == HAR_OK ? take_count(r, "number", (int)r->number, &number) : status;
    status = status == HAR_OK ? take_count(r, "line", 1, &site->line) : status;
    fault->number = (uint32_t)number;
    return status;
}

/* Puts the file's place as seen from here into the document, where its text is kept. */
static bool resolve_file(const char *base, json_t *object)
{
    const char *const file = json_string_value(json_object_get(object, "file"));
    char *const path = base != NULL && file != NULL ? har_yaml_resolve(base, file) : NULL;
    const bool done = base == NULL || file == NULL ||
                      (path != NULL && json_object_set_new(object, "file", json_string(path)) == 0);
    free(path);
    return done;
}

static enum har_status take_all(struct har_catalogue *c, const char *base, const char *name,
                                struct har_error *error)
{
    const json_t *const list = c->published;
    const size_t count = json_array_size(list);
    if (count == 0) {
        return har_fail(error, HAR_EUSAGE, "%s: needs a list of faults", name);
    }
    c->faults = calloc(count, sizeof *c->faults);
    c->sites = calloc(count, sizeof *c->sites);
    if (c->faults == NULL || c->sites == NULL) {
        return har_fail(error, HAR_EMEMORY, "%s: no memory", name);
    }
    for (size_t i = 0; i < count; i++) {
        const struct reading r = {name, i + 1, json_array_get(list, i), error};
        if (!resolve_file(base, json_array_get(list, i))) {
            return har_fail(error, HAR_EMEMORY, "%s: no memory", name);
        }
        const enum har_status status = take_fault(&r, &c->faults[i], &c->sites[i]);
        if (status != HAR_OK) {
            return status;
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(c->faults[k].id, c->faults[i].id) == 0 ||
                c->faults[k].number == c->faults[i].number) {
                return bad(&r, "has the id or number of ", c->faults[k].id);
            }
        }
        c->count = i + 1;
    }
    return HAR_OK;
}

enum har_status har_catalogue_parse(const char *text, const char *base, const char *name,
                                    struct har_catalogue *out, struct har_error *error)
{
    json_error_t cause;
    memset(out, 0, sizeof *out);
    out->hash = har_hash_string(HAR_HASH_START, text);
    out->published = json_loads(text, JSON_REJECT_DUPLICATES, &cause);
    if (out->published == NULL) {
        har_text_clean(cause.text);
        return har_fail(error, HAR_EUSAGE, "%s: line %d: no JSON: %s", name, cause.line,
                        cause.text);
    }
    const enum har_status status = take_all(out, base, name, error);
    if (status != HAR_OK) {
        har_catalogue_fini(out);
    }
    return status;
}

void har_catalogue_fini(struct har_catalogue *c)
{
    free(c->faults);
    free(c->sites);
    json_decref(c->published);
    memset(c, 0, sizeof *c);
}

char *har_catalogue_text(const struct har_catalogue *c)
{
    return c->published != NULL ? json_dumps(c->published, JSON_COMPACT) : NULL;
}

size_t har_catalogue_count(const struct har_catalogue *c)
{
    return c->published != NULL ? c->count : mut_fault_count();
}

const struct mut_fault *har_catalogue_at(const struct har_catalogue *c, size_t index)
{
    return c->published != NULL ? &c->faults[index] : mut_fault_at(index);
}

const struct mut_fault *har_catalogue_find(const struct har_catalogue *c, const char *id)
{
    for (size_t i = 0; i < har_catalogue_count(c); i++) {
        if (strcmp(har_catalogue_at(c, i)->id, id) == 0) {
            return har_catalogue_at(c, i);
        }
    }
    return NULL;
}

const struct mut_site_info *har_catalogue_site(const struct har_catalogue *c,
                                               const struct mut_fault *fault)
{
    if (fault == NULL) {
        return NULL;
    }
    if (c->published == NULL) {
        return mut_site_find(fault->site);
    }
    const struct mut_site_info *const site = &c->sites[fault - c->faults];
    return site->file != NULL ? site : NULL;
}
