/* Where the fuzzers are, and what each says of itself. Called by har_fuzz.c; must not know runs. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_fuzz.h"
#include "har_hash.h"
#include "har_lab.h"
#include "har_programs.h"

static const char prefix[] = "fuzz_";
static const char replay[] = "fuzz_replay_";
enum { ASK_SECONDS = 300 };

static bool is_fuzzer(const struct dirent *entry)
{
    return strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 &&
           strncmp(entry->d_name, replay, sizeof replay - 1) != 0 &&
           strchr(entry->d_name, '.') == NULL;
}

static int keep_fuzzers(const struct dirent *entry)
{
    return is_fuzzer(entry) ? 1 : 0;
}

static bool has_fuzzers(const char *folder)
{
    struct dirent **entries = NULL;
    const int count = folder == NULL ? 0 : scandir(folder, &entries, keep_fuzzers, alphasort);
    for (int i = 0; i < count; i++) {
        free(entries[i]);
    }
    free(entries);
    return count > 0;
}

/* Option, environment, this build, the build of preset fuzz. The caller frees. */
static enum har_status find_folder(const struct har_options *options, char **out,
                                   struct har_error *error)
{
    const char *const named =
        options->fuzzers != NULL ? options->fuzzers : getenv("FAULTLINE_FUZZERS");
    static const char *const places[] = {"../tests", "build/fuzz/tests"};
    *out = NULL;
    if (named != NULL) {
        if (!has_fuzzers(named)) {
            return har_fail(error, HAR_EUSAGE, "%s: no fuzzers there (fuzz_NAME)", named);
        }
        *out = strdup(named);
        return *out != NULL ? HAR_OK : har_fail(error, HAR_EMEMORY, "no memory");
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *const folder = har_programs_source(places[i]);
        if (has_fuzzers(folder)) {
            *out = folder;
            return HAR_OK;
        }
        free(folder);
    }
    return har_fail(error, HAR_EUSAGE,
                    "no fuzzers beside this program; build them: cmake --preset fuzz && cmake "
                    "--build build/fuzz (or set FAULTLINE_FUZZERS)");
}

static int keep_seeds(const struct dirent *entry)
{
    return entry->d_name[0] != '.' ? 1 : 0;
}

static enum har_status hash_seeds(struct har_fuzz_target *target, struct har_error *error)
{
    struct dirent **entries = NULL;
    const int count = scandir(target->seeds, &entries, keep_seeds, alphasort);
    enum har_status status =
        count > 0 ? HAR_OK : har_fail(error, HAR_EUSAGE, "%s: no seeds", target->seeds);
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", target->seeds, entries[i]->d_name);
        if (status == HAR_OK) {
            status = har_hash_file(path, &target->hash, error);
        }
        free(entries[i]);
    }
    free(entries);
    target->seed_count = count > 0 ? (size_t)count : 0;
    return status;
}

static enum har_status target_init(const char *folder, const char *name,
                                   struct har_fuzz_target *out, struct har_error *error)
{
    char text[512];
    memset(out, 0, sizeof *out);
    out->hash = HAR_HASH_START;
    out->name = strdup(name);
    out->reached = calloc(mut_site_count(), sizeof *out->reached);
    if (out->name == NULL || out->reached == NULL ||
        asprintf(&out->program, "%s/%s%s", folder, prefix, name) < 0) {
        return har_fail(error, HAR_EMEMORY, "no memory for targets");
    }
    snprintf(text, sizeof text, "corpus/seeds/%.400s", name);
    out->seeds = har_programs_source(text);
    snprintf(text, sizeof text, "tests/fuzz/%.400s.dict", name);
    out->words = har_programs_source(text);
    if (out->seeds == NULL) {
        return har_fail(error, HAR_EUSAGE, "corpus/seeds/%s: no such folder", name);
    }
    enum har_status status = har_hash_file(out->program, &out->hash, error);
    if (status == HAR_OK && out->words != NULL) {
        status = har_hash_file(out->words, &out->hash, error);
    }
    return status == HAR_OK ? hash_seeds(out, error) : status;
}

static void read_reached(const char *log, struct har_fuzz_target *target)
{
    static const char mark[] = "fuzz: reached ";
    for (const char *at = strstr(log, mark); at != NULL; at = strstr(at, mark)) {
        at += sizeof mark - 1;
        const size_t length = strcspn(at, "\n");
        for (size_t i = 0; i < mut_site_count(); i++) {
            const char *const site = mut_site_at(i)->site;
            target->reached[i] =
                target->reached[i] || (strlen(site) == length && strncmp(site, at, length) == 0);
        }
    }
}

