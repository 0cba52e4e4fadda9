/* Methods of texts, as Python's str has them.
 * Called through jinja_methods; must not know syntax. */
#include <string.h>

#include "jinja_filters.h"
#include "jinja_run.h"
#include "jinja_strings.h"

static struct jv failed(void)
{
    return jv_undefined("");
}

/* Whether the argument is given and a text; fails the render when it is something else. */
static bool text_given(struct jmem *m, const struct jv *a, size_t count, size_t index)
{
    if (index >= count || a[index].type == J_NONE) {
        return false;
    }
    if (a[index].type != J_STR) {
        eng_jinja_fail(m, "a text expected, not %s", eng_jinja_type_name(a[index]));
        return false;
    }
    return true;
}

static int64_t int_given(struct jmem *m, const struct jv *a, size_t count, size_t index,
                         int64_t otherwise)
{
    int64_t value = otherwise;
    if (index < count && !eng_jinja_int_of(a[index], &value)) {
        eng_jinja_fail(m, "a whole number expected, not %s", eng_jinja_type_name(a[index]));
    }
    return value;
}

static struct jv as_markup(struct jv s, struct jv like)
{
    s.flags = (uint8_t)((s.flags & ~JS_MARKUP) | (like.flags & JS_MARKUP));
    return s;
}

struct jv eng_jinja_m_strip(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    const struct jv chars = text_given(m, a, count, 0) ? a[0] : jv_none();
    return eng_jinja_strip(m, s, chars, true, true);
}

struct jv eng_jinja_m_lstrip(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    const struct jv chars = text_given(m, a, count, 0) ? a[0] : jv_none();
    return eng_jinja_strip(m, s, chars, true, false);
}

struct jv eng_jinja_m_rstrip(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    const struct jv chars = text_given(m, a, count, 0) ? a[0] : jv_none();
    return eng_jinja_strip(m, s, chars, false, true);
}

#define CASE_METHOD(name, which)                                                                   \
    struct jv name(struct jmem *m, struct jv s, const struct jv *a, size_t count)                  \
    {                                                                                              \
        (void)a;                                                                                   \
        (void)count;                                                                               \
        return eng_jinja_cased(m, s, which);                                                       \
    }
CASE_METHOD(eng_jinja_m_upper, JCASE_UPPER)
CASE_METHOD(eng_jinja_m_lower, JCASE_LOWER)
CASE_METHOD(eng_jinja_m_title, JCASE_TITLE)
CASE_METHOD(eng_jinja_m_capitalize, JCASE_CAPITAL)
CASE_METHOD(eng_jinja_m_swapcase, JCASE_SWAP)

#define CLASS_METHOD(name, which)                                                                  \
    struct jv name(struct jmem *m, struct jv s, const struct jv *a, size_t count)                  \
    {                                                                                              \
        (void)m;                                                                                   \
        (void)a;                                                                                   \
        (void)count;                                                                               \
        return jv_bool(eng_jinja_all_of(s, which));                                                \
    }
CLASS_METHOD(eng_jinja_m_isalpha, JCLASS_ALPHA)
CLASS_METHOD(eng_jinja_m_isdigit, JCLASS_DIGIT)
CLASS_METHOD(eng_jinja_m_isdecimal, JCLASS_DECIMAL)
CLASS_METHOD(eng_jinja_m_isnumeric, JCLASS_NUMERIC)
CLASS_METHOD(eng_jinja_m_isalnum, JCLASS_ALNUM)
CLASS_METHOD(eng_jinja_m_isspace, JCLASS_SPACE)
CLASS_METHOD(eng_jinja_m_islower, JCLASS_LOWER)
CLASS_METHOD(eng_jinja_m_isupper, JCLASS_UPPER)
CLASS_METHOD(eng_jinja_m_isascii, JCLASS_ASCII)

/* The part of s that the arguments start and end (by code points) leave. */
static bool window(struct jmem *m, struct jv s, const struct jv *a, size_t count, size_t first,
                   size_t *from, size_t *to)
{
    const int64_t size = (int64_t)eng_jinja_points(s);
    const struct jv none = jv_none();
    const struct jv start = first < count ? a[first] : none;
    const struct jv stop = first + 1 < count ? a[first + 1] : none;
    int64_t begin = start.type == J_NONE ? 0 : int_given(m, &start, 1, 0, 0);
    int64_t end = stop.type == J_NONE ? size : int_given(m, &stop, 1, 0, 0);
    begin = begin < -size ? 0 : begin < 0 ? begin + size : begin;
    end = end < -size ? 0 : end < 0 ? end + size : end > size ? size : end;
    *from = eng_jinja_offset(s, (size_t)(begin > size ? size : begin));
    *to = eng_jinja_offset(s, (size_t)end);
    return begin <= size && *from <= *to;
}

