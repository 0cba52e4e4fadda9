/* UTF-8 and white space. */
#include <criterion/criterion.h>
#include <string.h>

#include "text_utf8.h"

/* By definition: decode the number the bits spell, then ask whether its shortest form is this one.
 */
static size_t definition_length(const unsigned char *b, size_t size)
{
    const size_t length = b[0] < 0x80             ? 1
                          : (b[0] & 0xE0) == 0xC0 ? 2
                          : (b[0] & 0xF0) == 0xE0 ? 3
                          : (b[0] & 0xF8) == 0xF0 ? 4
                                                  : 0;
    if (length == 0 || length > size) {
        return 0;
    }
    unsigned code = length == 1 ? b[0] : b[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((b[i] & 0xC0) != 0x80) {
            return 0;
        }
        code = code << 6 | (b[i] & 0x3Fu);
    }
    const size_t shortest = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    const bool good = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    return good && shortest == length ? length : 0;
}

Test(eng_text_utf8, accepts_exactly_the_well_formed_sequences)
{
    static const unsigned char edges[] = {0x00, 0x22, 0x7F, 0x80, 0x8F, 0x90,
                                          0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
    size_t compared = 0;
    for (unsigned first = 0; first < 256; first++) {
        for (size_t i = 0; i < sizeof edges * sizeof edges * sizeof edges; i++) {
            const unsigned char b[4] = {(unsigned char)first, edges[i % 11], edges[i / 11 % 11],
                                        edges[i / 121]};
            for (size_t size = 1; size <= 4; size++) {
                cr_assert_eq(eng_utf8_length((const char *)b, size), definition_length(b, size),
                             "%02x %02x %02x %02x of %zu", b[0], b[1], b[2], b[3], size);
                compared++;
            }
        }
    }
    cr_assert_gt(compared, 0);
}

Test(eng_text_utf8, writes_what_it_reads)
{
    for (unsigned code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 97) {
        char bytes[4];
        if (code >= 0xD800 && code <= 0xDFFF) {
            continue;
        }
        const size_t length = eng_utf8_put(bytes, code);
        cr_assert_eq(definition_length((unsigned char *)bytes, length), length, "U+%04X", code);
    }
}

/* Every code point on which Python's str.isspace() is true. */
static const unsigned spaces[] = {0x09,   0x0A,   0x0B,   0x0C,   0x0D,   0x1C,   0x1D,   0x1E,
                                  0x1F,   0x20,   0x85,   0xA0,   0x1680, 0x2000, 0x2001, 0x2002,
                                  0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200A,
                                  0x2028, 0x2029, 0x202F, 0x205F, 0x3000};

Test(eng_text_utf8, trims_python_s_white_space_and_nothing_else)
{
    size_t trimmed_count = 0;
    for (unsigned code = 0; code < 0x11000; code++) {
        char text[16] = "";
        size_t size = 0;
        if (code >= 0xD800 && code <= 0xDFFF) {
            continue;
        }
        size += eng_utf8_put(text, code);
        text[size++] = 'x';
        text[size++] = ' ';
        text[size++] = 'y';
        size += eng_utf8_put(text + size, code);
        const struct eng_text trimmed = eng_text_trim((struct eng_text){text, size});
        bool space = false;
        for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
            space |= spaces[i] == code;
        }
        cr_assert_eq(trimmed.size, space ? 3 : size, "U+%04X", code);
        cr_assert_eq(eng_text_has_edge_space((struct eng_text){text, size}), space, "U+%04X", code);
        trimmed_count += space;
    }
    cr_assert_eq(trimmed_count, sizeof spaces / sizeof spaces[0]);
}

Test(eng_text_utf8, trims_nothing_but_space_to_nothing)
{
    const char text[] = " \r\n\t\xE3\x80\x80\xC2\xA0 ";
    cr_assert_eq(eng_text_trim((struct eng_text){text, sizeof text - 1}).size, 0);
    cr_assert_eq(eng_text_trim((struct eng_text){text, 0}).size, 0);
    cr_assert_not(eng_text_has_edge_space((struct eng_text){text, 0}));
}
