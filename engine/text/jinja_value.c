/* Lists, dicts, truth, equality and order of values, as Python has them.
 * Called by jinja_*; must not know templates. */
#include "jinja_value.h"

#include <string.h>

enum { DEPTH_MAX = 100 };

struct jv eng_jinja_list(struct jmem *m, enum jinja_type type, size_t capacity)
{
    struct jlist *const list = eng_jinja_alloc(m, sizeof *list);
    *list = (struct jlist){.items = eng_jinja_array(m, capacity, sizeof *list->items)};
    list->capacity = list->items == NULL ? 0 : capacity;
    list->kind = type == J_ITER ? "generator" : "list";
    return (struct jv){.type = (uint8_t)type, .as.list = list};
}

static bool grow(struct jmem *m, struct jv **items, size_t count, size_t capacity)
{
    struct jv *const grown = eng_jinja_array(m, capacity, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    if (count > 0) {
        memcpy(grown, *items, count * sizeof *grown);
    }
    *items = grown;
    return true;
}

void eng_jinja_append(struct jmem *m, struct jv list, struct jv item)
{
    struct jlist *const l = list.as.list;
    if (m->failed) {
        return;
    }
    if (l->count == l->capacity) {
        const size_t capacity = l->capacity < 4 ? 4 : l->capacity * 2;
        if (!grow(m, &l->items, l->count, capacity)) {
            return;
        }
        l->capacity = capacity;
    }
    l->items[l->count++] = item;
}

struct jv eng_jinja_dict(struct jmem *m, size_t capacity)
{
    struct jdict *const dict = eng_jinja_alloc(m, sizeof *dict);
    *dict = (struct jdict){.keys = eng_jinja_array(m, capacity, sizeof *dict->keys),
                           .values = eng_jinja_array(m, capacity, sizeof *dict->values)};
    dict->capacity = dict->keys == NULL || dict->values == NULL ? 0 : capacity;
    return (struct jv){.type = J_DICT, .as.dict = dict};
}

const struct jv *eng_jinja_get_text(const struct jdict *dict, const char *key, size_t size)
{
    for (size_t i = 0; i < dict->count; i++) {
        const struct jv k = dict->keys[i];
        if (k.size == size && k.type == J_STR && memcmp(k.as.s, key, size) == 0) {
            return &dict->values[i];
        }
    }
    return NULL;
}

const struct jv *eng_jinja_get(const struct jdict *dict, struct jv key)
{
    if (key.type == J_STR) {
        return eng_jinja_get_text(dict, key.as.s, key.size);
    }
    struct jmem none = {0};
    for (size_t i = 0; i < dict->count; i++) {
        if (dict->keys[i].type != J_STR && eng_jinja_equal(&none, dict->keys[i], key)) {
            return &dict->values[i];
        }
    }
    return NULL;
}

/* Whether Python could hash it: a tuple only when its items can be. */
static bool is_hashable(struct jv v, unsigned depth)
{
    switch (v.type) {
    case J_LIST:
    case J_DICT:
        return false;
    case J_VIEW:
        return strcmp(v.as.list->kind, "dict_values") == 0;
    case J_TUPLE:
        for (size_t i = 0; i < v.as.list->count; i++) {
            if (depth == DEPTH_MAX || !is_hashable(v.as.list->items[i], depth + 1)) {
                return false;
            }
        }
        return true;
    default:
        return true;
    }
}

void eng_jinja_set(struct jmem *m, struct jv dict, struct jv key, struct jv value)
{
    struct jdict *const d = dict.as.dict;
    if (m->failed) {
        return;
    }
    if (!is_hashable(key, 0)) {
        eng_jinja_fail(m, "a %s cannot be a key", eng_jinja_type_name(key));
        return;
    }
    const struct jv *const old = eng_jinja_get(d, key);
    if (old != NULL) {
        d->values[old - d->values] = value;
        return;
    }
    if (d->count == d->capacity) {
        const size_t capacity = d->capacity < 4 ? 4 : d->capacity * 2;
        if (!grow(m, &d->keys, d->count, capacity) || !grow(m, &d->values, d->count, capacity)) {
            return;
        }
        d->capacity = capacity;
    }
    d->keys[d->count] = key;
    d->values[d->count++] = value;
}

const char *eng_jinja_type_name(struct jv v)
{
    static const char *const names[] = {[J_MISSING] = "missing",   [J_UNDEFINED] = "Undefined",
                                        [J_NONE] = "NoneType",     [J_BOOL] = "bool",
                                        [J_INT] = "int",           [J_FLOAT] = "float",
                                        [J_STR] = "str",           [J_LIST] = "list",
                                        [J_TUPLE] = "tuple",       [J_VIEW] = "dict view",
                                        [J_ITER] = "generator",    [J_RANGE] = "range",
                                        [J_DICT] = "dict",         [J_NAMESPACE] = "Namespace",
                                        [J_MACRO] = "Macro",       [J_LOOP] = "LoopContext",
                                        [J_FUNCTION] = "function", [J_METHOD] = "method"};
    return v.type == J_STR && (v.flags & JS_MARKUP) ? "Markup" : names[v.type];
}

bool eng_jinja_is_number(struct jv v)
{
    return v.type == J_BOOL || v.type == J_INT || v.type == J_FLOAT;
}

bool eng_jinja_int_of(struct jv v, int64_t *out)
{
    *out = v.type == J_BOOL ? v.as.b : v.as.i;
    return v.type == J_BOOL || v.type == J_INT;
}

double eng_jinja_float_of(struct jv v)
{
    return v.type == J_FLOAT ? v.as.f : v.type == J_BOOL ? v.as.b : (double)v.as.i;
}

static size_t range_count(const struct jrange *r)
{
    if (r->step > 0 ? r->start >= r->stop : r->start <= r->stop) {
        return 0;
    }
    const uint64_t distance = r->step > 0 ? (uint64_t)r->stop - (uint64_t)r->start
                                          : (uint64_t)r->start - (uint64_t)r->stop;
    const uint64_t step = r->step > 0 ? (uint64_t)r->step : 0 - (uint64_t)r->step;
    return (size_t)((distance - 1) / step + 1);
}

bool eng_jinja_has_length(struct jv v)
{
    return v.type == J_UNDEFINED || v.type == J_STR || v.type == J_LIST || v.type == J_TUPLE ||
           v.type == J_VIEW || v.type == J_DICT || v.type == J_RANGE || v.type == J_LOOP;
}

size_t eng_jinja_length(struct jmem *m, struct jv v)
{
    switch (v.type) {
    case J_UNDEFINED:
        return 0;
    case J_STR:
        return eng_jinja_points(v);
    case J_LIST:
    case J_TUPLE:
    case J_VIEW:
        return v.as.list->count;
    case J_DICT:
        return v.as.dict->count;
    case J_RANGE:
        return range_count(v.as.range);
    case J_LOOP:
        return v.as.loop->items->count;
    default:
        eng_jinja_fail(m, "a %s has no length", eng_jinja_type_name(v));
        return 0;
    }
}

bool eng_jinja_truth(struct jmem *m, struct jv v)
{
    switch (v.type) {
    case J_MISSING:
    case J_UNDEFINED:
    case J_NONE:
        return false;
    case J_BOOL:
        return v.as.b;
    case J_INT:
        return v.as.i != 0;
    case J_FLOAT:
        return v.as.f != 0.0;
    case J_STR:
        return v.size > 0;
    case J_LIST:
    case J_TUPLE:
    case J_VIEW:
        return v.as.list->count > 0;
    case J_DICT:
        return v.as.dict->count > 0;
    case J_RANGE:
        return range_count(v.as.range) > 0;
    case J_LOOP:
        return eng_jinja_length(m, v) > 0;
    default:
        return true;
    }
}

static int compare_doubles(double a, double b)
{
    return a < b ? -1 : a > b ? 1 : 0;
}

static bool equal_deep(struct jmem *m, struct jv a, struct jv b, unsigned depth);

static bool equal_lists(struct jmem *m, const struct jlist *a, const struct jlist *b,
                        unsigned depth)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (!equal_deep(m, a->items[i], b->items[i], depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool equal_dicts(struct jmem *m, const struct jdict *a, const struct jdict *b,
                        unsigned depth)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        const struct jv *const other = eng_jinja_get(b, a->keys[i]);
        if (other == NULL || !equal_deep(m, a->values[i], *other, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool equal_numbers(struct jv a, struct jv b)
{
    int64_t x = 0;
    int64_t y = 0;
    if (eng_jinja_int_of(a, &x) && eng_jinja_int_of(b, &y)) {
        return x == y;
    }
    return eng_jinja_float_of(a) == eng_jinja_float_of(b);
}

static bool equal_deep(struct jmem *m, struct jv a, struct jv b, unsigned depth)
{
    if (depth > DEPTH_MAX) {
        eng_jinja_fail(m, "values are nested too deeply to compare");
        return false;
    }
    if (a.type == J_STR && b.type == J_STR) {
        return a.size == b.size && memcmp(a.as.s, b.as.s, a.size) == 0;
    }
    if (eng_jinja_is_number(a) && eng_jinja_is_number(b)) {
        return equal_numbers(a, b);
    }
    if (a.type != b.type) {
        return false;
    }
    switch (a.type) {
    case J_NONE:
    case J_UNDEFINED:
        return true;
    case J_LIST:
    case J_TUPLE:
        return equal_lists(m, a.as.list, b.as.list, depth);
    case J_DICT:
        return equal_dicts(m, a.as.dict, b.as.dict, depth);
    case J_RANGE:
        return range_count(a.as.range) == range_count(b.as.range) &&
               (range_count(a.as.range) == 0 ||
                (a.as.range->start == b.as.range->start &&
                 (range_count(a.as.range) == 1 || a.as.range->step == b.as.range->step)));
    case J_FUNCTION:
        return a.id == b.id;
    default:
        return a.as.list == b.as.list; /* the same object */
    }
}

bool eng_jinja_equal(struct jmem *m, struct jv a, struct jv b)
{
    return equal_deep(m, a, b, 0);
}

static int compare_strings(struct jv a, struct jv b)
{
    const size_t size = a.size < b.size ? a.size : b.size;
    const int order = size == 0 ? 0 : memcmp(a.as.s, b.as.s, size); /* as code points, in UTF-8 */
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

int eng_jinja_compare(struct jmem *m, struct jv a, struct jv b)
{
    int64_t x = 0;
    int64_t y = 0;
    if (a.type == J_STR && b.type == J_STR) {
        return compare_strings(a, b);
    }
    if (eng_jinja_int_of(a, &x) && eng_jinja_int_of(b, &y)) {
        return (x > y) - (x < y);
    }
    if (eng_jinja_is_number(a) && eng_jinja_is_number(b)) {
        return compare_doubles(eng_jinja_float_of(a), eng_jinja_float_of(b));
    }
    if (a.type == b.type && (a.type == J_LIST || a.type == J_TUPLE)) {
        const struct jlist *const p = a.as.list;
        const struct jlist *const q = b.as.list;
        for (size_t i = 0; i < p->count && i < q->count && eng_jinja_step(m); i++) {
            if (!eng_jinja_equal(m, p->items[i], q->items[i])) {
                return eng_jinja_compare(m, p->items[i], q->items[i]);
            }
        }
        return (p->count > q->count) - (p->count < q->count);
    }
    eng_jinja_fail(m, "%s and %s have no order", eng_jinja_type_name(a), eng_jinja_type_name(b));
    return 0;
}

bool eng_jinja_contains(struct jmem *m, struct jv item, struct jv container)
{
    if (container.type == J_STR) {
        if (item.type != J_STR) {
            eng_jinja_fail(m, "'in' a text needs a text, not %s", eng_jinja_type_name(item));
            return false;
        }
        return eng_jinja_find(container, item, 0) != SIZE_MAX;
    }
    if (container.type == J_DICT) {
        if (!is_hashable(item, 0)) {
            eng_jinja_fail(m, "a %s cannot be a key", eng_jinja_type_name(item));
            return false;
        }
        return eng_jinja_get(container.as.dict, item) != NULL;
    }
    const struct jlist *const list = eng_jinja_items_of(m, container);
    for (size_t i = 0; i < list->count && !m->failed; i++) {
        if (eng_jinja_equal(m, list->items[i], item)) {
            return true;
        }
    }
    return false;
}

bool eng_jinja_is_iterable(struct jv v)
{
    return eng_jinja_has_length(v) || v.type == J_ITER;
}

static const struct jlist *characters(struct jmem *m, struct jv s)
{
    s.flags &= (uint8_t)~JS_MARKUP; /* iterating over a Markup gives plain texts */
    const struct jv list = eng_jinja_list(m, J_LIST, 0);
    for (size_t at = 0, n = 0; at < s.size && eng_jinja_step(m); at += n) {
        eng_jinja_point(s.as.s + at, &n);
        eng_jinja_append(m, list, eng_jinja_part(m, s, at, at + n));
    }
    return list.as.list;
}

static const struct jlist *numbers(struct jmem *m, const struct jrange *range)
{
    const size_t count = range_count(range);
    const struct jv list = eng_jinja_list(m, J_LIST, count);
    for (size_t i = 0; i < count && eng_jinja_step(m); i++) {
        eng_jinja_append(m, list, jv_int(range->start + (int64_t)i * range->step));
    }
    return list.as.list;
}

const struct jlist *eng_jinja_items_of(struct jmem *m, struct jv v)
{
    static const struct jlist empty = {0};
    switch (v.type) {
    case J_LIST:
    case J_TUPLE:
    case J_VIEW:
        return v.as.list;
    case J_ITER: {
        struct jlist *const rest = eng_jinja_alloc(m, sizeof *rest);
        *rest = *v.as.list;
        rest->items = rest->count > rest->read ? rest->items + rest->read : rest->items;
        rest->count -= rest->read;
        v.as.list->read = v.as.list->count;
        return rest;
    }
    case J_DICT: {
        struct jlist *const keys = eng_jinja_alloc(m, sizeof *keys);
        *keys = (struct jlist){.items = v.as.dict->keys, .count = v.as.dict->count};
        return keys;
    }
    case J_STR:
        return characters(m, v);
    case J_RANGE:
        return numbers(m, v.as.range);
    case J_UNDEFINED:
        return &empty;
    default:
        eng_jinja_fail(m, "a %s cannot be iterated over", eng_jinja_type_name(v));
        return &empty;
    }
}
