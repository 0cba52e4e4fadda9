/* Filters of lists and dicts.
 * Called through jinja_filters; must not know syntax. */
#include <string.h>

#include "jinja_filters.h"
#include "jinja_run.h"

static struct jv failed(void)
{
    return jv_undefined("");
}

static struct jv list_of(struct jmem *m, enum jinja_type type, const struct jlist *items)
{
    const struct jv list = eng_jinja_list(m, type, items->count);
    for (size_t i = 0; i < items->count && eng_jinja_step(m); i++) {
        eng_jinja_append(m, list, items->items[i]);
    }
    return list;
}

/* The value at a path like "function.name" or "0.id", as make_attrgetter finds it; `fallback`
 * replaces what is undefined, unless it is missing or none. */
static struct jv at_path(struct jinja_render_state *r, struct jv v, struct jv path,
                         struct jv fallback)
{
    if (path.type == J_INT || path.type == J_BOOL) {
        return eng_jinja_item(r, v, path);
    }
    if (path.type != J_STR) {
        return v;
    }
    for (size_t from = 0; from <= path.size && eng_jinja_step(r->m);) {
        size_t to = eng_jinja_find(path, eng_jinja_literal("."), from);
        to = to == SIZE_MAX ? path.size : to;
        struct jv part = jv_str(path.as.s + from, to - from, path.flags);
        if (to - from < 18 && eng_jinja_all_of(part, JCLASS_DECIMAL)) {
            int64_t number = 0;
            for (size_t i = from; i < to; i++) {
                number = number * 10 + (path.as.s[i] - '0');
            }
            part = jv_int(number);
        }
        v = eng_jinja_item(r, v, part);
        if (v.type == J_UNDEFINED && fallback.type != J_MISSING && fallback.type != J_NONE) {
            v = fallback;
        }
        from = to + 1;
    }
    return v;
}

static struct jv folded(struct jinja_render_state *r, struct jv v, struct jv case_sensitive)
{
    const bool keep = case_sensitive.type != J_MISSING && eng_jinja_truth(r->m, case_sensitive);
    return v.type == J_STR && !keep ? eng_jinja_cased(r->m, v, JCASE_LOWER) : v;
}

static struct jv f_list(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    return list_of(r->m, J_LIST, eng_jinja_items_of(r->m, v));
}

static struct jv f_items(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    if (v.type != J_DICT && v.type != J_UNDEFINED) {
        eng_jinja_fail(r->m, "items of a %s, which is no mapping", eng_jinja_type_name(v));
        return failed();
    }
    const struct jv list = eng_jinja_list(r->m, J_ITER, v.type == J_DICT ? v.as.dict->count : 0);
    for (size_t i = 0; v.type == J_DICT && i < v.as.dict->count && eng_jinja_step(r->m); i++) {
        const struct jv pair = eng_jinja_list(r->m, J_TUPLE, 2);
        eng_jinja_append(r->m, pair, v.as.dict->keys[i]);
        eng_jinja_append(r->m, pair, v.as.dict->values[i]);
        eng_jinja_append(r->m, list, pair);
    }
    return list;
}

static struct jv f_join(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    const struct jlist *const items = eng_jinja_items_of(r->m, v);
    const struct jv glue =
        a[0].type == J_MISSING ? eng_jinja_literal("") : eng_jinja_str(r->m, a[0]);
    const struct jv parts = eng_jinja_list(r->m, J_LIST, items->count * 2);
    for (size_t i = 0; i < items->count && eng_jinja_step(r->m); i++) {
        if (i > 0) {
            eng_jinja_append(r->m, parts, glue);
        }
        eng_jinja_append(r->m, parts,
                         eng_jinja_str(r->m, at_path(r, items->items[i], a[1], jv_missing())));
    }
    return eng_jinja_joined(r->m, parts.as.list->items, parts.as.list->count);
}

static struct jv f_first(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    const struct jlist *const items = eng_jinja_items_of(r->m, v);
    if (v.type == J_ITER && items->count > 0) {
        v.as.list->read = v.as.list->count - items->count + 1;
    }
    return items->count == 0 ? jv_undefined("the first of no items") : items->items[0];
}

static struct jv f_last(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    if (v.type == J_ITER || v.type == J_LOOP) {
        eng_jinja_fail(r->m, "a %s cannot be read backwards", eng_jinja_type_name(v));
        return failed();
    }
    const struct jlist *const items = eng_jinja_items_of(r->m, v);
    return items->count == 0 ? jv_undefined("the last of no items")
                             : items->items[items->count - 1];
}

