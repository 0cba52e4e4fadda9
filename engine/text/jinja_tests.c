/* Tests (`x is ...`) and functions of templates.
 * Called through jinja_names.h; must not know syntax. */
#include <string.h>
#include <time.h>

#include "jinja_run.h"

static bool is_string(struct jv v)
{
    return v.type == J_STR;
}

static bool rest_is(struct jinja_render_state *r, struct jv v, struct jv by, int64_t wanted)
{
    const struct jv rest = eng_jinja_arithmetic(r->m, JO_MOD, v, by);
    return eng_jinja_equal(r->m, rest, jv_int(wanted));
}

/* The number of a test is its place here. */
enum test {
    T_NONE,
    T_DEFINED,
    T_UNDEFINED,
    T_NONE_TEST,
    T_STRING,
    T_NUMBER,
    T_INTEGER,
    T_FLOAT,
    T_BOOLEAN,
    T_TRUE,
    T_FALSE,
    T_MAPPING,
    T_ITERABLE,
    T_SEQUENCE,
    T_CALLABLE,
    T_SAMEAS,
    T_EQ,
    T_NE,
    T_LT,
    T_LE,
    T_GT,
    T_GE,
    T_IN,
    T_ODD,
    T_EVEN,
    T_DIVISIBLE,
    T_LOWER,
    T_UPPER,
    T_ESCAPED,
    T_FILTER,
    T_TEST
};

static const struct {
    const char *name;
    enum test test;
} names[] = {{"defined", T_DEFINED},
             {"undefined", T_UNDEFINED},
             {"none", T_NONE_TEST},
             {"string", T_STRING},
             {"number", T_NUMBER},
             {"integer", T_INTEGER},
             {"float", T_FLOAT},
             {"boolean", T_BOOLEAN},
             {"true", T_TRUE},
             {"false", T_FALSE},
             {"mapping", T_MAPPING},
             {"iterable", T_ITERABLE},
             {"sequence", T_SEQUENCE},
             {"callable", T_CALLABLE},
             {"sameas", T_SAMEAS},
             {"==", T_EQ},
             {"eq", T_EQ},
             {"equalto", T_EQ},
             {"!=", T_NE},
             {"ne", T_NE},
             {"<", T_LT},
             {"lt", T_LT},
             {"lessthan", T_LT},
             {"<=", T_LE},
             {"le", T_LE},
             {">", T_GT},
             {"gt", T_GT},
             {"greaterthan", T_GT},
             {">=", T_GE},
             {"ge", T_GE},
             {"in", T_IN},
             {"odd", T_ODD},
             {"even", T_EVEN},
             {"divisibleby", T_DIVISIBLE},
             {"lower", T_LOWER},
             {"upper", T_UPPER},
             {"escaped", T_ESCAPED},
             {"filter", T_FILTER},
             {"test", T_TEST}};

unsigned eng_jinja_test_find(struct jv name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (jv_is(name, names[i].name, strlen(names[i].name))) {
            return names[i].test;
        }
    }
    return T_NONE;
}

static bool is_callable(struct jv v)
{
    return v.type == J_MACRO || v.type == J_FUNCTION || v.type == J_METHOD ||
           v.type == J_UNDEFINED || v.type == J_LOOP;
}

static bool is_sequence(struct jv v)
{
    return v.type == J_STR || v.type == J_LIST || v.type == J_TUPLE || v.type == J_DICT ||
           v.type == J_RANGE || v.type == J_UNDEFINED;
}

/* `is` of Python, for what is one object in every run. */
static bool same(struct jinja_render_state *r, struct jv a, struct jv b)
{
    if (a.type != b.type) {
        return false;
    }
    switch (a.type) {
    case J_NONE:
        return true;
    case J_BOOL:
        return a.as.b == b.as.b;
    case J_LIST:
    case J_DICT:
    case J_NAMESPACE:
        return a.as.list == b.as.list;
    default:
        eng_jinja_fail(r->m, "sameas of a %s is not supported", eng_jinja_type_name(a));
        return false;
    }
}

static bool ordered(struct jinja_render_state *r, enum test test, struct jv a, struct jv b)
{
    if (a.type == J_UNDEFINED || b.type == J_UNDEFINED) {
        eng_jinja_fail(r->m, "what is undefined has no order");
        return false;
    }
    const int order = eng_jinja_compare(r->m, a, b);
    return test == T_LT   ? order < 0
           : test == T_LE ? order <= 0
           : test == T_GT ? order > 0
                          : order >= 0;
}

static bool two_values(struct jinja_render_state *r, enum test test, struct jv v, struct jv other)
{
    switch (test) {
    case T_SAMEAS:
        return same(r, v, other);
    case T_EQ:
        return eng_jinja_equal(r->m, v, other);
    case T_NE:
        return !eng_jinja_equal(r->m, v, other);
    case T_IN:
        return eng_jinja_contains(r->m, v, other);
    case T_DIVISIBLE:
        return rest_is(r, v, other, 0);
    default:
        return ordered(r, test, v, other);
    }
}

