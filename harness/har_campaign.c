/* Reads a campaign, lets the command line win, checks ranges.
 * Called by the commands; must not know how a campaign is run. */
#include "har_campaign.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_select.h"
#include "har_yaml.h"
#include "orc_check.h"

struct raw_schedule {
    char *family, *schedule;
};
struct raw_campaign {
    char *name;
    char **recipes, **faults, **families, **checks, **doses;
    unsigned recipes_count, faults_count, families_count, checks_count, doses_count;
    struct raw_schedule *schedules;
    unsigned schedules_count;
    int *repeats, *horizon, *calibration, *false_alarms, *jobs, *timeout_factor, *timeout_min,
        *reference_timeout, *external_timeout, *memory_mb;
    int64_t *seed;
    char *planted, *also_train, *mode, *external, *trainer, *reference;
};

#define OPTIONAL_POINTER (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define LIST(key, flags, least)                                                                    \
    CYAML_FIELD_SEQUENCE(#key, flags, struct raw_campaign, key, &string_value, least,              \
                         CYAML_UNLIMITED)
#define COMMAND(key)                                                                               \
    CYAML_FIELD_STRING_PTR(#key, OPTIONAL_POINTER, struct raw_campaign, key, 0, CYAML_UNLIMITED)
#define NUMBER(key) CYAML_FIELD_INT_PTR(#key, OPTIONAL_POINTER, struct raw_campaign, key)

static const cyaml_schema_value_t string_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED)};
static const cyaml_schema_field_t schedule_fields[] = {
    CYAML_FIELD_STRING_PTR("family", CYAML_FLAG_POINTER, struct raw_schedule, family, 0,
                           CYAML_UNLIMITED),
    CYAML_FIELD_STRING_PTR("schedule", CYAML_FLAG_POINTER, struct raw_schedule, schedule, 0,
                           CYAML_UNLIMITED),
    CYAML_FIELD_END};
static const cyaml_schema_value_t schedule_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_schedule, schedule_fields)};
static const cyaml_schema_field_t campaign_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct raw_campaign, name, 0,
                           CYAML_UNLIMITED),
    LIST(recipes, CYAML_FLAG_POINTER, 1),
    LIST(faults, OPTIONAL_POINTER, 0),
    LIST(families, OPTIONAL_POINTER, 0),
    LIST(checks, OPTIONAL_POINTER, 0),
    LIST(doses, OPTIONAL_POINTER, 0),
    CYAML_FIELD_SEQUENCE("schedules", OPTIONAL_POINTER, struct raw_campaign, schedules,
                         &schedule_value, 0, CYAML_UNLIMITED),
    NUMBER(repeats),
    CYAML_FIELD_INT_PTR("seed", OPTIONAL_POINTER, struct raw_campaign, seed),
    NUMBER(horizon),
    NUMBER(calibration),
    NUMBER(false_alarms),
    NUMBER(jobs),
    NUMBER(timeout_factor),
    NUMBER(timeout_min),
    NUMBER(reference_timeout),
    NUMBER(external_timeout),
    NUMBER(memory_mb),
    CYAML_FIELD_STRING_PTR("planted", OPTIONAL_POINTER, struct raw_campaign, planted, 0,
                           CYAML_UNLIMITED),
    COMMAND(also_train),
    COMMAND(mode),
    COMMAND(external),
    COMMAND(trainer),
    COMMAND(reference),
    CYAML_FIELD_END};
static const cyaml_schema_value_t campaign_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_campaign, campaign_fields)};

static const char *const schedule_names[] = {
#define HAR_ROW_(name) #name,
    HAR_SCHEDULES(HAR_ROW_)
#undef HAR_ROW_
};

static const char *const mode_names[] = {
#define HAR_ROW_(name) #name,
    HAR_MODES(HAR_ROW_)
#undef HAR_ROW_
};

const char *har_mode_name(enum har_mode mode)
{
    return mode < HAR_MODE_COUNT ? mode_names[mode] : "?";
}

const char *har_schedule_name(enum har_schedule schedule)
{
    return schedule < HAR_SCHEDULE_COUNT ? schedule_names[schedule] : "?";
}

