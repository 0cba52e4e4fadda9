/* UTF-8 by the table of well-formed sequences, and the white space of Python's str.strip().
 * Called by json_reader, layout and tokenizer; must not know JSON, layouts or tokens. */
#include "text_utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static bool in_range(unsigned char byte, unsigned low, unsigned high)
{
    return byte >= low && byte <= high;
}

size_t eng_utf8_length(const char *bytes, size_t size)
{
    const unsigned char *const b = (const unsigned char *)bytes;
    if (b[0] < 0x80) {
        return 1;
    }
    if (in_range(b[0], 0xC2, 0xDF)) {
        return size >= 2 && in_range(b[1], 0x80, 0xBF) ? 2 : 0;
    }
    if (in_range(b[0], 0xE0, 0xEF)) {
        const unsigned low = b[0] == 0xE0 ? 0xA0 : 0x80;
        const unsigned high = b[0] == 0xED ? 0x9F : 0xBF;
        return size >= 3 && in_range(b[1], low, high) && in_range(b[2], 0x80, 0xBF) ? 3 : 0;
    }
    if (in_range(b[0], 0xF0, 0xF4)) {
        const unsigned low = b[0] == 0xF0 ? 0x90 : 0x80;
        const unsigned high = b[0] == 0xF4 ? 0x8F : 0xBF;
        return size >= 4 && in_range(b[1], low, high) && in_range(b[2], 0x80, 0xBF) &&
                       in_range(b[3], 0x80, 0xBF)
                   ? 4
                   : 0;
    }
    return 0;
}

size_t eng_utf8_put(char *out, unsigned code_point)
{
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (char)(0xC0 | code_point >> 6);
        out[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (char)(0xE0 | code_point >> 12);
        out[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code_point >> 18);
    out[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}

/* The code point of a well-formed sequence of at most 3 bytes; white space has no longer one. */
static unsigned decode_short(const char *bytes, size_t length)
{
    const unsigned char *const b = (const unsigned char *)bytes;
    switch (length) {
    case 1:
        return b[0];
    case 2:
        return (b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu);
    default:
        return (b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu);
    }
}

/* str.isspace() of Python: White_Space and the four information separators. */
static bool is_strip_space(unsigned c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Bytes of the white-space character that starts at bytes, 0 when it is another one. */
static size_t space_length(const char *bytes, size_t size)
{
    const size_t length = eng_utf8_length(bytes, size);
    return length >= 1 && length <= 3 && is_strip_space(decode_short(bytes, length)) ? length : 0;
}

static size_t trailing_space_length(struct eng_text text)
{
    size_t start = text.size - 1;
    while (start > 0 && ((unsigned char)text.bytes[start] & 0xC0) == 0x80) {
        start--;
    }
    const size_t length = text.size - start;
    return space_length(text.bytes + start, length) == length ? length : 0;
}

struct eng_text eng_text_trim(struct eng_text text)
{
    for (size_t n = 1; text.size > 0 && n > 0;) {
        n = space_length(text.bytes, text.size);
        text.bytes += n;
        text.size -= n;
    }
    for (size_t n = 1; text.size > 0 && n > 0;) {
        n = trailing_space_length(text);
        text.size -= n;
    }
    return text;
}

bool eng_text_has_edge_space(struct eng_text text)
{
    return text.size > 0 &&
           (space_length(text.bytes, text.size) > 0 || trailing_space_length(text) > 0);
}

/* How many bytes at the beginning are ASCII, found eight at a time. */
static size_t ascii_size(const char *bytes, size_t size)
{
    size_t at = 0;
    uint64_t word = 0;
    for (; at + sizeof word <= size; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        if ((word & 0x8080808080808080u) != 0) {
            break;
        }
    }
    while (at < size && (unsigned char)bytes[at] < 0x80) {
        at++;
    }
    return at;
}

bool eng_text_is_ascii(struct eng_text text)
{
    return ascii_size(text.bytes, text.size) == text.size;
}

size_t eng_utf8_good_size(struct eng_text text)
{
    size_t at = 0;
    while (at < text.size) {
        at += ascii_size(text.bytes + at, text.size - at);
        const size_t length =
            at == text.size ? 0 : eng_utf8_length(text.bytes + at, text.size - at);
        if (length == 0) {
            break;
        }
        at += length;
    }
    return at;
}

struct eng_text eng_text_composed(struct eng_text text)
{
    utf8proc_uint8_t *bytes = NULL;
    const utf8proc_ssize_t size =
        utf8proc_map((const utf8proc_uint8_t *)text.bytes, (utf8proc_ssize_t)text.size, &bytes,
                     UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    return (struct eng_text){(char *)bytes, size < 0 ? 0 : (size_t)size};
}

bool eng_text_is_composed(struct eng_text text)
{
    if (eng_text_is_ascii(text)) {
        return true;
    }
    const struct eng_text composed = eng_text_composed(text);
    const bool same =
        composed.bytes == NULL ||
        (composed.size == text.size && memcmp(composed.bytes, text.bytes, text.size) == 0);
    free((void *)(uintptr_t)composed.bytes);
    return same;
}
