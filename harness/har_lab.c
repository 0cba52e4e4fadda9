/* Opens and closes what a campaign works with; files and folders of a campaign.
 * Called by the commands; must not know the order of the stages. */
#include "har_lab.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "har_hash.h"

enum har_status har_lab_make_folder(const char *path, struct har_error *error)
{
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part || path[0] == '\0') {
        return har_fail(error, HAR_EIO, "'%s' cannot be a folder name", path);
    }
    for (char *p = part + 1; *p != '\0'; p++) {
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(part, 0755);
            *p = '/';
        }
    }
    if (mkdir(part, 0755) != 0 && errno != EEXIST) {
        return har_fail(error, HAR_EIO, "%s: %s", part, strerror(errno));
    }
    return HAR_OK;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

void har_lab_remove(const char *root, const char *path)
{
    const size_t length = strlen(root);
    if (length > 0 && strncmp(path, root, length) == 0 && path[length] == '/' &&
        strstr(path, "/../") == NULL) {
        (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
}

static bool is_half_done(const char *name)
{
    const char *const dot = strrchr(name, '.');
    const bool process = dot != NULL && dot[1] != '\0' &&
                         strspn(dot + 1, "0123456789") == strlen(dot + 1) &&
                         strchr(name, '/') == NULL;
    return process || strncmp(name, "new-", strlen("new-")) == 0;
}

/* Removes the half-done entries of one folder, or of its folders when deep is set. */
static void remove_half_done(const char *out, const char *folder, bool deep)
{
    DIR *const dir = opendir(folder);
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[PATH_MAX];
        if (entry->d_name[0] == '.' ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path) {
            continue;
        }
        if (deep) {
            remove_half_done(out, path, false);
        } else if (is_half_done(entry->d_name)) {
            har_lab_remove(out, path);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

void har_lab_remove_stale(const char *out)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/runs", out);
    remove_half_done(out, path, false);
    snprintf(path, sizeof path, "%s/cache", out);
    remove_half_done(out, path, true);
}

void har_lab_last_line(const char *path, char *out, size_t size)
{
    char line[512];
    FILE *const file = fopen(path, "rbe");
    out[0] = '\0';
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[strspn(line, " \t\r")] != '\0') {
            snprintf(out, size, "%s", line);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    har_text_clean(out);
}

double har_lab_seconds(const struct har_lab *lab)
{
    return har_clock_s() - lab->started_s;
}

int har_lab_steps(const struct har_lab *lab, const struct har_bench *bench)
{
    return lab->campaign.horizon > 0 ? bench->steps : 0;
}

void har_lab_own_args(const struct har_user *user, const struct har_bench *bench,
                      const struct har_train *train, struct har_args *args)
{
    har_args_add(args, "/usr/bin/env");
    har_args_addf(args, "FAULTLINE_FAULT=%s", train->fault);
    har_user_words(user, args);
    har_args_add(args, "--recipe");
    har_args_add(args, bench->recipe.path);
    if (bench->described) {
        har_args_add(args, "--weights");
        har_args_add(args, train->weights);
    }
    har_args_add(args, "--seed");
    har_args_addf(args, "%" PRIu64, train->seed);
    har_args_add(args, "--steps");
    har_args_addf(args, "%d", bench->steps);
    har_args_add(args, "--trace");
    har_args_add(args, train->trace);
}

void har_lab_train_args(const struct har_lab *lab, const struct har_bench *bench,
                        const struct har_train *train, struct har_args *args)
{
    if (bench->own) {
        har_lab_own_args(&lab->campaign.trainer, bench, train, args);
        return;
    }
    har_args_add(args, train->program);
    har_args_add(args, "--recipe");
    har_args_add(args, bench->recipe.path);
    if (train->resume == NULL) {
        har_args_add(args, "--weights");
        har_args_add(args, train->weights);
    } else {
        har_args_add(args, "--resume");
        har_args_add(args, train->resume);
    }
    har_args_add(args, "--seed");
    har_args_addf(args, "%" PRIu64, train->seed);
    if (train->steps > 0) {
        har_args_add(args, "--steps");
        har_args_addf(args, "%d", train->steps);
    }
    har_args_add(args, "--trace");
    har_args_add(args, train->trace);
    har_args_add(args, "--level");
    har_args_add(args, train->full ? "full" : "hashes");
    if (train->fault != NULL) {
        har_args_add(args, "--fault");
        har_args_add(args, train->fault);
    }
    har_args_add(args, "--schedule");
    har_args_add(args, har_schedule_name(train->variant.schedule));
    har_args_add(args, "--schedule-seed");
    har_args_addf(args, "%" PRIu64, train->schedule_seed);
    har_args_add(args, "--threads");
    har_args_addf(args, "%d", train->threads);
    har_args_add(args, "--driver");
    har_args_add(args, train->variant.tasks ? "tasks" : "single");
    if (train->checkpoints != NULL) {
        har_args_add(args, "--checkpoint-dir");
        har_args_add(args, train->checkpoints);
        har_args_add(args, "--no-sync");
    }
    if (train->states != NULL) {
        har_args_add(args, "--states");
        har_args_add(args, train->states);
    }
    har_args_add(args, "--quiet");
}

enum har_status har_lab_load_bench(const struct har_lab *lab, const char *path,
                                   struct har_bench *out, struct har_error *error)
{
    const struct har_campaign *const c = &lab->campaign;
    memset(out, 0, sizeof *out);
    out->own = c->trainer.words.count > 0;
    out->described = !har_campaign_is_own(c);
    out->reference = c->reference;
    const enum har_status status = out->described
                                       ? har_recipe_load(path, &out->recipe, error)
                                       : har_recipe_load_own(path, c->horizon, &out->recipe, error);
    if (status != HAR_OK) {
        return status;
    }
    const bool plain =
        out->own || c->external.words.count > 0 || c->reference == HAR_REFERENCE_command;
    out->suffix = plain ? ".jsonl" : ".jsonl.zst";
    out->steps = c->horizon > 0 ? c->horizon : out->recipe.steps;
    out->lockstep = c->mode == HAR_MODE_lockstep;
    if (!out->own) {
        out->middle_checkpoint =
            har_recipe_middle_checkpoint(out->recipe.checkpoint_every, out->steps);
    }
    uint64_t hash =
        har_hash_bytes(out->recipe.inputs_hash, &lab->programs_hash, sizeof lab->programs_hash);
    hash = har_hash_bytes(hash, &out->steps, sizeof out->steps);
    if (asprintf(&out->folder, "%s/cache/%s-%016" PRIx64, lab->out, out->recipe.name, hash) < 0) {
        out->folder = NULL;
        har_bench_fini(out);
        return har_fail(error, HAR_EMEMORY, "no memory for recipe %s", path);
    }
    return har_lab_make_folder(out->folder, error);
}

void har_bench_fini(struct har_bench *bench)
{
    har_recipe_fini(&bench->recipe);
    orc_trace_free(bench->healthy);
    orc_trace_free(bench->reach);
    orc_bounds_free(bench->bounds);
    free(bench->folder);
    memset(bench, 0, sizeof *bench);
}

static enum har_status load_benches(struct har_lab *lab, struct har_error *error)
{
    const size_t count = lab->campaign.recipe_count;
    lab->benches = calloc(count, sizeof *lab->benches);
    if (lab->benches == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for %zu recipes", count);
    }
    for (size_t i = 0; i < count; i++) {
        const enum har_status status =
            har_lab_load_bench(lab, lab->campaign.recipes[i], &lab->benches[i], error);
        if (status != HAR_OK) {
            return status;
        }
        lab->bench_count = i + 1;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(lab->benches[k].recipe.name, lab->benches[i].recipe.name) == 0) {
                return har_fail(error, HAR_EUSAGE, "%s and %s have the same name '%s'",
                                lab->benches[k].recipe.path, lab->benches[i].recipe.path,
                                lab->benches[i].recipe.name);
            }
        }
    }
    return HAR_OK;
}

static void take_checks(struct har_lab *lab)
{
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        lab->enabled[i] = lab->campaign.check_count == 0;
    }
    for (size_t i = 0; i < lab->campaign.check_count; i++) {
        enum orc_check_id id;
        if (orc_check_find(lab->campaign.checks[i], &id)) {
            lab->enabled[id] = true;
        }
    }
    lab->enabled[ORC_CHECK_external] &= lab->campaign.external.words.count > 0;
}

