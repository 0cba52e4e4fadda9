/* Attributes, items and slices of values, in the order Python and the sandbox look.
 * Called by jinja_eval; must not know statements. */
#include <string.h>

#include "jinja_run.h"

static void at(struct jinja_render_state *r, const struct jnode *node)
{
    if (!r->m->failed) {
        r->m->at_line = node->line;
        r->m->at_column = node->column;
    }
}

static struct jv failed(void)
{
    return jv_undefined("");
}

struct jv eng_jinja_undefined_of(struct jinja_render_state *r, struct jv name)
{
    char *const copy = eng_jinja_array(r->m, (size_t)name.size + 1, 1);
    if (copy == NULL) {
        return failed();
    }
    memcpy(copy, name.as.s, name.size);
    copy[name.size] = '\0';
    return jv_undefined(copy);
}

void eng_jinja_fail_undefined(struct jmem *m, struct jv v)
{
    eng_jinja_fail(m, "%.80s is undefined", v.as.s == NULL || *v.as.s == '\0' ? "it" : v.as.s);
}

static struct jv method_of(struct jinja_render_state *r, struct jv object, unsigned id)
{
    struct jmethod *const method = eng_jinja_alloc(r->m, sizeof *method);
    *method = (struct jmethod){object, (int)id};
    return (struct jv){.type = J_METHOD, .as.method = method};
}

static struct jv loop_attribute(struct jinja_render_state *r, struct jv object, struct jv name,
                                unsigned method_id)
{
    const struct jloop *const loop = object.as.loop;
    const int64_t index = (int64_t)loop->index0;
    const int64_t count = (int64_t)loop->items->count;
    const struct {
        const char *name;
        struct jv value;
    } known[] = {{"index", jv_int(index + 1)},
                 {"index0", jv_int(index)},
                 {"first", jv_bool(index == 0)},
                 {"last", jv_bool(index + 1 == count)},
                 {"length", jv_int(count)},
                 {"revindex", jv_int(count - index)},
                 {"revindex0", jv_int(count - index - 1)},
                 {"depth", jv_int(1)},
                 {"depth0", jv_int(0)},
                 {"previtem", index == 0 ? jv_undefined("the item before the first")
                                         : loop->items->items[index - 1]},
                 {"nextitem", index + 1 == count ? jv_undefined("the item behind the last")
                                                 : loop->items->items[index + 1]}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (jv_is(name, known[i].name, strlen(known[i].name))) {
            return known[i].value;
        }
    }
    return eng_jinja_has_method(object, name, method_id) == JINJA_HAS
               ? method_of(r, object, method_id)
               : eng_jinja_undefined_of(r, name);
}

/* The method or property of Python's type, J_MISSING when it has none of that name. */
static struct jv type_attribute(struct jinja_render_state *r, struct jv object, struct jv name,
                                unsigned method_id)
{
    switch (eng_jinja_has_method(object, name, method_id)) {
    case JINJA_HAS:
        return method_of(r, object, method_id);
    case JINJA_FORBIDDEN:
        return eng_jinja_undefined_of(r, name);
    case JINJA_UNSUPPORTED:
        eng_jinja_fail(r->m, "'%.*s' of a %s is not supported", (int)name.size, name.as.s,
                       eng_jinja_type_name(object));
        return failed();
    default:
        return jv_missing();
    }
}

struct jv eng_jinja_attribute(struct jinja_render_state *r, struct jv object, struct jv name,
                              unsigned method_id)
{
    if (object.type == J_UNDEFINED) {
        eng_jinja_fail_undefined(r->m, object);
        return failed();
    }
    if (object.type == J_LOOP) {
        return loop_attribute(r, object, name, method_id);
    }
    if (object.type == J_NAMESPACE) {
        const struct jv *const value = eng_jinja_get_text(object.as.dict, name.as.s, name.size);
        return value != NULL ? *value : eng_jinja_undefined_of(r, name);
    }
    if (method_id != 0 || (name.size > 1 && name.as.s[0] == '_')) {
        const struct jv own = type_attribute(r, object, name, method_id);
        if (own.type != J_MISSING) {
            return own;
        }
    }
    if (object.type == J_DICT) {
        const struct jv *const value = eng_jinja_get_text(object.as.dict, name.as.s, name.size);
        if (value != NULL) {
            return *value;
        }
    }
    return eng_jinja_undefined_of(r, name);
}

/* The place of a Python index in `count` items, count when it is outside. */
static size_t place_of(int64_t index, size_t count)
{
    const int64_t size = (int64_t)count;
    const int64_t place = index < 0 ? index + size : index;
    return place < 0 || place >= size ? count : (size_t)place;
}

static struct jv item_at(struct jinja_render_state *r, struct jv object, int64_t index)
{
    if (object.type == J_STR) {
        const size_t count = eng_jinja_points(object);
        const size_t place = place_of(index, count);
        if (place == count) {
            return jv_undefined("an index out of range");
        }
        const size_t from = eng_jinja_offset(object, place);
        size_t length = 0;
        eng_jinja_point(object.as.s + from, &length);
        return eng_jinja_part(r->m, object, from, from + length);
    }
    const struct jlist *const list = eng_jinja_items_of(r->m, object);
    const size_t place = place_of(index, list->count);
    return place == list->count ? jv_undefined("an index out of range") : list->items[place];
}

