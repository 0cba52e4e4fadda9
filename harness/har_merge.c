/* Checks shards against each other and joins them.
 * Called by cmd_merge.c and har_slurm.c; must not know how a shard is run. */
#include "har_merge.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "har_lab.h"
#include "har_select.h"
#include "har_store.h"

/* Texts every shard of a plan has alike, then those that are its own. */
#define TEXTS(X) X(plan_hash) X(entry_total) X(campaign) X(shard) X(controls) X(finished)
enum { SAME = 3 };
enum text {
#define HAR_ROW_(name) TEXT_##name,
    TEXTS(HAR_ROW_)
#undef HAR_ROW_
        TEXT_COUNT
};
static const char *const keys[TEXT_COUNT] = {
#define HAR_ROW_(name) #name,
    TEXTS(HAR_ROW_)
#undef HAR_ROW_
};

struct part {
    const char *dir;
    char *texts[TEXT_COUNT];
    int k, n;
};

static enum har_status part_open(const char *dir, struct part *out, struct har_error *error)
{
    har_store *store = NULL;
    out->dir = dir;
    enum har_status status = har_store_open(dir, &store, error);
    for (int i = 0; status == HAR_OK && i < TEXT_COUNT; i++) {
        status = har_store_get_text(store, keys[i], &out->texts[i], error);
    }
    har_store_close(store);
    if (status == HAR_OK &&
        (out->texts[TEXT_plan_hash] == NULL || out->texts[TEXT_entry_total] == NULL ||
         out->texts[TEXT_shard] == NULL || out->texts[TEXT_shard][0] == '\0')) {
        status = har_fail(error, HAR_EMISMATCH, "%s: holds no shard of a plan", dir);
    }
    if (status == HAR_OK) {
        status = har_select_parse_shard(out->texts[TEXT_shard], &out->k, &out->n, error);
    }
    return status;
}

static void parts_free(struct part *parts, size_t count)
{
    for (size_t i = 0; parts != NULL && i < count; i++) {
        for (int k = 0; k < TEXT_COUNT; k++) {
            free(parts[i].texts[k]);
        }
    }
    free(parts);
}

static const char *text_of(const struct part *part, enum text which)
{
    return part->texts[which] != NULL ? part->texts[which] : "";
}

/* Each of 1..n once, all of one plan. */
static enum har_status check_parts(const struct part *parts, size_t count, struct har_error *error)
{
    for (size_t i = 1; i < count; i++) {
        for (int t = 0; t < SAME; t++) {
            if (strcmp(text_of(&parts[i], (enum text)t), text_of(&parts[0], (enum text)t)) != 0) {
                return har_fail(error, HAR_EMISMATCH,
                                "%s and %s are shards of different plans: %s %s and %s",
                                parts[0].dir, parts[i].dir, keys[t],
                                text_of(&parts[0], (enum text)t), text_of(&parts[i], (enum text)t));
            }
        }
        if (parts[i].n != parts[0].n) {
            return har_fail(error, HAR_EMISMATCH, "%s is shard %s, %s is shard %s", parts[0].dir,
                            text_of(&parts[0], TEXT_shard), parts[i].dir,
                            text_of(&parts[i], TEXT_shard));
        }
    }
    for (int k = 1; k <= parts[0].n; k++) {
        const struct part *found = NULL;
        for (size_t i = 0; i < count; i++) {
            if (parts[i].k == k && found != NULL) {
                return har_fail(error, HAR_EMISMATCH, "%s and %s are both shard %d/%d", found->dir,
                                parts[i].dir, k, parts[0].n);
            }
            found = parts[i].k == k ? &parts[i] : found;
        }
        if (found == NULL) {
            return har_fail(error, HAR_EMISMATCH, "shard %d/%d is missing", k, parts[0].n);
        }
    }
    return HAR_OK;
}

