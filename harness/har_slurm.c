/* Writes the script of a job array, submits it, merges what it leaves.
 * Called by cmd_run.c; must not know how a shard is run. */
#include "har_slurm.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_lab.h"
#include "har_merge.h"
#include "har_pool.h"

enum { SHARDS_MAX = HAR_PATTERNS_MAX, WAIT_S = 30 * 86400 };

static bool own_path(char *out, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", out, size - 1);
    out[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* The command of one task: what was asked for, as its shard, in its folder. */
static enum har_status add_command(const struct har_options *options, const char *program,
                                   const char *dir, struct har_text *out, struct har_error *error)
{
    struct har_args words = {0};
    struct har_options task = *options;
    task.slurm = -1;
    task.shard = task.out = NULL;
    task.dry_run = false;
    task.quiet = true;
    har_args_add(&words, program);
    har_options_words(HAR_SUBCOMMAND_run, &task, &words);
    har_text_add(out, "exec");
    for (size_t i = 0; i < words.count; i++) {
        har_text_add(out, " ");
        har_text_add_shell(out, words.items[i]);
    }
    har_text_add(out, " --shard \"$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT\" --out ");
    har_text_add_shell(out, dir);
    har_text_add(out, "/shard-\"$SLURM_ARRAY_TASK_ID\"\n");
    const bool failed = words.failed || out->failed;
    har_args_fini(&words);
    return failed ? har_fail(error, HAR_EMEMORY, "no memory for the job script") : HAR_OK;
}

static enum har_status write_script(const struct har_options *options, const char *dir,
                                    const char *script, struct har_error *error)
{
    char program[PATH_MAX];
    char here[PATH_MAX];
    struct har_text text = {0};
    if (!own_path(program, sizeof program) || getcwd(here, sizeof here) == NULL) {
        return har_fail(error, HAR_EIO, "the paths of program and folder cannot be found out");
    }
    har_text_addf(&text,
                  "#!/bin/sh\n"
                  "#SBATCH --job-name=faultline\n"
                  "#SBATCH --array=1-%d\n"
                  "#SBATCH --output=%s/slurm/%%a.log\n"
                  "# A task is a shard. Its exit code says what a campaign's says.\n"
                  "cd ",
                  options->slurm, dir);
    har_text_add_shell(&text, here);
    har_text_add(&text, " || exit 74\n");
    enum har_status status = add_command(options, program, dir, &text, error);
    if (status == HAR_OK) {
        status = har_text_write(&text, script, error);
    }
    har_text_fini(&text);
    return status;
}

/* The job number that `sbatch --parsable` prints first, "" when there is none. */
static void job_of(const char *log, char *out, size_t size)
{
    FILE *const file = fopen(log, "rbe");
    out[0] = '\0';
    if (file != NULL && fgets(out, (int)size, file) != NULL) {
        out[strspn(out, "0123456789")] = '\0';
    }
    if (file != NULL) {
        fclose(file);
    }
}

static enum har_status submit(const char *script, const char *log, struct har_error *error)
{
    struct har_command command = {.timeout_s = WAIT_S};
    struct har_exit end = {0};
    struct har_pool pool;
    char job[32];
    char line[300];
    enum har_status status = har_pool_open(1, false, &pool, error);
    if (status != HAR_OK) {
        return status;
    }
    const char *const words[] = {"/usr/bin/env", "sbatch", "--parsable", "--wait", script};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        har_args_add(&command.args, words[i]);
    }
    command.log_path = strdup(log);
    status = har_pool_run_one(&pool, &command, &end, error);
    har_pool_close(&pool);
    job_of(log, job, sizeof job);
    if (status == HAR_EINTERRUPTED) {
        return har_fail(error, status,
                        "interrupted; the array goes on as job %s (scancel %s ends "
                        "it), the same command merges it",
                        job, job);
    }
    if (status == HAR_OK && job[0] == '\0') {
        har_lab_last_line(log, line, sizeof line);
        status = har_fail(error, HAR_EIO, "sbatch did not take %s: %s", script, line);
    }
    return status; /* what a task ended with shows in its shard */
}

static enum har_status merge(const char *dir, int shards, struct har_error *error)
{
    const char *folders[SHARDS_MAX] = {0};
    char *names[SHARDS_MAX] = {0};
    enum har_status status = HAR_OK;
    for (int i = 0; status == HAR_OK && i < shards; i++) {
        if (asprintf(&names[i], "%s/shard-%d", dir, i + 1) < 0) {
            names[i] = NULL;
            status = har_fail(error, HAR_EMEMORY, "no memory for %d shards", shards);
        } else if (access(names[i], R_OK) != 0) {
            status =
                har_fail(error, HAR_EMISMATCH, "%s: its task left nothing (log %s/slurm/%d.log)",
                         names[i], dir, i + 1);
        }
        folders[i] = names[i];
    }
    if (status == HAR_OK) {
        status = har_merge_shards(dir, folders, (size_t)shards, error);
    }
    for (int i = 0; i < shards; i++) {
        free(names[i]);
    }
    return status;
}

enum har_status har_slurm_run(const struct har_options *options, const char *dir,
                              struct har_error *error)
{
    char folder[PATH_MAX];
    char script[PATH_MAX + 16];
    char log[PATH_MAX + 16];
    if (options->slurm < 1 || options->slurm > SHARDS_MAX || options->shard != NULL) {
        return har_fail(error, HAR_EUSAGE,
                        "--slurm takes 1 to %d shards, and --shard does not go with it",
                        SHARDS_MAX);
    }
    char *const whole = realpath(dir, NULL);
    const char *const base = whole != NULL ? whole : dir;
    snprintf(folder, sizeof folder, "%s/slurm", base);
    snprintf(script, sizeof script, "%s/array.sh", folder);
    snprintf(log, sizeof log, "%s/sbatch.log", folder);
    enum har_status status = har_lab_make_folder(folder, error);
    if (status == HAR_OK) {
        status = write_script(options, base, script, error);
    }
    if (status == HAR_OK) {
        printf("job array: %s\n", script);
        fflush(stdout);
    }
    if (status == HAR_OK && !options->dry_run) {
        status = submit(script, log, error);
        if (status == HAR_OK) {
            status = merge(base, options->slurm, error);
        }
    }
    free(whole);
    return status;
}
