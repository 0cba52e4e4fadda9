/* Writer of traces. See ref_trace.h. */
#include "ref_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* A trace is written once and read a few times: the quickest level, with the smallest tables. */
enum { ZSTD_LEVEL = 1 };

struct orc_ref_trace {
    char *path;
    int fd;
    ZSTD_CCtx *zstd; /* NULL: plain */
    char *line;
    size_t used, capacity;
    char *packed;
    size_t packed_capacity;
    bool comma, failed, begun;
};

static void destroy(struct orc_ref_trace *trace)
{
    if (trace->fd >= 0)
        (void)close(trace->fd);
    (void)ZSTD_freeCCtx(trace->zstd);
    free(trace->packed);
    free(trace->line);
    free(trace->path);
    free(trace);
}

enum orc_ref_status orc_ref_trace_open(const char *path, struct orc_ref_trace **trace,
                                       struct orc_ref_error *error)
{
    struct orc_ref_trace *const made = calloc(1, sizeof *made);
    if (made == NULL)
        return orc_ref_fail(error, ORC_REF_INTERNAL, "%s: no memory", path);
    made->fd = -1;
    made->path = strdup(path);
    const size_t length = strlen(path);
    const bool compress = length >= 4 && strcmp(path + length - 4, ".zst") == 0;
    bool ready = made->path != NULL;
    if (compress) {
        made->zstd = ZSTD_createCCtx();
        made->packed_capacity = ZSTD_CStreamOutSize();
        made->packed = malloc(made->packed_capacity);
        ready = ready && made->packed != NULL && made->zstd != NULL &&
                !ZSTD_isError(
                    ZSTD_CCtx_setParameter(made->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL));
    }
    if (!ready) {
        destroy(made);
        return orc_ref_fail(error, ORC_REF_INTERNAL, "%s: no memory", path);
    }
    made->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (made->fd < 0) {
        destroy(made);
        return orc_ref_fail(error, ORC_REF_IO, "%s: %s", path, strerror(errno));
    }
    *trace = made;
    return ORC_REF_OK;
}

/* ---- pieces ---- */

static void put(struct orc_ref_trace *trace, const char *bytes, size_t count)
{
    if (trace->failed)
        return;
    if (trace->capacity - trace->used < count) {
        const size_t capacity = (trace->used + count) * 2 + 4096;
        char *const line = realloc(trace->line, capacity);
        if (line == NULL) {
            trace->failed = true;
            return;
        }
        trace->line = line;
        trace->capacity = capacity;
    }
    memcpy(trace->line + trace->used, bytes, count);
    trace->used += count;
}

static void put_text(struct orc_ref_trace *trace, const char *text)
{
    put(trace, "\"", 1);
    for (const char *c = text; *c != '\0'; c++) {
        const size_t plain = strcspn(c, "\"\\\x01\x02\x03\x04\x05\x06\x07\b\t\n\x0b\f\r\x0e\x0f\x10"
                                        "\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e"
                                        "\x1f");
        put(trace, c, plain);
        c += plain;
        if (*c == '\0')
            break;
        char escape[8];
        const int length = *c == '"' || *c == '\\'
                               ? snprintf(escape, sizeof escape, "\\%c", *c)
                               : snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*c);
        put(trace, escape, (size_t)length);
    }
    put(trace, "\"", 1);
}

/* Comma and name of the next value. */
static void lead(struct orc_ref_trace *trace, const char *name)
{
    if (trace->comma)
        put(trace, ",", 1);
    trace->comma = true;
    if (name != NULL) {
        put_text(trace, name);
        put(trace, ":", 1);
    }
}

static void open_bracket(struct orc_ref_trace *trace, const char *name, const char *bracket)
{
    lead(trace, name);
    put(trace, bracket, 1);
    trace->comma = false;
}

static void close_bracket(struct orc_ref_trace *trace, const char *bracket)
{
    put(trace, bracket, 1);
    trace->comma = true;
}

void orc_ref_trace_open_object(struct orc_ref_trace *trace, const char *name)
{
    open_bracket(trace, name, "{");
}

void orc_ref_trace_open_array(struct orc_ref_trace *trace, const char *name)
{
    open_bracket(trace, name, "[");
}

void orc_ref_trace_close_object(struct orc_ref_trace *trace)
{
    close_bracket(trace, "}");
}

void orc_ref_trace_close_array(struct orc_ref_trace *trace)
{
    close_bracket(trace, "]");
}