static struct jv edge(struct jmem *m, struct jv s, const struct jv *a, size_t count, bool at_end)
{
    size_t from = 0;
    size_t to = 0;
    const bool is_tuple = count > 0 && a[0].type == J_TUPLE;
    const struct jv *const options = is_tuple ? a[0].as.list->items : a;
    const size_t option_count = is_tuple ? a[0].as.list->count : 1;
    const bool there = window(m, s, a, count, 1, &from, &to);
    for (size_t i = 0; i < option_count; i++) {
        const struct jv o = options[i];
        if (o.type != J_STR) {
            eng_jinja_fail(m, "a text expected, not %s", eng_jinja_type_name(o));
            break;
        }
        if (there && o.size <= to - from &&
            memcmp(s.as.s + (at_end ? to - o.size : from), o.as.s, o.size) == 0) {
            return jv_bool(true);
        }
    }
    return jv_bool(false);
}

struct jv eng_jinja_m_startswith(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return edge(m, s, a, count, false);
}

struct jv eng_jinja_m_endswith(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return edge(m, s, a, count, true);
}

static struct jv found_at(struct jmem *m, struct jv s, const struct jv *a, size_t count, bool last,
                          bool must)
{
    size_t from = 0;
    size_t to = 0;
    size_t place = SIZE_MAX;
    if (text_given(m, a, count, 0) && window(m, s, a, count, 1, &from, &to)) {
        const struct jv part = jv_str(s.as.s, to, s.flags & JS_ASCII);
        place = last ? eng_jinja_find_last(part, a[0], to) : eng_jinja_find(part, a[0], from);
        place = place != SIZE_MAX && place < from ? SIZE_MAX : place;
    } else if (count > 0 && a[0].type == J_NONE) {
        eng_jinja_fail(m, "a text expected, not NoneType");
    }
    if (place == SIZE_MAX) {
        if (must) {
            eng_jinja_fail(m, "the text is not found");
        }
        return jv_int(-1);
    }
    return jv_int((int64_t)eng_jinja_points(jv_str(s.as.s, place, s.flags & JS_ASCII)));
}

struct jv eng_jinja_m_find(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return found_at(m, s, a, count, false, false);
}

struct jv eng_jinja_m_rfind(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return found_at(m, s, a, count, true, false);
}

struct jv eng_jinja_m_rindex(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return found_at(m, s, a, count, true, true);
}

struct jv eng_jinja_m_index(struct jmem *m, struct jv v, const struct jv *a, size_t count)
{
    if (v.type == J_STR) {
        return found_at(m, v, a, count, false, true);
    }
    if (count > 1) {
        eng_jinja_fail(m, "index with borders is not supported");
    }
    const struct jlist *const list = eng_jinja_items_of(m, v);
    for (size_t i = 0; i < list->count && !m->failed; i++) {
        if (eng_jinja_equal(m, list->items[i], a[0])) {
            return jv_int((int64_t)i);
        }
    }
    eng_jinja_fail(m, "the item is not in the list");
    return failed();
}

struct jv eng_jinja_m_count(struct jmem *m, struct jv v, const struct jv *a, size_t count)
{
    int64_t found = 0;
    if (v.type != J_STR) {
        const struct jlist *const list = eng_jinja_items_of(m, v);
        for (size_t i = 0; i < list->count && !m->failed; i++) {
            found += eng_jinja_equal(m, list->items[i], a[0]);
        }
        return jv_int(found);
    }
    size_t from = 0;
    size_t to = 0;
    if (!text_given(m, a, count, 0)) {
        eng_jinja_fail(m, "count takes a text");
        return failed();
    }
    if (!window(m, v, a, count, 1, &from, &to)) {
        return jv_int(0);
    }
    const struct jv part = jv_str(v.as.s, to, v.flags & JS_ASCII);
    if (a[0].size == 0) {
        return jv_int((int64_t)eng_jinja_points(jv_str(v.as.s + from, to - from, 0)) + 1);
    }
    for (size_t at = from; (at = eng_jinja_find(part, a[0], at)) != SIZE_MAX; at += a[0].size) {
        found++;
    }
    return jv_int(found);
}

