/* Computes the expressions of a template with Python's meaning.
 * Called by jinja_render; must not know statements. A failure is noted in the memory and the value
 * is undefined from there on; whoever loops looks. */
#include "jinja_run.h"

enum { CHAIN_MAX = 64 };

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

static struct jv eval_compare(struct jinja_render_state *r, const struct jnode *node)
{
    struct jv left = eng_jinja_eval(r, node->a);
    for (size_t i = 0; i < node->count; i++) {
        const struct jv right = eng_jinja_eval(r, node->items[i]);
        at(r, node);
        if (!eng_jinja_compares(r->m, (enum jop)node->ops[i], left, right)) {
            return jv_bool(false);
        }
        left = right;
    }
    return jv_bool(true);
}

static struct jv eval_unary(struct jinja_render_state *r, const struct jnode *node)
{
    const struct jv v = eng_jinja_eval(r, node->a);
    at(r, node);
    return eng_jinja_signed(r->m, (enum jop)node->op, v);
}

/* The operands of a + b + c ... from left to right; 0 when there are too many. */
static size_t chain_of(const struct jnode *node, const struct jnode *parts[CHAIN_MAX])
{
    size_t count = 1;
    const struct jnode *left = node;
    for (; left->kind == JN_BINARY && left->op == JO_ADD; left = left->a) {
        if (++count > CHAIN_MAX) {
            return 0;
        }
    }
    left = node;
    for (size_t i = count; i > 1; left = left->a) {
        parts[--i] = left->b;
    }
    parts[0] = left;
    return count;
}

static bool is_plain_string(struct jv v)
{
    return v.type == J_STR && (v.flags & JS_MARKUP) == 0;
}

/* a + b + c ...: texts are joined at once. */
static struct jv eval_sum(struct jinja_render_state *r, const struct jnode *node)
{
    const struct jnode *parts[CHAIN_MAX];
    struct jv values[CHAIN_MAX];
    const size_t count = chain_of(node, parts);
    if (count == 0) {
        const struct jv left = eng_jinja_eval(r, node->a);
        const struct jv right = eng_jinja_eval(r, node->b);
        at(r, node);
        return eng_jinja_add(r->m, left, right);
    }
    bool plain = true;
    for (size_t i = 0; i < count; i++) {
        values[i] = eng_jinja_eval(r, parts[i]);
        plain = plain && is_plain_string(values[i]);
    }
    at(r, node);
    if (plain) {
        return eng_jinja_joined(r->m, values, count);
    }
    struct jv sum = values[0];
    for (size_t i = 1; i < count && !r->m->failed; i++) {
        sum = eng_jinja_add(r->m, sum, values[i]);
    }
    return sum;
}

static struct jv eval_binary(struct jinja_render_state *r, const struct jnode *node)
{
    if (node->op == JO_ADD) {
        return eval_sum(r, node);
    }
    const struct jv left = eng_jinja_eval(r, node->a);
    const struct jv right = eng_jinja_eval(r, node->b);
    at(r, node);
    return eng_jinja_arithmetic(r->m, (enum jop)node->op, left, right);
}

/* ---- calls */

struct evaluated {
    struct jv items[JINJA_ARGUMENTS_MAX], values[JINJA_ARGUMENTS_MAX];
    struct jinja_arguments arguments;
};

/* Adds an argument by name to those there are. */
static void add_named(struct jmem *m, struct jv names, struct jv values, struct jv name,
                      struct jv value)
{
    if (name.type != J_STR || eng_jinja_contains(m, name, names)) {
        eng_jinja_fail(m, "an argument by no name or twice by one");
    }
    eng_jinja_append(m, names, name);
    eng_jinja_append(m, values, value);
}

