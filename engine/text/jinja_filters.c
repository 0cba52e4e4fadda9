/* Filters of one value: text, numbers, conversions; and how calls get their arguments.
 * Called through jinja_names.h; must not know syntax. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "jinja_filters.h"
#include "jinja_run.h"

bool eng_jinja_bind(struct jmem *m, const char *what, const struct jinja_arguments *arguments,
                    const char *const *names, size_t needed, struct jv out[JINJA_PARAMETERS_MAX])
{
    size_t known = 0;
    for (; names[known] != NULL; known++) {
        out[known] = jv_missing();
    }
    if (arguments->count > known) {
        eng_jinja_fail(m, "%s takes at most %zu arguments", what, known);
        return false;
    }
    for (size_t i = 0; i < arguments->count; i++) {
        out[i] = arguments->items[i];
    }
    for (size_t n = 0; n < arguments->name_count; n++) {
        const struct jv name = arguments->names[n];
        size_t i = 0;
        while (i < known && !jv_is(name, names[i], strlen(names[i]))) {
            i++;
        }
        if (i == known || out[i].type != J_MISSING) {
            eng_jinja_fail(m, "%s takes no argument '%.*s' here", what, (int)name.size, name.as.s);
            return false;
        }
        out[i] = arguments->values[n];
    }
    for (size_t i = 0; i < needed; i++) {
        if (out[i].type == J_MISSING) {
            eng_jinja_fail(m, "%s needs an argument '%s'", what, names[i]);
            return false;
        }
    }
    return true;
}

/* soft_str(): a text as it is, anything else printed. */
static struct jv soft(struct jmem *m, struct jv v)
{
    return v.type == J_STR ? v : eng_jinja_str(m, v);
}

static struct jv failed(void)
{
    return jv_undefined("");
}

static struct jv f_default(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    const bool or_false = a[1].type != J_MISSING && eng_jinja_truth(r->m, a[1]);
    if (v.type == J_UNDEFINED || (or_false && !eng_jinja_truth(r->m, v))) {
        return a[0].type == J_MISSING ? eng_jinja_literal("") : a[0];
    }
    return v;
}

static struct jv f_length(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    return jv_int((int64_t)eng_jinja_length(r->m, v));
}

static struct jv f_string(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    return soft(r->m, v);
}

static struct jv f_upper(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    return eng_jinja_cased(r->m, soft(r->m, v), JCASE_UPPER);
}

static struct jv f_lower(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    return eng_jinja_cased(r->m, soft(r->m, v), JCASE_LOWER);
}

static struct jv f_capitalize(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    return eng_jinja_cased(r->m, soft(r->m, v), JCASE_CAPITAL);
}

/* Words begin after blanks and -({[<; their first character is in upper case, the rest in lower. */
static struct jv f_title(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    const struct jv s = soft(r->m, v);
    const struct jv parts = eng_jinja_list(r->m, J_LIST, 0);
    for (size_t at = 0, n = 0; at < s.size && eng_jinja_step(r->m);) {
        eng_jinja_point(s.as.s + at, &n);
        size_t end = at + n;
        while (end < s.size) {
            size_t length = 0;
            eng_jinja_point(s.as.s + end, &length);
            const struct jv c = jv_str(s.as.s + end, length, 0);
            const bool border = eng_jinja_all_of(c, JCLASS_SPACE) ||
                                (length == 1 && strchr("-({[<", *c.as.s) != NULL);
            const struct jv first = jv_str(s.as.s + at, n, 0);
            const bool inside = eng_jinja_all_of(first, JCLASS_SPACE) ||
                                (n == 1 && strchr("-({[<", *first.as.s) != NULL);
            if (border != inside) {
                break;
            }
            end += length;
        }
        eng_jinja_append(r->m, parts,
                         eng_jinja_cased(r->m, eng_jinja_part(r->m, s, at, at + n), JCASE_UPPER));
        eng_jinja_append(r->m, parts,
                         eng_jinja_cased(r->m, eng_jinja_part(r->m, s, at + n, end), JCASE_LOWER));
        at = end;
    }
    return eng_jinja_joined(r->m, parts.as.list->items, parts.as.list->count);
}