static struct jv f_reverse(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    (void)a;
    const struct jlist *const items = eng_jinja_items_of(r->m, v);
    const bool is_list = v.type == J_ITER; /* has no way back */
    const struct jv list = eng_jinja_list(r->m, is_list ? J_LIST : J_ITER, items->count);
    for (size_t i = items->count; i > 0 && eng_jinja_step(r->m); i--) {
        eng_jinja_append(r->m, list, items->items[i - 1]);
    }
    if (v.type == J_STR) {
        struct jv text = eng_jinja_joined(r->m, list.as.list->items, list.as.list->count);
        text.flags |= v.flags & JS_MARKUP;
        return text;
    }
    return list;
}

/* Keys decide the order, stable; merge sort. */
struct sortable {
    struct jv key, item;
};

static void merge_sort(struct jmem *m, struct sortable *s, struct sortable *spare, size_t count,
                       bool reverse)
{
    if (count < 2 || !eng_jinja_step(m)) {
        return;
    }
    const size_t half = count / 2;
    merge_sort(m, s, spare, half, reverse);
    merge_sort(m, s + half, spare, count - half, reverse);
    memcpy(spare, s, count * sizeof *s);
    size_t left = 0;
    size_t right = half;
    for (size_t i = 0; i < count; i++) {
        bool take_left = right >= count;
        if (!take_left && left < half) {
            const int order = eng_jinja_compare(m, spare[left].key, spare[right].key);
            take_left = reverse ? order >= 0 : order <= 0;
        }
        s[i] = take_left ? spare[left++] : spare[right++];
    }
}

static struct jv sorted(struct jinja_render_state *r, struct sortable *s, size_t count,
                        bool reverse)
{
    struct sortable *const spare = eng_jinja_array(r->m, count, sizeof *spare);
    const struct jv list = eng_jinja_list(r->m, J_LIST, count);
    if (spare != NULL) {
        merge_sort(r->m, s, spare, count, reverse);
    }
    for (size_t i = 0; i < count && eng_jinja_step(r->m); i++) {
        eng_jinja_append(r->m, list, s[i].item);
    }
    return list;
}

/* The values at all comma-separated paths, as a list: Python compares these. */
static struct jv sort_key(struct jinja_render_state *r, struct jv v, struct jv paths,
                          struct jv fold)
{
    const struct jv keys = eng_jinja_list(r->m, J_LIST, 1);
    if (paths.type != J_STR) {
        eng_jinja_append(r->m, keys, folded(r, at_path(r, v, paths, jv_missing()), fold));
        return keys;
    }
    for (size_t from = 0; from <= paths.size && eng_jinja_step(r->m);) {
        size_t to = eng_jinja_find(paths, eng_jinja_literal(","), from);
        to = to == SIZE_MAX ? paths.size : to;
        const struct jv path = jv_str(paths.as.s + from, to - from, paths.flags);
        eng_jinja_append(r->m, keys, folded(r, at_path(r, v, path, jv_missing()), fold));
        from = to + 1;
    }
    return keys;
}

static struct jv f_sort(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    const struct jlist *const items = eng_jinja_items_of(r->m, v);
    struct sortable *const s = eng_jinja_array(r->m, items->count, sizeof *s);
    for (size_t i = 0; s != NULL && i < items->count && eng_jinja_step(r->m); i++) {
        s[i] = (struct sortable){sort_key(r, items->items[i], a[2], a[1]), items->items[i]};
    }
    return r->m->failed
               ? failed()
               : sorted(r, s, items->count, a[0].type != J_MISSING && eng_jinja_truth(r->m, a[0]));
}

static struct jv f_dictsort(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    if (v.type != J_DICT) {
        eng_jinja_fail(r->m, "dictsort of a %s", eng_jinja_type_name(v));
        return failed();
    }
    const bool by_value = a[1].type == J_STR && jv_is(a[1], "value", 5);
    if (a[1].type != J_MISSING && !by_value && !(a[1].type == J_STR && jv_is(a[1], "key", 3))) {
        eng_jinja_fail(r->m, "dictsort sorts by 'key' or 'value'");
        return failed();
    }
    const struct jdict *const d = v.as.dict;
    struct sortable *const s = eng_jinja_array(r->m, d->count, sizeof *s);
    for (size_t i = 0; s != NULL && i < d->count && eng_jinja_step(r->m); i++) {
        const struct jv pair = eng_jinja_list(r->m, J_TUPLE, 2);
        eng_jinja_append(r->m, pair, d->keys[i]);
        eng_jinja_append(r->m, pair, d->values[i]);
        s[i] = (struct sortable){folded(r, by_value ? d->values[i] : d->keys[i], a[0]), pair};
    }
    return r->m->failed
               ? failed()
               : sorted(r, s, d->count, a[2].type != J_MISSING && eng_jinja_truth(r->m, a[2]));
}

