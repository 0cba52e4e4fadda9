/* Training files: lines by definition, each line against jansson plus the rules of
 * corpus/RECIPE.md, and the items of an epoch of several files. The input is a file. Called by
 * libFuzzer and replay_main.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data_files.h"
#include "fuzz.h"
#include "record_check.h"

enum { RECORDS_ASKED_MAX = 64 };

/* Line index by definition; returns the bytes it took, its end of line included. */
static size_t next_line(const char *bytes, size_t size, size_t *length)
{
    size_t end = 0;
    while (end < size && bytes[end] != '\n') {
        end++;
    }
    *length = end > 0 && end < size && bytes[end - 1] == '\r' ? end - 1 : end;
    return end < size ? end + 1 : end;
}

/* What the scan shows is compared with the bytes of the input. */
struct scan {
    const char *bytes;
    size_t size, at, count;
    struct eng_conversation chat;
};

static enum eng_status check_scanned(const struct eng_line *line, void *context,
                                     struct eng_error *error)
{
    struct scan *const s = context;
    size_t length = 0;
    (void)error;
    fuzz_require(s->at < s->size);
    const size_t taken = next_line(s->bytes + s->at, s->size - s->at, &length);
    fuzz_require(line->size == length && line->number == ++s->count);
    fuzz_require(memcmp(line->bytes, s->bytes + s->at, length) == 0);
    record_check(ENG_FORMAT_MESSAGES, line->bytes, length, &s->chat);
    s->at += taken;
    return ENG_OK;
}

/* Asked for one by one, from the last to the first, the lines are the same. */
static void check_records(struct eng_data_files *files, const char *bytes, size_t size)
{
    for (size_t record = files->record_count; record-- > 0;) {
        struct eng_line line;
        size_t length = 0;
        size_t at = 0;
        for (size_t i = 0; i < record; i++) {
            at += next_line(bytes + at, size - at, &length);
        }
        (void)next_line(bytes + at, size - at, &length);
        fuzz_require(eng_data_files_line(files, record, &line, NULL) == ENG_OK);
        fuzz_require(line.size == length && line.number == record + 1);
        fuzz_require(memcmp(line.bytes, bytes + at, length) == 0);
    }
}

static enum eng_status ignore(const struct eng_line *line, void *context, struct eng_error *error)
{
    (void)line;
    (void)context;
    (void)error;
    return ENG_OK;
}

/* The file, an empty one and the file again, with weights: items are each file's records, as often
 * as its weight says, and the lines of the last file are those of the first. */
static void check_items(const char *path)
{
    static const unsigned weights[] = {2, 5, 1};
    struct fuzz_file empty = fuzz_file_open("", 0);
    const char *const paths[] = {path, empty.path, path};
    struct eng_data_files files = {0};
    fuzz_require(eng_data_files_open(&files, paths, weights, 3, NULL) == ENG_OK);
    fuzz_require(eng_data_files_scan(&files, ignore, NULL, NULL) == ENG_OK);
    const size_t half = files.record_count / 2;
    fuzz_require(files.weighted && files.record_count % 2 == 0 && files.item_count == 3 * half);
    for (size_t item = 0; item < files.item_count; item++) {
        const size_t wanted = item < 2 * half ? item % half : half + item - 2 * half;
        fuzz_require(eng_data_files_record(&files, item) == wanted);
    }
    for (size_t record = 0; record < half; record++) {
        struct eng_line first;
        struct eng_line again;
        fuzz_require(eng_data_files_line(&files, record, &first, NULL) == ENG_OK);
        char *const bytes = fuzz_exact(first.bytes, first.size);
        fuzz_require(eng_data_files_line(&files, half + record, &again, NULL) == ENG_OK);
        fuzz_require(again.size == first.size && again.number == first.number);
        fuzz_require(first.size == 0 || memcmp(again.bytes, bytes, first.size) == 0);
        free(bytes);
    }
    eng_data_files_close(&files);
    fuzz_file_close(&empty);
}