/* The trainers of the user are programs that take part in results; so their runs are cached. */
static enum har_status hash_commands(struct har_lab *lab, struct har_error *error)
{
    const struct har_campaign *const c = &lab->campaign;
    const uint64_t reference = (uint64_t)c->reference;
    enum har_status status = har_user_hash(&c->trainer, &lab->programs_hash, error);
    lab->programs_hash = har_hash_bytes(lab->programs_hash, &reference, sizeof reference);
    if (status == HAR_OK && c->also_train != NULL) {
        status = har_hash_file(c->also_train, &lab->programs_hash, error);
    }
    return status == HAR_OK ? har_user_hash(&c->second, &lab->programs_hash, error) : status;
}

/* The whole of a small file; caller frees, NULL = it cannot be read. */
static char *read_text(const char *path)
{
    struct har_text text = {0};
    char block[4096];
    size_t got;
    FILE *const file = fopen(path, "rbe");
    while (file != NULL && (got = fread(block, 1, sizeof block, file)) > 0) {
        har_text_add_bytes(&text, block, got);
    }
    if (file != NULL) {
        fclose(file);
    }
    if (text.failed || file == NULL) {
        har_text_fini(&text);
    }
    return text.data;
}

/* Asks the user's trainer for its faults. */
static enum har_status ask_catalogue(struct har_lab *lab, struct har_error *error)
{
    struct har_command command = {.timeout_s = lab->campaign.external_timeout_s,
                                  .memory_mb = lab->campaign.memory_mb};
    struct har_exit end = {0};
    char folder[PATH_MAX];
    char name[512];
    char line[256];
    snprintf(folder, sizeof folder, "%s/logs", lab->out);
    snprintf(name, sizeof name, "%.400s: trainer --faults --json", lab->campaign.path);
    har_user_words(&lab->campaign.trainer, &command.args);
    har_args_add(&command.args, "--faults");
    har_args_add(&command.args, "--json");
    if (asprintf(&command.log_path, "%s/faults.log", folder) < 0 ||
        asprintf(&command.answer_path, "%s/faults.json", folder) < 0) {
        command.answer_path = NULL;
        har_command_fini(&command);
        return har_fail(error, HAR_EMEMORY, "no memory for a path");
    }
    char *const log = strdup(command.log_path);
    char *const answer = strdup(command.answer_path);
    enum har_status status = har_lab_make_folder(folder, error);
    if (status == HAR_OK) {
        status = har_pool_run_one(&lab->pool, &command, &end, error);
    }
    if (status == HAR_OK && end.end != HAR_END_done) {
        har_lab_last_line(log, line, sizeof line);
        status = har_fail(error, HAR_EUSAGE, "%s %s%s%s", name, har_end_text(end.end),
                          line[0] != '\0' ? ": " : "", line);
    }
    char *const text = status == HAR_OK ? read_text(answer) : NULL;
    if (status == HAR_OK) {
        status = har_catalogue_parse(text != NULL ? text : "", lab->campaign.path, name,
                                     &lab->catalogue, error);
    }
    free(text);
    free(answer);
    free(log);
    return status;
}