static struct jv f_unique(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    const struct jlist *const items = eng_jinja_items_of(r->m, v);
    const struct jv seen = eng_jinja_dict(r->m, 0);
    const struct jv list = eng_jinja_list(r->m, J_ITER, items->count);
    for (size_t i = 0; i < items->count && eng_jinja_step(r->m); i++) {
        const struct jv key = folded(r, at_path(r, items->items[i], a[1], jv_missing()), a[0]);
        const size_t before = seen.as.dict->count;
        eng_jinja_set(r->m, seen, key, jv_none());
        if (seen.as.dict->count > before) {
            eng_jinja_append(r->m, list, items->items[i]);
        }
    }
    return list;
}

static struct jv extreme(struct jinja_render_state *r, struct jv v, const struct jv *a, int sign)
{
    const struct jlist *const items = eng_jinja_items_of(r->m, v);
    if (items->count == 0) {
        return jv_undefined("the extreme of no items");
    }
    size_t best = 0;
    struct jv best_key = folded(r, at_path(r, items->items[0], a[1], jv_missing()), a[0]);
    for (size_t i = 1; i < items->count && eng_jinja_step(r->m); i++) {
        const struct jv key = folded(r, at_path(r, items->items[i], a[1], jv_missing()), a[0]);
        if (eng_jinja_compare(r->m, key, best_key) * sign > 0) {
            best = i;
            best_key = key;
        }
    }
    return items->items[best];
}

static struct jv f_min(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    return extreme(r, v, a, -1);
}

static struct jv f_max(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    return extreme(r, v, a, 1);
}

static struct jv f_sum(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    const struct jlist *const items = eng_jinja_items_of(r->m, v);
    struct jv sum = a[1].type == J_MISSING ? jv_int(0) : a[1];
    if (sum.type == J_STR) {
        eng_jinja_fail(r->m, "sum does not start with a text");
    }
    for (size_t i = 0; i < items->count && eng_jinja_step(r->m); i++) {
        sum = eng_jinja_add(r->m, sum, at_path(r, items->items[i], a[0], jv_missing()));
    }
    return sum;
}

static struct jv f_batch(struct jinja_render_state *r, struct jv v, const struct jv *a)
{
    const struct jlist *const items = eng_jinja_items_of(r->m, v);
    const struct jv batches = eng_jinja_list(r->m, J_ITER, 0);
    int64_t size = 0;
    if (!eng_jinja_int_of(a[0], &size) || size < 1) {
        eng_jinja_fail(r->m, "batch takes a count above 0");
        return failed();
    }
    struct jv batch = jv_none();
    for (size_t i = 0; i < items->count && eng_jinja_step(r->m); i++) {
        if (i % (size_t)size == 0) {
            batch = eng_jinja_list(r->m, J_LIST, 0);
            eng_jinja_append(r->m, batches, batch);
        }
        eng_jinja_append(r->m, batch, items->items[i]);
    }
    while (a[1].type != J_MISSING && a[1].type != J_NONE && batch.type == J_LIST &&
           batch.as.list->count < (size_t)size && eng_jinja_step(r->m)) {
        eng_jinja_append(r->m, batch, a[1]);
    }
    return batches;
}

/* ---- filters that take the name of another filter or test */

/* Arguments from the `skip`th on. */
static struct jinja_arguments rest_of(const struct jinja_arguments *arguments, size_t skip)
{
    struct jinja_arguments rest = *arguments;
    rest.items += skip;
    rest.count -= skip;
    return rest;
}

static struct jv map_attribute(struct jinja_render_state *r, const struct jlist *items,
                               const struct jinja_arguments *arguments)
{
    static const char *const names[] = {"attribute", "default", NULL};
    struct jv a[JINJA_PARAMETERS_MAX];
    const struct jv list = eng_jinja_list(r->m, J_ITER, items->count);
    if (!eng_jinja_bind(r->m, "map", arguments, names, 1, a)) {
        return failed();
    }
    for (size_t i = 0; i < items->count && eng_jinja_step(r->m); i++) {
        eng_jinja_append(r->m, list, at_path(r, items->items[i], a[0], a[1]));
    }
    return list;
}