struct jv eng_jinja_replaced(struct jmem *m, struct jv s, struct jv from, struct jv to,
                             int64_t count)
{
    const struct jv parts = eng_jinja_list(m, J_LIST, 0);
    size_t plain = 0;
    size_t at = 0;
    while (count != 0 && (at = eng_jinja_find(s, from, at)) != SIZE_MAX && eng_jinja_step(m)) {
        eng_jinja_append(m, parts, eng_jinja_part(m, s, plain, at));
        eng_jinja_append(m, parts, to);
        plain = at + from.size;
        at = plain;
        count--;
        if (from.size == 0) {
            size_t length = 1;
            if (at < s.size) {
                eng_jinja_point(s.as.s + at, &length);
            }
            at += length;
        }
    }
    eng_jinja_append(m, parts, eng_jinja_part(m, s, plain, s.size));
    return eng_jinja_joined(m, parts.as.list->items, parts.as.list->count);
}

struct jv eng_jinja_m_replace(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    const bool texts = text_given(m, a, count, 0) && text_given(m, a, count, 1);
    const int64_t times = int_given(m, a, count, 2, -1);
    if (!texts) {
        eng_jinja_fail(m, "replace takes two texts");
        return failed();
    }
    const struct jv to = s.flags & JS_MARKUP ? eng_jinja_escaped(m, a[1]) : a[1];
    return as_markup(eng_jinja_replaced(m, s, a[0], to, times), s);
}

/* Pieces between white space, as split() without a separator. */
static struct jv split_blanks(struct jmem *m, struct jv s, int64_t max)
{
    const struct jv list = eng_jinja_list(m, J_LIST, 4);
    struct jv rest = eng_jinja_strip(m, s, jv_none(), true, false);
    while (rest.size > 0 && eng_jinja_step(m)) {
        size_t end = 0;
        for (size_t n = 0; max != 0 && end < rest.size; end += n) {
            eng_jinja_point(rest.as.s + end, &n);
            if (eng_jinja_all_of(jv_str(rest.as.s + end, n, 0), JCLASS_SPACE)) {
                break;
            }
        }
        if (max == 0) {
            eng_jinja_append(m, list, rest);
            break;
        }
        eng_jinja_append(m, list, eng_jinja_part(m, rest, 0, end));
        rest = eng_jinja_strip(m, eng_jinja_part(m, rest, end, rest.size), jv_none(), true, false);
        max--;
    }
    return list;
}

/* Where the last piece without white space begins. */
static size_t last_word(struct jv s)
{
    size_t at = s.size;
    while (at > 0) {
        size_t before = at - 1;
        while (before > 0 && ((unsigned char)s.as.s[before] & 0xC0) == 0x80) {
            before--;
        }
        if (eng_jinja_all_of(jv_str(s.as.s + before, at - before, 0), JCLASS_SPACE)) {
            break;
        }
        at = before;
    }
    return at;
}

static bool separator_given(struct jmem *m, const struct jv *a, size_t count)
{
    const bool given = text_given(m, a, count, 0);
    if (given && a[0].size == 0) {
        eng_jinja_fail(m, "an empty separator");
    }
    return given && !m->failed;
}

struct jv eng_jinja_m_split(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    int64_t max = int_given(m, a, count, 1, -1);
    if (!separator_given(m, a, count)) {
        return m->failed ? failed() : split_blanks(m, s, max);
    }
    const struct jv list = eng_jinja_list(m, J_LIST, 4);
    size_t at = 0;
    size_t found = 0;
    while (max != 0 && (found = eng_jinja_find(s, a[0], at)) != SIZE_MAX && eng_jinja_step(m)) {
        eng_jinja_append(m, list, eng_jinja_part(m, s, at, found));
        at = found + a[0].size;
        max--;
    }
    eng_jinja_append(m, list, eng_jinja_part(m, s, at, s.size));
    return list;
}

static struct jv reversed(struct jmem *m, struct jv list)
{
    const struct jv back = eng_jinja_list(m, J_LIST, list.as.list->count);
    for (size_t i = list.as.list->count; i > 0 && eng_jinja_step(m); i--) {
        eng_jinja_append(m, back, list.as.list->items[i - 1]);
    }
    return back;
}

/* The same from the right; what the limit leaves keeps the white space at its front. */
static struct jv rsplit_blanks(struct jmem *m, struct jv s, int64_t max)
{
    const struct jv list = eng_jinja_list(m, J_LIST, 4);
    struct jv rest = eng_jinja_strip(m, s, jv_none(), false, true);
    while (rest.size > 0 && eng_jinja_step(m)) {
        const size_t at = max == 0 ? 0 : last_word(rest);
        eng_jinja_append(m, list, eng_jinja_part(m, rest, at, rest.size));
        rest = eng_jinja_strip(m, eng_jinja_part(m, rest, 0, at), jv_none(), false, true);
        max--;
    }
    return reversed(m, list);
}

