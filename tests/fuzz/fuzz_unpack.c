/* Decompression. First byte: 0 = the rest is a file as it is; else the rest are texts between 0xFF,
 * each packed by zlib as a gzip member (1) or by zstd as a frame (2), and the file must hold all of
 * them; from 0x80 on its end is cut off, and it must be refused unless whole members are left.
 * Called by libFuzzer and replay_main.c. */
#define ZLIB_CONST
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "fuzz.h"
#include "unpack.h"

enum { PACKED_MAX = 1 << 17, MEMBERS_MAX = 64 };
enum { AS_IT_IS, GZIP, ZSTD, KINDS };

struct packed {
    uint8_t bytes[PACKED_MAX];
    size_t size;
    char text[PACKED_MAX];
    size_t text_size;
    size_t ends[MEMBERS_MAX + 1], text_ends[MEMBERS_MAX + 1]; /* after so many members */
    size_t members;
};

static void add_member(struct packed *p, unsigned kind, const char *bytes, size_t size)
{
    uint8_t *const out = p->bytes + p->size;
    const size_t room = sizeof p->bytes - p->size;
    if (kind == ZSTD) {
        const size_t written = ZSTD_compress(out, room, bytes, size, (int)(size % 3));
        fuzz_require(!ZSTD_isError(written));
        p->size += written;
    } else {
        z_stream stream = {.next_in = (const Bytef *)bytes,
                           .avail_in = (uInt)size,
                           .next_out = out,
                           .avail_out = (uInt)room};
        fuzz_require(deflateInit2(&stream, (int)(size % 10), Z_DEFLATED, 15 + 16, 8,
                                  Z_DEFAULT_STRATEGY) == Z_OK);
        fuzz_require(deflate(&stream, Z_FINISH) == Z_STREAM_END);
        p->size += stream.total_out;
        deflateEnd(&stream);
    }
    memcpy(p->text + p->text_size, bytes, size);
    p->text_size += size;
    p->members++;
    p->ends[p->members] = p->size;
    p->text_ends[p->members] = p->text_size;
}

/* The content through the descriptor, compared with the text; OK or EINPUT with the path. */
static void check(const uint8_t *bytes, size_t size, const char *text, size_t text_size,
                  bool refused, size_t members)
{
    struct fuzz_file file = fuzz_file_open(bytes, size);
    struct eng_unpacked out = {.descriptor = -1};
    struct eng_error error = {""};
    const enum eng_status status = eng_unpack(file.path, open(file.path, O_RDONLY), &out, &error);
    fuzz_require(status == ENG_OK || status == ENG_EINPUT);
    if (status == ENG_EINPUT) {
        fuzz_require(strncmp(error.text, file.path, strlen(file.path)) == 0);
    }
    if (text != NULL) {
        fuzz_require((status == ENG_EINPUT) == refused);
    }
    if (status == ENG_OK) {
        const off_t end = lseek(out.descriptor, 0, SEEK_END);
        fuzz_require(end >= 0);
        if (text != NULL) {
            char *const content = malloc(text_size + 1);
            fuzz_require(content != NULL);
            fuzz_require((size_t)end == text_size && out.members == members);
            fuzz_require(pread(out.descriptor, content, text_size + 1, 0) == end);
            fuzz_require(memcmp(content, text, text_size) == 0);
            free(content);
        }
        close(out.descriptor);
    }
    fuzz_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct packed p;
    struct fuzz_input in = {data, data + size};
    const unsigned choice = fuzz_byte(&in);
    const unsigned kind = (choice & 0x7F) % KINDS;
    if (size > PACKED_MAX / 4) {
        return 0;
    }
    if (kind == AS_IT_IS) {
        check(in.at, (size_t)(in.end - in.at), NULL, 0, false, 0);
        return 0;
    }
    const size_t cut = (choice & 0x80) != 0 ? 1 + fuzz_byte(&in) : 0;
    const char *bytes = NULL;
    size_t length = 0;
    p.size = p.text_size = p.members = 0;
    while (p.members < MEMBERS_MAX && fuzz_segment(&in, &bytes, &length)) {
        add_member(&p, kind, bytes, length);
    }
    if (p.members == 0 || cut >= p.size) {
        return 0;
    }
    const size_t left = p.size - cut;
    size_t whole = p.members;
    while (p.ends[whole] > left) {
        whole--;
    }
    if (left >= 4) { /* fewer bytes are not yet told from a plain file */
        check(p.bytes, left, p.text, p.text_ends[whole], p.ends[whole] != left, whole);
    }
    return 0;
}