static enum har_status open_rest(const struct har_options *options, struct har_lab *lab,
                                 struct har_error *error)
{
    enum har_status status = har_campaign_is_own(&lab->campaign)
                                 ? HAR_OK
                                 : har_programs_find(options, &lab->programs, error);
    lab->programs_hash = HAR_HASH_START;
    if (status == HAR_OK) {
        status = har_programs_hash(&lab->programs, &lab->programs_hash, error);
    }
    if (status == HAR_OK) {
        status = har_store_create(lab->out, &lab->store, error);
    }
    if (status == HAR_OK) {
        har_lab_remove_stale(lab->out); /* the lock is ours */
    }
    if (status == HAR_OK) {
        status = har_pool_open(lab->campaign.jobs, !options->quiet, &lab->pool, error);
    }
    if (status == HAR_OK) {
        status = hash_commands(lab, error);
    }
    if (status == HAR_OK && lab->campaign.trainer.words.count > 0) {
        status = ask_catalogue(lab, error);
    }
    if (status == HAR_OK) {
        status = load_benches(lab, error);
    }
    return status;
}

/* What both ways to open share, once the campaign is there. */
static enum har_status open_campaign(const struct har_options *options, const char *dir,
                                     struct har_lab *lab, struct har_error *error)
{
    enum har_status status = har_campaign_apply(&lab->campaign, options, error);
    lab->options = *options;
    if (status == HAR_OK) {
        take_checks(lab);
        lab->keep_traces = options->keep_traces;
        lab->out = strdup(dir);
        status = lab->out != NULL ? open_rest(options, lab, error)
                                  : har_fail(error, HAR_EMEMORY, "no memory");
    }
    return status;
}

