/* Strings by code points, with the origin of their parts: slices, search, strip, case.
 * Called by jinja_*; must not know templates. */
#include "jinja_value.h"

#include <string.h>
#include <utf8proc.h>

#include "jinja_case.h"
#include "text_utf8.h"

struct jv eng_jinja_literal(const char *text)
{
    return jv_str(text, strlen(text), JS_ASCII);
}

struct jv eng_jinja_copy(struct jmem *m, const char *bytes, size_t size, uint8_t flags)
{
    if (size > m->output_max) {
        eng_jinja_fail(m, "a text of more than %zu bytes", m->output_max);
        return jv_str("", 0, JS_ASCII);
    }
    char *const room = eng_jinja_array(m, size, 1);
    if (room == NULL) {
        return jv_str("", 0, JS_ASCII);
    }
    memcpy(room, bytes, size);
    return jv_str(room, size, flags);
}

unsigned eng_jinja_point(const char *bytes, size_t *length)
{
    const unsigned char *const b = (const unsigned char *)bytes;
    if (b[0] < 0x80) {
        *length = 1;
        return b[0];
    }
    if (b[0] < 0xE0) {
        *length = 2;
        return (b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu);
    }
    if (b[0] < 0xF0) {
        *length = 3;
        return (b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu);
    }
    *length = 4;
    return (b[0] & 0x07u) << 18 | (b[1] & 0x3Fu) << 12 | (b[2] & 0x3Fu) << 6 | (b[3] & 0x3Fu);
}

size_t eng_jinja_points(struct jv s)
{
    if (s.flags & JS_ASCII) {
        return s.size;
    }
    size_t count = 0;
    for (size_t i = 0; i < s.size; i++) {
        count += ((unsigned char)s.as.s[i] & 0xC0) != 0x80;
    }
    return count;
}

size_t eng_jinja_offset(struct jv s, size_t index)
{
    if (s.flags & JS_ASCII) {
        return index < s.size ? index : s.size;
    }
    size_t at = 0;
    for (; at < s.size && index > 0; index--) {
        at++;
        while (at < s.size && ((unsigned char)s.as.s[at] & 0xC0) == 0x80) {
            at++;
        }
    }
    return at;
}

/* A part of a text of mixed origin. */
static struct jv mixed_part(struct jmem *m, struct jv s, size_t from, size_t to)
{
    const struct jmarks *marks;
    memcpy(&marks, s.as.s - sizeof marks, sizeof marks);
    struct jbuf *const b = eng_jinja_open(m);
    eng_jinja_put(m, b, s.as.s + from, to - from);
    const size_t size = b->size;
    for (size_t i = 0; i < marks->count && !m->failed; i++) {
        const struct jmark mark = marks->items[i];
        const size_t start = mark.start > from ? mark.start : from;
        const size_t end = mark.end < to ? mark.end : to;
        if (start < end) {
            b->size = end - from;
            eng_jinja_mark(m, b, start - from, mark.kind);
        }
    }
    b->size = size;
    return eng_jinja_close(m);
}

struct jv eng_jinja_part(struct jmem *m, struct jv s, size_t from, size_t to)
{
    if (from >= to) {
        return jv_str("", 0, JS_ASCII | (s.flags & JS_MARKUP));
    }
    if (from == 0 && to == s.size) {
        return s;
    }
    if (s.flags & JS_MIXED) {
        struct jv part = mixed_part(m, s, from, to);
        part.flags |= s.flags & JS_MARKUP;
        return part;
    }
    return jv_str(s.as.s + from, to - from, s.flags);
}

struct jv eng_jinja_joined(struct jmem *m, const struct jv *strings, size_t count)
{
    size_t size = 0;
    uint8_t all = JS_ASCII | JS_CONTENT;
    uint8_t any = 0;
    for (size_t i = 0; i < count; i++) {
        if (strings[i].size == 0) {
            continue;
        }
        size += strings[i].size;
        all &= strings[i].flags;
        any |= strings[i].flags;
    }
    if ((any & (JS_CONTENT | JS_MIXED)) != 0 && (all & JS_CONTENT) == 0) {
        struct jbuf *const b = eng_jinja_open(m);
        for (size_t i = 0; i < count; i++) {
            eng_jinja_put_str(m, b, strings[i]);
        }
        return eng_jinja_close(m);
    }
    if (size > m->output_max) {
        eng_jinja_fail(m, "a text of more than %zu bytes", m->output_max);
    }
    char *const room = m->failed ? NULL : eng_jinja_array(m, size, 1);
    if (room == NULL) {
        return jv_str("", 0, JS_ASCII);
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(room + at, strings[i].as.s, strings[i].size);
        at += strings[i].size;
    }
    return jv_str(room, size, all);
}

size_t eng_jinja_find(struct jv s, struct jv what, size_t from)
{
    if (from > s.size || what.size > s.size - from) {
        return SIZE_MAX;
    }
    if (what.size == 0) {
        return from;
    }
    const char *const found = memmem(s.as.s + from, s.size - from, what.as.s, what.size);
    return found == NULL ? SIZE_MAX : (size_t)(found - s.as.s);
}

