/* Runs the text stage (oracles/text/text_stage.py) when its result is not in the cache. See
 * ref_text.h. The stage writes under another name and renames, so a file that is there is whole,
 * and two runs at once do no harm. */
#include "ref_text.h"

#include "ref_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *script_path(void)
{
    const char *const other = getenv("FAULTLINE_TEXT_STAGE");
    return other != NULL && other[0] != '\0' ? other : ORC_REF_TEXT_STAGE;
}

/* The stage reads it once more, and something else than a file may have no end. */
static enum orc_ref_status add_file(uint64_t *key, const char *path, struct orc_ref_error *error)
{
    char *file = NULL;
    size_t bytes = 0;
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return orc_ref_fail(error, ORC_REF_IO, "%s: not a regular file", path);
    const enum orc_ref_status status = orc_ref_file_read(path, &file, &bytes, error);
    if (status != ORC_REF_OK)
        return status;
    *key = orc_ref_hash(*key, &bytes, sizeof bytes);
    *key = orc_ref_hash(*key, file, bytes);
    free(file);
    return ORC_REF_OK;
}

static enum orc_ref_status add_if_there(uint64_t *key, struct orc_ref_error *error,
                                        const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A file that is not there adds nothing. */
static enum orc_ref_status add_if_there(uint64_t *key, struct orc_ref_error *error,
                                        const char *format, ...)
{
    char path[4096];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    return length < (int)sizeof path && access(path, F_OK) == 0 ? add_file(key, path, error)
                                                               : ORC_REF_OK;
}

static int folder_length(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash == NULL ? 0 : (int)(slash + 1 - path);
}

/* What the stage imports lies beside it, control tokens beside a file of ranks, special tokens
 * beside a template. */
static enum orc_ref_status add_companions(uint64_t *key, const struct orc_ref_recipe *recipe,
                                          struct orc_ref_error *error)
{
    const char *const script = script_path(), *const template = recipe->text.template_file;
    enum orc_ref_status status = add_if_there(key, error, "%.*stext_tokenizer.py",
                                              folder_length(script), script);
    if (status == ORC_REF_OK)
        status = add_if_there(key, error, "%s.special", recipe->text.tokenizer);
    if (status == ORC_REF_OK)
        status = add_if_there(key, error, "%.*stokenizer_config.json", folder_length(template),
                              template);
    return status;
}

/* Hash of everything the stage's output depends on. */
static enum orc_ref_status stage_key(const struct orc_ref_recipe *recipe,
                                     const struct orc_ref_paths *data, uint64_t *key,
                                     struct orc_ref_error *error)
{
    const char *const inputs[] = {script_path(), recipe->text.template_file,
                                  recipe->text.tokenizer};
    const int words[] = {(int)recipe->text.mask, (int)recipe->data.format,
                         recipe->data.on_prefix != ORC_REF_ANY_PREFIX};
    const char *const variant = recipe->text.template_path + strlen(recipe->text.template_file);
    *key = orc_ref_hash(ORC_REF_HASH_START, words, sizeof words);
    *key = orc_ref_hash(*key, variant, strlen(variant));
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const enum orc_ref_status status = add_file(key, inputs[i], error);
        if (status != ORC_REF_OK)
            return status;
    }
    const enum orc_ref_status beside = add_companions(key, recipe, error);
    if (beside != ORC_REF_OK)
        return beside;
    for (size_t i = 0; i < data->count; i++) {
        const enum orc_ref_status status = add_file(key, data->list[i], error);
        if (status != ORC_REF_OK)
            return status;
    }
    return ORC_REF_OK;
}

/* Starts the stage with its standard error in a pipe and no signal blocked. Returns errno. */
static int start(const char *const *arguments, int error_pipe, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    (void)sigemptyset(&none);
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure != 0)
        return failure;
    failure = posix_spawnattr_init(&attributes);
    if (failure != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return failure;
    }
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    failure = posix_spawn_file_actions_adddup2(&actions, error_pipe, STDERR_FILENO);
    if (failure == 0)
        failure = posix_spawn(child, arguments[0], &actions, &attributes,
                              (char *const *)(size_t)arguments, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failure;
}

/* Reads a pipe to its end; keeps what fits, without the last newline. */
static void drain(int fd, char *text, size_t capacity)
{
    size_t used = 0;
    char part[256];
    for (ssize_t got; (got = read(fd, part, sizeof part)) != 0;) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        const size_t room = capacity - 1 - used;
        const size_t kept = (size_t)got < room ? (size_t)got : room;
        memcpy(text + used, part, kept);
        used += kept;
    }
    while (used > 0 && text[used - 1] == '\n')
        used--;
    text[used] = '\0';
}

