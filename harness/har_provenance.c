/* Asks git, the compiler's own macros and /proc.
 * Called by har_run.c and doctor; must not know results. */
#include "har_provenance.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

void har_provenance_cpu(char *out, size_t size)
{
    char line[512];
    FILE *const file = fopen("/proc/cpuinfo", "rbe");
    out[0] = '\0';
    while (file != NULL && out[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        const char *const colon = strchr(line, ':');
        if (strncmp(line, "model name", strlen("model name")) == 0 && colon != NULL) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(out, size, "%s", colon + 2);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* First line that git prints about the tree of the campaign, "" when it is none. */
static enum har_status ask_git(struct har_lab *lab, char *out, size_t size, struct har_error *error)
{
    struct har_command command = {.timeout_s = 20.0};
    struct har_exit end = {0};
    char *const folder = strdup(lab->campaign.path);
    char *log = NULL;
    out[0] = '\0';
    if (folder == NULL || asprintf(&log, "%s/git.log", lab->out) < 0) {
        free(folder);
        return har_fail(error, HAR_EMEMORY, "no memory for provenance");
    }
    char *const slash = strrchr(folder, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    har_args_add(&command.args, "/usr/bin/git");
    har_args_add(&command.args, "-C");
    har_args_add(&command.args, slash != NULL ? folder : ".");
    har_args_add(&command.args, "describe");
    har_args_add(&command.args, "--always");
    har_args_add(&command.args, "--dirty");
    har_args_add(&command.args, "--abbrev=40");
    har_args_add(&command.args, "--exclude=*");
    command.log_path = strdup(log);
    const enum har_status status = har_pool_run_one(&lab->pool, &command, &end, NULL);
    if (status == HAR_OK && end.end == HAR_END_done) {
        har_lab_last_line(log, out, size);
    }
    (void)remove(log);
    free(log);
    free(folder);
    return status == HAR_EINTERRUPTED ? har_fail(error, status, "interrupted") : HAR_OK;
}

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *recipes_json(const struct har_lab *lab)
{
    json_t *const list = json_array();
    char hash[20];
    for (size_t i = 0; i < lab->bench_count; i++) {
        json_t *const o = json_object();
        snprintf(hash, sizeof hash, "%016" PRIx64, lab->benches[i].recipe.file_hash);
        json_object_set_new(o, "name", json_string(lab->benches[i].recipe.name));
        json_object_set_new(o, "hash", json_string(hash));
        json_object_set_new(o, "steps", json_integer(lab->benches[i].steps));
        json_array_append_new(list, o);
    }
    return list;
}

enum har_status har_provenance_json(struct har_lab *lab, char **out, struct har_error *error)
{
    char commit[128];
    char cpu[256];
    char hash[20];
    struct utsname system;
    enum har_status status = ask_git(lab, commit, sizeof commit, error);
    if (status != HAR_OK) {
        return status;
    }
    har_provenance_cpu(cpu, sizeof cpu);
    snprintf(hash, sizeof hash, "%016" PRIx64, lab->programs_hash);
    json_t *const o = json_object();
    json_object_set_new(o, "commit", text_or_null(commit));
    json_object_set_new(o, "compiler", json_string(HAR_COMPILER));
    json_object_set_new(o, "cpu", text_or_null(cpu));
    json_object_set_new(o, "system",
                        uname(&system) == 0 ? json_string(system.release) : json_null());
    json_object_set_new(o, "cores", json_integer(har_pool_cores()));
    json_object_set_new(o, "programs_hash", json_string(hash));
    json_object_set_new(o, "seed", json_integer((json_int_t)lab->campaign.seed));
    json_object_set_new(o, "repeats", json_integer(lab->campaign.repeats));
    json_object_set_new(o, "calibration", json_integer(lab->campaign.calibration));
    json_object_set_new(o, "false_alarms", json_integer(lab->campaign.false_alarms));
    json_object_set_new(o, "recipes", recipes_json(lab));
    *out = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return *out != NULL ? HAR_OK : har_fail(error, HAR_EMEMORY, "no memory for provenance");
}