bool har_schedule_find(const char *name, enum har_schedule *out)
{
    for (int i = 0; i < HAR_SCHEDULE_COUNT; i++) {
        if (strcmp(schedule_names[i], name) == 0) {
            *out = (enum har_schedule)i;
            return true;
        }
    }
    return false;
}

/* What a name may be, for messages. */
static const char family_words[] =
#define MUT_ROW_(upper, lower) " " #lower
    MUT_FAMILIES(MUT_ROW_);
#undef MUT_ROW_
static bool family_find(const char *name, enum mut_family *out)
{
    for (int i = 0; i < MUT_FAMILY_COUNT; i++) {
        if (strcmp(mut_family_name((enum mut_family)i), name) == 0) {
            *out = (enum mut_family)i;
            return true;
        }
    }
    return false;
}

static void list_free(char ***list, size_t *count)
{
    for (size_t i = 0; *list != NULL && i < *count; i++) {
        free((*list)[i]);
    }
    free(*list);
    *list = NULL;
    *count = 0;
}

/* Copies a list; with a base, its items are paths relative to that file. */
static bool list_copy(const char *base, const char *const *items, size_t count, char ***out,
                      size_t *out_count)
{
    list_free(out, out_count);
    *out = calloc(count + 1, sizeof **out);
    for (size_t i = 0; *out != NULL && i < count; i++) {
        (*out)[i] = base != NULL ? har_yaml_resolve(base, items[i]) : strdup(items[i]);
        if ((*out)[i] == NULL) {
            return false;
        }
        *out_count = i + 1;
    }
    return *out != NULL;
}

static void set_defaults(struct har_campaign *c)
{
    memset(c, 0, sizeof *c);
    c->dose_smallest = c->dose_usual = true;
    c->repeats = 1;
    c->seed = 1;
    c->calibration = 8;
    c->false_alarms = 4;
    c->timeout_factor = 10;
    c->timeout_min_s = 2;
    c->reference_timeout_s = 3600;
    c->external_timeout_s = 60;
    c->memory_mb = HAR_CHILD_MEMORY_MB;
}

static int value_or(const int *value, int otherwise)
{
    return value != NULL ? *value : otherwise;
}

static void take_numbers(struct har_campaign *c, const struct raw_campaign *raw)
{
    c->repeats = value_or(raw->repeats, c->repeats);
    c->seed = raw->seed != NULL ? (uint64_t)*raw->seed : c->seed;
    c->horizon = value_or(raw->horizon, c->horizon);
    c->calibration = value_or(raw->calibration, c->calibration);
    c->false_alarms = value_or(raw->false_alarms, c->false_alarms);
    c->jobs = value_or(raw->jobs, c->jobs);
    c->timeout_factor = value_or(raw->timeout_factor, c->timeout_factor);
    c->timeout_min_s = value_or(raw->timeout_min, c->timeout_min_s);
    c->reference_timeout_s = value_or(raw->reference_timeout, c->reference_timeout_s);
    c->external_timeout_s = value_or(raw->external_timeout, c->external_timeout_s);
    c->memory_mb = value_or(raw->memory_mb, c->memory_mb);
}

/* `source` is the file or the option that named them. */
static enum har_status take_families(struct har_campaign *c, const char *source,
                                     const char *const *names, size_t count,
                                     struct har_error *error)
{
    for (int i = 0; i < MUT_FAMILY_COUNT; i++) {
        c->families[i] = count == 0;
    }
    for (size_t i = 0; i < count; i++) {
        enum mut_family family;
        if (!family_find(names[i], &family)) {
            return har_fail(error, HAR_EUSAGE, "%s: unknown family '%s'; there are%s", source,
                            names[i], family_words);
        }
        c->families[family] = true;
    }
    return HAR_OK;
}

/* A word, or a number for all faults that have it in their range. `source` is the file or the
 * option that named it. */