static enum har_status ask_command(const struct har_fuzz *fuzz,
                                   const struct har_fuzz_target *target,
                                   struct har_command *command, struct har_error *error)
{
    command->timeout_s = ASK_SECONDS;
    har_args_add(&command->args, "/usr/bin/env");
    har_args_add(&command->args, "FAULTLINE_FAULT=none:all");
    har_args_add(&command->args, target->program);
    har_args_add(&command->args, "-runs=0");
    har_args_add(&command->args, "-verbosity=0");
    har_args_addf(&command->args, "-artifact_prefix=%s/inputs/healthy-%s-", fuzz->out,
                  target->name);
    har_args_add(&command->args, target->seeds);
    return asprintf(&command->log_path, "%s/logs/ask-%s.log", fuzz->out, target->name) < 0
               ? har_fail(error, HAR_EMEMORY, "no memory for a log's name")
               : HAR_OK;
}

static enum har_status take_answer(const char *path, const struct har_exit *last,
                                   struct har_fuzz_target *target, struct har_error *error)
{
    static const char mark[] = "fuzz: judges ";
    char *const log = har_fuzz_log_text(path);
    if (log == NULL) {
        return har_fail(error, HAR_EIO, "%s: cannot be read", path);
    }
    const char *const found = strstr(log, mark);
    const char *const rest = found == NULL ? "" : found + sizeof mark - 1;
    target->armable = found != NULL;
    target->judges = strndup(rest, strcspn(rest, "\n"));
    read_reached(log, target);
    free(log);
    if (last->code != 0) {
        return har_fail(error, HAR_EALARM, "the healthy target %s fails on its seeds; see %s",
                        target->name, path);
    }
    return target->judges == NULL ? har_fail(error, HAR_EMEMORY, "no memory for targets") : HAR_OK;
}

/* Runs the seeds with every site watched; a target without sites says nothing of them. */
static enum har_status ask(struct har_fuzz *fuzz, struct har_fuzz_target *target,
                           struct har_error *error)
{
    struct har_command command = {.timeout_s = 0};
    struct har_exit last = {0};
    enum har_status status = ask_command(fuzz, target, &command, error);
    char *const path = status == HAR_OK ? strdup(command.log_path) : NULL;
    if (status == HAR_OK && path == NULL) {
        status = har_fail(error, HAR_EMEMORY, "no memory for a log's name");
    }
    if (status == HAR_OK) {
        status = har_pool_run_one(&fuzz->pool, &command, &last, error);
    }
    if (status == HAR_OK) {
        status = take_answer(path, &last, target, error);
    }
    har_command_fini(&command);
    free(path);
    return status;
}

static bool is_wanted(const struct har_options *options, const char *name)
{
    for (size_t i = 0; i < options->targets.count; i++) {
        if (har_text_matches(options->targets.items[i], name)) {
            return true;
        }
    }
    return options->targets.count == 0;
}

static enum har_status add_targets(const struct har_options *options, const char *folder,
                                   struct har_fuzz *fuzz, struct har_error *error)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, keep_fuzzers, alphasort);
    enum har_status status =
        count >= 0 ? HAR_OK : har_fail(error, HAR_EIO, "%s: %s", folder, strerror(errno));
    fuzz->targets = calloc((size_t)(count > 0 ? count : 1), sizeof *fuzz->targets);
    if (fuzz->targets == NULL) {
        status = har_fail(error, HAR_EMEMORY, "no memory for targets");
    }
    for (int i = 0; i < count; i++) {
        const char *const name = entries[i]->d_name + sizeof prefix - 1;
        if (status == HAR_OK && is_wanted(options, name)) {
            struct har_fuzz_target *const target = &fuzz->targets[fuzz->target_count++];
            status = target_init(folder, name, target, error);
            if (status == HAR_OK) {
                status = ask(fuzz, target, error);
            }
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

enum har_status har_fuzz_find_targets(const struct har_options *options, struct har_fuzz *fuzz,
                                      struct har_error *error)
{
    char *folder = NULL;
    enum har_status status = find_folder(options, &folder, error);
    if (status == HAR_OK) {
        status = add_targets(options, folder, fuzz, error);
    }
    if (status == HAR_OK && fuzz->target_count == 0) {
        status = har_fail(error, HAR_EUSAGE, "%s: no fuzzer of a target '%s'", folder,
                          options->targets.items[0]);
    }
    free(folder);
    return status;
}

bool har_fuzz_reaches(const struct har_fuzz_target *target, const struct mut_fault *fault)
{
    const struct mut_site_info *const site = mut_site_find(fault->site);
    return site != NULL && target->reached[site - mut_site_at(0)];
}

bool har_fuzz_judges(const struct har_fuzz_target *target, const struct mut_fault *fault)
{
    char pattern[128];
    const char *at = target->judges;
    while (*at != '\0') {
        const size_t length = strcspn(at, " ");
        snprintf(pattern, sizeof pattern, "%.*s", (int)length, at);
        if (har_text_matches(pattern, fault->site)) {
            return true;
        }
        at += length + strspn(at + length, " ");
    }
    return false;
}

void har_fuzz_target_fini(struct har_fuzz_target *target)
{
    free(target->name);
    free(target->program);
    free(target->seeds);
    free(target->words);
    free(target->judges);
    free(target->reached);
}