/* Filters of Jinja2 that this engine lacks. */
static bool is_lacking_filter(struct jv name)
{
    static const char *const lacking[] = {"center",   "filesizeformat", "forceescape", "groupby",
                                          "pprint",   "random",         "slice",       "striptags",
                                          "truncate", "urlencode",      "urlize",      "wordcount",
                                          "wordwrap", "xmlattr"};
    for (size_t i = 0; i < sizeof lacking / sizeof lacking[0]; i++) {
        if (jv_is(name, lacking[i], strlen(lacking[i]))) {
            return true;
        }
    }
    return false;
}

/* Whether Jinja2 has a filter or test of that name. */
static bool is_name_of(struct jinja_render_state *r, enum test test, struct jv v)
{
    if (v.type == J_LIST || v.type == J_DICT || v.type == J_VIEW) {
        eng_jinja_fail(r->m, "a %s cannot be a name", eng_jinja_type_name(v));
    }
    if (v.type != J_STR) {
        return false;
    }
    return test == T_FILTER ? eng_jinja_filter_find(v) != 0 || is_lacking_filter(v)
                            : eng_jinja_test_find(v) != T_NONE;
}

static bool one_value(struct jinja_render_state *r, enum test test, struct jv v)
{
    switch (test) {
    case T_DEFINED:
        return v.type != J_UNDEFINED;
    case T_UNDEFINED:
        return v.type == J_UNDEFINED;
    case T_NONE_TEST:
        return v.type == J_NONE;
    case T_STRING:
        return is_string(v);
    case T_NUMBER:
        return eng_jinja_is_number(v);
    case T_INTEGER:
        return v.type == J_INT;
    case T_FLOAT:
        return v.type == J_FLOAT;
    case T_BOOLEAN:
        return v.type == J_BOOL;
    case T_TRUE:
        return v.type == J_BOOL && v.as.b;
    case T_FALSE:
        return v.type == J_BOOL && !v.as.b;
    case T_MAPPING:
        return v.type == J_DICT;
    case T_ITERABLE:
        return eng_jinja_is_iterable(v);
    case T_SEQUENCE:
        return is_sequence(v);
    case T_CALLABLE:
        return is_callable(v);
    case T_ODD:
        return rest_is(r, v, jv_int(2), 1);
    case T_EVEN:
        return rest_is(r, v, jv_int(2), 0);
    case T_LOWER:
    case T_UPPER:
        return eng_jinja_all_of(eng_jinja_str(r->m, v),
                                test == T_LOWER ? JCLASS_LOWER : JCLASS_UPPER);
    case T_FILTER:
    case T_TEST:
        return is_name_of(r, test, v);
    default:
        return is_string(v) && (v.flags & JS_MARKUP) != 0;
    }
}

static bool takes_other(enum test test)
{
    return (test >= T_SAMEAS && test <= T_IN) || test == T_DIVISIBLE;
}

bool eng_jinja_test_call(struct jinja_render_state *r, unsigned id, struct jv value,
                         const struct jinja_arguments *arguments)
{
    const enum test test = (enum test)id;
    const size_t wanted = takes_other(test) ? 1 : 0;
    if (arguments->count != wanted || arguments->name_count > 0) {
        eng_jinja_fail(r->m, "this test takes %zu arguments", wanted);
        return false;
    }
    return wanted == 1 ? two_values(r, test, value, arguments->items[0])
                       : one_value(r, test, value);
}

/* ---- functions */

enum function { FN_NONE, FN_RANGE, FN_NAMESPACE, FN_DICT, FN_RAISE, FN_STRFTIME };

unsigned eng_jinja_function_find(struct jv name)
{
    static const char *const functions[] = {"range", "namespace", "dict", "raise_exception",
                                            "strftime_now"};
    for (unsigned i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (jv_is(name, functions[i], strlen(functions[i]))) {
            return i + 1;
        }
    }
    return FN_NONE;
}

bool eng_jinja_is_unsupported_name(struct jv name)
{
    static const char *const unsupported[] = {"lipsum", "cycler", "joiner", "self", "super"};
    for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++) {
        if (jv_is(name, unsupported[i], strlen(unsupported[i]))) {
            return true;
        }
    }
    return false;
}

