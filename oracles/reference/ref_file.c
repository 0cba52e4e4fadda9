/* Whole files and their hash. See ref_file.h. */
#include "ref_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

uint64_t orc_ref_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *const byte = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001B3);
    return hash;
}

uint64_t orc_ref_hash_ints(const int32_t *data, size_t count)
{
    uint64_t hash = ORC_REF_HASH_START;
    for (size_t i = 0; i < count; i++) {
        const uint32_t word = (uint32_t)data[i];
        const unsigned char bytes[4] = {(unsigned char)word, (unsigned char)(word >> 8),
                                        (unsigned char)(word >> 16), (unsigned char)(word >> 24)};
        hash = orc_ref_hash(hash, bytes, sizeof bytes);
    }
    return hash;
}

enum orc_ref_status orc_ref_file_read(const char *path, char **data, size_t *bytes,
                                      struct orc_ref_error *error)
{
    enum { STEP = 1 << 16 };
    enum orc_ref_status status = ORC_REF_OK;
    char *buffer = NULL;
    size_t used = 0, capacity = 0;
    struct stat info;
    FILE *const file = fopen(path, "rb");
    if (file == NULL)
        return orc_ref_fail(error, ORC_REF_IO, "%s: %s", path, strerror(errno));
    /* A guess: a pipe has no size, and a file may grow. */
    size_t expected = fstat(fileno(file), &info) == 0 ? (size_t)info.st_size : 0;
    for (bool more = true; more;) {
        if (capacity - used < STEP) {
            capacity = capacity * 2 + expected + 2 * STEP;
            expected = 0;
            char *const larger = realloc(buffer, capacity);
            if (larger == NULL) {
                status = orc_ref_fail(error, ORC_REF_INTERNAL, "%s: no memory for the file", path);
                goto done;
            }
            buffer = larger;
        }
        const size_t got = fread(buffer + used, 1, capacity - used - 1, file);
        used += got;
        more = got > 0;
    }
    if (ferror(file)) {
        status = orc_ref_fail(error, ORC_REF_IO, "%s: %s", path, strerror(errno));
        goto done;
    }
    buffer[used] = '\0';
    *data = buffer;
    *bytes = used;
    buffer = NULL;
done:
    free(buffer);
    (void)fclose(file);
    return status;
}
