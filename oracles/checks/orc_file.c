/* File to bytes, through zstd when the name says so.
 * Called by the trace reader; must not know what the bytes mean. */
#include "orc_trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

/* A trace larger than this is refused: nothing here needs more, and a bomb would. */
static const size_t size_bytes_max = (size_t)4 << 30;

enum orc_status orc_fail(enum orc_status status, struct orc_error *error, const char *format, ...)
{
    if (error != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    return status;
}

struct growing {
    char *bytes;
    size_t size, capacity;
};

static enum orc_status grow(struct growing *g, size_t more, const char *path,
                            struct orc_error *error)
{
    if (g->capacity - g->size >= more) {
        return ORC_OK;
    }
    if (g->size + more > size_bytes_max) {
        return orc_fail(ORC_EFORMAT, error, "%s: larger than %zu bytes", path, size_bytes_max);
    }
    const size_t capacity = (g->size + more) * 2;
    char *bytes = realloc(g->bytes, capacity);
    if (bytes == NULL) {
        return orc_fail(ORC_EMEMORY, error, "%s: host memory exhausted", path);
    }
    g->bytes = bytes;
    g->capacity = capacity;
    return ORC_OK;
}

static enum orc_status read_all(const char *path, struct growing *g, struct orc_error *error)
{
    enum { CHUNK = 1 << 16 };
    enum orc_status status = ORC_OK;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return orc_fail(ORC_EIO, error, "%s: %s", path, strerror(errno));
    }
    size_t got = 1;
    while (got > 0) {
        status = grow(g, CHUNK, path, error);
        if (status != ORC_OK) {
            goto done;
        }
        errno = 0;
        got = fread(g->bytes + g->size, 1, CHUNK, file);
        g->size += got;
    }
    if (ferror(file)) {
        status = orc_fail(ORC_EIO, error, "%s: %s", path, strerror(errno));
    }
done:
    (void)fclose(file);
    return status;
}

/* An unfinished frame is not an error: the process may have died. Its whole blocks are kept. */
static enum orc_status decompress(const char *path, const struct growing *packed,
                                  struct growing *out, struct orc_error *error)
{
    enum orc_status status = ORC_OK;
    ZSTD_DStream *stream = ZSTD_createDStream();
    if (stream == NULL) {
        return orc_fail(ORC_EMEMORY, error, "%s: host memory exhausted", path);
    }
    ZSTD_inBuffer input = {packed->bytes, packed->size, 0};
    size_t produced = 1;
    while (input.pos < input.size || produced > 0) {
        status = grow(out, ZSTD_DStreamOutSize(), path, error);
        if (status != ORC_OK) {
            goto done;
        }
        ZSTD_outBuffer output = {out->bytes + out->size, out->capacity - out->size, 0};
        const size_t rc = ZSTD_decompressStream(stream, &output, &input);
        if (ZSTD_isError(rc)) {
            status = orc_fail(ORC_EFORMAT, error, "%s: %s", path, ZSTD_getErrorName(rc));
            goto done;
        }
        produced = output.pos;
        out->size += output.pos;
    }
done:
    (void)ZSTD_freeDStream(stream);
    return status;
}

static bool is_packed(const char *path)
{
    const size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".zst") == 0;
}

enum orc_status orc_file_load(const char *path, char **bytes, size_t *size, struct orc_error *error)
{
    struct growing raw = {NULL, 0, 0};
    struct growing plain = {NULL, 0, 0};
    enum orc_status status = read_all(path, &raw, error);
    if (status == ORC_OK && is_packed(path)) {
        status = decompress(path, &raw, &plain, error);
        free(raw.bytes);
        raw = plain;
    }
    if (status != ORC_OK) {
        free(raw.bytes);
        return status;
    }
    *bytes = raw.bytes;
    *size = raw.size;
    return ORC_OK;
}
