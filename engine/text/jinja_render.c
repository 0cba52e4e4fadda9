/* Runs the statements of a template.
 * Called by jinja; must not know how expressions are computed. */
#include <string.h>

#include "jinja_run.h"

static void at(struct jinja_render_state *r, const struct jnode *node)
{
    r->m->at_line = node->line;
    r->m->at_column = node->column;
}

static struct jv *slot_of(const struct jinja_render_state *r, struct jplace place)
{
    struct jactivation *a = r->activation;
    for (unsigned i = 0; i < place.hops; i++) {
        a = a->outer;
    }
    return &a->slots[place.slot];
}

static void enter_frame(struct jinja_render_state *r, const struct jframe *frame)
{
    struct jv *const slots = r->activation->slots;
    for (size_t i = 0; i < frame->load_count; i++) {
        const struct jload *const load = &frame->loads[i];
        switch (load->kind) {
        case JL_ALIAS:
            slots[load->slot] = *slot_of(r, load->from);
            break;
        case JL_GLOBAL:
            slots[load->slot] = r->globals[load->global];
            break;
        default:
            slots[load->slot] = jv_missing();
        }
    }
}

static void assign(struct jinja_render_state *r, const struct jnode *target, struct jv value)
{
    if (target->kind == JN_NAME) {
        *slot_of(r, target->place) = value;
        return;
    }
    if (target->kind == JN_ATTR) {
        const struct jv space = *slot_of(r, target->a->place);
        if (space.type != J_NAMESPACE) {
            at(r, target->a);
            eng_jinja_fail(r->m, "only a namespace has attributes that can be set");
            return;
        }
        eng_jinja_set(r->m, space, target->value, value);
        return;
    }
    at(r, target);
    const struct jlist *const items = eng_jinja_items_of(r->m, value);
    if (!r->m->failed && items->count != target->count) {
        eng_jinja_fail(r->m, "%zu values for %zu names", items->count, target->count);
    }
    for (size_t i = 0; i < target->count && !r->m->failed; i++) {
        assign(r, target->items[i], items->items[i]);
    }
}

/* Items that the loop's condition keeps. */
static const struct jlist *kept_items(struct jinja_render_state *r, const struct jnode *node,
                                      const struct jlist *items)
{
    if (node->c == NULL) {
        return items;
    }
    const struct jv kept = eng_jinja_list(r->m, J_LIST, items->count);
    for (size_t i = 0; i < items->count && eng_jinja_step(r->m); i++) {
        enter_frame(r, &node->frame);
        assign(r, node->a, items->items[i]);
        if (eng_jinja_truth(r->m, eng_jinja_eval(r, node->c))) {
            eng_jinja_append(r->m, kept, items->items[i]);
        }
    }
    return kept.as.list;
}

static void run_for(struct jinja_render_state *r, const struct jnode *node)
{
    const struct jv value = eng_jinja_eval(r, node->b);
    at(r, node->b);
    const struct jlist *const items = kept_items(r, node, eng_jinja_items_of(r->m, value));
    struct jloop *const loop = eng_jinja_alloc(r->m, sizeof *loop);
    *loop = (struct jloop){.items = items};
    for (size_t i = 0; i < items->count && eng_jinja_step(r->m); i++) {
        loop->index0 = i;
        enter_frame(r, &node->frame);
        r->activation->slots[node->loop_slot] = (struct jv){.type = J_LOOP, .as.loop = loop};
        assign(r, node->a, items->items[i]);
        eng_jinja_run(r, node->items, node->count);
        const bool leaves = r->signal == JSIGNAL_BREAK;
        r->signal = JSIGNAL_NONE;
        if (leaves) {
            break;
        }
    }
    if (items->count == 0 && node->else_count > 0) {
        enter_frame(r, &node->else_frame);
        eng_jinja_run(r, node->else_items, node->else_count);
    }
}

/* Runs a body and returns what it wrote. */
static struct jv capture(struct jinja_render_state *r, const struct jnode *node)
{
    struct jbuf *const outer = r->out;
    r->out = eng_jinja_open(r->m);
    enter_frame(r, &node->frame);
    eng_jinja_run(r, node->items, node->count);
    r->out = outer;
    return eng_jinja_close(r->m);
}

