/* Operators on values, with Python's meaning.
 * Called by jinja_eval and filters; must not know syntax trees. */
#include <math.h>
#include <string.h>

#include "jinja_run.h"

static struct jv failed(void)
{
    return jv_undefined("");
}

static struct jv not_numbers(struct jmem *m, const char *op, struct jv a, struct jv b)
{
    if (a.type == J_UNDEFINED || b.type == J_UNDEFINED) {
        eng_jinja_fail_undefined(m, a.type == J_UNDEFINED ? a : b);
    } else {
        eng_jinja_fail(m, "%s %s %s has no meaning", eng_jinja_type_name(a), op,
                       eng_jinja_type_name(b));
    }
    return failed();
}

static struct jv too_large(struct jmem *m)
{
    eng_jinja_fail(m, "a number beyond 64 bits is not supported");
    return failed();
}

static struct jv repeated(struct jmem *m, struct jv v, int64_t times)
{
    times = times < 0 ? 0 : times;
    if (v.type == J_STR) {
        struct jbuf *const b = eng_jinja_open(m);
        for (int64_t i = 0; i < times && v.size > 0 && eng_jinja_step(m); i++) {
            eng_jinja_put_str(m, b, v);
        }
        struct jv text = eng_jinja_close(m);
        text.flags |= v.flags & JS_MARKUP;
        return text;
    }
    const struct jv list = eng_jinja_list(m, v.type, 0);
    for (int64_t i = 0; i < times && v.as.list->count > 0 && eng_jinja_step(m); i++) {
        for (size_t k = 0; k < v.as.list->count && eng_jinja_step(m); k++) {
            eng_jinja_append(m, list, v.as.list->items[k]);
        }
    }
    return list;
}

static struct jv floor_division(struct jmem *m, enum jop op, struct jv a, struct jv b)
{
    int64_t x = 0;
    int64_t y = 0;
    if (eng_jinja_int_of(a, &x) && eng_jinja_int_of(b, &y)) {
        if (y == 0) {
            eng_jinja_fail(m, "division by zero");
            return failed();
        }
        if (y == -1) {
            return op == JO_MOD ? jv_int(0) : x == INT64_MIN ? too_large(m) : jv_int(-x);
        }
        const int64_t rest = x % y;
        const bool adjust = rest != 0 && (rest < 0) != (y < 0);
        return jv_int(op == JO_MOD ? rest + (adjust ? y : 0) : x / y - (adjust ? 1 : 0));
    }
    const double p = eng_jinja_float_of(a);
    const double q = eng_jinja_float_of(b);
    if (q == 0.0) {
        eng_jinja_fail(m, "division by zero");
        return failed();
    }
    double rest = fmod(p, q);
    double whole = (p - rest) / q;
    if (rest != 0.0 && (rest < 0.0) != (q < 0.0)) {
        rest += q;
        whole -= 1.0;
    } else if (rest == 0.0) {
        rest = copysign(0.0, q);
    }
    if (op == JO_MOD) {
        return jv_float(rest);
    }
    const double floored = floor(whole);
    return jv_float(whole == 0.0 ? copysign(0.0, p / q) : floored + (whole - floored > 0.5));
}

static struct jv power(struct jmem *m, struct jv a, struct jv b)
{
    int64_t base = 0;
    int64_t exponent = 0;
    if (!eng_jinja_int_of(a, &base) || !eng_jinja_int_of(b, &exponent) || exponent < 0) {
        if (eng_jinja_float_of(a) == 0.0 && eng_jinja_float_of(b) < 0.0) {
            eng_jinja_fail(m, "division by zero");
        }
        const double result = pow(eng_jinja_float_of(a), eng_jinja_float_of(b));
        if (!isfinite(result) && isfinite(eng_jinja_float_of(a))) {
            eng_jinja_fail(m, "a power that no float holds");
        }
        return jv_float(result);
    }
    int64_t result = 1;
    for (int64_t i = 0; i < exponent; i++) {
        if (result == 0 || (base == 1) || (base == -1 && i > 1)) {
            return base == -1 ? jv_int(exponent % 2 == 0 ? 1 : -1) : jv_int(base == 1 ? 1 : 0);
        }
        if (__builtin_mul_overflow(result, base, &result)) {
            return too_large(m);
        }
    }
    return jv_int(result);
}

static struct jv formatted(struct jmem *m, struct jv format, struct jv values);

struct jv eng_jinja_arithmetic(struct jmem *m, enum jop op, struct jv a, struct jv b)
{
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "**"};
    int64_t x = 0;
    int64_t y = 0;
    int64_t result = 0;
    const bool a_whole = eng_jinja_int_of(a, &x);
    const bool whole = eng_jinja_int_of(b, &y) && a_whole;
    if (op == JO_MUL && (a.type == J_STR || a.type == J_LIST || a.type == J_TUPLE) &&
        eng_jinja_int_of(b, &y)) {
        return repeated(m, a, y);
    }
    if (op == JO_MUL && (b.type == J_STR || b.type == J_LIST || b.type == J_TUPLE) &&
        eng_jinja_int_of(a, &x)) {
        return repeated(m, b, x);
    }
    if (op == JO_MOD && a.type == J_STR) {
        return formatted(m, a, b);
    }
    if (!eng_jinja_is_number(a) || !eng_jinja_is_number(b)) {
        return not_numbers(m, names[op], a, b);
    }
    switch (op) {
    case JO_ADD:
        return !whole ? jv_float(eng_jinja_float_of(a) + eng_jinja_float_of(b))
               : __builtin_add_overflow(x, y, &result) ? too_large(m)
                                                       : jv_int(result);
    case JO_SUB:
        return !whole ? jv_float(eng_jinja_float_of(a) - eng_jinja_float_of(b))
               : __builtin_sub_overflow(x, y, &result) ? too_large(m)
                                                       : jv_int(result);
    case JO_MUL:
        return !whole ? jv_float(eng_jinja_float_of(a) * eng_jinja_float_of(b))
               : __builtin_mul_overflow(x, y, &result) ? too_large(m)
                                                       : jv_int(result);
    case JO_DIV:
        if (eng_jinja_float_of(b) == 0.0) {
            eng_jinja_fail(m, "division by zero");
            return failed();
        }
        return jv_float(eng_jinja_float_of(a) / eng_jinja_float_of(b));
    case JO_POW:
        return power(m, a, b);
    default:
        return floor_division(m, op, a, b);
    }
}

