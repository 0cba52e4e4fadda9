/* Methods of dicts, lists and loops, and which methods Python's types have.
 * Called through jinja_names.h; must not know syntax. */
#include <string.h>

#include "jinja_filters.h"
#include "jinja_run.h"
#include "jinja_strings.h"

enum {
    ON_STR = 1,
    ON_LIST = 2,
    ON_TUPLE = 4,
    ON_DICT = 8,
    ON_LOOP = 16,
    ON_INT = 32,
    ON_FLOAT = 64,
    ON_RANGE = 128,
    ON_VIEW = 256,
    ON_MACRO = 512
};

static struct jv failed(void)
{
    return jv_undefined("");
}

static struct jv view_of(struct jmem *m, struct jv dict, const char *kind, bool keys, bool values)
{
    const struct jdict *const d = dict.as.dict;
    const struct jv view = eng_jinja_list(m, J_VIEW, d->count);
    view.as.list->kind = kind;
    for (size_t i = 0; i < d->count && eng_jinja_step(m); i++) {
        if (keys && values) {
            const struct jv pair = eng_jinja_list(m, J_TUPLE, 2);
            eng_jinja_append(m, pair, d->keys[i]);
            eng_jinja_append(m, pair, d->values[i]);
            eng_jinja_append(m, view, pair);
        } else {
            eng_jinja_append(m, view, keys ? d->keys[i] : d->values[i]);
        }
    }
    return view;
}

static struct jv m_items(struct jmem *m, struct jv d, const struct jv *a, size_t count)
{
    (void)a;
    (void)count;
    return view_of(m, d, "dict_items", true, true);
}

static struct jv m_keys(struct jmem *m, struct jv d, const struct jv *a, size_t count)
{
    (void)a;
    (void)count;
    return view_of(m, d, "dict_keys", true, false);
}

static struct jv m_values(struct jmem *m, struct jv d, const struct jv *a, size_t count)
{
    (void)a;
    (void)count;
    return view_of(m, d, "dict_values", false, true);
}

static struct jv m_get(struct jmem *m, struct jv d, const struct jv *a, size_t count)
{
    if (a[0].type == J_LIST || a[0].type == J_DICT) {
        eng_jinja_fail(m, "a %s cannot be a key", eng_jinja_type_name(a[0]));
        return failed();
    }
    const struct jv *const found = eng_jinja_get(d.as.dict, a[0]);
    return found != NULL ? *found : count > 1 ? a[1] : jv_none();
}

static struct jv m_copy(struct jmem *m, struct jv v, const struct jv *a, size_t count)
{
    (void)m;
    (void)a;
    (void)count;
    return v; /* nothing here changes a list or a dict */
}

static struct jv m_cycle(struct jmem *m, struct jv loop, const struct jv *a, size_t count)
{
    if (count == 0) {
        eng_jinja_fail(m, "cycle needs items");
        return failed();
    }
    return a[loop.as.loop->index0 % count];
}

static struct jv m_changed(struct jmem *m, struct jv loop, const struct jv *a, size_t count)
{
    const struct jv now = eng_jinja_list(m, J_TUPLE, count);
    for (size_t i = 0; i < count; i++) {
        eng_jinja_append(m, now, a[i]);
    }
    const bool same =
        loop.as.loop->changed.type == J_TUPLE && eng_jinja_equal(m, loop.as.loop->changed, now);
    loop.as.loop->changed = now;
    return jv_bool(!same);
}

