/* Patterns under PCRE2. \s is written out as White_Space: PCRE2's \s also matches U+180E.
 * Called by fuzz_tokenizer and eng_text_split_test. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "split_twin.h"

#include <pcre2.h>
#include <stdint.h>
#include <utf8proc.h>

#include "fuzz.h"

#define S_                                                                                         \
    "\\x{09}-\\x{0D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}"           \
    "\\x{202F}\\x{205F}\\x{3000}"
#define FORMS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS "|[" S_ "]+(?![^" S_ "])|[" S_ "]+"
#define LINES "|[" S_ "]*[\\r\\n]+" BLANKS
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPERS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWERS "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

static const char *const patterns[TWIN_PATTERNS] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" S_ "\\p{L}\\p{N}]+" BLANKS,
    FORMS "|" BEFORE "\\p{L}+|\\p{N}{1,3}| ?[^" S_ "\\p{L}\\p{N}]+[\\r\\n]*" LINES,
    FORMS "|" BEFORE "\\p{L}+|\\p{N}| ?[^" S_ "\\p{L}\\p{N}]+[\\r\\n]*" LINES,
    BEFORE UPPERS "*" LOWERS "+" FORMS "?|" BEFORE UPPERS "+" LOWERS "*" FORMS
                  "?|\\p{N}{1,3}| ?[^" S_ "\\p{L}\\p{N}]+[\\r\\n/]*" LINES,
};

static pcre2_code *compile(const char *pattern)
{
    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code *const compiled =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code, &offset, NULL);
    fuzz_require(compiled != NULL);
    return compiled;
}

static size_t match(const pcre2_code *code, const char *bytes, size_t size, size_t at)
{
    static pcre2_match_data *data;
    data = data == NULL ? pcre2_match_data_create(1, NULL) : data;
    fuzz_require(data != NULL);
    const int found =
        pcre2_match(code, (PCRE2_SPTR)bytes, size, at, PCRE2_NO_UTF_CHECK, data, NULL);
    if (found < 0) {
        return 0;
    }
    const PCRE2_SIZE *const edges = pcre2_get_ovector_pointer(data);
    return edges[1] - edges[0];
}

size_t twin_piece(int pattern, const char *bytes, size_t size, size_t at)
{
    static pcre2_code *codes[TWIN_PATTERNS];
    if (codes[pattern] == NULL) {
        codes[pattern] = compile(patterns[pattern]);
    }
    return match(codes[pattern], bytes, size, at);
}

/* The class that matters to the patterns, by each library. */
static int class_by_pcre2(const char *bytes, size_t length)
{
    static const char *const classes[] = {"[\\p{Lu}\\p{Lt}]", "\\p{Ll}", "[\\p{Lm}\\p{Lo}]",
                                          "\\p{M}", "\\p{N}"};
    static pcre2_code *codes[5];
    for (int i = 0; i < 5; i++) {
        if (codes[i] == NULL) {
            codes[i] = compile(classes[i]);
        }
        if (match(codes[i], bytes, length, 0) == length) {
            return i;
        }
    }
    return 5;
}

static int class_by_utf8proc(unsigned character)
{
    switch (utf8proc_category((utf8proc_int32_t)character)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
        return 0;
    case UTF8PROC_CATEGORY_LL:
        return 1;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return 2;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return 3;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return 4;
    default:
        return 5;
    }
}

bool twin_agrees(const char *bytes, size_t size)
{
    enum { UNKNOWN, AGREES, DIFFERS };
    static uint8_t known[0x110000];
    for (size_t at = 0, length = 0; at < size; at += length) {
        const unsigned character = fuzz_code_point(bytes + at, &length);
        if (known[character] == UNKNOWN) {
            const bool same = class_by_pcre2(bytes + at, length) == class_by_utf8proc(character);
            known[character] = same ? AGREES : DIFFERS;
        }
        if (known[character] == DIFFERS) {
            return false;
        }
    }
    return true;
}