/* Arguments of which some come from `*list` and `**dict`, or from a call block. */
static void spread_arguments(struct jinja_render_state *r, const struct jnode *node,
                             struct jv caller, struct evaluated *out)
{
    const struct jv items = eng_jinja_list(r->m, J_LIST, node->count);
    const struct jv names = eng_jinja_list(r->m, J_LIST, node->name_count + 1);
    const struct jv values = eng_jinja_list(r->m, J_LIST, node->name_count + 1);
    for (size_t i = 0; i < node->count; i++) {
        eng_jinja_append(r->m, items, out->items[i]);
    }
    for (size_t i = 0; i < node->name_count; i++) {
        add_named(r->m, names, values, node->names[i], out->values[i]);
    }
    if (caller.type != J_MISSING) {
        add_named(r->m, names, values, eng_jinja_literal("caller"), caller);
    }
    if (node->b != NULL) {
        const struct jv list = eng_jinja_eval(r, node->b);
        at(r, node->b);
        const struct jlist *const more = eng_jinja_items_of(r->m, list);
        for (size_t i = 0; i < more->count && eng_jinja_step(r->m); i++) {
            eng_jinja_append(r->m, items, more->items[i]);
        }
    }
    const struct jv dict = node->c == NULL ? jv_missing() : eng_jinja_eval(r, node->c);
    at(r, node);
    if (node->c != NULL && dict.type != J_DICT) {
        eng_jinja_fail(r->m, "** takes a mapping, not %s", eng_jinja_type_name(dict));
    }
    for (size_t i = 0; dict.type == J_DICT && i < dict.as.dict->count && eng_jinja_step(r->m);
         i++) {
        add_named(r->m, names, values, dict.as.dict->keys[i], dict.as.dict->values[i]);
    }
    out->arguments =
        (struct jinja_arguments){items.as.list->items, items.as.list->count, names.as.list->items,
                                 values.as.list->items, names.as.list->count};
}

/* `caller` is what a call block hands over, or missing. */
static void eval_arguments(struct jinja_render_state *r, const struct jnode *node, struct jv caller,
                           struct evaluated *out)
{
    for (size_t i = 0; i < node->count; i++) {
        out->items[i] = eng_jinja_eval(r, node->items[i]);
    }
    for (size_t i = 0; i < node->name_count; i++) {
        out->values[i] = eng_jinja_eval(r, node->values[i]);
    }
    out->arguments = (struct jinja_arguments){out->items, node->count, node->names, out->values,
                                              node->name_count};
    if (node->b != NULL || node->c != NULL || caller.type != J_MISSING) {
        spread_arguments(r, node, caller, out);
    }
}

struct jv eng_jinja_call(struct jinja_render_state *r, struct jv callee,
                         const struct jinja_arguments *arguments)
{
    switch (callee.type) {
    case J_MACRO: {
        struct jbuf *const outer = r->out;
        r->out = eng_jinja_open(r->m);
        eng_jinja_run_macro(r, callee.as.macro, arguments);
        r->out = outer;
        return eng_jinja_close(r->m);
    }
    case J_FUNCTION:
        return eng_jinja_function_call(r, callee.id, arguments);
    case J_METHOD:
        return eng_jinja_method_call(r, (unsigned)callee.as.method->id, callee.as.method->object,
                                     arguments);
    case J_UNDEFINED:
        eng_jinja_fail_undefined(r->m, callee);
        return failed();
    default:
        eng_jinja_fail(r->m, "a %s cannot be called", eng_jinja_type_name(callee));
        return failed();
    }
}

/* Calls a method without making a value of it. */
static bool is_direct_method(struct jv object, const struct jnode *callee)
{
    return callee->id != 0 && object.type != J_NAMESPACE &&
           eng_jinja_has_method(object, callee->value, callee->id) == JINJA_HAS;
}

static struct jv eval_call(struct jinja_render_state *r, const struct jnode *node)
{
    struct evaluated e;
    const struct jnode *const callee = node->a;
    struct jv function = jv_none();
    if (callee->kind == JN_ATTR) {
        const struct jv object = eng_jinja_eval(r, callee->a);
        at(r, callee);
        if (is_direct_method(object, callee)) {
            eval_arguments(r, node, jv_missing(), &e);
            at(r, callee);
            return eng_jinja_method_call(r, callee->id, object, &e.arguments);
        }
        function = eng_jinja_attribute(r, object, callee->value, callee->id);
    } else {
        function = eng_jinja_eval(r, callee);
    }
    eval_arguments(r, node, jv_missing(), &e);
    at(r, node);
    return r->m->failed ? failed() : eng_jinja_call(r, function, &e.arguments);
}

