/* Looks for the driven programs: option, environment, build tree.
 * Called by har_lab.c and doctor; must not know what they are run for. */
#include "har_programs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_hash.h"

/* Folder of the running program, without a slash at its end. */
static bool own_folder(char *out, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", out, size - 1);
    if (length <= 0) {
        return false;
    }
    out[length] = '\0';
    char *const slash = strrchr(out, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    return true;
}

static char *readable(const char *folder, const char *between, const char *file)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s%s", folder, between, file) >= (int)sizeof path ||
        access(path, R_OK) != 0) {
        return NULL;
    }
    return realpath(path, NULL);
}

/* Programs lie beside this one or in the neighbouring folders of the build tree; scripts in the
 * source tree, which is one of the folders above. */
char *har_programs_source(const char *file)
{
    static const char *const neighbours[] = {
        "", "../engine/", "../oracles/", "../corpus/", "../oracles/reference/", "../corpus/init/"};
    char folder[PATH_MAX];
    if (!own_folder(folder, sizeof folder)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof neighbours / sizeof neighbours[0]; i++) {
        char *const found = readable(folder, neighbours[i], file);
        if (found != NULL) {
            return found;
        }
    }
    for (char *slash = strrchr(folder, '/'); slash != NULL; slash = strrchr(folder, '/')) {
        *slash = '\0';
        char *const found = readable(folder, "", file);
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

static enum har_status find_one(const char *given, const char *file, const char *variable,
                                char **out, struct har_error *error)
{
    const char *const named = given != NULL ? given : getenv(variable);
    if (named != NULL) {
        if (access(named, R_OK) != 0) {
            return har_fail(error, HAR_EUSAGE, "%s: no such program (from %s)", named,
                            given != NULL ? "the command line" : variable);
        }
        *out = strdup(named);
    } else {
        *out = file[0] == '/' ? strdup(file) : har_programs_source(file);
    }
    if (*out == NULL) {
        return har_fail(error, HAR_EUSAGE, "%s: not found beside this program; build it or set %s",
                        file, variable);
    }
    return HAR_OK;
}

enum har_status har_programs_find(const struct har_options *options, struct har_programs *out,
                                  struct har_error *error)
{
    enum har_status status = HAR_OK;
    memset(out, 0, sizeof *out);
#define HAR_ROW_(field, file, variable)                                                            \
    if (status == HAR_OK) {                                                                        \
        status = find_one(options->field, file, variable, &out->field, error);                     \
    }
    HAR_PROGRAMS(HAR_ROW_)
#undef HAR_ROW_
    if (status != HAR_OK) {
        har_programs_fini(out);
    }
    return status;
}

void har_programs_fini(struct har_programs *programs)
{
#define HAR_ROW_(field, file, variable) free(programs->field);
    HAR_PROGRAMS(HAR_ROW_)
#undef HAR_ROW_
    memset(programs, 0, sizeof *programs);
}

/* The module that the text stage imports from its own folder. */
static enum har_status hash_companion(const char *text_stage, uint64_t *hash,
                                      struct har_error *error)
{
    char path[4096];
    const char *const slash = strrchr(text_stage, '/');
    const int folder = slash == NULL ? 0 : (int)(slash + 1 - text_stage);
    const int length = snprintf(path, sizeof path, "%.*stext_tokenizer.py", folder, text_stage);
    const bool there = length < (int)sizeof path && access(path, R_OK) == 0;
    return there ? har_hash_file(path, hash, error) : HAR_OK;
}

enum har_status har_programs_hash(const struct har_programs *programs, uint64_t *hash,
                                  struct har_error *error)
{
    const char *const files[] = {
        programs->train, programs->train_production, programs->train_lanes, programs->ref,
        programs->init,  programs->text_stage,       "/proc/self/exe"};
    enum har_status status = HAR_OK;
    for (size_t i = 0; status == HAR_OK && i < sizeof files / sizeof files[0]; i++) {
        status = files[i] != NULL ? har_hash_file(files[i], hash, error) : HAR_OK;
    }
    return status == HAR_OK && programs->text_stage != NULL
               ? hash_companion(programs->text_stage, hash, error)
               : status;
}
