/* Saving and restoring a run. Called by the loop; must not know the passes. */
#include "checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "eng_sync.h"
#include "fault.h"
#include "trainer.h"

enum { STATE_VERSION = 2, FILE_COUNT = 4 };
static const char *const file_names[FILE_COUNT] = {"model.safetensors", "moment1.safetensors",
                                                   "moment2.safetensors", "state.json"};

static enum eng_status io_error(const char *path, struct eng_error *error)
{
    return eng_fail(error, ENG_EIO, "%s: %s", path, strerror(errno));
}

static enum eng_status join(char *out, const char *dir, const char *name, struct eng_error *error)
{
    const int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);
    return n > 0 && n < PATH_MAX ? ENG_OK
                                 : eng_fail(error, ENG_EUSAGE, "%s: path is too long", dir);
}

static enum eng_status write_state(const struct eng_trainer *t, struct eng_position next,
                                   const char *path, struct eng_error *error)
{
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        return io_error(path, error);
    }
    fprintf(f,
            "{\"version\": %d, \"recipe_hash\": \"%016" PRIx64 "\", \"seed\": \"%" PRIu64 "\",\n"
            " \"step\": %d, \"optimizer_t\": %d, \"schedule_step\": %d,\n"
            " \"epoch\": %" PRIu64 ", \"index\": %" PRIu64 ", \"offset\": %" PRIu64 "}\n",
            STATE_VERSION, t->recipe->hash, t->seed, t->counters.step, t->counters.optimizer_t,
            t->counters.schedule_step, next.epoch, next.index, next.offset);
    const bool ok = fflush(f) == 0;
    return fclose(f) == 0 && ok ? ENG_OK : io_error(path, error);
}

/* XXH3 over a file as it was written, continuing from *hash. */
static enum eng_status hash_file(const char *path, uint64_t *hash, struct eng_error *error)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return io_error(path, error);
    }
    unsigned char bytes[1 << 14];
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, f)) > 0;) {
        *hash = XXH3_64bits_withSeed(bytes, n, *hash);
    }
    const bool ok = !ferror(f);
    fclose(f);
    return ok ? ENG_OK : io_error(path, error);
}

/* Removes a checkpoint folder: its four files and nothing else. */
static void remove_folder(const char *dir)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < FILE_COUNT; i++) {
        if (join(path, dir, file_names[i], NULL) == ENG_OK) {
            unlink(path);
        }
    }
    rmdir(dir);
}

static enum eng_status write_files(struct eng_trainer *t, struct eng_position next, const char *dir,
                                   uint64_t *hash, struct eng_error *error)
{
    const float *const buffers[FILE_COUNT - 1] = {t->params->param, t->params->moment1,
                                                  t->params->moment2};
    const dev_stream stream = FAULT(ckpt_stream, t->compute);
    enum eng_status status = ENG_OK;
    char path[PATH_MAX];
    *hash = 0;
    for (size_t i = 0; status == ENG_OK && i < FILE_COUNT; i++) {
        status = join(path, dir, file_names[i], error);
        if (status == ENG_OK) {
            status = i + 1 < FILE_COUNT ? eng_model_save(t->model, stream, path, buffers[i], error)
                                        : write_state(t, next, path, error);
        }
        if (status == ENG_OK) {
            status = hash_file(path, hash, error);
        }
    }
    return status;
}

/* The files of a folder, then its entries. */
static enum eng_status sync_folder(const char *dir, struct eng_error *error)
{
    char path[PATH_MAX];
    enum eng_status status = ENG_OK;
    for (size_t i = 0; status == ENG_OK && i < FILE_COUNT; i++) {
        status = join(path, dir, file_names[i], error);
        status = status == ENG_OK ? eng_sync(path, error) : status;
    }
    return status == ENG_OK ? eng_sync(dir, error) : status;
}

enum eng_status eng_checkpoint_save(struct eng_trainer *t, struct eng_position next, char *path,
                                    size_t path_size, uint64_t *hash, struct eng_error *error)
{
    char final[PATH_MAX];
    char fresh[PATH_MAX];
    char name[32];
    snprintf(name, sizeof name, "step-%d", t->counters.step);
    enum eng_status status = join(final, t->options->checkpoint_dir, name, error);
    if (status == ENG_OK) {
        snprintf(name, sizeof name, ".step-%d.new", t->counters.step);
        status = join(fresh, t->options->checkpoint_dir, name, error);
    }
    if (status == ENG_OK && mkdir(t->options->checkpoint_dir, 0777) != 0 && errno != EEXIST) {
        status = io_error(t->options->checkpoint_dir, error);
    }
    if (status == ENG_OK && mkdir(fresh, 0777) != 0 && errno != EEXIST) {
        status = io_error(fresh, error);
    }
    if (status != ENG_OK) {
        return status;
    }
    status = write_files(t, next, fresh, hash, error);
    if (status == ENG_OK && !t->options->no_sync) {
        status = sync_folder(fresh, error);
    }
    if (status == ENG_OK) {
        remove_folder(final);
        if (rename(fresh, final) != 0) {
            status = io_error(final, error);
        } else if (!t->options->no_sync) {
            status = eng_sync(t->options->checkpoint_dir, error);
        }
    }
    if (status != ENG_OK) {
        remove_folder(fresh);
        return status;
    }
    snprintf(path, path_size, "%s", final);
    return ENG_OK;
}

