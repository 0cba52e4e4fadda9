/* Reads a file whose size nobody knows before: a pipe is a file too.
 * Called by template_file and tokenizer_json_members; must not know what the bytes mean. */
#include "text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "growth.h"

enum { STEP_BYTES = 1 << 17 };

/* Until the end, or until more than `max` bytes are there. */
static enum eng_status read_stream(FILE *file, const char *path, size_t max, char **bytes,
                                   size_t *size, struct eng_error *error)
{
    size_t capacity = 0;
    do {
        char *const grown = eng_grown(*bytes, &capacity, *size + STEP_BYTES, 1);
        if (grown == NULL) {
            return eng_fail(error, ENG_EHOSTMEM, "%s: no memory", path);
        }
        *bytes = grown;
        *size += fread(grown + *size, 1, capacity - *size, file);
        if (ferror(file)) {
            return eng_fail(error, ENG_EIO, "%s: %s", path, strerror(errno));
        }
        if (*size > max) {
            return eng_fail(error, ENG_EINPUT, "%s: more than %zu bytes", path, max);
        }
    } while (!feof(file));
    return ENG_OK;
}

enum eng_status eng_text_file_read(const char *path, size_t max, char **bytes, size_t *size,
                                   struct eng_error *error)
{
    FILE *const file = fopen(path, "rb");
    *bytes = NULL;
    *size = 0;
    if (file == NULL) {
        return eng_fail(error, ENG_EIO, "%s: %s", path, strerror(errno));
    }
    const enum eng_status status = read_stream(file, path, max, bytes, size, error);
    fclose(file);
    if (status != ENG_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    return status;
}