static void prepare(struct har_lab *lab)
{
    memset(lab, 0, sizeof *lab);
    lab->pool.signal_fd = -1;
    lab->started_s = har_clock_s();
    unsetenv("FAULTLINE_FAULT"); /* an armed fault would spoil every healthy run */
}

enum har_status har_lab_open(const struct har_options *options, struct har_lab *out,
                             struct har_error *error)
{
    prepare(out);
    if (options->campaign == NULL) {
        return har_fail(error, HAR_EUSAGE, "--campaign FILE is needed");
    }
    enum har_status status = har_campaign_load(options->campaign, &out->campaign, error);
    if (status == HAR_OK) {
        status = open_campaign(options, options->out != NULL ? options->out : "faultline.out", out,
                               error);
    }
    if (status != HAR_OK) {
        har_lab_close(out);
    }
    return status;
}

enum har_status har_lab_open_recipe(const struct har_options *options, const char *otherwise,
                                    const char *dir, struct har_lab *out, struct har_error *error)
{
    prepare(out);
    char *const found = options->recipe == NULL ? har_programs_source(otherwise) : NULL;
    const char *const recipe = options->recipe != NULL ? options->recipe : found;
    enum har_status status = recipe != NULL
                                 ? har_campaign_of_recipe(recipe, &out->campaign, error)
                                 : har_fail(error, HAR_EUSAGE, "--recipe FILE is needed");
    if (status == HAR_OK) {
        status = open_campaign(options, dir, out, error);
    }
    free(found);
    if (status != HAR_OK) {
        har_lab_close(out);
    }
    return status;
}

void har_lab_close(struct har_lab *lab)
{
    for (size_t i = 0; i < lab->bench_count; i++) {
        har_bench_fini(&lab->benches[i]);
    }
    free(lab->benches);
    for (size_t i = 0; i < HAR_KEPT_TRACES; i++) {
        free(lab->kept[i].path);
        orc_trace_free(lab->kept[i].trace);
    }
    har_plan_fini(&lab->plan);
    har_catalogue_fini(&lab->catalogue);
    har_text_fini(&lab->selection);
    har_pool_close(&lab->pool);
    har_store_close(lab->store);
    har_programs_fini(&lab->programs);
    har_campaign_fini(&lab->campaign);
    free(lab->out);
    memset(lab, 0, sizeof *lab);
    lab->pool.signal_fd = -1;
}