static struct jv f_map(struct jinja_render_state *r, struct jv v,
                       const struct jinja_arguments *arguments)
{
    if (!eng_jinja_truth(r->m, v)) {
        return eng_jinja_list(r->m, J_ITER, 0);
    }
    const struct jlist *const items = eng_jinja_items_of(r->m, v);
    if (arguments->count == 0) {
        return map_attribute(r, items, arguments);
    }
    const struct jv name = arguments->items[0];
    const unsigned id = name.type == J_STR ? eng_jinja_filter_find(name) : 0;
    const struct jinja_arguments rest = rest_of(arguments, 1);
    const struct jv list = eng_jinja_list(r->m, J_ITER, items->count);
    if (id == 0) {
        eng_jinja_fail(r->m, "map by a filter that there is not");
        return failed();
    }
    for (size_t i = 0; i < items->count && eng_jinja_step(r->m); i++) {
        eng_jinja_append(r->m, list, eng_jinja_filter_call(r, id, items->items[i], &rest));
    }
    return list;
}

static struct jv select_items(struct jinja_render_state *r, struct jv v,
                              const struct jinja_arguments *arguments, bool by_attribute,
                              bool wanted)
{
    const struct jv list = eng_jinja_list(r->m, J_ITER, 0);
    const size_t skip = by_attribute ? 1 : 0;
    if (!eng_jinja_truth(r->m, v)) {
        return list;
    }
    if (arguments->count < skip) {
        eng_jinja_fail(r->m, "the name of an attribute is missing");
        return failed();
    }
    const struct jv path = by_attribute ? arguments->items[0] : jv_missing();
    const bool has_test = arguments->count > skip;
    const struct jv name = has_test ? arguments->items[skip] : jv_missing();
    const unsigned id = name.type == J_STR ? eng_jinja_test_find(name) : 0;
    const struct jinja_arguments rest = rest_of(arguments, has_test ? skip + 1 : skip);
    if (has_test && id == 0) {
        eng_jinja_fail(r->m, "selection by a test that there is not");
        return failed();
    }
    const struct jlist *const items = eng_jinja_items_of(r->m, v);
    for (size_t i = 0; i < items->count && eng_jinja_step(r->m); i++) {
        const struct jv item = at_path(r, items->items[i], path, jv_missing());
        const bool passes =
            has_test ? eng_jinja_test_call(r, id, item, &rest) : eng_jinja_truth(r->m, item);
        if (passes == wanted) {
            eng_jinja_append(r->m, list, items->items[i]);
        }
    }
    return list;
}

static struct jv f_select(struct jinja_render_state *r, struct jv v,
                          const struct jinja_arguments *arguments)
{
    return select_items(r, v, arguments, false, true);
}

static struct jv f_reject(struct jinja_render_state *r, struct jv v,
                          const struct jinja_arguments *arguments)
{
    return select_items(r, v, arguments, false, false);
}

static struct jv f_selectattr(struct jinja_render_state *r, struct jv v,
                              const struct jinja_arguments *arguments)
{
    return select_items(r, v, arguments, true, true);
}

static struct jv f_rejectattr(struct jinja_render_state *r, struct jv v,
                              const struct jinja_arguments *arguments)
{
    return select_items(r, v, arguments, true, false);
}

static const struct jinja_filter filters[] = {
    {"list", f_list, 0, {NULL}, NULL},
    {"items", f_items, 0, {NULL}, NULL},
    {"join", f_join, 0, {"d", "attribute"}, NULL},
    {"first", f_first, 0, {NULL}, NULL},
    {"last", f_last, 0, {NULL}, NULL},
    {"reverse", f_reverse, 0, {NULL}, NULL},
    {"sort", f_sort, 0, {"reverse", "case_sensitive", "attribute"}, NULL},
    {"dictsort", f_dictsort, 0, {"case_sensitive", "by", "reverse"}, NULL},
    {"unique", f_unique, 0, {"case_sensitive", "attribute"}, NULL},
    {"min", f_min, 0, {"case_sensitive", "attribute"}, NULL},
    {"max", f_max, 0, {"case_sensitive", "attribute"}, NULL},
    {"sum", f_sum, 0, {"attribute", "start"}, NULL},
    {"batch", f_batch, 1, {"linecount", "fill_with"}, NULL},
    {"map", NULL, 0, {NULL}, f_map},
    {"select", NULL, 0, {NULL}, f_select},
    {"reject", NULL, 0, {NULL}, f_reject},
    {"selectattr", NULL, 0, {NULL}, f_selectattr},
    {"rejectattr", NULL, 0, {NULL}, f_rejectattr},
};

const struct jinja_filter *eng_jinja_list_filter(unsigned index)
{
    return index < sizeof filters / sizeof filters[0] ? &filters[index] : NULL;
}
