/* Reads lines through a window over the files and keeps a bounded index of where lines begin.
 * Called by documents and loader; must not know what a line says. */
#include "data_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault.h"
#include "growth.h"
#include "unpack.h"

/* MARKS_MAX is even. NEAR is read for one record, SCAN where the next ones are wanted as well. */
enum { MARKS_MAX = 1 << 14, NEAR = 1 << 14, SCAN = 1 << 18, LINE_BYTES_MAX = 1 << 26 };

/* ---- files ---- */

static enum eng_status open_file(struct eng_data_files *out, struct eng_data_file *file,
                                 struct eng_error *error)
{
    struct stat info;
    struct eng_unpacked content;
    /* A pipe without a writer would be waited for; on regular files O_NONBLOCK does nothing. */
    const int descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0 || fstat(descriptor, &info) != 0) {
        const enum eng_status status =
            eng_fail(error, ENG_EIO, "%s: %s", file->path, strerror(errno));
        if (descriptor >= 0) {
            close(descriptor);
        }
        return status;
    }
    if (!S_ISREG(info.st_mode)) {
        close(descriptor);
        return eng_fail(error, ENG_EIO, "%s: not a regular file", file->path);
    }
    const enum eng_status status = eng_unpack(file->path, descriptor, &content, error);
    if (status != ENG_OK) {
        return status;
    }
    file->descriptor = content.descriptor;
    out->compressed |= content.compressed;
    out->members |= content.members > 1;
    if (fstat(file->descriptor, &info) != 0) {
        return eng_fail(error, ENG_EIO, "%s: %s", file->path, strerror(errno));
    }
    file->size = (uint64_t)info.st_size;
    return ENG_OK;
}

enum eng_status eng_data_files_open(struct eng_data_files *out, const char *const *paths,
                                    const unsigned *weights, size_t count, struct eng_error *error)
{
    enum eng_status status = ENG_OK;
    out->files = calloc(count + 1, sizeof *out->files);
    if (out->files == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for %zu files", count);
    }
    for (; status == ENG_OK && out->file_count < count; out->file_count++) {
        struct eng_data_file *const file = &out->files[out->file_count];
        const unsigned weight = weights == NULL ? 1 : weights[out->file_count];
        *file = (struct eng_data_file){.path = paths[out->file_count],
                                       .descriptor = -1,
                                       .weight = FAULT(files_weight, weight),
                                       .stride = 1};
        out->weighted |= weight > 1;
        status = open_file(out, file, error);
    }
    return status;
}

void eng_data_files_close(struct eng_data_files *files)
{
    for (size_t i = 0; i < files->file_count; i++) {
        if (files->files[i].descriptor >= 0) {
            close(files->files[i].descriptor);
        }
        free(files->files[i].marks);
    }
    free(files->files);
    free(files->window);
    *files = (struct eng_data_files){0};
}

/* ---- window ---- */

/* Puts bytes from `offset` on into the window: `wanted` of them, or all there are. */
static enum eng_status fill(struct eng_data_files *files, size_t index, uint64_t offset,
                            size_t wanted, struct eng_error *error)
{
    const struct eng_data_file *const file = &files->files[index];
    const uint64_t left = file->size - offset;
    wanted = left < wanted ? (size_t)left : wanted;
    char *const window = eng_grown(files->window, &files->window_capacity, wanted + 1, 1);
    if (window == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "%s: no memory for %zu of its bytes", file->path,
                        wanted);
    }
    files->window = window;
    files->window_size = 0;
    files->window_file = index;
    files->window_start = offset;
    while (files->window_size < wanted) {
        const ssize_t n = pread(file->descriptor, window + files->window_size,
                                wanted - files->window_size, (off_t)(offset + files->window_size));
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            return eng_fail(error, ENG_EIO, "%s: %s", file->path,
                            n < 0 ? strerror(errno) : "it became shorter while it was read");
        }
        files->window_size += n > 0 ? (size_t)n : 0;
    }
    return ENG_OK;
}

/* The bytes of the window from `offset` on; 0 when it lies elsewhere. */
static size_t in_window(const struct eng_data_files *files, size_t index, uint64_t offset)
{
    const bool inside = files->window_file == index && offset >= files->window_start &&
                        offset - files->window_start < files->window_size;
    return inside ? files->window_size - (size_t)(offset - files->window_start) : 0;
}

/* The line at *offset, which lies before the end of the file; *offset moves behind it. A window
 * that does not hold all of it is filled anew, with `step` bytes and then with ever more. */