static enum har_status take_dose(struct har_campaign *c, const char *source, const char *word,
                                 size_t length, struct har_error *error)
{
    static const char *const words[] = {"smallest", "usual", "largest"};
    bool *const places[] = {&c->dose_smallest, &c->dose_usual, &c->dose_largest};
    enum { WORDS = 3 };
    for (int i = 0; i < WORDS; i++) {
        if (strlen(words[i]) == length && strncmp(word, words[i], length) == 0) {
            *places[i] = true;
            return HAR_OK;
        }
    }
    char *end = NULL;
    const float dose = strtof(word, &end);
    if (end != word + length || length == 0 || !(dose >= 0.0f && dose < HUGE_VALF)) {
        return har_fail(error, HAR_EUSAGE,
                        "%s: '%.*s' is none of smallest, usual, largest, nor a number", source,
                        (int)length, word);
    }
    if (c->dose_count == HAR_DOSES_ASKED_MAX) {
        return har_fail(error, HAR_EUSAGE, "%s takes at most %d numbers", source,
                        HAR_DOSES_ASKED_MAX);
    }
    c->doses[c->dose_count++] = dose;
    return HAR_OK;
}

static void forget_doses(struct har_campaign *c)
{
    c->dose_smallest = c->dose_usual = c->dose_largest = false;
    c->dose_count = 0;
}

static enum har_status take_doses(struct har_campaign *c, const struct raw_campaign *raw,
                                  struct har_error *error)
{
    enum har_status status = HAR_OK;
    struct har_text source = {0};
    har_text_addf(&source, "%s: doses", c->path);
    if (raw->doses_count > 0) {
        forget_doses(c);
    }
    for (unsigned i = 0; status == HAR_OK && i < raw->doses_count; i++) {
        status = take_dose(c, har_text_get(&source), raw->doses[i], strlen(raw->doses[i]), error);
    }
    har_text_fini(&source);
    return status;
}

static enum har_status take_schedules(struct har_campaign *c, const struct raw_campaign *raw,
                                      struct har_error *error)
{
    for (unsigned i = 0; i < raw->schedules_count; i++) {
        enum mut_family family;
        enum har_schedule schedule;
        if (!family_find(raw->schedules[i].family, &family)) {
            return har_fail(error, HAR_EUSAGE, "%s: schedules: unknown family '%s'; there are%s",
                            c->path, raw->schedules[i].family, family_words);
        }
        if (!har_schedule_find(raw->schedules[i].schedule, &schedule)) {
            return har_fail(error, HAR_EUSAGE, "%s: schedules: '%s' is none of fifo, lazy, pct",
                            c->path, raw->schedules[i].schedule);
        }
        c->schedules[family] = schedule;
    }
    return HAR_OK;
}

/* `source` is the file or the option that named it. */
static enum har_status take_mode(struct har_campaign *c, const char *source, const char *name,
                                 struct har_error *error)
{
    for (int i = 0; i < HAR_MODE_COUNT; i++) {
        if (strcmp(mode_names[i], name) == 0) {
            c->mode = (enum har_mode)i;
            return HAR_OK;
        }
    }
    return har_fail(error, HAR_EUSAGE, "%s: mode '%s' is none of free, lockstep", source, name);
}

static enum har_status take_command(const char *path, const char *key, const char *text,
                                    struct har_user *out, struct har_error *error)
{
    char name[512];
    snprintf(name, sizeof name, "%.400s: %s", path, key);
    return text != NULL ? har_user_parse(text, path, name, out, error) : HAR_OK;
}

/* The user's commands; their words stand relative to the campaign's file. */
static enum har_status take_commands(struct har_campaign *c, const struct raw_campaign *raw,
                                     struct har_error *error)
{
    const char *const reference = raw->reference;
    enum har_status status = take_command(c->path, "external", raw->external, &c->external, error);
    if (status == HAR_OK) {
        status = take_command(c->path, "trainer", raw->trainer, &c->trainer, error);
    }
    if (reference == NULL) {
        c->reference = raw->trainer != NULL ? HAR_REFERENCE_none : HAR_REFERENCE_faultline;
    } else if (strcmp(reference, "none") == 0) {
        c->reference = HAR_REFERENCE_none;
    } else if (strcmp(reference, "faultline-ref") != 0) {
        c->reference = HAR_REFERENCE_command;
    }
    return status == HAR_OK && c->reference == HAR_REFERENCE_command
               ? take_command(c->path, "reference", reference, &c->second, error)
               : status;
}

