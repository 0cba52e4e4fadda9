/* What values look like as text: Python's str() and repr(), and json.dumps as transformers uses it.
 * Called by jinja_*; must not know templates. Text that content wrote stays marked as content. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "jinja_value.h"
#include "text_utf8.h"

enum { DEPTH_MAX = 100 };

static void put_text(struct jmem *m, struct jbuf *b, const char *text)
{
    eng_jinja_put(m, b, text, strlen(text));
}

/* Digits and exponent of the shortest decimal that reads back as f, which is finite and not 0. */
static int shortest(double f, char digits[20])
{
    char text[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision - 1, f);
        if (strtod(text, NULL) == f) {
            break;
        }
    }
    const char *const e = strchr(text, 'e');
    size_t n = 0;
    for (const char *c = text; c < e; c++) {
        if (*c >= '0' && *c <= '9') {
            digits[n++] = *c;
        }
    }
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    digits[n] = '\0';
    return atoi(e + 1);
}

size_t eng_jinja_float_repr(double f, char out[JINJA_FLOAT_BYTES])
{
    enum { EXPONENT_BELOW = -4, EXPONENT_FROM = 16 };
    if (isnan(f) || isinf(f)) {
        strcpy(out, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return strlen(out);
    }
    char digits[20] = "0";
    const int exponent = f == 0.0 ? 0 : shortest(fabs(f), digits);
    const int count = (int)strlen(digits);
    const char *const sign = signbit(f) ? "-" : "";
    const size_t room = JINJA_FLOAT_BYTES;
    int size = 0;
    if (exponent < EXPONENT_BELOW || exponent >= EXPONENT_FROM) {
        size = snprintf(out, room, "%s%c%s%se%c%02d", sign, digits[0], count > 1 ? "." : "",
                        digits + 1, exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        size = snprintf(out, room, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
    } else if (count <= exponent + 1) {
        size = snprintf(out, room, "%s%s%.*s.0", sign, digits, exponent + 1 - count,
                        "0000000000000000");
    } else {
        size = snprintf(out, room, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
    }
    return (size_t)size;
}

/* Whether repr() shows the character as it is: str.isprintable(). */
static bool is_printable(unsigned c)
{
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return c == ' ';
    default:
        return true;
    }
}

static void put_repr_point(struct jmem *m, struct jbuf *b, const char *bytes, size_t length,
                           unsigned c, char quote)
{
    char text[12];
    if (c == '\n' || c == '\r' || c == '\t') {
        put_text(m, b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    } else if (c == '\\' || c == (unsigned char)quote) {
        const char escaped[2] = {'\\', (char)c};
        eng_jinja_put(m, b, escaped, 2);
    } else if (is_printable(c)) {
        eng_jinja_put(m, b, bytes, length);
    } else {
        snprintf(text, sizeof text, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        put_text(m, b, text);
    }
}

static void put_repr_string(struct jmem *m, struct jbuf *b, struct jv s)
{
    const size_t start = b->size;
    const bool single = s.size > 0 && memchr(s.as.s, '\'', s.size) != NULL;
    const bool twice = s.size > 0 && memchr(s.as.s, '"', s.size) != NULL;
    const char quote = single && !twice ? '"' : '\'';
    if (s.flags & JS_MARKUP) {
        put_text(m, b, "Markup(");
    }
    eng_jinja_put(m, b, &quote, 1);
    for (size_t at = 0, n = 0; at < s.size && !m->failed; at += n) {
        const unsigned c = eng_jinja_point(s.as.s + at, &n);
        put_repr_point(m, b, s.as.s + at, n, c, quote);
    }
    eng_jinja_put(m, b, &quote, 1);
    if (s.flags & JS_MARKUP) {
        put_text(m, b, ")");
    }
    if (s.flags & (JS_CONTENT | JS_MIXED)) {
        eng_jinja_mark(m, b, start, JMARK_CONTENT);
    }
}

static void put_repr_list(struct jmem *m, struct jbuf *b, const struct jlist *list,
                          const char *ends, unsigned depth)
{
    eng_jinja_put(m, b, ends, 1);
    for (size_t i = 0; i < list->count && eng_jinja_step(m); i++) {
        put_text(m, b, i > 0 ? ", " : "");
        eng_jinja_put_repr(m, b, list->items[i], depth + 1);
    }
    put_text(m, b, ends[0] == '(' && list->count == 1 ? "," : "");
    eng_jinja_put(m, b, ends + 1, 1);
}

static void put_repr_dict(struct jmem *m, struct jbuf *b, const struct jdict *d, unsigned depth)
{
    put_text(m, b, "{");
    for (size_t i = 0; i < d->count && eng_jinja_step(m); i++) {
        put_text(m, b, i > 0 ? ", " : "");
        eng_jinja_put_repr(m, b, d->keys[i], depth + 1);
        put_text(m, b, ": ");
        eng_jinja_put_repr(m, b, d->values[i], depth + 1);
    }
    put_text(m, b, "}");
}

static void put_number(struct jmem *m, struct jbuf *b, struct jv v)
{
    char text[JINJA_FLOAT_BYTES];
    if (v.type == J_FLOAT) {
        eng_jinja_put(m, b, text, eng_jinja_float_repr(v.as.f, text));
    } else {
        snprintf(text, sizeof text, "%lld", (long long)v.as.i);
        put_text(m, b, text);
    }
}

static void put_range(struct jmem *m, struct jbuf *b, const struct jrange *r)
{
    char text[100];
    snprintf(text, sizeof text, r->step == 1 ? "range(%lld, %lld)" : "range(%lld, %lld, %lld)",
             (long long)r->start, (long long)r->stop, (long long)r->step);
    put_text(m, b, text);
}

void eng_jinja_put_repr(struct jmem *m, struct jbuf *b, struct jv v, unsigned depth)
{
    if (depth > DEPTH_MAX) {
        eng_jinja_fail(m, "values are nested too deeply to print");
        return;
    }
    switch (v.type) {
    case J_UNDEFINED:
        put_text(m, b, depth == 0 ? "" : "Undefined");
        break;
    case J_NONE:
        put_text(m, b, "None");
        break;
    case J_BOOL:
        put_text(m, b, v.as.b ? "True" : "False");
        break;
    case J_INT:
    case J_FLOAT:
        put_number(m, b, v);
        break;
    case J_STR:
        put_repr_string(m, b, v);
        break;
    case J_LIST:
    case J_TUPLE:
        put_repr_list(m, b, v.as.list, v.type == J_LIST ? "[]" : "()", depth);
        break;
    case J_VIEW:
        put_text(m, b, v.as.list->kind);
        put_text(m, b, "(");
        put_repr_list(m, b, v.as.list, "[]", depth);
        put_text(m, b, ")");
        break;
    case J_DICT:
        put_repr_dict(m, b, v.as.dict, depth);
        break;
    case J_NAMESPACE:
        put_text(m, b, "<Namespace ");
        put_repr_dict(m, b, v.as.dict, depth);
        put_text(m, b, ">");
        break;
    case J_RANGE:
        put_range(m, b, v.as.range);
        break;
    default:
        eng_jinja_fail(m, "a %s has no text that would be the same in every run",
                       eng_jinja_type_name(v));
    }
}

void eng_jinja_put_value(struct jmem *m, struct jbuf *b, struct jv v)
{
    if (v.type == J_STR) {
        eng_jinja_put_str(m, b, v);
    } else {
        eng_jinja_put_repr(m, b, v, 0);
    }
}

struct jv eng_jinja_str(struct jmem *m, struct jv v)
{
    if (v.type == J_STR) {
        v.flags &= (uint8_t)~JS_MARKUP;
        return v;
    }
    struct jbuf *const b = eng_jinja_open(m);
    eng_jinja_put_repr(m, b, v, 0);
    return eng_jinja_close(m);
}

/* ---- JSON */

static void put_json_escape(struct jmem *m, struct jbuf *b, unsigned c)
{
    char text[16];
    if (c >= 0x10000) {
        snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10),
                 0xDC00 + (c & 0x3FF));
    } else {
        snprintf(text, sizeof text, "\\u%04x", c);
    }
    put_text(m, b, text);
}

/* The two-character escape of a character, NULL when it has none. */
static const char *json_short(unsigned c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    default:
        return NULL;
    }
}

static void put_json_string(struct jmem *m, struct jbuf *b, struct jv s, bool ensure_ascii)
{
    const size_t start = b->size;
    size_t plain = 0;
    put_text(m, b, "\"");
    for (size_t at = 0, n = 0; at < s.size && !m->failed; at += n) {
        const unsigned char byte = (unsigned char)s.as.s[at];
        n = 1;
        if (byte >= 0x20 && byte != '"' && byte != '\\' && (!ensure_ascii || byte < 0x7F)) {
            continue;
        }
        const unsigned c = eng_jinja_point(s.as.s + at, &n);
        eng_jinja_put(m, b, s.as.s + plain, at - plain);
        const char *const escape = json_short(c);
        if (escape != NULL) {
            put_text(m, b, escape);
        } else {
            put_json_escape(m, b, c);
        }
        plain = at + n;
    }
    eng_jinja_put(m, b, s.as.s + plain, s.size - plain);
    put_text(m, b, "\"");
    if (s.flags & (JS_CONTENT | JS_MIXED)) {
        eng_jinja_mark(m, b, start, JMARK_CONTENT);
    }
}

static void put_json_number(struct jmem *m, struct jbuf *b, struct jv v)
{
    if (v.type == J_FLOAT && !isfinite(v.as.f)) {
        put_text(m, b, isnan(v.as.f) ? "NaN" : v.as.f < 0 ? "-Infinity" : "Infinity");
        return;
    }
    put_number(m, b, v);
}

static void put_newline(struct jmem *m, struct jbuf *b, const struct jinja_json *how,
                        unsigned depth)
{
    if (how->indent.type == J_NONE) {
        return;
    }
    put_text(m, b, "\n");
    for (unsigned d = 0; d < depth && !m->failed; d++) {
        if (how->indent.type == J_STR) {
            eng_jinja_put_str(m, b, how->indent);
            continue;
        }
        for (int64_t i = 0; i < how->indent.as.i && !m->failed; i++) {
            put_text(m, b, " ");
        }
    }
}

static void put_json(struct jmem *m, struct jbuf *b, struct jv v, const struct jinja_json *how,
                     unsigned depth);

static void put_json_list(struct jmem *m, struct jbuf *b, const struct jlist *list,
                          const struct jinja_json *how, unsigned depth)
{
    put_text(m, b, "[");
    for (size_t i = 0; i < list->count && eng_jinja_step(m); i++) {
        if (i > 0) {
            eng_jinja_put_str(m, b, how->item_separator);
        }
        put_newline(m, b, how, depth + 1);
        put_json(m, b, list->items[i], how, depth + 1);
    }
    if (list->count > 0) {
        put_newline(m, b, how, depth);
    }
    put_text(m, b, "]");
}

/* The key as json.dumps writes it, always a text. */
static void put_json_key(struct jmem *m, struct jbuf *b, struct jv key, bool ensure_ascii)
{
    switch (key.type) {
    case J_STR:
        put_json_string(m, b, key, ensure_ascii);
        return;
    case J_NONE:
    case J_BOOL:
    case J_INT:
    case J_FLOAT:
        put_text(m, b, "\"");
        if (key.type == J_NONE || key.type == J_BOOL) {
            put_text(m, b, key.type == J_NONE ? "null" : key.as.b ? "true" : "false");
        } else {
            put_json_number(m, b, key);
        }
        put_text(m, b, "\"");
        return;
    default:
        eng_jinja_fail(m, "a %s cannot be a key of JSON", eng_jinja_type_name(key));
    }
}

/* Places of the entries in the order of the keys; NULL when memory is refused. */
static size_t *sorted_keys(struct jmem *m, const struct jdict *d)
{
    size_t *const order = eng_jinja_array(m, d->count, sizeof *order);
    for (size_t i = 0; order != NULL && i < d->count && eng_jinja_step(m); i++) {
        size_t at = i;
        while (at > 0 && eng_jinja_compare(m, d->keys[order[at - 1]], d->keys[i]) > 0) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    return m->failed ? NULL : order;
}

static void put_json_dict(struct jmem *m, struct jbuf *b, const struct jdict *d,
                          const struct jinja_json *how, unsigned depth)
{
    const size_t *const order = how->sort_keys ? sorted_keys(m, d) : NULL;
    put_text(m, b, "{");
    for (size_t i = 0; i < d->count && eng_jinja_step(m); i++) {
        const size_t at = order == NULL ? i : order[i];
        if (i > 0) {
            eng_jinja_put_str(m, b, how->item_separator);
        }
        put_newline(m, b, how, depth + 1);
        put_json_key(m, b, d->keys[at], how->ensure_ascii);
        eng_jinja_put_str(m, b, how->key_separator);
        put_json(m, b, d->values[at], how, depth + 1);
    }
    if (d->count > 0) {
        put_newline(m, b, how, depth);
    }
    put_text(m, b, "}");
}

static void put_json(struct jmem *m, struct jbuf *b, struct jv v, const struct jinja_json *how,
                     unsigned depth)
{
    if (depth > DEPTH_MAX) {
        eng_jinja_fail(m, "values are nested too deeply for JSON");
        return;
    }
    switch (v.type) {
    case J_NONE:
        put_text(m, b, "null");
        break;
    case J_BOOL:
        put_text(m, b, v.as.b ? "true" : "false");
        break;
    case J_INT:
    case J_FLOAT:
        put_json_number(m, b, v);
        break;
    case J_STR:
        put_json_string(m, b, v, how->ensure_ascii);
        break;
    case J_LIST:
    case J_TUPLE:
        put_json_list(m, b, v.as.list, how, depth);
        break;
    case J_DICT:
        put_json_dict(m, b, v.as.dict, how, depth);
        break;
    default:
        eng_jinja_fail(m, "a %s cannot be written as JSON", eng_jinja_type_name(v));
    }
}

struct jv eng_jinja_json(struct jmem *m, struct jv v, const struct jinja_json *how)
{
    struct jbuf *const b = eng_jinja_open(m);
    put_json(m, b, v, how, 0);
    return eng_jinja_close(m);
}