static enum orc_ref_status judge(int wait_status, const char *message, struct orc_ref_error *error)
{
    static const char prefix[] = "text_stage: ";
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0)
        return ORC_REF_OK;
    if (strncmp(message, prefix, sizeof prefix - 1) == 0)
        message += sizeof prefix - 1;
    if (message[0] == '\0')
        message = "the text stage failed without a word";
    enum orc_ref_status status = ORC_REF_INTERNAL;
    const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
    const bool traced = strncmp(message, "Traceback", 9) == 0;
    if (code == ORC_REF_IO || code == ORC_REF_INTERRUPTED || (code == ORC_REF_BAD && !traced))
        status = (enum orc_ref_status)code;
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGINT)
        status = ORC_REF_INTERRUPTED;
    return orc_ref_fail(error, status, "%s", message);
}

static enum orc_ref_status run_stage(const struct orc_ref_recipe *recipe,
                                     const struct orc_ref_paths *data, const char *out,
                                     struct orc_ref_arena *arena, struct orc_ref_error *error)
{
    int ends[2];
    char message[sizeof error->text];
    const char *const fixed[] = {ORC_REF_PYTHON, script_path(), "--template",
                                 recipe->text.template_path, "--tokenizer",
                                 recipe->text.tokenizer, "--mask",
                                 orc_ref_mask_word(recipe->text.mask), "--format",
                                 orc_ref_format_word(recipe->data.format), "--out", out,
                                 "--prefix", "--data"};
    const size_t all = sizeof fixed / sizeof *fixed;
    const bool prefix = recipe->data.on_prefix != ORC_REF_ANY_PREFIX;
    const size_t words = prefix ? all : all - 1;
    const char **const arguments =
        orc_ref_arena_take(arena, all + data->count + 1, sizeof *arguments);
    if (arguments == NULL)
        return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory");
    memcpy(arguments, fixed, sizeof fixed);
    arguments[words - 1] = fixed[all - 1]; /* without --prefix, --data takes its place */
    memcpy(arguments + words, data->list, data->count * sizeof *data->list);
    arguments[words + data->count] = NULL;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return orc_ref_fail(error, ORC_REF_IO, "pipe: %s", strerror(errno));
    pid_t child = 0;
    const int failure = start(arguments, ends[1], &child);
    (void)close(ends[1]);
    if (failure != 0) {
        (void)close(ends[0]);
        return orc_ref_fail(error, ORC_REF_IO, "%s: %s", ORC_REF_PYTHON, strerror(failure));
    }
    drain(ends[0], message, sizeof message);
    (void)close(ends[0]);
    int wait_status = 0;
    while (waitpid(child, &wait_status, 0) < 0)
        if (errno != EINTR)
            return orc_ref_fail(error, ORC_REF_INTERNAL, "waitpid: %s", strerror(errno));
    return judge(wait_status, message, error);
}

enum orc_ref_status orc_ref_stage_name(const struct orc_ref_recipe *recipe,
                                       const struct orc_ref_paths *data, const char *cache,
                                       struct orc_ref_arena *arena, const char **path,
                                       struct orc_ref_error *error)
{
    uint64_t key = 0;
    const enum orc_ref_status status = stage_key(recipe, data, &key, error);
    if (status != ORC_REF_OK)
        return status;
    const size_t bytes = strlen(cache) + 40;
    char *const name = orc_ref_arena_take(arena, bytes, 1);
    if (name == NULL)
        return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory");
    (void)snprintf(name, bytes, "%s/text-%016llx.jsonl", cache, (unsigned long long)key);
    *path = name;
    return ORC_REF_OK;
}

enum orc_ref_status orc_ref_stage_prepare(const struct orc_ref_recipe *recipe,
                                          const struct orc_ref_paths *data, const char *cache,
                                          struct orc_ref_arena *arena, const char **path,
                                          struct orc_ref_error *error)
{
    const enum orc_ref_status status = orc_ref_stage_name(recipe, data, cache, arena, path, error);
    if (status != ORC_REF_OK)
        return status;
    if (mkdir(cache, 0777) != 0 && errno != EEXIST)
        return orc_ref_fail(error, ORC_REF_IO, "%s: %s", cache, strerror(errno));
    if (access(*path, R_OK) == 0)
        return ORC_REF_OK;
    return run_stage(recipe, data, *path, arena, error);
}