static bool take_texts(struct har_campaign *c, const char *path, const struct raw_campaign *raw)
{
    static const char *const every[] = {"*"};
    c->path = strdup(path);
    c->fault_source = c->path;
    c->name = strdup(raw->name);
    c->planted = raw->planted != NULL ? strdup(raw->planted) : NULL;
    c->also_train = raw->also_train != NULL ? har_yaml_resolve(path, raw->also_train) : NULL;
    const bool some = raw->faults_count > 0;
    return c->path != NULL && c->name != NULL && (raw->planted == NULL || c->planted != NULL) &&
           (raw->also_train == NULL || c->also_train != NULL) &&
           list_copy(path, (const char *const *)raw->recipes, raw->recipes_count, &c->recipes,
                     &c->recipe_count) &&
           list_copy(NULL, some ? (const char *const *)raw->faults : every,
                     some ? raw->faults_count : 1, &c->faults, &c->fault_count) &&
           list_copy(NULL, (const char *const *)raw->checks, raw->checks_count, &c->checks,
                     &c->check_count);
}

enum har_status har_campaign_load(const char *path, struct har_campaign *out,
                                  struct har_error *error)
{
    struct raw_campaign *raw = NULL;
    set_defaults(out);
    enum har_status status = har_yaml_load(path, &campaign_schema, false, (void **)&raw, error);
    if (status == HAR_OK && !take_texts(out, path, raw)) {
        status = har_fail(error, HAR_EMEMORY, "%s: no memory", path);
    }
    if (status == HAR_OK && raw->seed != NULL && *raw->seed < 0) {
        status = har_fail(error, HAR_EUSAGE, "%s: seed must not be negative", path);
    }
    if (status == HAR_OK) {
        take_numbers(out, raw);
        status = take_families(out, path, (const char *const *)raw->families, raw->families_count,
                               error);
    }
    if (status == HAR_OK) {
        status = take_doses(out, raw, error);
    }
    if (status == HAR_OK) {
        status = take_commands(out, raw, error);
    }
    if (status == HAR_OK) {
        status = take_schedules(out, raw, error);
    }
    if (status == HAR_OK && raw->mode != NULL) {
        status = take_mode(out, path, raw->mode, error);
    }
    if (status != HAR_OK) {
        har_campaign_fini(out);
    }
    har_yaml_free(&campaign_schema, raw);
    return status;
}

enum har_status har_campaign_of_recipe(const char *recipe, struct har_campaign *out,
                                       struct har_error *error)
{
    static const char *const every[] = {"*"};
    const char *const recipes[] = {recipe};
    set_defaults(out);
    for (int i = 0; i < MUT_FAMILY_COUNT; i++) {
        out->families[i] = true;
    }
    out->path = strdup(recipe);
    out->fault_source = out->path;
    out->name = strdup(recipe);
    if (out->path == NULL || out->name == NULL ||
        !list_copy(NULL, recipes, 1, &out->recipes, &out->recipe_count) ||
        !list_copy(NULL, every, 1, &out->faults, &out->fault_count)) {
        har_campaign_fini(out);
        return har_fail(error, HAR_EMEMORY, "no memory for recipe %s", recipe);
    }
    return HAR_OK;
}

static enum har_status take_asked_doses(struct har_campaign *c, const char *list,
                                        struct har_error *error)
{
    enum har_status status = HAR_OK;
    forget_doses(c);
    for (const char *p = list; status == HAR_OK && *p != '\0'; p += *p == ',') {
        const size_t length = strcspn(p, ",");
        status = take_dose(c, "--dose", p, length, error);
        p += length;
    }
    return status;
}