struct jv eng_jinja_call_block(struct jinja_render_state *r, const struct jnode *node,
                               struct jv caller)
{
    struct evaluated e;
    const struct jv function = eng_jinja_eval(r, node->a);
    eval_arguments(r, node, caller, &e);
    at(r, node);
    return r->m->failed ? failed() : eng_jinja_call(r, function, &e.arguments);
}

/* Jinja2 compiles a filter or test that it does not know where a branch may leave it out. */
static void fail_unknown(struct jinja_render_state *r, const struct jnode *node)
{
    eng_jinja_fail(r->m, "there is no %s '%.*s'", node->kind == JN_FILTER ? "filter" : "test",
                   (int)node->value.size, node->value.as.s);
}

/* Filters are nested: the innermost, with no operand of its own, gets `value`. */
struct jv eng_jinja_filtered(struct jinja_render_state *r, const struct jnode *filters,
                             struct jv value)
{
    struct evaluated e;
    if (!eng_jinja_enter_level(r)) {
        return failed();
    }
    if (filters->a != NULL) {
        value = eng_jinja_filtered(r, filters->a, value);
    }
    eval_arguments(r, filters, jv_missing(), &e);
    at(r, filters);
    eng_jinja_leave_level(r);
    return eng_jinja_filter_call(r, filters->id, value, &e.arguments);
}

static struct jv eval_filter(struct jinja_render_state *r, const struct jnode *node)
{
    struct evaluated e;
    const struct jv value = eng_jinja_eval(r, node->a);
    eval_arguments(r, node, jv_missing(), &e);
    at(r, node);
    if (node->id == 0) {
        fail_unknown(r, node);
    }
    return r->m->failed ? failed() : eng_jinja_filter_call(r, node->id, value, &e.arguments);
}

static struct jv eval_test(struct jinja_render_state *r, const struct jnode *node)
{
    struct evaluated e;
    const struct jv value = eng_jinja_eval(r, node->a);
    eval_arguments(r, node, jv_missing(), &e);
    at(r, node);
    if (node->id == 0) {
        fail_unknown(r, node);
    }
    return jv_bool(!r->m->failed && eng_jinja_test_call(r, node->id, value, &e.arguments));
}

/* ---- the rest */

static struct jv eval_name(struct jinja_render_state *r, const struct jnode *node)
{
    const struct jactivation *a = r->activation;
    for (unsigned i = 0; i < node->place.hops; i++) {
        a = a->outer;
    }
    const struct jv v = a->slots[node->place.slot];
    return v.type == J_MISSING ? eng_jinja_undefined_of(r, node->value) : v;
}

static struct jv eval_list(struct jinja_render_state *r, const struct jnode *node)
{
    const struct jv list =
        eng_jinja_list(r->m, node->kind == JN_LIST ? J_LIST : J_TUPLE, node->count);
    for (size_t i = 0; i < node->count; i++) {
        eng_jinja_append(r->m, list, eng_jinja_eval(r, node->items[i]));
    }
    return list;
}

static struct jv eval_dict(struct jinja_render_state *r, const struct jnode *node)
{
    const struct jv dict = eng_jinja_dict(r->m, node->count / 2);
    for (size_t i = 0; i + 1 < node->count; i += 2) {
        const struct jv key = eng_jinja_eval(r, node->items[i]);
        const struct jv value = eng_jinja_eval(r, node->items[i + 1]);
        at(r, node);
        eng_jinja_set(r->m, dict, key, value);
    }
    return dict;
}

static struct jv eval_join(struct jinja_render_state *r, const struct jnode *node)
{
    const struct jv parts = eng_jinja_list(r->m, J_LIST, node->count);
    for (size_t i = 0; i < node->count; i++) {
        const struct jv v = eng_jinja_eval(r, node->items[i]);
        at(r, node);
        eng_jinja_append(r->m, parts, eng_jinja_str(r->m, v));
    }
    return eng_jinja_joined(r->m, parts.as.list->items, parts.as.list->count);
}

static struct jv eval_choice(struct jinja_render_state *r, const struct jnode *node)
{
    if (eng_jinja_truth(r->m, eng_jinja_eval(r, node->b))) {
        return eng_jinja_eval(r, node->a);
    }
    return node->c == NULL ? jv_undefined("a choice without else") : eng_jinja_eval(r, node->c);
}

