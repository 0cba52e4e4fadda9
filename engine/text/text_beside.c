/* Looks at the characters before and behind a place.
 * Called by text_encode; must not know tokens. */
#include "text_beside.h"

#include <stdint.h>
#include <utf8proc.h>

/* The character at `at`, and its length. */
static int32_t character_at(const char *bytes, size_t size, size_t at, size_t *length)
{
    utf8proc_int32_t c = -1;
    const utf8proc_ssize_t read =
        utf8proc_iterate((const utf8proc_uint8_t *)bytes + at, (utf8proc_ssize_t)(size - at), &c);
    *length = read > 0 ? (size_t)read : 1;
    return c;
}

/* The character that ends at `at`, which is not 0, and where it begins. */
static int32_t character_before(const char *bytes, size_t at, size_t *start)
{
    size_t length = 0;
    *start = at - 1;
    while (*start > 0 && ((unsigned char)bytes[*start] & 0xC0) == 0x80) {
        --*start;
    }
    return character_at(bytes, at, *start, &length);
}

/* Unicode's White_Space. */
static bool is_space(int32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

/* Alphabetic, marks, decimal digits, connectors and joiners. Alphabetic are letters, numbers that
 * are letters, and the circled and squared Latin letters among the symbols. */
static bool is_word(int32_t c)
{
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
               (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
               (c >= 0x1F170 && c <= 0x1F189);
    }
}

size_t eng_text_space_start(const char *bytes, size_t from, size_t at)
{
    size_t start = at;
    while (at > from && is_space(character_before(bytes, at, &start)) && start >= from) {
        at = start;
    }
    return at;
}

size_t eng_text_space_end(const char *bytes, size_t size, size_t at)
{
    size_t length = 0;
    while (at < size && is_space(character_at(bytes, size, at, &length))) {
        at += length;
    }
    return at;
}

bool eng_text_stands_alone(const char *bytes, size_t size, size_t start, size_t end)
{
    size_t ignored = 0;
    const bool before = start > 0 && is_word(character_before(bytes, start, &ignored));
    const bool behind = end < size && is_word(character_at(bytes, size, end, &ignored));
    return !before && !behind;
}
