/* Files in memory, UTF-8 and the reading of inputs for the fuzz targets.
 * Called by the targets; must not know any of the programs. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Noreturn void fuzz_failed(const char *condition, const char *file, int line)
{
    if (fuzz_at_end != NULL) {
        fuzz_at_end();
    }
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

struct fuzz_file fuzz_file_open(const void *bytes, size_t size)
{
    struct fuzz_file file = {memfd_create("fuzz", MFD_CLOEXEC), ""};
    fuzz_require(file.descriptor >= 0);
    fuzz_require(write(file.descriptor, bytes, size) == (ssize_t)size);
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.descriptor);
    return file;
}

void fuzz_file_close(struct fuzz_file *file)
{
    close(file->descriptor);
    file->descriptor = -1;
}

char *fuzz_file_read(const struct fuzz_file *file, size_t *size)
{
    const off_t end = lseek(file->descriptor, 0, SEEK_END);
    fuzz_require(end >= 0);
    *size = (size_t)end;
    char *const bytes = malloc(*size + 1);
    fuzz_require(bytes != NULL);
    fuzz_require(pread(file->descriptor, bytes, *size, 0) == (ssize_t)*size);
    return bytes;
}

char *fuzz_exact(const void *bytes, size_t size)
{
    char *const copy = malloc(size);
    fuzz_require(copy != NULL || size == 0);
    if (size > 0) {
        memcpy(copy, bytes, size);
    }
    return copy;
}

/* Length by the first byte alone, 0 when none begins so. */
static size_t claimed_length(unsigned char first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xC0 && first < 0xE0) {
        return 2;
    }
    if (first >= 0xE0 && first < 0xF0) {
        return 3;
    }
    return first >= 0xF0 && first < 0xF8 ? 4 : 0;
}

unsigned fuzz_code_point(const char *bytes, size_t *length)
{
    static const unsigned char payload[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    *length = claimed_length((unsigned char)bytes[0]);
    unsigned code = (unsigned char)bytes[0] & payload[*length];
    for (size_t i = 1; i < *length; i++) {
        code = code << 6 | ((unsigned char)bytes[i] & 0x3Fu);
    }
    return code;
}

bool fuzz_is_utf8(const char *bytes, size_t size)
{
    static const unsigned smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t at = 0; at < size;) {
        size_t length = claimed_length((unsigned char)bytes[at]);
        if (length == 0 || length > size - at) {
            return false;
        }
        for (size_t i = 1; i < length; i++) {
            if (((unsigned char)bytes[at + i] & 0xC0) != 0x80) {
                return false;
            }
        }
        const unsigned code = fuzz_code_point(bytes + at, &length);
        if (code < smallest[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
            return false;
        }
        at += length;
    }
    return true;
}

unsigned fuzz_byte(struct fuzz_input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

int fuzz_between(struct fuzz_input *in, int low, int high)
{
    return low + (int)(fuzz_byte(in) % (unsigned)(high - low + 1));
}

bool fuzz_segment(struct fuzz_input *in, const char **bytes, size_t *size)
{
    if (in->at >= in->end) {
        return false;
    }
    const uint8_t *const border = memchr(in->at, 0xFF, (size_t)(in->end - in->at));
    const uint8_t *const end = border == NULL ? in->end : border;
    *bytes = (const char *)in->at;
    *size = (size_t)(end - in->at);
    in->at = border == NULL ? end : border + 1;
    return true;
}