/* What has operands. */
static struct jv eval_operation(struct jinja_render_state *r, const struct jnode *node)
{
    switch ((enum jnode_kind)node->kind) {
    case JN_LIST:
    case JN_TUPLE:
        return eval_list(r, node);
    case JN_DICT:
        return eval_dict(r, node);
    case JN_ATTR: {
        const struct jv object = eng_jinja_eval(r, node->a);
        at(r, node);
        return eng_jinja_attribute(r, object, node->value, node->id);
    }
    case JN_ITEM: {
        const struct jv object = eng_jinja_eval(r, node->a);
        const struct jv key = eng_jinja_eval(r, node->b);
        at(r, node);
        return eng_jinja_item(r, object, key);
    }
    case JN_SLICE:
        return eng_jinja_slice(r, node);
    case JN_CALL:
        return eval_call(r, node);
    case JN_FILTER:
        return eval_filter(r, node);
    case JN_TEST:
        return eval_test(r, node);
    case JN_UNARY:
        return eval_unary(r, node);
    case JN_BINARY:
        return eval_binary(r, node);
    case JN_JOIN:
        return eval_join(r, node);
    case JN_COMPARE:
        return eval_compare(r, node);
    case JN_AND: {
        const struct jv left = eng_jinja_eval(r, node->a);
        return eng_jinja_truth(r->m, left) ? eng_jinja_eval(r, node->b) : left;
    }
    case JN_OR: {
        const struct jv left = eng_jinja_eval(r, node->a);
        return eng_jinja_truth(r->m, left) ? left : eng_jinja_eval(r, node->b);
    }
    case JN_NOT:
        return jv_bool(!eng_jinja_truth(r->m, eng_jinja_eval(r, node->a)));
    default:
        return eval_choice(r, node);
    }
}

struct jv eng_jinja_eval(struct jinja_render_state *r, const struct jnode *node)
{
    if (node->kind == JN_CONST) {
        return node->value;
    }
    if (node->kind == JN_NAME) {
        return eval_name(r, node);
    }
    if (!eng_jinja_enter_level(r)) {
        return failed();
    }
    const struct jv v = eval_operation(r, node);
    eng_jinja_leave_level(r);
    return v;
}

/* ---- output */

static bool emit_macro(struct jinja_render_state *r, const struct jnode *node)
{
    struct evaluated e;
    if (node->a->kind != JN_NAME) {
        return false;
    }
    const struct jv callee = eval_name(r, node->a);
    if (callee.type != J_MACRO) {
        return false;
    }
    eval_arguments(r, node, jv_missing(), &e);
    at(r, node);
    if (!r->m->failed) {
        eng_jinja_run_macro(r, callee.as.macro, &e.arguments);
    }
    return true;
}

/* Texts of a + b + c go out one by one, without being joined first. */
static bool emit_sum(struct jinja_render_state *r, const struct jnode *node)
{
    const struct jnode *parts[CHAIN_MAX];
    struct jv values[CHAIN_MAX];
    const size_t count = chain_of(node, parts);
    bool plain = count > 0;
    for (size_t i = 0; i < count; i++) {
        values[i] = eng_jinja_eval(r, parts[i]);
        plain = plain && is_plain_string(values[i]);
    }
    if (!plain && count > 0) {
        at(r, node);
        for (size_t i = 1; i < count && !r->m->failed; i++) {
            values[0] = eng_jinja_add(r->m, values[0], values[i]);
        }
        eng_jinja_put_value(r->m, r->out, values[0]);
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        eng_jinja_put_str(r->m, r->out, values[i]);
    }
    return count > 0;
}

void eng_jinja_emit(struct jinja_render_state *r, const struct jnode *node)
{
    if (node->kind == JN_BINARY && node->op == JO_ADD && emit_sum(r, node)) {
        return;
    }
    if (node->kind == JN_CALL && emit_macro(r, node)) {
        return;
    }
    const struct jv v = eng_jinja_eval(r, node);
    at(r, node);
    eng_jinja_put_value(r->m, r->out, v);
}