/* Finds the folder that holds state.json: dir itself, or its step-N with the largest N. */
static enum eng_status find_folder(const char *dir, char *out, struct eng_error *error)
{
    char path[PATH_MAX];
    enum eng_status status = join(path, dir, "state.json", error);
    if (status != ENG_OK) {
        return status;
    }
    if (access(path, F_OK) == 0) {
        return snprintf(out, PATH_MAX, "%s", dir) < PATH_MAX ? ENG_OK : ENG_EUSAGE;
    }
    DIR *d = opendir(dir);
    if (d == NULL) {
        return io_error(dir, error);
    }
    long best = -1;
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;) {
        char *end = NULL;
        if (strncmp(entry->d_name, "step-", 5) == 0) {
            const long n = strtol(entry->d_name + 5, &end, 10);
            best = *end == '\0' && n > best ? n : best;
        }
    }
    closedir(d);
    if (best < 0) {
        return eng_fail(error, ENG_EINPUT, "%s: holds no checkpoint", dir);
    }
    char name[32];
    snprintf(name, sizeof name, "step-%ld", best);
    return join(out, dir, name, error);
}

static enum eng_status parse_state(const char *path, struct eng_checkpoint *out,
                                   struct eng_error *error)
{
    json_error_t cause;
    const char *hash = NULL;
    const char *seed = NULL;
    int version = 0;
    json_int_t epoch = 0;
    json_int_t index = 0;
    json_int_t offset = 0;
    errno = 0;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &cause);
    if (root == NULL && json_error_code(&cause) == json_error_cannot_open_file) {
        return io_error(path, error);
    }
    if (root == NULL) {
        return eng_fail(error, ENG_EINPUT, "%s:%d: %s", path, cause.line, cause.text);
    }
    enum eng_status status = ENG_OK;
    const int unpacked =
        json_unpack_ex(root, &cause, JSON_STRICT, "{s:i, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:I}",
                       "version", &version, "recipe_hash", &hash, "seed", &seed, "step", &out->step,
                       "optimizer_t", &out->optimizer_t, "schedule_step", &out->schedule_step,
                       "epoch", &epoch, "index", &index, "offset", &offset);
    if (unpacked != 0) {
        status = eng_fail(error, ENG_EINPUT, "%s: %s", path, cause.text);
    } else if (version != STATE_VERSION || out->step < 1 || epoch < 0 || index < 0 || offset < 0) {
        status = eng_fail(error, ENG_EINPUT, "%s: not a checkpoint of this version", path);
    } else {
        out->recipe_hash = strtoull(hash, NULL, 16);
        out->seed = strtoull(seed, NULL, 10);
        out->next = (struct eng_position){
            .epoch = (uint64_t)epoch, .index = (uint64_t)index, .offset = (uint64_t)offset};
    }
    json_decref(root);
    return status;
}

enum eng_status eng_checkpoint_find(const char *dir, struct eng_checkpoint *out,
                                    struct eng_error *error)
{
    char path[PATH_MAX];
    enum eng_status status = find_folder(dir, out->folder, error);
    if (status == ENG_OK) {
        status = join(path, out->folder, "state.json", error);
    }
    return status != ENG_OK ? status : parse_state(path, out, error);
}

static enum eng_status load_buffers(struct eng_trainer *t, const char *dir, struct eng_error *error)
{
    float *const buffers[FILE_COUNT - 1] = {t->params->param, t->params->moment1,
                                            t->params->moment2};
    const size_t count = FAULT(ckpt_buffers, (size_t)FILE_COUNT - 1);
    enum eng_status status = ENG_OK;
    char path[PATH_MAX];
    for (size_t i = 0; status == ENG_OK && i < count; i++) {
        status = join(path, dir, file_names[i], error);
        if (status == ENG_OK) {
            status = eng_model_load(t->model, t->compute, path, buffers[i], error);
        }
    }
    return status;
}

enum eng_status eng_checkpoint_restore(struct eng_trainer *t, const struct eng_checkpoint *c,
                                       struct eng_error *error)
{
    enum eng_status status = load_buffers(t, c->folder, error);
    if (status != ENG_OK) {
        return status;
    }
    t->counters.step = c->step;
    t->counters.optimizer_t = FAULT(ckpt_optimizer_t, c->optimizer_t);
    t->counters.schedule_step = FAULT(ckpt_schedule_step, c->schedule_step);
    if (FAULT(ckpt_position, true)) {
        status = eng_loader_seek(t->loader, c->next, error);
    }
    return status;
}