/* What is no file is refused by name, and so is one that becomes shorter between scan and use. */
static void check_no_files(void)
{
    static const char *const wrong[] = {"/proc/self/fd", "/proc/self/no such file"};
    for (size_t i = 0; i < 2; i++) {
        struct eng_data_files files = {0};
        struct eng_error error = {""};
        fuzz_require(eng_data_files_open(&files, &wrong[i], NULL, 1, &error) == ENG_EIO);
        fuzz_require(strncmp(error.text, wrong[i], strlen(wrong[i])) == 0);
        eng_data_files_close(&files);
    }
}

static void check_shortened(void)
{
    static const char lines[] = "a\nb\nc\n";
    struct fuzz_file file = fuzz_file_open(lines, sizeof lines - 1);
    const char *const path = file.path;
    struct eng_data_files files = {0};
    struct eng_error error = {""};
    struct eng_line line;
    fuzz_require(eng_data_files_open(&files, &path, NULL, 1, NULL) == ENG_OK);
    fuzz_require(eng_data_files_scan(&files, ignore, NULL, NULL) == ENG_OK);
    files.window_size = 0; /* as if another file had been read since */
    fuzz_require(ftruncate(file.descriptor, 2) == 0);
    fuzz_require(eng_data_files_line(&files, 2, &line, &error) == ENG_EIO);
    fuzz_require(strncmp(error.text, path, strlen(path)) == 0);
    eng_data_files_close(&files);
    fuzz_file_close(&file);
}

/* More lines than the index marks, each found where it stands. */
static void check_many_lines(void)
{
    enum { LINES = 40000, LINE_BYTES = 6 };
    static char text[LINES * LINE_BYTES + 1];
    for (size_t i = 0; i < LINES; i++) {
        sprintf(text + i * LINE_BYTES, "%05zu\n", i);
    }
    struct fuzz_file file = fuzz_file_open(text, LINES * LINE_BYTES);
    const char *const path = file.path;
    struct eng_data_files files = {0};
    struct eng_line line;
    fuzz_require(eng_data_files_open(&files, &path, NULL, 1, NULL) == ENG_OK);
    fuzz_require(eng_data_files_scan(&files, ignore, NULL, NULL) == ENG_OK);
    fuzz_require(files.record_count == LINES);
    for (size_t record = 1; record < LINES; record = record * 3 - 1) {
        fuzz_require(eng_data_files_line(&files, record, &line, NULL) == ENG_OK);
        fuzz_require(line.size == LINE_BYTES - 1 && line.number == record + 1);
        fuzz_require(memcmp(line.bytes, text + record * LINE_BYTES, line.size) == 0);
    }
    eng_data_files_close(&files);
    fuzz_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool checked; /* what does not depend on the input */
    struct fuzz_file file = fuzz_file_open(data, size);
    const char *const path = file.path;
    struct eng_data_files files = {0};
    struct eng_error error = {""};
    struct scan scan = {.bytes = (const char *)data, .size = size};
    enum eng_status status = eng_data_files_open(&files, &path, NULL, 1, &error);
    const bool gzip = size >= 2 && memcmp(data, "\x1F\x8B", 2) == 0;
    const bool zstd = size >= 4 && memcmp(data, "\x28\xB5\x2F\xFD", 4) == 0;
    if (gzip || zstd) { /* what it holds is the business of the target unpack */
        fuzz_require(status == ENG_OK || error.text[0] != '\0');
        scan.size = 0;
    } else {
        const bool marked = size >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0;
        fuzz_require(status == ENG_OK);
        status = eng_data_files_scan(&files, check_scanned, &scan, &error);
        fuzz_require(status == (marked ? ENG_EINPUT : ENG_OK));
        fuzz_require(marked || (scan.at == size && scan.count == files.record_count));
    }
    if (status == ENG_OK && scan.size > 0 && files.record_count < RECORDS_ASKED_MAX) {
        check_records(&files, scan.bytes, scan.size);
        check_items(path);
    } else if (size == 0 && !checked) {
        check_no_files();
        check_shortened();
        check_many_lines();
        checked = true;
    }
    eng_conversation_fini(&scan.chat);
    eng_data_files_close(&files);
    fuzz_file_close(&file);
    return 0;
}