static const struct method {
    const char *name;
    uint16_t on, forbidden; /* types that have it; types whose method the sandbox forbids */
    uint8_t needed, most;   /* arguments */
    eng_jinja_method *call; /* NULL: not supported */
} methods[] = {
    {"strip", ON_STR, 0, 0, 1, eng_jinja_m_strip},
    {"lstrip", ON_STR, 0, 0, 1, eng_jinja_m_lstrip},
    {"rstrip", ON_STR, 0, 0, 1, eng_jinja_m_rstrip},
    {"split", ON_STR, 0, 0, 2, eng_jinja_m_split},
    {"rsplit", ON_STR, 0, 0, 2, eng_jinja_m_rsplit},
    {"splitlines", ON_STR, 0, 0, 1, eng_jinja_m_splitlines},
    {"partition", ON_STR, 0, 1, 1, eng_jinja_m_partition},
    {"rpartition", ON_STR, 0, 1, 1, eng_jinja_m_rpartition},
    {"startswith", ON_STR, 0, 1, 3, eng_jinja_m_startswith},
    {"endswith", ON_STR, 0, 1, 3, eng_jinja_m_endswith},
    {"removeprefix", ON_STR, 0, 1, 1, eng_jinja_m_removeprefix},
    {"removesuffix", ON_STR, 0, 1, 1, eng_jinja_m_removesuffix},
    {"replace", ON_STR, 0, 2, 3, eng_jinja_m_replace},
    {"find", ON_STR, 0, 1, 3, eng_jinja_m_find},
    {"rfind", ON_STR, 0, 1, 3, eng_jinja_m_rfind},
    {"index", ON_STR | ON_LIST | ON_TUPLE | ON_RANGE, 0, 1, 3, eng_jinja_m_index},
    {"rindex", ON_STR, 0, 1, 3, eng_jinja_m_rindex},
    {"count", ON_STR | ON_LIST | ON_TUPLE | ON_RANGE, 0, 1, 3, eng_jinja_m_count},
    {"upper", ON_STR, 0, 0, 0, eng_jinja_m_upper},
    {"lower", ON_STR, 0, 0, 0, eng_jinja_m_lower},
    {"title", ON_STR, 0, 0, 0, eng_jinja_m_title},
    {"capitalize", ON_STR, 0, 0, 0, eng_jinja_m_capitalize},
    {"swapcase", ON_STR, 0, 0, 0, eng_jinja_m_swapcase},
    {"isalpha", ON_STR, 0, 0, 0, eng_jinja_m_isalpha},
    {"isdigit", ON_STR, 0, 0, 0, eng_jinja_m_isdigit},
    {"isdecimal", ON_STR, 0, 0, 0, eng_jinja_m_isdecimal},
    {"isnumeric", ON_STR, 0, 0, 0, eng_jinja_m_isnumeric},
    {"isalnum", ON_STR, 0, 0, 0, eng_jinja_m_isalnum},
    {"isspace", ON_STR, 0, 0, 0, eng_jinja_m_isspace},
    {"islower", ON_STR, 0, 0, 0, eng_jinja_m_islower},
    {"isupper", ON_STR, 0, 0, 0, eng_jinja_m_isupper},
    {"isascii", ON_STR, 0, 0, 0, eng_jinja_m_isascii},
    {"join", ON_STR, 0, 1, 1, eng_jinja_m_join},
    {"ljust", ON_STR, 0, 1, 2, eng_jinja_m_ljust},
    {"rjust", ON_STR, 0, 1, 2, eng_jinja_m_rjust},
    {"center", ON_STR, 0, 1, 2, eng_jinja_m_center},
    {"zfill", ON_STR, 0, 1, 1, eng_jinja_m_zfill},
    {"format", ON_STR, 0, 0, JINJA_ARGUMENTS_MAX, eng_jinja_m_format},
    {"items", ON_DICT, 0, 0, 0, m_items},
    {"keys", ON_DICT, 0, 0, 0, m_keys},
    {"values", ON_DICT, 0, 0, 0, m_values},
    {"get", ON_DICT, 0, 1, 2, m_get},
    {"copy", ON_DICT | ON_LIST, 0, 0, 0, m_copy},
    {"cycle", ON_LOOP, 0, 0, JINJA_ARGUMENTS_MAX, m_cycle},
    {"changed", ON_LOOP, 0, 0, JINJA_ARGUMENTS_MAX, m_changed},
    {"append", 0, ON_LIST, 0, 0, NULL},
    {"insert", 0, ON_LIST, 0, 0, NULL},
    {"extend", 0, ON_LIST, 0, 0, NULL},
    {"remove", 0, ON_LIST, 0, 0, NULL},
    {"reverse", 0, ON_LIST, 0, 0, NULL},
    {"sort", 0, ON_LIST, 0, 0, NULL},
    {"pop", 0, ON_LIST | ON_DICT, 0, 0, NULL},
    {"clear", 0, ON_LIST | ON_DICT, 0, 0, NULL},
    {"popitem", 0, ON_DICT, 0, 0, NULL},
    {"setdefault", 0, ON_DICT, 0, 0, NULL},
    {"update", 0, ON_DICT, 0, 0, NULL},
    {"fromkeys", ON_DICT, 0, 0, 0, NULL},
    {"casefold", ON_STR, 0, 0, 0, NULL},
    {"encode", ON_STR, 0, 0, 0, NULL},
    {"expandtabs", ON_STR, 0, 0, 0, NULL},
    {"format_map", ON_STR, 0, 0, 0, NULL},
    {"isidentifier", ON_STR, 0, 0, 0, NULL},
    {"isprintable", ON_STR, 0, 0, 0, NULL},
    {"istitle", ON_STR, 0, 0, 0, NULL},
    {"maketrans", ON_STR, 0, 0, 0, NULL},
    {"translate", ON_STR, 0, 0, 0, NULL},
    {"real", ON_INT | ON_FLOAT, 0, 0, 0, NULL},
    {"imag", ON_INT | ON_FLOAT, 0, 0, 0, NULL},
    {"conjugate", ON_INT | ON_FLOAT, 0, 0, 0, NULL},
    {"as_integer_ratio", ON_INT | ON_FLOAT, 0, 0, 0, NULL},
    {"is_integer", ON_INT | ON_FLOAT, 0, 0, 0, NULL},
    {"numerator", ON_INT, 0, 0, 0, NULL},
    {"denominator", ON_INT, 0, 0, 0, NULL},
    {"bit_length", ON_INT, 0, 0, 0, NULL},
    {"bit_count", ON_INT, 0, 0, 0, NULL},
    {"to_bytes", ON_INT, 0, 0, 0, NULL},
    {"from_bytes", ON_INT, 0, 0, 0, NULL},
    {"hex", ON_FLOAT, 0, 0, 0, NULL},
    {"fromhex", ON_FLOAT, 0, 0, 0, NULL},
    {"start", ON_RANGE, 0, 0, 0, NULL},
    {"stop", ON_RANGE, 0, 0, 0, NULL},
    {"step", ON_RANGE, 0, 0, 0, NULL},
    {"mapping", ON_VIEW, 0, 0, 0, NULL},
    {"isdisjoint", ON_VIEW, 0, 0, 0, NULL},
    {"name", ON_MACRO, 0, 0, 0, NULL},
    {"arguments", ON_MACRO, 0, 0, 0, NULL},
    {"catch_kwargs", ON_MACRO, 0, 0, 0, NULL},
    {"catch_varargs", ON_MACRO, 0, 0, 0, NULL},
    {"caller", ON_MACRO, 0, 0, 0, NULL},
    {"explicit_caller", ON_MACRO, 0, 0, 0, NULL},
};