static struct jv f_trim(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    if (a[0].type != J_MISSING && a[0].type != J_NONE && a[0].type != J_STR) {
        eng_jinja_fail(r->m, "trim takes a text, not %s", eng_jinja_type_name(a[0]));
    }
    return eng_jinja_strip(r->m, soft(r->m, v), a[0], true, true);
}

static struct jv f_replace(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    int64_t count = -1;
    if (a[2].type != J_MISSING && a[2].type != J_NONE && !eng_jinja_int_of(a[2], &count)) {
        eng_jinja_fail(r->m, "replace counts in whole numbers");
    }
    return eng_jinja_replaced(r->m, eng_jinja_str(r->m, v), eng_jinja_str(r->m, a[0]),
                              eng_jinja_str(r->m, a[1]), count);
}

static struct jv f_safe(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    v = soft(r->m, v);
    v.flags |= JS_MARKUP;
    return v;
}

static struct jv f_escape(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    return eng_jinja_escaped(r->m, soft(r->m, v));
}

static struct jv f_tojson(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    struct jinja_json how = {.indent = jv_none(),
                             .item_separator = eng_jinja_literal(", "),
                             .key_separator = eng_jinja_literal(": ")};
    const bool ensure_ascii = a[0].type != J_MISSING && eng_jinja_truth(r->m, a[0]);
    const bool sort_keys = a[3].type != J_MISSING && eng_jinja_truth(r->m, a[3]);
    how.ensure_ascii = FAULT(tojson_ascii, ensure_ascii);
    how.sort_keys = FAULT(tojson_sort, sort_keys);
    if (a[1].type != J_MISSING && a[1].type != J_NONE) {
        how.indent = a[1].type == J_BOOL ? jv_int(a[1].as.b) : a[1];
        how.item_separator = eng_jinja_literal(",");
        if (how.indent.type != J_INT && how.indent.type != J_STR) {
            eng_jinja_fail(r->m, "tojson cannot indent by %s", eng_jinja_type_name(a[1]));
            return failed();
        }
    }
    if (a[2].type != J_MISSING && a[2].type != J_NONE) {
        const struct jlist *const pair = eng_jinja_items_of(r->m, a[2]);
        if (r->m->failed || pair->count != 2 || pair->items[0].type != J_STR ||
            pair->items[1].type != J_STR) {
            eng_jinja_fail(r->m, "tojson takes two texts as separators");
            return failed();
        }
        how.item_separator = pair->items[0];
        how.key_separator = pair->items[1];
    }
    return eng_jinja_json(r->m, v, &how);
}

/* Lines as str.splitlines() has them. */
static struct jv f_indent(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    struct jmem *const m = r->m;
    struct jv indention = a[0];
    if (v.type != J_STR) {
        eng_jinja_fail(m, "indent takes a text, not %s", eng_jinja_type_name(v));
        return failed();
    }
    if (indention.type != J_STR) {
        int64_t width = 4;
        if (indention.type != J_MISSING && !eng_jinja_int_of(indention, &width)) {
            eng_jinja_fail(m, "indent takes a width or a text");
        }
        indention = eng_jinja_arithmetic(m, JO_MUL, eng_jinja_literal(" "), jv_int(width));
    }
    const bool first = a[1].type != J_MISSING && eng_jinja_truth(m, a[1]);
    const bool blank = a[2].type != J_MISSING && eng_jinja_truth(m, a[2]);
    const struct jv newline = eng_jinja_literal("\n");
    const struct jv lines = eng_jinja_lines(m, eng_jinja_add(m, v, newline), false);
    const struct jv parts = eng_jinja_list(m, J_LIST, 0);
    for (size_t i = 0; i < lines.as.list->count && eng_jinja_step(m); i++) {
        const struct jv line = lines.as.list->items[i];
        if (i > 0) {
            eng_jinja_append(m, parts, newline);
        }
        if (i == 0 ? first : blank || line.size > 0) {
            eng_jinja_append(m, parts, indention);
        }
        eng_jinja_append(m, parts, line);
    }
    struct jv text = eng_jinja_joined(m, parts.as.list->items, parts.as.list->count);
    text.flags |= v.flags & JS_MARKUP;
    return text;
}