static struct jv call_range(struct jmem *m, const struct jinja_arguments *a)
{
    enum { RANGE_MAX = 100000 }; /* the sandbox's own limit */
    struct jrange range = {.step = 1};
    int64_t numbers[3] = {0};
    bool whole = a->count >= 1 && a->count <= 3 && a->name_count == 0;
    for (size_t i = 0; whole && i < a->count; i++) {
        whole = eng_jinja_int_of(a->items[i], &numbers[i]);
    }
    if (!whole || (a->count == 3 && numbers[2] == 0)) {
        eng_jinja_fail(m, "range takes one to three whole numbers, the step not 0");
        return jv_undefined("");
    }
    range.stop = a->count == 1 ? numbers[0] : numbers[1];
    range.start = a->count == 1 ? 0 : numbers[0];
    range.step = a->count == 3 ? numbers[2] : 1;
    struct jrange *const kept = eng_jinja_alloc(m, sizeof *kept);
    *kept = range;
    const struct jv v = {.type = J_RANGE, .as.range = kept};
    if (eng_jinja_length(m, v) > RANGE_MAX) {
        eng_jinja_fail(m, "a range of more than %d numbers", RANGE_MAX);
    }
    return v;
}

/* What dict() takes: another dict, or pairs. */
static void add_pairs(struct jmem *m, struct jv made, struct jv from)
{
    if (from.type == J_DICT) {
        for (size_t i = 0; i < from.as.dict->count && eng_jinja_step(m); i++) {
            eng_jinja_set(m, made, from.as.dict->keys[i], from.as.dict->values[i]);
        }
        return;
    }
    const struct jlist *const pairs = eng_jinja_items_of(m, from);
    for (size_t i = 0; i < pairs->count && eng_jinja_step(m); i++) {
        const struct jlist *const pair = eng_jinja_items_of(m, pairs->items[i]);
        if (m->failed || pair->count != 2) {
            eng_jinja_fail(m, "a mapping or pairs are expected");
            return;
        }
        eng_jinja_set(m, made, pair->items[0], pair->items[1]);
    }
}

/* namespace(...) and dict(...): a dict to start with, and values by name. */
static struct jv call_dict(struct jmem *m, const struct jinja_arguments *a, enum jinja_type type)
{
    const struct jv made = eng_jinja_dict(m, a->name_count);
    if (a->count > 1) {
        eng_jinja_fail(m, "a mapping and values by name are expected");
    } else if (a->count == 1 && a->items[0].type == J_UNDEFINED) {
        eng_jinja_fail_undefined(m, a->items[0]);
    } else if (a->count == 1) {
        add_pairs(m, made, a->items[0]);
    }
    for (size_t i = 0; i < a->name_count; i++) {
        eng_jinja_set(m, made, a->names[i], a->values[i]);
    }
    return (struct jv){.type = (uint8_t)type, .as.dict = made.as.dict};
}

static struct jv call_raise(struct jmem *m, const struct jinja_arguments *a)
{
    if (a->count != 1 || a->name_count > 0) {
        eng_jinja_fail(m, "raise_exception takes one text");
        return jv_undefined("");
    }
    const struct jv text = eng_jinja_str(m, a->items[0]);
    eng_jinja_fail(m, "the template raises: %.*s", text.size < 200 ? (int)text.size : 200,
                   text.as.s);
    return jv_undefined("");
}

/* datetime.strftime of a time without a zone. */
static struct jv call_strftime(struct jmem *m, const struct jinja_arguments *a, int64_t clock)
{
    char format[256];
    char out[1024];
    size_t n = 0;
    struct tm when;
    const time_t seconds = (time_t)clock;
    if (a->count != 1 || a->name_count > 0 || a->items[0].type != J_STR || a->items[0].size > 200 ||
        memchr(a->items[0].as.s, '\0', a->items[0].size) != NULL ||
        gmtime_r(&seconds, &when) == NULL) {
        eng_jinja_fail(m, "strftime_now takes one text of at most 200 bytes");
        return jv_undefined("");
    }
    const struct jv f = a->items[0];
    for (size_t i = 0; i < f.size; i++) {
        const char next = i + 1 < f.size ? f.as.s[i + 1] : '\0';
        if (f.as.s[i] == '%' && (next == 'z' || next == 'Z')) {
            i++; /* a time without a zone writes nothing for it */
        } else if (f.as.s[i] == '%' && (next == 'f' || next == 's' || next == '\0')) {
            eng_jinja_fail(m, "'%%%.1s' of strftime_now is not supported", &next);
            return jv_undefined("");
        } else {
            format[n++] = f.as.s[i];
            if (f.as.s[i] == '%') {
                format[n++] = next;
                i++;
            }
        }
    }
    format[n] = '\0';
    return eng_jinja_copy(m, out, strftime(out, sizeof out, format, &when), 0);
}

struct jv eng_jinja_function_call(struct jinja_render_state *r, unsigned id,
                                  const struct jinja_arguments *arguments)
{
    switch ((enum function)id) {
    case FN_RANGE:
        return call_range(r->m, arguments);
    case FN_NAMESPACE:
        return call_dict(r->m, arguments, J_NAMESPACE);
    case FN_DICT:
        return call_dict(r->m, arguments, J_DICT);
    case FN_RAISE:
        return call_raise(r->m, arguments);
    default:
        return call_strftime(r->m, arguments, r->clock);
    }
}