static enum har_status take_selection(struct har_campaign *c, const struct har_options *o,
                                      struct har_error *error)
{
    c->changed_since = o->changed_since;
    c->baseline = o->baseline;
    c->iterate = o->iterate;
    if (o->iterate && o->baseline == NULL) {
        return har_fail(
            error, HAR_EUSAGE,
            "--iterate needs --baseline FILE, the results.json of the earlier campaign");
    }
    enum har_status status = HAR_OK;
    if (o->shard != NULL) {
        status = har_select_parse_shard(o->shard, &c->shard, &c->shards, error);
    }
    if (status == HAR_OK && o->doses != NULL) {
        status = take_asked_doses(c, o->doses, error);
    }
    return status;
}

static bool take_checks(struct har_campaign *c, const char *list)
{
    const char *items[64];
    size_t count = 0;
    char *const copy = strdup(list);
    char *rest = NULL;
    for (char *word = copy != NULL ? strtok_r(copy, ", ", &rest) : NULL; word != NULL && count < 64;
         word = strtok_r(NULL, ", ", &rest)) {
        items[count++] = word;
    }
    const bool done = copy != NULL && list_copy(NULL, items, count, &c->checks, &c->check_count);
    free(copy);
    return done;
}

enum har_status har_campaign_apply(struct har_campaign *c, const struct har_options *o,
                                   struct har_error *error)
{
    c->repeats = o->repeats >= 0 ? o->repeats : c->repeats;
    c->seed = o->seed >= 0 ? (uint64_t)o->seed : c->seed;
    c->horizon = o->horizon >= 0 ? o->horizon : c->horizon;
    c->calibration = o->calibration >= 0 ? o->calibration : c->calibration;
    c->false_alarms = o->false_alarms >= 0 ? o->false_alarms : c->false_alarms;
    c->jobs = o->jobs >= 0 ? o->jobs : c->jobs;
    c->first_verdict = o->first_verdict;
    bool memory = true;
    if (o->faults.count > 0) {
        memory = list_copy(NULL, o->faults.items, o->faults.count, &c->faults, &c->fault_count);
        c->fault_source = "--fault";
    }
    if (memory && o->checks != NULL) {
        memory = take_checks(c, o->checks);
    }
    if (memory && o->also_train != NULL) {
        free(c->also_train);
        c->also_train = strdup(o->also_train);
        memory = c->also_train != NULL;
    }
    if (!memory) {
        return har_fail(error, HAR_EMEMORY, "no memory for the campaign");
    }
    if (o->checks != NULL && c->check_count == 0) {
        return har_fail(error, HAR_EUSAGE, "--checks '%s' names no check", o->checks);
    }
    enum har_status status = take_selection(c, o, error);
    if (status == HAR_OK && o->external != NULL) {
        har_user_fini(&c->external);
        status = har_user_parse(o->external, NULL, "--external", &c->external, error);
    }
    if (status == HAR_OK && o->families.count > 0) {
        status = take_families(c, "--family", o->families.items, o->families.count, error);
    }
    if (status == HAR_OK && o->mode != NULL) {
        status = take_mode(c, "--mode", o->mode, error);
    }
    return status == HAR_OK ? har_campaign_check(c, o, error) : status;
}

void har_campaign_fini(struct har_campaign *c)
{
    free(c->name);
    free(c->path);
    free(c->planted);
    free(c->also_train);
    har_user_fini(&c->external);
    har_user_fini(&c->trainer);
    har_user_fini(&c->second);
    list_free(&c->recipes, &c->recipe_count);
    list_free(&c->faults, &c->fault_count);
    list_free(&c->checks, &c->check_count);
    memset(c, 0, sizeof *c);
}

bool har_campaign_is_own(const struct har_campaign *c)
{
    return c->trainer.words.count > 0 && c->reference != HAR_REFERENCE_faultline;
}

uint64_t har_campaign_fault_seed(const struct har_campaign *c, int repeat)
{
    return c->seed + (uint64_t)repeat;
}

uint64_t har_campaign_calibration_seed(const struct har_campaign *c, size_t recipe, int run)
{
    return c->seed + HAR_SEED_GAP + recipe * HAR_SEED_BLOCK + (uint64_t)run;
}

uint64_t har_campaign_alarm_seed(const struct har_campaign *c, size_t recipe, int run)
{
    return c->seed + 2 * HAR_SEED_GAP + recipe * HAR_SEED_BLOCK + (uint64_t)run;
}