struct jv eng_jinja_m_rsplit(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    int64_t max = int_given(m, a, count, 1, -1);
    if (!separator_given(m, a, count)) {
        return m->failed ? failed() : rsplit_blanks(m, s, max);
    }
    const struct jv list = eng_jinja_list(m, J_LIST, 4);
    size_t end = s.size;
    size_t found = 0;
    while (max != 0 && (found = eng_jinja_find_last(s, a[0], end)) != SIZE_MAX &&
           eng_jinja_step(m)) {
        eng_jinja_append(m, list, eng_jinja_part(m, s, found + a[0].size, end));
        end = found;
        max--;
    }
    eng_jinja_append(m, list, eng_jinja_part(m, s, 0, end));
    return reversed(m, list);
}

static struct jv partition(struct jmem *m, struct jv s, const struct jv *a, size_t count, bool last)
{
    const struct jv parts = eng_jinja_list(m, J_TUPLE, 3);
    if (!separator_given(m, a, count)) {
        eng_jinja_fail(m, "partition takes a text");
        return failed();
    }
    const struct jv nothing = eng_jinja_part(m, s, 0, 0);
    const size_t at = last ? eng_jinja_find_last(s, a[0], s.size) : eng_jinja_find(s, a[0], 0);
    if (at == SIZE_MAX) {
        eng_jinja_append(m, parts, last ? nothing : s);
        eng_jinja_append(m, parts, nothing);
        eng_jinja_append(m, parts, last ? s : nothing);
        return parts;
    }
    eng_jinja_append(m, parts, eng_jinja_part(m, s, 0, at));
    eng_jinja_append(m, parts, as_markup(a[0], s));
    eng_jinja_append(m, parts, eng_jinja_part(m, s, at + a[0].size, s.size));
    return parts;
}

struct jv eng_jinja_m_partition(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return partition(m, s, a, count, false);
}

struct jv eng_jinja_m_rpartition(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return partition(m, s, a, count, true);
}

/* Bytes of the line end at the place, 0 when there is none. */
static size_t line_end(struct jv s, size_t at)
{
    size_t n = 0;
    const unsigned c = eng_jinja_point(s.as.s + at, &n);
    if (c == '\r' && at + 1 < s.size && s.as.s[at + 1] == '\n') {
        return 2;
    }
    return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
                   c == 0x2029
               ? n
               : 0;
}

struct jv eng_jinja_lines(struct jmem *m, struct jv s, bool keep_ends)
{
    const struct jv list = eng_jinja_list(m, J_LIST, 4);
    size_t start = 0;
    for (size_t at = 0, n = 0; at < s.size && eng_jinja_step(m); at += n) {
        const size_t end = line_end(s, at);
        if (end == 0) {
            eng_jinja_point(s.as.s + at, &n);
            continue;
        }
        n = end;
        eng_jinja_append(m, list, eng_jinja_part(m, s, start, keep_ends ? at + end : at));
        start = at + end;
    }
    if (start < s.size) {
        eng_jinja_append(m, list, eng_jinja_part(m, s, start, s.size));
    }
    return list;
}

struct jv eng_jinja_m_splitlines(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return eng_jinja_lines(m, s, count > 0 && eng_jinja_truth(m, a[0]));
}

struct jv eng_jinja_m_join(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    (void)count;
    const struct jlist *const items = eng_jinja_items_of(m, a[0]);
    const struct jv parts = eng_jinja_list(m, J_LIST, items->count * 2);
    for (size_t i = 0; i < items->count && eng_jinja_step(m); i++) {
        if (items->items[i].type != J_STR) {
            eng_jinja_fail(m, "join takes texts, not %s", eng_jinja_type_name(items->items[i]));
            return failed();
        }
        if (i > 0) {
            eng_jinja_append(m, parts, s);
        }
        eng_jinja_append(m, parts,
                         s.flags & JS_MARKUP ? eng_jinja_escaped(m, items->items[i])
                                             : items->items[i]);
    }
    return as_markup(eng_jinja_joined(m, parts.as.list->items, parts.as.list->count), s);
}

struct jv eng_jinja_m_removeprefix(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    const bool there = text_given(m, a, count, 0) && a[0].size <= s.size &&
                       memcmp(s.as.s, a[0].as.s, a[0].size) == 0;
    return as_markup(there ? eng_jinja_part(m, s, a[0].size, s.size) : s, jv_none());
}