struct jv eng_jinja_add(struct jmem *m, struct jv a, struct jv b)
{
    if (a.type == J_STR && b.type == J_STR) {
        const bool markup = ((a.flags | b.flags) & JS_MARKUP) != 0;
        const struct jv both[2] = {markup ? eng_jinja_escaped(m, a) : a,
                                   markup ? eng_jinja_escaped(m, b) : b};
        struct jv text = eng_jinja_joined(m, both, 2);
        text.flags = (uint8_t)((text.flags & ~JS_MARKUP) | (markup ? JS_MARKUP : 0));
        return text;
    }
    if (a.type == b.type && (a.type == J_LIST || a.type == J_TUPLE)) {
        const struct jv list = eng_jinja_list(m, a.type, a.as.list->count + b.as.list->count);
        for (size_t i = 0; i < a.as.list->count && eng_jinja_step(m); i++) {
            eng_jinja_append(m, list, a.as.list->items[i]);
        }
        for (size_t i = 0; i < b.as.list->count && eng_jinja_step(m); i++) {
            eng_jinja_append(m, list, b.as.list->items[i]);
        }
        return list;
    }
    return eng_jinja_arithmetic(m, JO_ADD, a, b);
}

/* '%' of a text: %s, %d, %i, %r and %%; other conversions are refused. */
static struct jv formatted(struct jmem *m, struct jv format, struct jv values)
{
    struct jbuf *const b = eng_jinja_open(m);
    size_t used = 0;
    for (size_t i = 0; i < format.size && eng_jinja_step(m); i++) {
        if (format.as.s[i] != '%') {
            eng_jinja_put_str(m, b, eng_jinja_part(m, format, i, i + 1));
            continue;
        }
        const char what = i + 1 < format.size ? format.as.s[++i] : '\0';
        if (what == '%') {
            eng_jinja_put(m, b, "%", 1);
            continue;
        }
        const bool is_tuple = values.type == J_TUPLE;
        if (what == '\0' || strchr("sdir", what) == NULL) {
            eng_jinja_fail(m, "'%%%c' in a format is not supported", what);
        } else if (used >= (is_tuple ? values.as.list->count : 1)) {
            eng_jinja_fail(m, "too few values for a format");
        } else {
            const struct jv v = is_tuple ? values.as.list->items[used] : values;
            if ((what == 'd' || what == 'i') && v.type != J_INT) {
                eng_jinja_fail(m, "'%%%c' of a %s is not supported", what, eng_jinja_type_name(v));
            }
            (what == 'r' ? eng_jinja_put_repr(m, b, v, 1) : eng_jinja_put_value(m, b, v));
            used++;
        }
    }
    if (used < (values.type == J_TUPLE ? values.as.list->count : values.type == J_DICT ? 0 : 1)) {
        eng_jinja_fail(m, "too many values for a format");
    }
    if (format.flags & JS_MARKUP) {
        eng_jinja_fail(m, "a format marked safe is not supported");
    }
    return eng_jinja_close(m);
}

bool eng_jinja_compares(struct jmem *m, enum jop op, struct jv a, struct jv b)
{
    if (op == JO_EQ || op == JO_NE) {
        return eng_jinja_equal(m, a, b) == (op == JO_EQ);
    }
    if (op == JO_IN || op == JO_NOT_IN) {
        return eng_jinja_contains(m, a, b) == (op == JO_IN);
    }
    if (a.type == J_UNDEFINED || b.type == J_UNDEFINED) {
        eng_jinja_fail_undefined(m, a.type == J_UNDEFINED ? a : b);
        return false;
    }
    if ((a.type == J_FLOAT && isnan(a.as.f)) || (b.type == J_FLOAT && isnan(b.as.f))) {
        return false;
    }
    const int order = eng_jinja_compare(m, a, b);
    return op == JO_LT   ? order < 0
           : op == JO_LE ? order <= 0
           : op == JO_GT ? order > 0
                         : order >= 0;
}

struct jv eng_jinja_signed(struct jmem *m, enum jop op, struct jv v)
{
    int64_t i = 0;
    if (v.type == J_FLOAT) {
        return jv_float(op == JO_NEG ? -v.as.f : v.as.f);
    }
    if (!eng_jinja_int_of(v, &i)) {
        eng_jinja_fail(m, "a %s has no sign", eng_jinja_type_name(v));
        return failed();
    }
    return op == JO_POS ? jv_int(i) : i == INT64_MIN ? too_large(m) : jv_int(-i);
}