static void run_set_block(struct jinja_render_state *r, const struct jnode *node)
{
    struct jv value = capture(r, node);
    if (r->signal != JSIGNAL_NONE) {
        return;
    }
    if (node->b != NULL) {
        value = eng_jinja_filtered(r, node->b, value);
    }
    assign(r, node->a, value);
}

static void run_filter_block(struct jinja_render_state *r, const struct jnode *node)
{
    const struct jv text = capture(r, node);
    if (r->signal == JSIGNAL_NONE) {
        eng_jinja_put_value(r->m, r->out, eng_jinja_filtered(r, node->b, text));
    }
}

static void run_generation(struct jinja_render_state *r, const struct jnode *node)
{
    const size_t start = r->out->size;
    enter_frame(r, &node->frame);
    eng_jinja_run(r, node->items, node->count);
    eng_jinja_mark(r->m, r->out, start, JMARK_ANSWER);
}

static void run_macro_statement(struct jinja_render_state *r, const struct jnode *node)
{
    struct jmacro *const macro = eng_jinja_alloc(r->m, sizeof *macro);
    *macro = (struct jmacro){node, r->activation};
    *slot_of(r, node->a->place) = (struct jv){.type = J_MACRO, .as.macro = macro};
}

static void run_call_block(struct jinja_render_state *r, const struct jnode *node)
{
    struct jmacro *const macro = eng_jinja_alloc(r->m, sizeof *macro);
    *macro = (struct jmacro){node, r->activation};
    const struct jv text =
        eng_jinja_call_block(r, node->a, (struct jv){.type = J_MACRO, .as.macro = macro});
    if (!r->m->failed && text.type != J_STR) {
        eng_jinja_fail(r->m, "a call block writes a text, not %s", eng_jinja_type_name(text));
        return;
    }
    eng_jinja_put_value(r->m, r->out, text);
}

static void run_with(struct jinja_render_state *r, const struct jnode *node)
{
    enter_frame(r, &node->frame);
    for (size_t i = 0; i < node->parameter_count && !r->m->failed; i++) {
        assign(r, node->parameters[i], eng_jinja_eval(r, node->values[i]));
    }
    eng_jinja_run(r, node->items, node->count);
}

static void run_statement(struct jinja_render_state *r, const struct jnode *node)
{
    switch (node->kind) {
    case JN_DATA:
        eng_jinja_put(r->m, r->out, node->value.as.s, node->value.size);
        break;
    case JN_PRINT:
        eng_jinja_emit(r, node->a);
        break;
    case JN_IF:
        if (eng_jinja_truth(r->m, eng_jinja_eval(r, node->a))) {
            eng_jinja_run(r, node->items, node->count);
        } else {
            eng_jinja_run(r, node->else_items, node->else_count);
        }
        break;
    case JN_FOR:
        run_for(r, node);
        break;
    case JN_SET:
        assign(r, node->a, eng_jinja_eval(r, node->b));
        break;
    case JN_SET_BLOCK:
        run_set_block(r, node);
        break;
    case JN_FILTER_BLOCK:
        run_filter_block(r, node);
        break;
    case JN_GENERATION:
        run_generation(r, node);
        break;
    case JN_MACRO:
        run_macro_statement(r, node);
        break;
    case JN_CALL_BLOCK:
        run_call_block(r, node);
        break;
    case JN_WITH:
        run_with(r, node);
        break;
    default:
        r->signal = node->kind == JN_BREAK ? JSIGNAL_BREAK : JSIGNAL_CONTINUE;
    }
}

void eng_jinja_run(struct jinja_render_state *r, struct jnode *const *nodes, size_t count)
{
    if (!eng_jinja_enter_level(r)) {
        return;
    }
    for (size_t i = 0; i < count && r->signal == JSIGNAL_NONE && eng_jinja_step(r->m); i++) {
        run_statement(r, nodes[i]);
    }
    eng_jinja_leave_level(r);
}

/* ---- macros */