/* ---- numbers */

/* A text as Python's int() and float() read it: blanks around, underscores between digits. False
 * when it is too long or has something else than ASCII. */
static bool number_text(struct jmem *m, struct jv s, char out[64])
{
    s = eng_jinja_strip(m, s, jv_none(), true, true);
    size_t n = 0;
    for (size_t i = 0; i < s.size; i++) {
        const char c = s.as.s[i];
        if (c == '_' && i > 0 && i + 1 < s.size && isdigit((unsigned char)s.as.s[i - 1]) &&
            isdigit((unsigned char)s.as.s[i + 1])) {
            continue;
        }
        if (n == 63 || c == '_' || c == '\0' || (unsigned char)c >= 0x80) {
            return false;
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return n > 0;
}

static bool read_float(struct jmem *m, struct jv v, double *out)
{
    char text[64];
    char *end = NULL;
    if (eng_jinja_is_number(v)) {
        *out = eng_jinja_float_of(v);
        return true;
    }
    if (v.type != J_STR || !number_text(m, v, text) || strpbrk(text, "xXpP(") != NULL) {
        return false;
    }
    *out = strtod(text, &end);
    return *end == '\0';
}

static struct jv whole_of(struct jmem *m, double f)
{
    const double limit = 9223372036854775808.0;
    if (!(f >= -limit && f < limit)) {
        eng_jinja_fail(m, "a number beyond 64 bits is not supported");
        return failed();
    }
    return jv_int((int64_t)f);
}

static struct jv f_int(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    char text[64];
    char *end = NULL;
    int64_t i = 0;
    double f = 0;
    if (v.type == J_UNDEFINED) {
        eng_jinja_fail(r->m, "int of what is undefined");
        return failed();
    }
    if (a[1].type != J_MISSING && !(a[1].type == J_INT && a[1].as.i == 10)) {
        eng_jinja_fail(r->m, "int in another base than ten is not supported");
        return failed();
    }
    if (eng_jinja_int_of(v, &i)) {
        return jv_int(i);
    }
    if (v.type == J_STR && number_text(r->m, v, text)) {
        errno = 0;
        i = strtoll(text, &end, 10);
        if (*end == '\0' && end != text) {
            if (errno != 0) {
                eng_jinja_fail(r->m, "a number beyond 64 bits is not supported");
            }
            return jv_int(i);
        }
    }
    if (!read_float(r->m, v, &f) || isnan(f)) {
        return a[0].type == J_MISSING ? jv_int(0) : a[0];
    }
    return whole_of(r->m, f);
}

static struct jv f_float(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    double f = 0;
    if (v.type == J_UNDEFINED) {
        eng_jinja_fail(r->m, "float of what is undefined");
        return failed();
    }
    if (read_float(r->m, v, &f)) {
        return jv_float(f);
    }
    return a[0].type == J_MISSING ? jv_float(0.0) : a[0];
}

static struct jv f_abs(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    int64_t i = 0;
    (void)a;
    if (v.type == J_FLOAT) {
        return jv_float(fabs(v.as.f));
    }
    if (!eng_jinja_int_of(v, &i) || i == INT64_MIN) {
        eng_jinja_fail(r->m, "abs of a %s", eng_jinja_type_name(v));
        return failed();
    }
    return jv_int(i < 0 ? -i : i);
}

/* Round half to even, at `digits` behind the point, as Python's round(): by the decimal text. */
static double rounded(double f, int digits)
{
    char text[400];
    if (!isfinite(f) || digits > 20) {
        return f;
    }
    snprintf(text, sizeof text, "%.*f", digits, f);
    return strtod(text, NULL);
}

static struct jv f_round(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    int64_t digits = 0;
    const struct jv method = a[1].type == J_MISSING ? eng_jinja_literal("common") : a[1];
    if (!eng_jinja_is_number(v) || (a[0].type != J_MISSING && !eng_jinja_int_of(a[0], &digits)) ||
        digits < 0 || digits > 20 || method.type != J_STR) {
        eng_jinja_fail(r->m, "round of a %s or to such a place is not supported",
                       eng_jinja_type_name(v));
        return failed();
    }
    const double f = eng_jinja_float_of(v);
    const double scale = pow(10.0, (double)digits);
    if (jv_is(method, "common", 6)) {
        return v.type == J_FLOAT  ? jv_float(rounded(f, (int)digits))
               : v.type == J_BOOL ? jv_int(v.as.b)
                                  : v;
    }
    if (jv_is(method, "ceil", 4) || jv_is(method, "floor", 5)) {
        const double whole = (method.as.s[0] == 'c' ? ceil : floor)(f * scale);
        return jv_float((whole + 0.0) / scale); /* Python's whole numbers have no -0 */
    }
    eng_jinja_fail(r->m, "round by an unknown method");
    return failed();
}

static struct jv f_format(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    const struct jv values = eng_jinja_list(r->m, J_TUPLE, JINJA_PARAMETERS_MAX);
    for (size_t i = 0; a[i].type != J_MISSING && i < JINJA_PARAMETERS_MAX - 1; i++) {
        eng_jinja_append(r->m, values, a[i]);
    }
    return eng_jinja_arithmetic(r->m, JO_MOD, soft(r->m, v), values);
}

static struct jv f_attr(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    if (a[0].type != J_STR || v.type == J_DICT) {
        eng_jinja_fail(r->m, "attr of a %s is not supported", eng_jinja_type_name(v));
        return failed();
    }
    return eng_jinja_attribute(r, v, a[0], eng_jinja_method_find(a[0]));
}

static const struct jinja_filter filters[] = {
    {"default", f_default, 0, {"default_value", "boolean"}, NULL},
    {"d", f_default, 0, {"default_value", "boolean"}, NULL},
    {"length", f_length, 0, {NULL}, NULL},
    {"count", f_length, 0, {NULL}, NULL},
    {"string", f_string, 0, {NULL}, NULL},
    {"upper", f_upper, 0, {NULL}, NULL},
    {"lower", f_lower, 0, {NULL}, NULL},
    {"capitalize", f_capitalize, 0, {NULL}, NULL},
    {"title", f_title, 0, {NULL}, NULL},
    {"trim", f_trim, 0, {"chars"}, NULL},
    {"replace", f_replace, 2, {"old", "new", "count"}, NULL},
    {"safe", f_safe, 0, {NULL}, NULL},
    {"escape", f_escape, 0, {NULL}, NULL},
    {"e", f_escape, 0, {NULL}, NULL},
    {"tojson", f_tojson, 0, {"ensure_ascii", "indent", "separators", "sort_keys"}, NULL},
    {"indent", f_indent, 0, {"width", "first", "blank"}, NULL},
    {"int", f_int, 0, {"default", "base"}, NULL},
    {"float", f_float, 0, {"default"}, NULL},
    {"abs", f_abs, 0, {NULL}, NULL},
    {"round", f_round, 0, {"precision", "method"}, NULL},
    {"format", f_format, 0, {"\1", "\2", "\3", "\4", "\5"}, NULL},
    {"attr", f_attr, 1, {"name"}, NULL},
};

enum { COUNT = sizeof filters / sizeof filters[0] };

static const struct jinja_filter *filter_of(unsigned id)
{
    return id <= COUNT ? &filters[id - 1] : eng_jinja_list_filter(id - COUNT - 1);
}

unsigned eng_jinja_filter_find(struct jv name)
{
    const struct jinja_filter *f = NULL;
    for (unsigned id = 1; (f = filter_of(id)) != NULL; id++) {
        if (jv_is(name, f->name, strlen(f->name))) {
            return id;
        }
    }
    return 0;
}

struct jv eng_jinja_filter_call(struct jinja_render_state *r, unsigned id, struct jv value,
                                const struct jinja_arguments *arguments)
{
    const struct jinja_filter *const f = filter_of(id);
    struct jv bound[JINJA_PARAMETERS_MAX];
    for (size_t i = 0; i < JINJA_PARAMETERS_MAX; i++) {
        bound[i] = jv_missing();
    }
    if (f->raw != NULL) {
        return f->raw(r, value, arguments);
    }
    if (!eng_jinja_bind(r->m, f->name, arguments, f->parameters, f->needed, bound)) {
        return failed();
    }
    return f->call(r, value, bound);
}