/* Whether the folder may be overwritten: it has no results, or merged ones of this plan. */
static enum har_status check_target(const char *dir, const struct part *parts,
                                    struct har_error *error)
{
    char path[PATH_MAX];
    har_store *store = NULL;
    char *hash = NULL;
    char *merged = NULL;
    snprintf(path, sizeof path, "%s/results.sqlite", dir);
    if (access(path, F_OK) != 0) {
        return HAR_OK;
    }
    enum har_status status = har_store_open(dir, &store, error);
    if (status == HAR_OK) {
        status = har_store_get_text(store, "plan_hash", &hash, error);
    }
    if (status == HAR_OK) {
        status = har_store_get_text(store, "merged", &merged, error);
    }
    har_store_close(store);
    if (status == HAR_OK &&
        (merged == NULL || hash == NULL || strcmp(hash, text_of(&parts[0], TEXT_plan_hash)) != 0)) {
        status = har_fail(error, HAR_EMISMATCH, "%s: holds other results; merge into another --out",
                          dir);
    }
    free(hash);
    free(merged);
    return status;
}

static void take_count(void *context, int columns, char **values)
{
    (void)columns;
    *(long *)context = atol(values[0]);
}

static enum har_status check_entries(har_store *store, const struct part *part,
                                     struct har_error *error)
{
    long count = -1;
    const long wanted = atol(text_of(part, TEXT_entry_total));
    const enum har_status status =
        har_store_query(store, "SELECT count(*) FROM entry", take_count, &count, error);
    if (status == HAR_OK && count != wanted) {
        return har_fail(error, HAR_EMISMATCH, "the shards hold %ld of %ld entries of the plan",
                        count, wanted);
    }
    return status;
}

/* Passed if all passed; else the first that did not. Finished only if all are. */
static enum har_status put_ends(har_store *store, const struct part *parts, size_t count,
                                struct har_error *error)
{
    const char *controls = text_of(&parts[0], TEXT_controls);
    bool finished = true;
    for (size_t i = 0; i < count; i++) {
        const char *const mine = text_of(&parts[i], TEXT_controls);
        if (strncmp(mine, "passed", strlen("passed")) != 0 &&
            strncmp(controls, "passed", strlen("passed")) == 0) {
            controls = mine;
        }
        finished = finished && text_of(&parts[i], TEXT_finished)[0] != '\0';
    }
    enum har_status status = har_store_put_text(store, "merged", "1", error);
    if (status == HAR_OK) {
        status = har_store_put_text(store, "shard", "", error);
    }
    if (status == HAR_OK) {
        status = har_store_put_text(store, "controls", controls, error);
    }
    return status == HAR_OK
               ? har_store_put_text(store, "finished", finished ? "every stage" : "", error)
               : status;
}

/* Builds the database in a folder of its own, then moves it into place. */
static enum har_status build(const char *dir, const struct part *parts, size_t count,
                             struct har_error *error)
{
    char folder[PATH_MAX];
    char from[PATH_MAX + 32];
    char to[PATH_MAX + 32];
    har_store *store = NULL;
    snprintf(folder, sizeof folder, "%s/new-merge", dir);
    har_lab_remove(dir, folder);
    enum har_status status = har_lab_make_folder(folder, error);
    if (status == HAR_OK) {
        status = har_store_create(folder, &store, error);
    }
    for (size_t i = 0; status == HAR_OK && i < count; i++) {
        status = har_store_add_shard(store, parts[i].dir, error);
    }
    if (status == HAR_OK) {
        status = check_entries(store, &parts[0], error);
    }
    if (status == HAR_OK) {
        status = put_ends(store, parts, count, error);
    }
    if (status == HAR_OK) {
        status = har_store_settle(store, error);
    }
    har_store_close(store);
    snprintf(from, sizeof from, "%s/results.sqlite", folder);
    snprintf(to, sizeof to, "%s/results.sqlite", dir);
    if (status == HAR_OK && rename(from, to) != 0) {
        status = har_fail(error, HAR_EIO, "%s: %s", to, strerror(errno));
    }
    har_lab_remove(dir, folder);
    return status;
}

enum har_status har_merge_shards(const char *dir, const char *const *shards, size_t count,
                                 struct har_error *error)
{
    struct part *const parts = calloc(count + 1, sizeof *parts);
    if (parts == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for %zu shards", count);
    }
    enum har_status status = HAR_OK;
    for (size_t i = 0; status == HAR_OK && i < count; i++) {
        status = part_open(shards[i], &parts[i], error);
    }
    if (status == HAR_OK) {
        status = check_parts(parts, count, error);
    }
    if (status == HAR_OK) {
        status = check_target(dir, parts, error);
    }
    if (status == HAR_OK) {
        status = build(dir, parts, count, error);
    }
    parts_free(parts, count);
    return status;
}