enum { COUNT = sizeof methods / sizeof methods[0] };

unsigned eng_jinja_method_find(struct jv name)
{
    for (unsigned i = 0; i < COUNT; i++) {
        if (jv_is(name, methods[i].name, strlen(methods[i].name))) {
            return i + 1;
        }
    }
    return 0;
}

enum jinja_has eng_jinja_has_method(struct jv object, struct jv name, unsigned id)
{
    static const uint16_t types[] = {
        [J_BOOL] = ON_INT,  [J_INT] = ON_INT,     [J_FLOAT] = ON_FLOAT, [J_STR] = ON_STR,
        [J_LIST] = ON_LIST, [J_TUPLE] = ON_TUPLE, [J_VIEW] = ON_VIEW,   [J_RANGE] = ON_RANGE,
        [J_DICT] = ON_DICT, [J_MACRO] = ON_MACRO, [J_LOOP] = ON_LOOP,   [J_METHOD] = 0};
    const uint16_t type = types[object.type];
    if (id == 0) {
        const bool is_internal = name.size > 2 && memcmp(name.as.s, "__", 2) == 0;
        return is_internal ? JINJA_FORBIDDEN : JINJA_HAS_NOT;
    }
    const struct method *const method = &methods[id - 1];
    if (method->forbidden & type) {
        return JINJA_FORBIDDEN;
    }
    if ((method->on & type) == 0) {
        return JINJA_HAS_NOT;
    }
    return method->call == NULL ? JINJA_UNSUPPORTED : JINJA_HAS;
}

struct jv eng_jinja_method_call(struct jinja_render_state *r, unsigned id, struct jv object,
                                const struct jinja_arguments *arguments)
{
    const struct method *const method = &methods[id - 1];
    struct jv bound[JINJA_PARAMETERS_MAX];
    static const char *const split_names[] = {"sep", "maxsplit", NULL};
    if (method->call == eng_jinja_m_format) {
        return eng_jinja_formatted(r->m, object, arguments);
    }
    if (arguments->name_count > 0 && method->on == ON_STR && method->most == 2) {
        if (method->call != eng_jinja_m_split && method->call != eng_jinja_m_rsplit) {
            eng_jinja_fail(r->m, "%s takes no arguments by name", method->name);
            return failed();
        }
        if (!eng_jinja_bind(r->m, method->name, arguments, split_names, 0, bound)) {
            return failed();
        }
        bound[0] = bound[0].type == J_MISSING ? jv_none() : bound[0];
        return method->call(r->m, object, bound, bound[1].type == J_MISSING ? 1 : 2);
    }
    if (arguments->name_count > 0 || arguments->count < method->needed ||
        arguments->count > method->most) {
        eng_jinja_fail(r->m, "%s with such arguments is not supported", method->name);
        return failed();
    }
    return method->call(r->m, object, arguments->items, arguments->count);
}