struct jv eng_jinja_m_removesuffix(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    const bool there = text_given(m, a, count, 0) && a[0].size <= s.size &&
                       memcmp(s.as.s + s.size - a[0].size, a[0].as.s, a[0].size) == 0;
    return as_markup(there ? eng_jinja_part(m, s, 0, s.size - a[0].size) : s, jv_none());
}

/* ljust, rjust, center: blanks (or another character) to the left and right. */
static struct jv padded(struct jmem *m, struct jv s, const struct jv *a, size_t count, int where)
{
    const int64_t width = int_given(m, a, count, 0, 0);
    const int64_t size = (int64_t)eng_jinja_points(s);
    const struct jv fill = text_given(m, a, count, 1) ? a[1] : eng_jinja_literal(" ");
    const int64_t missing = width > size ? width - size : 0;
    if (eng_jinja_points(fill) != 1) {
        eng_jinja_fail(m, "one character to fill with expected");
        return failed();
    }
    const int64_t centred = missing / 2 + (missing & width & 1);
    const int64_t left = where < 0 ? 0 : where > 0 ? missing : centred;
    const struct jv parts[3] = {eng_jinja_arithmetic(m, JO_MUL, fill, jv_int(left)), s,
                                eng_jinja_arithmetic(m, JO_MUL, fill, jv_int(missing - left))};
    return as_markup(eng_jinja_joined(m, parts, 3), s);
}

struct jv eng_jinja_m_ljust(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return padded(m, s, a, count, -1);
}

struct jv eng_jinja_m_rjust(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return padded(m, s, a, count, 1);
}

struct jv eng_jinja_m_center(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return padded(m, s, a, count, 0);
}

struct jv eng_jinja_m_zfill(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    const bool sign = s.size > 0 && (*s.as.s == '-' || *s.as.s == '+');
    const int64_t width = int_given(m, a, count, 0, 0) - (sign ? 1 : 0);
    const struct jv padding[2] = {jv_int(width), eng_jinja_literal("0")};
    const struct jv digits = eng_jinja_part(m, s, sign ? 1 : 0, s.size);
    const struct jv parts[2] = {eng_jinja_part(m, s, 0, sign ? 1 : 0),
                                padded(m, digits, padding, 2, 1)};
    return as_markup(eng_jinja_joined(m, parts, 2), s);
}

/* The value of a field of str.format: "" takes the next argument, else a number or a name. */
static struct jv field_value(struct jmem *m, struct jv field, const struct jinja_arguments *a,
                             size_t *next)
{
    enum { BY_NUMBER = SIZE_MAX };
    if (field.size == 0 && *next < a->count) {
        return a->items[(*next)++];
    }
    if (field.size == 1 && field.as.s[0] >= '0' && field.as.s[0] <= '9' &&
        (size_t)(field.as.s[0] - '0') < a->count && (*next == 0 || *next == BY_NUMBER)) {
        *next = BY_NUMBER;
        return a->items[field.as.s[0] - '0'];
    }
    for (size_t i = 0; i < a->name_count; i++) {
        if (jv_is(a->names[i], field.as.s, field.size)) {
            return a->values[i];
        }
    }
    eng_jinja_fail(m, "the field '{%.*s}' of a format has no value here",
                   (int)(field.size < 40 ? field.size : 40), field.as.s);
    return failed();
}

struct jv eng_jinja_formatted(struct jmem *m, struct jv s, const struct jinja_arguments *a)
{
    struct jbuf *const b = eng_jinja_open(m);
    size_t next = 0;
    for (size_t i = 0; i < s.size && eng_jinja_step(m); i++) {
        const char c = s.as.s[i];
        const char d = i + 1 < s.size ? s.as.s[i + 1] : '\0';
        const size_t end = eng_jinja_find(s, eng_jinja_literal("}"), i);
        if (c != '{' && c != '}') {
            eng_jinja_put_str(m, b, eng_jinja_part(m, s, i, i + 1));
        } else if (c == d) {
            eng_jinja_put(m, b, &c, 1);
            i++;
        } else if (c == '}' || end == SIZE_MAX) {
            eng_jinja_fail(m, "a format with a single '%c'", c);
        } else {
            const struct jv field = jv_str(s.as.s + i + 1, end - i - 1, 0);
            eng_jinja_put_value(m, b, field_value(m, field, a, &next));
            i = end;
        }
    }
    if (s.flags & JS_MARKUP) {
        eng_jinja_fail(m, "a format marked safe is not supported");
    }
    return eng_jinja_close(m);
}

struct jv eng_jinja_m_format(struct jmem *m, struct jv s, const struct jv *a, size_t count)
{
    return eng_jinja_formatted(m, s, &(struct jinja_arguments){.items = a, .count = count});
}