static enum eng_status next_line(struct eng_data_files *files, size_t index, uint64_t *offset,
                                 size_t step, struct eng_line *out, struct eng_error *error)
{
    const struct eng_data_file *const file = &files->files[index];
    for (;;) {
        const size_t held = in_window(files, index, *offset);
        const char *const at =
            held == 0 ? "" : files->window + (size_t)(*offset - files->window_start);
        const char *const newline = held == 0 ? NULL : memchr(at, '\n', held);
        if (newline != NULL || (held > 0 && *offset + held == file->size)) {
            size_t size = newline == NULL ? held : (size_t)(newline - at);
            *offset += size + (newline != NULL);
            size -= newline != NULL && size > 0 && at[size - 1] == '\r';
            out->bytes = at;
            out->size = size;
            out->path = file->path;
            return ENG_OK;
        }
        if (held > LINE_BYTES_MAX) {
            return eng_fail(error, ENG_EINPUT, "%s:%zu: a line longer than %d bytes", file->path,
                            out->number, LINE_BYTES_MAX);
        }
        step = held >= step ? 2 * held : step;
        const enum eng_status status = fill(files, index, *offset, step, error);
        if (status != ENG_OK) {
            return status;
        }
    }
}

/* ---- index ---- */

/* Marks that line `number` (from 0) begins at offset, if it is one to mark. A full index drops
 * every second mark and goes on half as dense. */
static bool mark(struct eng_data_file *file, size_t number, uint64_t offset)
{
    if (number % file->stride != 0) {
        return true;
    }
    if (file->mark_count == MARKS_MAX) {
        for (size_t i = 0; i < MARKS_MAX / 2; i++) {
            file->marks[i] = file->marks[2 * i];
        }
        file->mark_count /= 2;
        file->stride *= 2;
    }
    uint64_t *const marks =
        eng_grown(file->marks, &file->mark_capacity, file->mark_count + 1, sizeof *marks);
    if (marks == NULL) {
        return false;
    }
    file->marks = marks;
    marks[file->mark_count++] = offset;
    return true;
}

static enum eng_status scan_file(struct eng_data_files *files, size_t index, eng_line_visit *visit,
                                 void *context, struct eng_error *error)
{
    struct eng_data_file *const file = &files->files[index];
    enum eng_status status = ENG_OK;
    for (uint64_t offset = 0; status == ENG_OK && offset < file->size;) {
        struct eng_line line = {.number = file->record_count + 1};
        if (!mark(file, file->record_count, offset)) {
            return eng_fail(error, ENG_EHOSTMEM, "%s: no memory for the index of its lines",
                            file->path);
        }
        const bool first = offset == 0;
        status = next_line(files, index, &offset, SCAN, &line, error);
        if (status == ENG_OK && first && line.size >= 3 &&
            memcmp(line.bytes, "\xEF\xBB\xBF", 3) == 0) {
            status = eng_fail(error, ENG_EINPUT, "%s:1: the file begins with a byte order mark",
                              file->path);
        }
        if (status == ENG_OK) {
            file->record_count++;
            status = visit(&line, context, error);
        }
    }
    return status;
}

enum eng_status eng_data_files_scan(struct eng_data_files *files, eng_line_visit *visit,
                                    void *context, struct eng_error *error)
{
    enum eng_status status = ENG_OK;
    files->record_count = files->item_count = 0;
    for (size_t i = 0; status == ENG_OK && i < files->file_count; i++) {
        struct eng_data_file *const file = &files->files[i];
        file->record_count = file->mark_count = 0;
        file->stride = 1;
        status = scan_file(files, i, visit, context, error);
        files->record_count += file->record_count;
        files->item_count += file->record_count * file->weight;
    }
    return status;
}

/* ---- records ---- */

enum eng_status eng_data_files_line(struct eng_data_files *files, size_t record,
                                    struct eng_line *out, struct eng_error *error)
{
    size_t index = 0;
    for (; record >= files->files[index].record_count; index++) {
        record -= files->files[index].record_count;
    }
    const struct eng_data_file *const file = &files->files[index];
    const size_t step = file->size <= SCAN ? SCAN : NEAR;
    uint64_t offset = file->marks[record / file->stride];
    enum eng_status status = ENG_OK;
    /* A file that fits is read once. */
    if (file->size <= SCAN && in_window(files, index, offset) == 0) {
        status = fill(files, index, 0, SCAN, error);
    }
    size_t number = record - record % file->stride;
    for (; status == ENG_OK && number <= record; number++) {
        out->number = number + 1;
        status = offset < file->size
                     ? next_line(files, index, &offset, step, out, error)
                     : eng_fail(error, ENG_EIO, "%s: it has fewer lines than before", file->path);
    }
    return status;
}

size_t eng_data_files_record(const struct eng_data_files *files, size_t item)
{
    size_t first = 0;
    for (size_t i = 0; i < files->file_count; i++) {
        const struct eng_data_file *const file = &files->files[i];
        if (item < file->record_count * file->weight) {
            return first + item % file->record_count;
        }
        item -= file->record_count * file->weight;
        first += file->record_count;
    }
    return first;
}