/* `caller`, `kwargs` and `varargs` of a macro that reads them, before arguments by name come. */
static void bind_specials(struct jinja_render_state *r, const struct jnode *node,
                          const struct jinja_arguments *arguments)
{
    struct jv *const slots = r->activation->slots;
    if (node->has_special[JSPECIAL_CALLER]) {
        slots[node->special_slots[JSPECIAL_CALLER]] = jv_undefined("the caller");
    }
    if (node->has_special[JSPECIAL_KWARGS]) {
        slots[node->special_slots[JSPECIAL_KWARGS]] = eng_jinja_dict(r->m, 0);
    }
    if (node->has_special[JSPECIAL_VARARGS]) {
        const struct jv rest = eng_jinja_list(r->m, J_TUPLE, 0);
        for (size_t i = node->parameter_count; i < arguments->count; i++) {
            eng_jinja_append(r->m, rest, arguments->items[i]);
        }
        slots[node->special_slots[JSPECIAL_VARARGS]] = rest;
    }
}

/* An argument by a name that no parameter has. */
static void bind_other(struct jinja_render_state *r, const struct jnode *node, struct jv name,
                       struct jv value)
{
    struct jv *const slots = r->activation->slots;
    if (node->has_special[JSPECIAL_CALLER] && jv_is(name, "caller", 6)) {
        if (value.type != J_NONE) {
            slots[node->special_slots[JSPECIAL_CALLER]] = value;
        }
    } else if (node->has_special[JSPECIAL_KWARGS]) {
        eng_jinja_set(r->m, slots[node->special_slots[JSPECIAL_KWARGS]], name, value);
    } else {
        eng_jinja_fail(r->m, "macro '%.*s' takes no argument '%.*s'", (int)node->value.size,
                       node->value.as.s, (int)name.size, name.as.s);
    }
}

/* Places the arguments; those not given stay missing until their default is computed. */
static void bind_parameters(struct jinja_render_state *r, const struct jnode *node,
                            const struct jinja_arguments *arguments)
{
    struct jv *const slots = r->activation->slots;
    if (arguments->count > node->parameter_count && !node->has_special[JSPECIAL_VARARGS]) {
        eng_jinja_fail(r->m, "macro '%.*s' takes not more than %zu arguments",
                       (int)node->value.size, node->value.as.s, node->parameter_count);
        return;
    }
    bind_specials(r, node, arguments);
    for (size_t i = 0; i < arguments->count && i < node->parameter_count; i++) {
        slots[node->parameters[i]->place.slot] = arguments->items[i];
    }
    for (size_t n = 0; n < arguments->name_count && !r->m->failed; n++) {
        const struct jv name = arguments->names[n];
        size_t i = arguments->count;
        while (i < node->parameter_count &&
               !jv_is(node->parameters[i]->value, name.as.s, name.size)) {
            i++;
        }
        if (i >= node->parameter_count) {
            bind_other(r, node, name, arguments->values[n]);
        } else {
            slots[node->parameters[i]->place.slot] = arguments->values[n];
        }
    }
}

static void fill_defaults(struct jinja_render_state *r, const struct jnode *node)
{
    const size_t first = node->parameter_count - node->name_count;
    for (size_t i = 0; i < node->parameter_count && !r->m->failed; i++) {
        struct jv *const slot = &r->activation->slots[node->parameters[i]->place.slot];
        if (slot->type != J_MISSING) {
            continue;
        }
        *slot = i < first ? jv_undefined("a parameter that was not provided")
                          : eng_jinja_eval(r, node->values[i - first]);
    }
}

void eng_jinja_run_macro(struct jinja_render_state *r, const struct jmacro *macro,
                         const struct jinja_arguments *arguments)
{
    const struct jnode *const node = macro->node;
    if (r->calls >= JINJA_CALLS_MAX) {
        eng_jinja_fail(r->m, "macros call each other more than %d deep", JINJA_CALLS_MAX);
        return;
    }
    struct jactivation *const outer = r->activation;
    struct jactivation *const mine = eng_jinja_alloc(r->m, sizeof *mine);
    mine->slots = eng_jinja_array(r->m, (size_t)node->slots + 1, sizeof *mine->slots);
    mine->outer = macro->outer;
    if (r->m->failed) {
        return;
    }
    memset(mine->slots, 0, ((size_t)node->slots + 1) * sizeof *mine->slots);
    r->calls++;
    r->activation = mine;
    enter_frame(r, &node->frame);
    bind_parameters(r, node, arguments);
    fill_defaults(r, node);
    eng_jinja_run(r, node->items, node->count);
    r->activation = outer;
    r->calls--;
}
