/* Decompression into a scratch file, so that records can be read in any order without holding the
 * text in memory. Called by data_files; must not know lines. */
#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "fault.h"

enum { CHUNK = 1 << 17, MAGIC_BYTES = 4, GZIP_RESERVED = 0xE0 };

static const unsigned char gzip_magic[] = {0x1F, 0x8B};
static const unsigned char zstd_magic[] = {0x28, 0xB5, 0x2F, 0xFD};

/* One file on its way. */
struct unpacker {
    const char *path;
    int from, to;
    uint64_t read_bytes; /* taken from the file */
    uint64_t members;
    struct eng_error *error;
    uint8_t in[CHUNK], out[CHUNK];
};

static enum eng_status write_all(struct unpacker *u, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(u->to, u->out + done, size - done);
        if (n < 0 && errno != EINTR) {
            return eng_fail(u->error, ENG_EIO, "%s: scratch file for its content: %s", u->path,
                            strerror(errno));
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return ENG_OK;
}

static enum eng_status read_some(struct unpacker *u, size_t *size)
{
    ssize_t n = 0;
    do {
        n = read(u->from, u->in, CHUNK);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return eng_fail(u->error, ENG_EIO, "%s: %s", u->path, strerror(errno));
    }
    u->read_bytes += (uint64_t)n;
    *size = (size_t)n;
    return ENG_OK;
}

static enum eng_status damaged(struct unpacker *u, size_t left, const char *cause)
{
    return eng_fail(u->error, ENG_EINPUT, "%s: %s (byte %llu of the compressed file)", u->path,
                    cause, (unsigned long long)(u->read_bytes - left + 1));
}

static const char *gzip_cause(int result)
{
    switch (result) {
    case ISAL_INCORRECT_CHECKSUM:
        return "gzip: wrong checksum";
    case ISAL_INVALID_WRAPPER:
    case ISAL_UNSUPPORTED_METHOD:
        return "gzip: something else than a member";
    default:
        return "gzip: damaged data";
    }
}

/* Where in a member the reader is. */
enum gzip_place { GZIP_BETWEEN, GZIP_HEADER, GZIP_BODY };

/* Reads on in a member's header, from its beginning or from where the input ended before. */
static enum eng_status read_header(struct unpacker *u, struct inflate_state *state,
                                   struct isal_gzip_header *header, enum gzip_place *place)
{
    if (*place == GZIP_BETWEEN) {
        if (state->next_in[0] != gzip_magic[0]) {
            return damaged(u, state->avail_in, gzip_cause(ISAL_INVALID_WRAPPER));
        }
        isal_inflate_reset(state);
        isal_gzip_header_init(header);
        state->crc_flag = ISAL_GZIP_NO_HDR_VER; /* with the trailer, without the header */
        state->avail_out = CHUNK;
        *place = GZIP_HEADER;
    }
    const int result = isal_read_gzip_header(state, header);
    if (result != ISAL_DECOMP_OK && result != ISAL_END_INPUT) {
        return damaged(u, state->avail_in, gzip_cause(result));
    }
    if (result == ISAL_DECOMP_OK && (header->flags & GZIP_RESERVED) != 0) {
        return damaged(u, state->avail_in, "gzip: a reserved flag is set");
    }
    *place = result == ISAL_DECOMP_OK ? GZIP_BODY : GZIP_HEADER;
    return ENG_OK;
}

/* Inflates until the input at hand is used up or a member ends. */
static enum eng_status inflate_some(struct unpacker *u, struct inflate_state *state,
                                    enum gzip_place *place)
{
    state->next_out = u->out;
    state->avail_out = CHUNK;
    const int result = isal_inflate(state);
    if (result != ISAL_DECOMP_OK && result != ISAL_END_INPUT) {
        return damaged(u, state->avail_in, gzip_cause(result));
    }
    if (state->block_state == ISAL_BLOCK_FINISH) {
        u->members++;
        *place = GZIP_BETWEEN;
    }
    return write_all(u, CHUNK - state->avail_out);
}

static enum eng_status unpack_gzip(struct unpacker *u)
{
    struct inflate_state *const state = malloc(sizeof *state);
    struct isal_gzip_header header;
    enum gzip_place place = GZIP_BETWEEN;
    enum eng_status status = ENG_OK;
    size_t size = 1;
    if (state == NULL) {
        return eng_fail(u->error, ENG_EHOSTMEM, "%s: no memory to unpack it", u->path);
    }
    isal_inflate_init(state);
    state->avail_out = CHUNK;
    while (status == ENG_OK && FAULT(unpack_members, true)) {
        /* Without input the state may still hold output back, when the buffer was full. */
        if (state->avail_in == 0 && (state->avail_out > 0 || place == GZIP_BETWEEN)) {
            status = read_some(u, &size);
            state->next_in = u->in;
            state->avail_in = (uint32_t)size;
        }
        if (status != ENG_OK || size == 0) {
            break;
        }
        status = place == GZIP_BODY ? inflate_some(u, state, &place)
                                    : read_header(u, state, &header, &place);
    }
    if (status == ENG_OK && place != GZIP_BETWEEN) {
        status = damaged(u, 0, "gzip: the file is cut off");
    }
    free(state);
    return status;
}

static enum eng_status unpack_zstd(struct unpacker *u)
{
    ZSTD_DCtx *const context = ZSTD_createDCtx();
    enum eng_status status = ENG_OK;
    size_t expected = 0; /* 0 between frames */
    if (context == NULL) {
        return eng_fail(u->error, ENG_EHOSTMEM, "%s: no memory to unpack it", u->path);
    }
    for (size_t size = 1; status == ENG_OK && size > 0;) {
        status = read_some(u, &size);
        ZSTD_inBuffer in = {u->in, size, 0};
        bool full = false;
        while (status == ENG_OK && (in.pos < in.size || full)) {
            ZSTD_outBuffer out = {u->out, CHUNK, 0};
            expected = ZSTD_decompressStream(context, &out, &in);
            if (ZSTD_isError(expected)) {
                status = damaged(u, in.size - in.pos, ZSTD_getErrorName(expected));
                break;
            }
            status = write_all(u, out.pos);
            full = expected > 0 && out.pos == out.size;
            u->members += expected == 0;
        }
    }
    if (status == ENG_OK && expected != 0) {
        status = damaged(u, 0, "zstd: the file is cut off");
    }
    ZSTD_freeDCtx(context);
    return status;
}

/* An open file without a name. */
static enum eng_status make_scratch(const char *path, int *out, struct eng_error *error)
{
    char name[4096];
    const char *folder = getenv("TMPDIR");
    folder = folder == NULL || folder[0] == '\0' ? "/tmp" : folder;
    const int length = snprintf(name, sizeof name, "%s/faultline-XXXXXX", folder);
    const int descriptor =
        length > 0 && (size_t)length < sizeof name ? mkostemp(name, O_CLOEXEC) : -1;
    if (descriptor < 0) {
        return eng_fail(error, ENG_EIO, "%s: scratch file for its content in %.200s: %s", path,
                        folder, strerror(errno));
    }
    unlink(name);
    *out = descriptor;
    return ENG_OK;
}

static enum eng_status unpack_to_scratch(const char *path, int descriptor, bool gzip,
                                         struct eng_unpacked *out, struct eng_error *error)
{
    int scratch = -1;
    enum eng_status status = make_scratch(path, &scratch, error);
    struct unpacker *const u = status == ENG_OK ? malloc(sizeof *u) : NULL;
    if (status == ENG_OK && u == NULL) {
        status = eng_fail(error, ENG_EHOSTMEM, "%s: no memory to unpack it", path);
    }
    if (status == ENG_OK) {
        u->path = path;
        u->from = descriptor;
        u->to = scratch;
        u->read_bytes = u->members = 0;
        u->error = error;
        status = gzip ? unpack_gzip(u) : unpack_zstd(u);
    }
    if (status == ENG_OK) {
        *out = (struct eng_unpacked){scratch, true, u->members};
    } else if (scratch >= 0) {
        close(scratch);
    }
    free(u);
    close(descriptor);
    return status;
}

enum eng_status eng_unpack(const char *path, int descriptor, struct eng_unpacked *out,
                           struct eng_error *error)
{
    unsigned char magic[MAGIC_BYTES] = {0};
    const ssize_t size = pread(descriptor, magic, sizeof magic, 0);
    if (size < 0) {
        const enum eng_status status = eng_fail(error, ENG_EIO, "%s: %s", path, strerror(errno));
        close(descriptor);
        return status;
    }
    const bool gzip = memcmp(magic, gzip_magic, sizeof gzip_magic) == 0;
    if (!gzip && memcmp(magic, zstd_magic, sizeof zstd_magic) != 0) {
        *out = (struct eng_unpacked){descriptor, false, 0};
        return ENG_OK;
    }
    return unpack_to_scratch(path, descriptor, gzip, out, error);
}