struct jv eng_jinja_item(struct jinja_render_state *r, struct jv object, struct jv key)
{
    int64_t index = 0;
    if (object.type == J_UNDEFINED) {
        eng_jinja_fail_undefined(r->m, object);
        return failed();
    }
    if (object.type == J_DICT && key.type != J_LIST && key.type != J_DICT) {
        const struct jv *const value = eng_jinja_get(object.as.dict, key);
        if (value != NULL) {
            return *value;
        }
    }
    const bool is_sequence = object.type == J_STR || object.type == J_LIST ||
                             object.type == J_TUPLE || object.type == J_RANGE;
    if (is_sequence && eng_jinja_int_of(key, &index)) {
        return item_at(r, object, index);
    }
    if (key.type != J_STR) {
        return jv_undefined("an item");
    }
    if (object.type == J_DICT) {
        const struct jv own = type_attribute(r, object, key, eng_jinja_method_find(key));
        return own.type == J_MISSING ? eng_jinja_undefined_of(r, key) : own;
    }
    return eng_jinja_attribute(r, object, key, eng_jinja_method_find(key));
}

/* One border of a slice; `absent` when it is left out or none. */
static bool slice_border(struct jinja_render_state *r, const struct jnode *node, int64_t *out)
{
    if (node == NULL) {
        return false;
    }
    const struct jv v = eng_jinja_eval(r, node);
    if (v.type == J_NONE) {
        return false;
    }
    if (!eng_jinja_int_of(v, out)) {
        eng_jinja_fail(r->m, "a slice needs whole numbers, not %s", eng_jinja_type_name(v));
        return false;
    }
    return true;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Python's slice.indices(). */
static void slice_places(struct jinja_render_state *r, const struct jnode *node, int64_t size,
                         int64_t *start, int64_t *stop, int64_t *step)
{
    int64_t first = 0;
    int64_t end = 0;
    *step = 1;
    const bool has_start = slice_border(r, node->items[0], &first);
    const bool has_stop = slice_border(r, node->items[1], &end);
    if (slice_border(r, node->items[2], step) && *step == 0) {
        eng_jinja_fail(r->m, "the step of a slice is 0");
        *step = 1;
    }
    const int64_t low = *step > 0 ? 0 : -1;
    const int64_t high = *step > 0 ? size : size - 1;
    *start = !has_start ? (*step > 0 ? low : high)
                        : clamp(first < 0 && first >= -size - 1 ? first + size : first, low, high);
    *stop = !has_stop ? (*step > 0 ? high : low)
                      : clamp(end < 0 && end >= -size - 1 ? end + size : end, low, high);
}

static struct jv slice_of_string(struct jinja_render_state *r, struct jv s, int64_t start,
                                 int64_t stop, int64_t step)
{
    if (step == 1) {
        const size_t from = eng_jinja_offset(s, (size_t)start);
        return stop <= start ? eng_jinja_part(r->m, s, 0, 0)
                             : eng_jinja_part(r->m, s, from, eng_jinja_offset(s, (size_t)stop));
    }
    const struct jlist *const all = eng_jinja_items_of(r->m, s);
    const struct jv picked = eng_jinja_list(r->m, J_LIST, 0);
    for (int64_t i = start; (step > 0 ? i < stop : i > stop) && eng_jinja_step(r->m); i += step) {
        eng_jinja_append(r->m, picked, all->items[i]);
    }
    struct jv text = eng_jinja_joined(r->m, picked.as.list->items, picked.as.list->count);
    text.flags |= s.flags & JS_MARKUP;
    return text;
}

struct jv eng_jinja_slice(struct jinja_render_state *r, const struct jnode *node)
{
    const struct jv object = eng_jinja_eval(r, node->a);
    at(r, node);
    if (object.type != J_STR && object.type != J_LIST && object.type != J_TUPLE) {
        eng_jinja_fail(r->m, "a %s has no slices", eng_jinja_type_name(object));
        return failed();
    }
    int64_t start = 0;
    int64_t stop = 0;
    int64_t step = 1;
    const int64_t size = (int64_t)eng_jinja_length(r->m, object);
    slice_places(r, node, size, &start, &stop, &step);
    if (r->m->failed) {
        return failed();
    }
    if (object.type == J_STR) {
        return slice_of_string(r, object, start, stop, step);
    }
    const struct jv list = eng_jinja_list(r->m, object.type, 0);
    if (step < -size || step > size) {
        step = step > 0 ? size + 1 : -size - 1;
    }
    for (int64_t i = start; (step > 0 ? i < stop : i > stop) && eng_jinja_step(r->m); i += step) {
        eng_jinja_append(r->m, list, object.as.list->items[i]);
    }
    return list;
}