size_t eng_jinja_find_last(struct jv s, struct jv what, size_t end)
{
    for (size_t at = end; at + 1 > 0; at--) {
        if (what.size <= s.size - at && at + what.size <= end &&
            memcmp(s.as.s + at, what.as.s, what.size) == 0) {
            return at;
        }
    }
    return SIZE_MAX;
}

static bool among(struct jv chars, const char *bytes, size_t length)
{
    for (size_t at = 0, n = 0; at < chars.size; at += n) {
        eng_jinja_point(chars.as.s + at, &n);
        if (n == length && memcmp(chars.as.s + at, bytes, n) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_space(unsigned c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Whether str.strip takes the character away; chars is a text or no string. */
static bool stripped(struct jv chars, const char *bytes, size_t *length)
{
    const unsigned c = eng_jinja_point(bytes, length);
    return chars.type == J_STR ? among(chars, bytes, *length) : is_space(c);
}

struct jv eng_jinja_strip(struct jmem *m, struct jv s, struct jv chars, bool left, bool right)
{
    size_t from = 0;
    size_t to = s.size;
    size_t n = 0;
    while (left && from < to && stripped(chars, s.as.s + from, &n)) {
        from += n;
    }
    while (right && from < to) {
        size_t last = to - 1;
        while (last > from && ((unsigned char)s.as.s[last] & 0xC0) == 0x80) {
            last--;
        }
        if (!stripped(chars, s.as.s + last, &n)) {
            break;
        }
        to = last;
    }
    return eng_jinja_part(m, s, from, to);
}

static bool has_case(unsigned c)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
           category == UTF8PROC_CATEGORY_LT || utf8proc_islower((utf8proc_int32_t)c) ||
           utf8proc_isupper((utf8proc_int32_t)c);
}

static bool is_case_ignorable(unsigned c)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
           category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
           category == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' || c == ':' || c == 0xB7 ||
           c == 0x387 || c == 0x55F || c == 0x5F4 || c == 0x2018 || c == 0x2019 || c == 0x2024 ||
           c == 0x2027 || c == 0xFE13 || c == 0xFE52 || c == 0xFE55 || c == 0xFF07 || c == 0xFF0E ||
           c == 0xFF1A;
}

/* Whether the sigma at `at` ends a word: a cased character before it, none behind. */
static bool is_final_sigma(struct jv s, size_t at)
{
    size_t n = 0;
    bool before = false;
    for (size_t i = 0; i < at; i += n) {
        const unsigned c = eng_jinja_point(s.as.s + i, &n);
        before = is_case_ignorable(c) ? before : has_case(c);
    }
    eng_jinja_point(s.as.s + at, &n);
    for (size_t i = at + n; i < s.size; i += n) {
        const unsigned c = eng_jinja_point(s.as.s + i, &n);
        if (!is_case_ignorable(c)) {
            return before && !has_case(c);
        }
    }
    return before;
}

/* Appends a character in another case; the expansions are those of Unicode's SpecialCasing. */
static void put_cased(struct jmem *m, struct jbuf *b, struct jv s, size_t at, enum jinja_case which)
{
    enum { CAPITAL_SIGMA = 0x3A3, SMALL_FINAL_SIGMA = 0x3C2 };
    size_t length = 0;
    const unsigned c = eng_jinja_point(s.as.s + at, &length);
    unsigned points[3] = {c, 0, 0};
    if (c < 0x80) {
        const bool upper = which == JCASE_UPPER || which == JCASE_TITLE;
        points[0] =
            upper ? (c >= 'a' && c <= 'z' ? c - 32 : c) : (c >= 'A' && c <= 'Z' ? c + 32 : c);
    } else if (which == JCASE_LOWER && c == CAPITAL_SIGMA && is_final_sigma(s, at)) {
        points[0] = SMALL_FINAL_SIGMA;
    } else {
        eng_jinja_case_point(c, which == JCASE_UPPER ? 0 : which == JCASE_LOWER ? 1 : 2, points);
    }
    for (size_t i = 0; i < 3 && (i == 0 || points[i] != 0); i++) {
        char bytes[4];
        eng_jinja_put(m, b, bytes, eng_utf8_put(bytes, points[i]));
    }
}

/* Whether the character begins a word, for str.title(): behind one without case. */
static enum jinja_case case_here(enum jinja_case which, unsigned c, bool first, bool word)
{
    switch (which) {
    case JCASE_CAPITAL:
        return first ? JCASE_TITLE : JCASE_LOWER;
    case JCASE_TITLE:
        return word ? JCASE_LOWER : JCASE_TITLE;
    case JCASE_SWAP:
        return utf8proc_isupper((utf8proc_int32_t)c) ? JCASE_LOWER : JCASE_UPPER;
    default:
        return which;
    }
}

/* Carries the marks of a mixed text over to its other case: `places` are the new byte offsets. */
static void move_marks(struct jmem *m, struct jbuf *b, struct jv s, const uint32_t *places)
{
    const struct jmarks *marks;
    const size_t size = b->size;
    memcpy(&marks, s.as.s - sizeof marks, sizeof marks);
    for (size_t i = 0; i < marks->count; i++) {
        b->size = places[marks->items[i].end];
        eng_jinja_mark(m, b, places[marks->items[i].start], marks->items[i].kind);
    }
    b->size = size;
}

struct jv eng_jinja_cased(struct jmem *m, struct jv s, enum jinja_case which)
{
    struct jbuf *const b = eng_jinja_open(m);
    uint32_t *const places =
        s.flags & JS_MIXED ? eng_jinja_array(m, (size_t)s.size + 1, sizeof *places) : NULL;
    bool word = false;
    for (size_t at = 0, n = 0; at < s.size && eng_jinja_step(m); at += n) {
        const unsigned c = eng_jinja_point(s.as.s + at, &n);
        if (places != NULL) {
            places[at] = (uint32_t)b->size;
        }
        put_cased(m, b, s, at, case_here(which, c, at == 0, word));
        word = has_case(c);
    }
    if (s.flags & JS_CONTENT) {
        eng_jinja_mark(m, b, 0, JMARK_CONTENT);
    } else if (places != NULL && !m->failed) {
        places[s.size] = (uint32_t)b->size;
        move_marks(m, b, s, places);
    }
    struct jv result = eng_jinja_close(m);
    result.flags |= s.flags & JS_MARKUP;
    return result;
}

static bool in_class(unsigned c, enum jinja_class which)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    const bool letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
    const bool decimal = category == UTF8PROC_CATEGORY_ND;
    switch (which) {
    case JCLASS_ALPHA:
        return letter;
    case JCLASS_DECIMAL:
        return decimal;
    case JCLASS_DIGIT:
        return decimal || eng_jinja_is_digit(c);
    case JCLASS_NUMERIC:
        return decimal || eng_jinja_is_digit(c) || eng_jinja_is_numeric(c);
    case JCLASS_ALNUM:
        return letter || decimal || eng_jinja_is_digit(c) || eng_jinja_is_numeric(c);
    case JCLASS_SPACE:
        return is_space(c);
    default:
        return c < 0x80;
    }
}

/* islower(), isupper(): at least one character with case, and none of the other. */
static bool one_case(struct jv s, bool upper)
{
    bool found = false;
    for (size_t at = 0, n = 0; at < s.size; at += n) {
        const utf8proc_int32_t c = (utf8proc_int32_t)eng_jinja_point(s.as.s + at, &n);
        const bool is_title = utf8proc_category(c) == UTF8PROC_CATEGORY_LT;
        if (is_title || (upper ? utf8proc_islower(c) : utf8proc_isupper(c))) {
            return false;
        }
        found = found || (upper ? utf8proc_isupper(c) : utf8proc_islower(c));
    }
    return found;
}

bool eng_jinja_all_of(struct jv s, enum jinja_class which)
{
    if (which == JCLASS_LOWER || which == JCLASS_UPPER) {
        return one_case(s, which == JCLASS_UPPER);
    }
    for (size_t at = 0, n = 0; at < s.size; at += n) {
        if (!in_class(eng_jinja_point(s.as.s + at, &n), which)) {
            return false;
        }
    }
    return s.size > 0 || which == JCLASS_ASCII;
}

/* markupsafe.escape of a text; a Markup stays as it is. */
/* How markupsafe writes a character, NULL when as it is. */
static const char *escape_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&#34;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

struct jv eng_jinja_escaped(struct jmem *m, struct jv s)
{
    if (s.flags & JS_MARKUP) {
        return s;
    }
    struct jbuf *const b = eng_jinja_open(m);
    uint32_t *const places =
        s.flags & JS_MIXED ? eng_jinja_array(m, (size_t)s.size + 1, sizeof *places) : NULL;
    for (size_t at = 0; at < s.size && eng_jinja_step(m); at++) {
        const size_t from = at;
        const char *text = NULL;
        for (; at < s.size && (text = escape_of(s.as.s[at])) == NULL; at++) {
            if (places != NULL) {
                places[at] = (uint32_t)(b->size + at - from);
            }
        }
        eng_jinja_put(m, b, s.as.s + from, at - from);
        if (text != NULL) {
            if (places != NULL) {
                places[at] = (uint32_t)b->size;
            }
            eng_jinja_put(m, b, text, strlen(text));
        }
    }
    if (s.flags & JS_CONTENT) {
        eng_jinja_mark(m, b, 0, JMARK_CONTENT);
    } else if (places != NULL && !m->failed) {
        places[s.size] = (uint32_t)b->size;
        move_marks(m, b, s, places);
    }
    struct jv result = eng_jinja_close(m);
    result.flags |= JS_MARKUP;
    return result;
}
