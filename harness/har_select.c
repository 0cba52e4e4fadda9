/* Narrows a plan.
 * Called by har_run.c; must not know how a plan is run. */
#include "har_select.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_baseline.h"

enum { SHARDS_MAX = 1000 };

enum har_status har_select_parse_shard(const char *text, int *k, int *n, struct har_error *error)
{
    char rest = '\0';
    *k = *n = 0;
    if (sscanf(text, "%d/%d%c", k, n, &rest) != 2 || *k < 1 || *n < 1 || *k > *n ||
        *n > SHARDS_MAX) {
        return har_fail(error, HAR_EUSAGE,
                        "--shard takes K/N with K from 1 to N and N at most %d, not '%s'",
                        SHARDS_MAX, text);
    }
    return HAR_OK;
}

/* Removes an entry; the order of the others stays. */
static void drop(struct har_plan *plan, size_t index)
{
    free(plan->entries[index].id);
    memmove(&plan->entries[index], &plan->entries[index + 1],
            (plan->count - index - 1) * sizeof *plan->entries);
    plan->count--;
}

/* The catalogue of a source file, mutants/<name>.def. */
static void catalogue_of(const char *file, char *out, size_t size)
{
    const char *const slash = strrchr(file, '/');
    const char *const name = slash != NULL ? slash + 1 : file;
    snprintf(out, size, "mutants/%.*s.def", (int)strcspn(name, "."), name);
}

/* Folder of the sources this program was built from; caller frees, NULL = not found. */
static char *source_root(void)
{
    char *const found = har_programs_source("mutants/catalogue.h");
    char *const slash = found != NULL ? strstr(found, "/mutants/catalogue.h") : NULL;
    if (slash != NULL) {
        *slash = '\0';
    }
    return found;
}

/* Asks git which files of the catalogue's sites changed; the answer is a list of paths, one a line.
 */
static enum har_status ask_git(struct har_lab *lab, const char *log, struct har_error *error)
{
    struct har_command command = {.timeout_s = 60.0};
    struct har_exit end = {0};
    char line[256];
    const bool own = lab->catalogue.published != NULL; /* its files stand as seen from here */
    char *const root = own ? strdup(".") : source_root();
    const char *const revision = lab->campaign.changed_since;
    if (root == NULL || revision[0] == '-') {
        free(root);
        return har_fail(error, HAR_EUSAGE, "--changed-since %s: %s", revision,
                        root == NULL ? "the sources are not beside this program"
                                     : "is no revision");
    }
    const char *const words[] = {"/usr/bin/git", "-C",         root,     "diff", "--name-only",
                                 "--no-renames", "--relative", revision, "--",   NULL};
    for (size_t i = 0; words[i] != NULL; i++) {
        har_args_add(&command.args, words[i]);
    }
    for (size_t i = 0; i < har_catalogue_count(&lab->catalogue); i++) {
        const struct mut_site_info *const site =
            har_catalogue_site(&lab->catalogue, har_catalogue_at(&lab->catalogue, i));
        char catalogue[PATH_MAX];
        if (site != NULL) {
            catalogue_of(site->file, catalogue, sizeof catalogue);
            har_args_add(&command.args, site->file);
            har_args_add(&command.args, catalogue);
        }
    }
    command.log_path = strdup(log);
    enum har_status status = har_pool_run_one(&lab->pool, &command, &end, error);
    if (status == HAR_OK && end.end != HAR_END_done) {
        har_lab_last_line(log, line, sizeof line);
        status =
            har_fail(error, HAR_EUSAGE, "--changed-since %s: git in %s: %s", revision, root, line);
    }
    free(root);
    return status;
}