void orc_ref_trace_text(struct orc_ref_trace *trace, const char *name, const char *value)
{
    lead(trace, name);
    put_text(trace, value);
}

void orc_ref_trace_null(struct orc_ref_trace *trace, const char *name)
{
    lead(trace, name);
    put(trace, "null", 4);
}

void orc_ref_trace_count(struct orc_ref_trace *trace, const char *name, uint64_t value)
{
    char text[32];
    lead(trace, name);
    put(trace, text, (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)value));
}

void orc_ref_trace_integer(struct orc_ref_trace *trace, const char *name, int64_t value)
{
    char text[32];
    lead(trace, name);
    put(trace, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)value));
}

void orc_ref_trace_number(struct orc_ref_trace *trace, const char *name, double value)
{
    char text[32];
    lead(trace, name);
    if (isnan(value))
        put_text(trace, "nan");
    else if (isinf(value))
        put_text(trace, value > 0.0 ? "inf" : "-inf");
    else
        put(trace, text, (size_t)snprintf(text, sizeof text, "%.17g", value));
}

void orc_ref_trace_hash(struct orc_ref_trace *trace, const char *name, uint64_t value)
{
    char text[17];
    (void)snprintf(text, sizeof text, "%016llx", (unsigned long long)value);
    orc_ref_trace_text(trace, name, text);
}

/* ---- output ---- */

/* An earlier trace under this name stands until the first line. */
static bool drop_earlier(struct orc_ref_trace *trace)
{
    struct stat info;
    trace->begun = true;
    return fstat(trace->fd, &info) == 0 &&
           (!S_ISREG(info.st_mode) || ftruncate(trace->fd, 0) == 0);
}

static enum orc_ref_status write_all(struct orc_ref_trace *trace, const char *bytes, size_t count,
                                     struct orc_ref_error *error)
{
    if (!trace->begun && !drop_earlier(trace))
        return orc_ref_fail(error, ORC_REF_IO, "%s: %s", trace->path, strerror(errno));
    while (count > 0) {
        const ssize_t done = write(trace->fd, bytes, count);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return orc_ref_fail(error, ORC_REF_IO, "%s: %s", trace->path, strerror(errno));
        bytes += done;
        count -= (size_t)done;
    }
    return ORC_REF_OK;
}

static enum orc_ref_status compress_all(struct orc_ref_trace *trace, const char *bytes,
                                        size_t count, ZSTD_EndDirective end,
                                        struct orc_ref_error *error)
{
    ZSTD_inBuffer in = {bytes, count, 0};
    for (size_t left = 1; left > 0;) {
        ZSTD_outBuffer out = {trace->packed, trace->packed_capacity, 0};
        left = ZSTD_compressStream2(trace->zstd, &out, &in, end);
        if (ZSTD_isError(left))
            return orc_ref_fail(error, ORC_REF_INTERNAL, "%s: %s", trace->path,
                                ZSTD_getErrorName(left));
        const enum orc_ref_status status = write_all(trace, trace->packed, out.pos, error);
        if (status != ORC_REF_OK)
            return status;
    }
    return ORC_REF_OK;
}

enum orc_ref_status orc_ref_trace_write(struct orc_ref_trace *trace, struct orc_ref_error *error)
{
    put(trace, "\n", 1);
    const bool failed = trace->failed;
    const size_t count = trace->used;
    trace->used = 0;
    trace->comma = trace->failed = false;
    if (failed)
        return orc_ref_fail(error, ORC_REF_INTERNAL, "%s: no memory for a line", trace->path);
    if (trace->zstd != NULL)
        return compress_all(trace, trace->line, count, ZSTD_e_flush, error);
    return write_all(trace, trace->line, count, error);
}

enum orc_ref_status orc_ref_trace_close(struct orc_ref_trace *trace, struct orc_ref_error *error)
{
    if (trace == NULL)
        return ORC_REF_OK;
    enum orc_ref_status status = ORC_REF_OK;
    if (trace->zstd != NULL && trace->begun)
        status = compress_all(trace, NULL, 0, ZSTD_e_end, error);
    const int failed = close(trace->fd);
    trace->fd = -1;
    if (status == ORC_REF_OK && failed != 0)
        status = orc_ref_fail(error, ORC_REF_IO, "%s: %s", trace->path, strerror(errno));
    destroy(trace);
    return status;
}
