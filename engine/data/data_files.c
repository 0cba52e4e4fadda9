/* Maps training files into memory and finds their lines.
 * Called by loader; must not know what a line says. */
#include "data_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "growth.h"

static enum eng_status map_file(struct eng_data_file *file, struct eng_error *error)
{
    enum eng_status status = ENG_OK;
    struct stat info;
    const int descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &info) != 0) {
        status = eng_fail(error, ENG_EIO, "%s: %s", file->path, strerror(errno));
        goto done;
    }
    if (!S_ISREG(info.st_mode)) {
        status = eng_fail(error, ENG_EIO, "%s: not a regular file", file->path);
        goto done;
    }
    if (info.st_size > 0) {
        void *const bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes == MAP_FAILED) {
            status = eng_fail(error, ENG_EIO, "%s: %s", file->path, strerror(errno));
            goto done;
        }
        file->bytes = bytes;
        file->size = (size_t)info.st_size;
    }
done:
    if (descriptor >= 0) {
        close(descriptor);
    }
    return status;
}

static enum eng_status index_file(struct eng_data_files *out, size_t index, struct eng_error *error)
{
    const struct eng_data_file *const file = &out->files[index];
    const char *at = file->bytes;
    const char *const end = at + file->size;
    if (file->size >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0) {
        return eng_fail(error, ENG_EINPUT, "%s:1: the file begins with a byte order mark",
                        file->path);
    }
    while (at < end) {
        const char *const newline = memchr(at, '\n', (size_t)(end - at));
        const char *const line_end = newline == NULL ? end : newline;
        size_t size = (size_t)(line_end - at);
        size -= newline != NULL && size > 0 && at[size - 1] == '\r';
        struct eng_line *const lines =
            eng_grown(out->lines, &out->line_capacity, out->line_count + 1, sizeof *lines);
        if (lines == NULL || size > UINT32_MAX) {
            return eng_fail(error, ENG_EHOSTMEM, "%s: no memory for the index of its lines",
                            file->path);
        }
        out->lines = lines;
        lines[out->line_count++] = (struct eng_line){at, (uint32_t)size, (uint32_t)index};
        at = newline == NULL ? end : newline + 1;
    }
    return ENG_OK;
}

enum eng_status eng_data_files_open(struct eng_data_files *out, const char *const *paths,
                                    size_t count, struct eng_error *error)
{
    out->files = calloc(count + 1, sizeof *out->files);
    if (out->files == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for %zu files", count);
    }
    for (; out->file_count < count; out->file_count++) {
        struct eng_data_file *const file = &out->files[out->file_count];
        file->path = paths[out->file_count];
        file->first_line = out->line_count;
        enum eng_status status = map_file(file, error);
        if (status == ENG_OK && file->size > 0) {
            status = index_file(out, out->file_count, error);
        }
        if (status != ENG_OK) {
            out->file_count++; /* close unmaps it */
            return status;
        }
    }
    return ENG_OK;
}

void eng_data_files_close(struct eng_data_files *files)
{
    for (size_t i = 0; i < files->file_count; i++) {
        if (files->files[i].bytes != NULL) {
            munmap((void *)files->files[i].bytes, files->files[i].size);
        }
    }
    free(files->files);
    free(files->lines);
    *files = (struct eng_data_files){0};
}

size_t eng_data_files_line_number(const struct eng_data_files *files, size_t line)
{
    return line - files->files[files->lines[line].file].first_line + 1;
}
