/* Line files, plain or zstd. Called by the trace writer; must not know what the lines say. */
#include "linefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { ZSTD_LEVEL = 1 };

struct eng_linefile {
    int fd;
    char *path;
    ZSTD_CCtx *zstd; /* NULL: plain */
    unsigned char *packed;
    size_t packed_size;
};

static enum eng_status fail(const eng_linefile *f, const char *cause, struct eng_error *error)
{
    return eng_fail(error, ENG_EIO, "%s: cannot be written: %s", f->path, cause);
}

static void release(eng_linefile *f)
{
    if (f->fd >= 0) {
        close(f->fd);
    }
    ZSTD_freeCCtx(f->zstd);
    free(f->packed);
    free(f->path);
    free(f);
}

enum eng_status eng_linefile_open(const char *path, eng_linefile **out, struct eng_error *error)
{
    const size_t length = strlen(path);
    const bool compressed = length > 4 && strcmp(path + length - 4, ".zst") == 0;
    eng_linefile *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "%s: host memory exhausted", path);
    }
    enum eng_status status = ENG_OK;
    f->fd = -1;
    f->path = strdup(path);
    if (compressed) {
        f->zstd = ZSTD_createCCtx();
        f->packed_size = ZSTD_CStreamOutSize();
        f->packed = malloc(f->packed_size);
    }
    if (f->path == NULL || (compressed && (f->zstd == NULL || f->packed == NULL))) {
        status = eng_fail(error, ENG_EHOSTMEM, "%s: host memory exhausted", path);
        goto done;
    }
    if (compressed) {
        ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    }
    f->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f->fd < 0) {
        status = fail(f, strerror(errno), error);
    }
done:
    if (status != ENG_OK) {
        release(f);
        return status;
    }
    *out = f;
    return ENG_OK;
}

static enum eng_status write_all(eng_linefile *f, const void *bytes, size_t size,
                                 struct eng_error *error)
{
    const char *p = bytes;
    while (size > 0) {
        const ssize_t n = write(f->fd, p, size);
        if (n < 0 && errno != EINTR) {
            return fail(f, strerror(errno), error);
        }
        if (n > 0) {
            p += n;
            size -= (size_t)n;
        }
    }
    return ENG_OK;
}

static enum eng_status pack(eng_linefile *f, const void *bytes, size_t size,
                            ZSTD_EndDirective directive, struct eng_error *error)
{
    ZSTD_inBuffer in = {bytes, size, 0};
    for (bool more = true; more;) {
        ZSTD_outBuffer out = {f->packed, f->packed_size, 0};
        const size_t left = ZSTD_compressStream2(f->zstd, &out, &in, directive);
        if (ZSTD_isError(left)) {
            return fail(f, ZSTD_getErrorName(left), error);
        }
        const enum eng_status status = write_all(f, f->packed, out.pos, error);
        if (status != ENG_OK) {
            return status;
        }
        more = directive == ZSTD_e_continue ? in.pos < in.size : left > 0;
    }
    return ENG_OK;
}

enum eng_status eng_linefile_write(eng_linefile *f, const char *line, size_t size,
                                   struct eng_error *error)
{
    enum eng_status status;
    if (f->zstd != NULL) {
        status = pack(f, line, size, ZSTD_e_continue, error);
        return status != ENG_OK ? status : pack(f, "\n", 1, ZSTD_e_flush, error);
    }
    char *whole = malloc(size + 1);
    if (whole == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "%s: host memory exhausted", f->path);
    }
    memcpy(whole, line, size);
    whole[size] = '\n';
    status = write_all(f, whole, size + 1, error);
    free(whole);
    return status;
}

enum eng_status eng_linefile_close(eng_linefile *f, struct eng_error *error)
{
    if (f == NULL) {
        return ENG_OK;
    }
    enum eng_status status = ENG_OK;
    if (f->zstd != NULL) {
        status = pack(f, NULL, 0, ZSTD_e_end, error);
    }
    if (close(f->fd) != 0 && status == ENG_OK) {
        status = fail(f, strerror(errno), error);
    }
    f->fd = -1;
    release(f);
    return status;
}
