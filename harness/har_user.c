/* Splits, finds and hashes commands of the user.
 * Called by har_lab.c, har_case.c and har_artifact.c; must not know what they print. */
#include "har_user.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "har_hash.h"
#include "har_yaml.h"

static bool is_file(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

/* The program in a folder of PATH; caller frees, NULL = not found. */
static char *in_path(const char *name)
{
    const char *const path = getenv("PATH");
    for (const char *p = path; p != NULL && *p != '\0';) {
        char file[PATH_MAX];
        const size_t length = strcspn(p, ":");
        const int used = snprintf(file, sizeof file, "%.*s/%s", (int)length, p, name);
        if (length > 0 && used < (int)sizeof file && is_file(file) && access(file, X_OK) == 0) {
            return strdup(file);
        }
        p += length + (p[length] == ':');
    }
    return NULL;
}

/* The word, or the file beside `base` that it names; NULL without memory. */
static char *resolve(const char *base, const char *word)
{
    char *const path = base != NULL ? har_yaml_resolve(base, word) : strdup(word);
    if (path != NULL && !is_file(path)) {
        free(path);
        return strdup(word);
    }
    return path;
}

enum har_status har_user_parse(const char *text, const char *base, const char *key,
                               struct har_user *out, struct har_error *error)
{
    struct har_args split = {0};
    enum har_status status = HAR_OK;
    memset(out, 0, sizeof *out);
    if (!har_args_split(text, &split)) {
        har_args_fini(&split);
        return har_fail(error, HAR_EUSAGE, "%s: '%s' is no command", key, text);
    }
    for (size_t i = 0; i < split.count; i++) {
        char *path = resolve(base, split.items[i]);
        if (i == 0 && path != NULL && strchr(path, '/') == NULL && !is_file(path)) {
            free(path);
            path = in_path(split.items[i]);
        }
        if (i == 0 && (path == NULL || access(path, X_OK) != 0)) {
            status = har_fail(error, HAR_EUSAGE, "%s: %s: no such program", key, split.items[i]);
        }
        const bool here = i == 0 && path != NULL && strchr(path, '/') == NULL;
        har_args_addf(&out->words, "%s%s", here ? "./" : "", path != NULL ? path : "");
        free(path);
    }
    har_args_fini(&split);
    if (status == HAR_OK && out->words.failed) {
        status = har_fail(error, HAR_EMEMORY, "%s: no memory for a command", key);
    }
    if (status != HAR_OK) {
        har_user_fini(out);
    }
    return status;
}

void har_user_fini(struct har_user *user)
{
    har_args_fini(&user->words);
}

enum har_status har_user_hash(const struct har_user *user, uint64_t *hash, struct har_error *error)
{
    enum har_status status = HAR_OK;
    *hash = har_hash_bytes(*hash, &user->words.count, sizeof user->words.count);
    for (size_t i = 0; status == HAR_OK && i < user->words.count; i++) {
        if (is_file(user->words.items[i])) { /* wherever it lies */
            status = har_hash_file(user->words.items[i], hash, error);
        } else {
            *hash = har_hash_string(*hash, user->words.items[i]);
        }
    }
    return status;
}

void har_user_words(const struct har_user *user, struct har_args *args)
{
    for (size_t i = 0; i < user->words.count; i++) {
        har_args_add(args, user->words.items[i]);
    }
}
