/* Runs of fuzzers as lines of JSON that are only ever added. Called by har_fuzz.c; must not know
 * how a run is made. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "har_fuzz.h"

static const char file_name[] = "fuzz.jsonl";

enum har_status har_fuzz_store_open(struct har_fuzz *fuzz, struct har_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", fuzz->out, file_name);
    fuzz->store = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fuzz->store < 0) {
        return har_fail(error, HAR_EIO, "%s: %s", path, strerror(errno));
    }
    if (flock(fuzz->store, LOCK_EX | LOCK_NB) != 0) {
        return har_fail(error, HAR_EUSAGE, "%s: another faultline is writing it", path);
    }
    return HAR_OK;
}

/* All the file, its torn last line cut off. The caller frees. */
static enum har_status read_whole(const struct har_fuzz *fuzz, char **text, struct har_error *error)
{
    const off_t end = lseek(fuzz->store, 0, SEEK_END);
    *text = end < 0 ? NULL : malloc((size_t)end + 1);
    if (*text == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for %s", file_name);
    }
    if (pread(fuzz->store, *text, (size_t)end, 0) != (ssize_t)end) {
        return har_fail(error, HAR_EIO, "%s/%s: cannot be read", fuzz->out, file_name);
    }
    size_t size = (size_t)end;
    while (size > 0 && (*text)[size - 1] != '\n') {
        size--;
    }
    (*text)[size] = '\0';
    if (size < (size_t)end && ftruncate(fuzz->store, (off_t)size) != 0) {
        return har_fail(error, HAR_EIO, "%s/%s: %s", fuzz->out, file_name, strerror(errno));
    }
    return HAR_OK;
}

static bool is_text(const json_t *line, const char *key, const char *wanted)
{
    const char *const text = json_string_value(json_object_get(line, key));
    return text != NULL && strcmp(text, wanted) == 0;
}

static bool is_number(const json_t *line, const char *key, double wanted)
{
    const json_t *const value = json_object_get(line, key);
    return json_is_number(value) && json_number_value(value) == wanted;
}

static void hash_text(uint64_t hash, char out[20])
{
    snprintf(out, 20, "%016" PRIx64, hash);
}

/* Whether a line is a run of this cell under this budget with these programs. */
static bool belongs(const struct har_fuzz *fuzz, const struct har_fuzz_cell *cell,
                    const json_t *line)
{
    char hash[20];
    hash_text(cell->target->hash, hash);
    return is_text(line, "target", cell->target->name) && is_text(line, "fault", cell->spec) &&
           is_text(line, "hash", hash) && is_number(line, "runs_max", fuzz->runs_max) &&
           is_number(line, "seconds_max", fuzz->seconds_max) &&
           json_is_true(json_object_get(line, "from_seeds")) == fuzz->from_seeds;
}

static bool take_run(const json_t *line, struct har_fuzz_run *run)
{
    const char *const end = json_string_value(json_object_get(line, "end"));
    const char *const by = json_string_value(json_object_get(line, "by"));
    const json_t *const executions = json_object_get(line, "executions");
    const json_t *const seconds = json_object_get(line, "seconds");
    if (end == NULL || by == NULL || !har_fuzz_end_find(end, &run->end) ||
        !json_is_number(executions) || !json_is_number(seconds)) {
        return false;
    }
    run->done = true;
    run->executions = json_number_value(executions);
    run->seconds = json_number_value(seconds);
    run->reached = json_is_true(json_object_get(line, "reached"));
    snprintf(run->by, sizeof run->by, "%s", by);
    return true;
}

/* A run without verdict is made again. */
static bool place(struct har_fuzz *fuzz, const json_t *line)
{
    struct har_fuzz_run run = {.done = false};
    if (!take_run(line, &run)) {
        return false;
    }
    for (size_t c = 0; run.end != HAR_FUZZ_no_verdict && c < fuzz->cell_count; c++) {
        struct har_fuzz_cell *const cell = &fuzz->cells[c];
        for (int r = 0; r < fuzz->repeats; r++) {
            if (belongs(fuzz, cell, line) && is_number(line, "seed", (double)cell->runs[r].seed)) {
                run.seed = cell->runs[r].seed;
                cell->runs[r] = run;
            }
        }
    }
    return true;
}

enum har_status har_fuzz_store_load(struct har_fuzz *fuzz, struct har_error *error)
{
    char *text = NULL;
    enum har_status status = read_whole(fuzz, &text, error);
    size_t number = 0;
    for (char *at = text; status == HAR_OK && *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        json_t *const line = json_loadb(at, length, 0, NULL);
        number++;
        if (line == NULL || !place(fuzz, line)) {
            status = har_fail(error, HAR_EIO, "%s/%s:%zu: no run of a fuzzer", fuzz->out, file_name,
                              number);
        }
        json_decref(line);
        at += length + 1;
    }
    free(text);
    return status;
}

enum har_status har_fuzz_store_add(const struct har_fuzz *fuzz, const struct har_fuzz_cell *cell,
                                   const struct har_fuzz_run *run, struct har_error *error)
{
    char hash[20];
    hash_text(cell->target->hash, hash);
    json_t *const line =
        json_pack("{s:s, s:s, s:I, s:s, s:f, s:f, s:b, s:s, s:s, s:f, s:i, s:b}", "target",
                  cell->target->name, "fault", cell->spec, "seed", (json_int_t)run->seed, "end",
                  har_fuzz_end_name(run->end), "executions", run->executions, "seconds",
                  run->seconds, "reached", run->reached, "by", run->by, "hash", hash, "runs_max",
                  fuzz->runs_max, "seconds_max", fuzz->seconds_max, "from_seeds", fuzz->from_seeds);
    char *const text =
        line == NULL ? NULL : json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(line);
    char *whole = NULL;
    const int size = text == NULL ? -1 : asprintf(&whole, "%s\n", text);
    free(text);
    if (size < 0) {
        return har_fail(error, HAR_EMEMORY, "no memory to store a run");
    }
    const bool stored =
        write(fuzz->store, whole, (size_t)size) == size && fdatasync(fuzz->store) == 0;
    free(whole);
    return stored ? HAR_OK
                  : har_fail(error, HAR_EIO, "%s/%s: %s", fuzz->out, file_name, strerror(errno));
}