static bool has_line(const char *text, const char *line)
{
    const size_t length = strlen(line);
    for (const char *p = text; p != NULL && *p != '\0'; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (strncmp(p, line, length) == 0 && (p[length] == '\n' || p[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool changed(const struct har_lab *lab, const char *list, const struct mut_fault *fault)
{
    char catalogue[PATH_MAX];
    const struct mut_site_info *const site = har_catalogue_site(&lab->catalogue, fault);
    if (site == NULL) {
        return true;
    }
    catalogue_of(site->file, catalogue, sizeof catalogue);
    return has_line(list, site->file) || has_line(list, catalogue);
}

static enum har_status keep_changed(struct har_lab *lab, struct har_error *error)
{
    char log[PATH_MAX];
    struct har_text list = {0};
    snprintf(log, sizeof log, "%s/changed.log", lab->out);
    enum har_status status = ask_git(lab, log, error);
    FILE *const file = status == HAR_OK ? fopen(log, "rbe") : NULL;
    char block[4096];
    size_t got;
    while (file != NULL && (got = fread(block, 1, sizeof block, file)) > 0) {
        har_text_add_bytes(&list, block, got);
    }
    if (file != NULL) {
        fclose(file);
    }
    (void)remove(log);
    if (status == HAR_OK && list.failed) {
        status = har_fail(error, HAR_EMEMORY, "no memory for git's answer");
    }
    const size_t before = lab->plan.count;
    for (size_t i = lab->plan.count; status == HAR_OK && i-- > 0;) {
        if (!changed(lab, har_text_get(&list), lab->plan.entries[i].fault)) {
            drop(&lab->plan, i);
        }
    }
    har_text_addf(&lab->selection, "%zu of %zu faults stand in files changed since %s",
                  lab->plan.count, before, lab->campaign.changed_since);
    har_text_fini(&list);
    return status;
}

/* A baseline that cannot be read is an error before anything runs. */
static enum har_status use_baseline(struct har_lab *lab, struct har_error *error)
{
    struct har_baseline baseline;
    const enum har_status status = har_baseline_load(lab->campaign.baseline, &baseline, error);
    if (status != HAR_OK || !lab->campaign.iterate) {
        har_baseline_fini(&baseline);
        return status;
    }
    const size_t before = lab->plan.count;
    for (size_t i = lab->plan.count; i-- > 0;) {
        const struct har_baseline_entry *const e =
            har_baseline_find(&baseline, lab->plan.entries[i].id);
        if (e != NULL && e->outcome == HAR_OUTCOME_detected) {
            drop(&lab->plan, i);
        }
    }
    har_text_addf(&lab->selection, "%s%zu of %zu faults are not detected by %s",
                  lab->selection.size > 0 ? "; " : "", lab->plan.count, before,
                  lab->campaign.baseline);
    har_baseline_fini(&baseline);
    return HAR_OK;
}

enum har_status har_select_apply(struct har_lab *lab, struct har_error *error)
{
    enum har_status status = HAR_OK;
    if (lab->campaign.changed_since != NULL) {
        status = keep_changed(lab, error);
    }
    if (status == HAR_OK && lab->campaign.baseline != NULL) {
        status = use_baseline(lab, error);
    }
    for (size_t i = 0; i < lab->plan.count; i++) {
        lab->plan.entries[i].position = i;
    }
    return status;
}

static int by_place(const void *a, const void *b)
{
    const struct har_entry *const x = *(struct har_entry *const *)a;
    const struct har_entry *const y = *(struct har_entry *const *)b;
    if (x->place != y->place) {
        return x->place < y->place ? -1 : 1;
    }
    return (x->position > y->position) - (x->position < y->position);
}

/* First and one past the last of shard k's places in the order. */
static size_t cut(size_t count, int k, int n)
{
    return count * (size_t)k / (size_t)n;
}

/* A bench's false-alarm runs belong to the first shard with an entry on it. */
static void own_benches(struct har_lab *lab, struct har_entry *const *order, size_t first,
                        size_t end)
{
    for (size_t b = 0; b < lab->bench_count; b++) {
        size_t at = 0;
        while (at < lab->plan.count && order[at]->place != (int)b) {
            at++;
        }
        lab->benches[b].owned =
            at == lab->plan.count ? lab->campaign.shard == 1 : at >= first && at < end;
    }
}

enum har_status har_select_shard(struct har_lab *lab, struct har_error *error)
{
    const int k = lab->campaign.shard;
    const int n = lab->campaign.shards;
    const size_t count = lab->plan.count;
    for (size_t b = 0; b < lab->bench_count; b++) {
        lab->benches[b].owned = true;
    }
    lab->entry_total = count;
    if (n == 0) {
        return HAR_OK;
    }
    if ((size_t)n > count) {
        return har_fail(error, HAR_EUSAGE, "--shard %d/%d: the plan has %zu entries only", k, n,
                        count);
    }
    struct har_entry **const order = calloc(count, sizeof *order);
    bool *const kept = calloc(count, sizeof *kept);
    if (order == NULL || kept == NULL) {
        free(order);
        free(kept);
        return har_fail(error, HAR_EMEMORY, "no memory for the plan");
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = &lab->plan.entries[i];
    }
    qsort(order, count, sizeof(struct har_entry *), by_place);
    own_benches(lab, order, cut(count, k - 1, n), cut(count, k, n));
    for (size_t i = cut(count, k - 1, n); i < cut(count, k, n); i++) {
        kept[order[i]->position] = true;
    }
    for (size_t i = count; i-- > 0;) {
        if (!kept[i]) {
            drop(&lab->plan, i);
        }
    }
    free(order);
    free(kept);
    return HAR_OK;
}
