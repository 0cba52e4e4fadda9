/* Where names live: Jinja2's symbol tracking (jinja2.idtracking) without its code generation.
 * Called by jinja after parsing; must not know values.
 *
 * A frame is what Jinja2 calls so: the template, the body of a loop, of a macro, of a block that
 * captures. A name set in a frame is its own there and starts with the outer value; a name only
 * read belongs to the frame that has it, or is a variable of the caller. */
#include <string.h>

#include "jinja_ast.h"
#include "jinja_names.h"

enum { SLOTS_MAX = 4096, NAMES_MAX = 1024 };

struct symbol {
    struct jv name;
    struct jload load;
};

struct scope {
    struct scope *parent;
    struct activation *activation; /* whose slots the names take */
    struct symbol *symbols;
    size_t count, capacity;
    unsigned branches; /* `if`s around the statement being looked at */
    bool soft;         /* below an `if` of this frame an unknown filter fails when it is called */
};

/* Slots of the template or of one macro. */
struct activation {
    size_t slots;
};

static struct symbol *find_here(const struct scope *s, struct jv name)
{
    for (size_t i = 0; i < s->count; i++) {
        if (jv_is(s->symbols[i].name, name.as.s, name.size)) {
            return &s->symbols[i];
        }
    }
    return NULL;
}

static bool find(const struct scope *s, struct jv name, struct jplace *out)
{
    uint16_t hops = 0;
    for (; s != NULL; s = s->parent) {
        const struct symbol *const found = find_here(s, name);
        if (found != NULL) {
            *out = (struct jplace){hops, found->load.slot};
            return true;
        }
        hops = (uint16_t)(hops + (s->parent != NULL && s->parent->activation != s->activation));
    }
    return false;
}

static struct symbol *define(struct jparser *p, struct scope *s, const struct jnode *node,
                             struct jv name)
{
    if (s->count == s->capacity) {
        const size_t capacity = s->capacity == 0 ? 8 : s->capacity * 2;
        struct symbol *const grown = eng_jinja_array(p->mem, capacity, sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        if (s->count > 0) {
            memcpy(grown, s->symbols, s->count * sizeof *grown);
        }
        s->symbols = grown;
        s->capacity = capacity;
    }
    if (s->activation->slots >= SLOTS_MAX) {
        eng_jinja_error_at(p, node->line, node->column, "more than %d names", SLOTS_MAX);
        return NULL;
    }
    struct symbol *const symbol = &s->symbols[s->count++];
    *symbol =
        (struct symbol){name, {.kind = JL_UNDEFINED, .slot = (uint16_t)s->activation->slots++}};
    return symbol;
}

/* The number of a variable of the caller. */
static uint16_t global_of(struct jparser *p, const struct jnode *node, struct jv name)
{
    struct eng_jinja *const t = p->template;
    for (size_t i = 0; i < t->global_count; i++) {
        if (jv_is(t->globals[i].name, name.as.s, name.size)) {
            return (uint16_t)i;
        }
    }
    if (t->global_count == t->global_capacity) {
        const size_t capacity = t->global_capacity == 0 ? 16 : t->global_capacity * 2;
        struct jglobal *const grown =
            capacity > NAMES_MAX ? NULL : eng_jinja_array(p->mem, capacity, sizeof *grown);
        if (grown == NULL) {
            eng_jinja_error_at(p, node->line, node->column, "more than %d names", NAMES_MAX);
            return 0;
        }
        if (t->global_count > 0) {
            memcpy(grown, t->globals, t->global_count * sizeof *grown);
        }
        t->globals = grown;
        t->global_capacity = capacity;
    }
    t->globals[t->global_count] = (struct jglobal){name, node->line, node->column};
    return (uint16_t)t->global_count++;
}

static void load(struct jparser *p, struct scope *s, const struct jnode *node)
{
    struct jplace place;
    if (find(s, node->value, &place)) {
        return;
    }
    if (eng_jinja_is_unsupported_name(node->value)) {
        eng_jinja_error_at(p, node->line, node->column, "'%.*s' is not supported",
                           (int)node->value.size, node->value.as.s);
        return;
    }
    struct symbol *const symbol = define(p, s, node, node->value);
    if (symbol != NULL) {
        symbol->load.kind = JL_GLOBAL;
        symbol->load.global = global_of(p, node, node->value);
    }
}

static void store(struct jparser *p, struct scope *s, const struct jnode *node)
{
    if (find_here(s, node->value) != NULL) {
        return;
    }
    struct jplace outer;
    const bool has_outer = s->parent != NULL && find(s->parent, node->value, &outer);
    struct symbol *const symbol = define(p, s, node, node->value);
    if (symbol == NULL) {
        return;
    }
    if (has_outer) {
        outer.hops = (uint16_t)(outer.hops + (s->parent->activation != s->activation));
        symbol->load.kind = JL_ALIAS;
        symbol->load.from = outer;
    } else if (s->branches > 0) {
        symbol->load.kind = JL_GLOBAL; /* the branch may not run */
        symbol->load.global = global_of(p, node, node->value);
    }
}

static void declare(struct jparser *p, struct scope *s, const struct jnode *node, struct jv name)
{
    struct symbol *symbol = find_here(s, name);
    symbol = symbol == NULL ? define(p, s, node, name) : symbol;
    if (symbol != NULL) {
        symbol->load.kind = JL_PARAMETER;
    }
}

/* ---- what a frame holds */

static void look_at(struct jparser *p, struct scope *s, const struct jnode *node);

static void look_at_all(struct jparser *p, struct scope *s, struct jnode *const *nodes,
                        size_t count)
{
    for (size_t i = 0; i < count && !p->mem->failed; i++) {
        if (nodes[i] != NULL) {
            look_at(p, s, nodes[i]);
        }
    }
}

static void look_at_expression(struct jparser *p, struct scope *s, const struct jnode *node)
{
    const struct jnode *const parts[] = {node->a, node->b, node->c};
    for (size_t i = 0; i < 3; i++) {
        if (parts[i] != NULL) {
            look_at(p, s, parts[i]);
        }
    }
    look_at_all(p, s, node->items, node->count);
    look_at_all(p, s, node->values, node->name_count);
}

/* Names that statements of this frame read and set; bodies of other frames are left out. */
static void look_into(struct jparser *p, struct scope *s, const struct jnode *node)
{
    switch (node->kind) {
    case JN_NAME:
        (node->is_store ? store : load)(p, s, node);
        break;
    case JN_IF:
        look_at(p, s, node->a);
        s->branches++;
        look_at_all(p, s, node->items, node->count);
        look_at_all(p, s, node->else_items, node->else_count);
        s->branches--;
        break;
    case JN_FOR:
        look_at(p, s, node->b);
        break;
    case JN_SET:
        look_at(p, s, node->b);
        look_at(p, s, node->a);
        break;
    case JN_SET_BLOCK:
        look_at(p, s, node->a);
        if (node->b != NULL) {
            look_at(p, s, node->b);
        }
        break;
    case JN_FILTER_BLOCK:
        look_at(p, s, node->b);
        break;
    case JN_MACRO:
    case JN_CALL_BLOCK:
        look_at(p, s, node->a);
        break;
    case JN_WITH:
        look_at_all(p, s, node->values, node->name_count);
        break;
    case JN_GENERATION:
    case JN_DATA:
    case JN_BREAK:
    case JN_CONTINUE:
        break;
    default:
        look_at_expression(p, s, node);
    }
}

/* The first to walk down: a long chain of operators is as deep as nested ones. */
static void look_at(struct jparser *p, struct scope *s, const struct jnode *node)
{
    if (p->mem->failed) {
        return;
    }
    if (p->depth == JINJA_TREE_MAX) {
        eng_jinja_error_at(p, node->line, node->column, "more than %d operations in each other",
                           JINJA_TREE_MAX);
        return;
    }
    p->depth++;
    look_into(p, s, node);
    p->depth--;
}

static void declare_targets(struct jparser *p, struct scope *s, const struct jnode *target)
{
    if (target->kind == JN_NAME) {
        declare(p, s, target, target->value);
        return;
    }
    for (size_t i = 0; i < target->count; i++) {
        declare_targets(p, s, target->items[i]);
    }
}

/* ---- places for names */

static void bind(struct jparser *p, struct scope *s, struct jnode *node);

static void bind_all(struct jparser *p, struct scope *s, struct jnode **nodes, size_t count)
{
    for (size_t i = 0; i < count && !p->mem->failed; i++) {
        if (nodes[i] != NULL) {
            bind(p, s, nodes[i]);
        }
    }
}

static void finish(struct jparser *p, const struct scope *s, struct jframe *frame)
{
    frame->loads = eng_jinja_array(p->mem, s->count, sizeof *frame->loads);
    frame->load_count = 0;
    for (size_t i = 0; frame->loads != NULL && i < s->count; i++) {
        if (s->symbols[i].load.kind != JL_PARAMETER) {
            frame->loads[frame->load_count++] = s->symbols[i].load;
        }
    }
}

/* A frame within the same activation that holds `items`. */
static void bind_block(struct jparser *p, struct scope *parent, struct jframe *frame,
                       struct jnode **items, size_t count)
{
    struct scope s = {.parent = parent, .activation = parent->activation};
    look_at_all(p, &s, items, count);
    finish(p, &s, frame);
    bind_all(p, &s, items, count);
}

static void bind_for(struct jparser *p, struct scope *s, struct jnode *node)
{
    static const char loop_name[] = "loop";
    const struct jv loop = jv_str(loop_name, 4, JS_ASCII);
    struct scope body = {.parent = s, .activation = s->activation};
    bind(p, s, node->b);
    declare_targets(p, &body, node->a);
    declare(p, &body, node, loop);
    if (node->c != NULL) { /* sees the names of the body before the body sets any */
        look_at(p, &body, node->c);
    }
    look_at_all(p, &body, node->items, node->count);
    finish(p, &body, &node->frame);
    bind(p, &body, node->a);
    if (node->c != NULL) {
        bind(p, &body, node->c);
    }
    const struct symbol *const symbol = find_here(&body, loop);
    node->loop_slot = symbol == NULL ? 0 : symbol->load.slot;
    bind_all(p, &body, node->items, node->count);
    bind_block(p, s, &node->else_frame, node->else_items, node->else_count);
}

/* Whether a name is read in a tree, also by the macros in it. */
static bool reads(const struct jnode *node, struct jv name);

static bool some_read(struct jnode *const *nodes, size_t count, struct jv name)
{
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] != NULL && reads(nodes[i], name)) {
            return true;
        }
    }
    return false;
}

static bool reads(const struct jnode *node, struct jv name)
{
    struct jnode *const parts[] = {node->a, node->b, node->c};
    if (node->kind == JN_NAME) {
        return !node->is_store && jv_is(node->value, name.as.s, name.size);
    }
    return some_read(parts, 3, name) || some_read(node->items, node->count, name) ||
           some_read(node->else_items, node->else_count, name) ||
           some_read(node->values, node->name_count, name);
}

static bool is_among(struct jnode *const *names, size_t count, struct jv name)
{
    for (size_t i = 0; i < count; i++) {
        if (jv_is(names[i]->value, name.as.s, name.size)) {
            return true;
        }
    }
    return false;
}

/* What the body reads of `caller`, `kwargs` and `varargs` and is no parameter. */
static void declare_specials(struct jparser *p, struct scope *body, struct jnode *node)
{
    static const char *const names[JSPECIALS] = {"caller", "kwargs", "varargs"};
    for (size_t i = 0; i < JSPECIALS; i++) {
        const struct jv name = eng_jinja_literal(names[i]);
        const bool is_parameter = find_here(body, name) != NULL;
        if (!some_read(node->items, node->count, name)) {
            continue;
        }
        node->has_special[i] = !is_parameter;
        if (!is_parameter) {
            declare(p, body, node, name);
            const struct symbol *const symbol = find_here(body, name);
            node->special_slots[i] = symbol == NULL ? 0 : symbol->load.slot;
        } else if (i == JSPECIAL_CALLER &&
                   is_among(node->parameters, node->parameter_count - node->name_count, name)) {
            eng_jinja_error_at(p, node->line, node->column,
                               "a parameter called 'caller' needs a default value");
        }
    }
}

static void bind_macro(struct jparser *p, struct scope *s, struct jnode *node)
{
    struct activation activation = {0};
    struct scope body = {.parent = s, .activation = &activation};
    bind(p, s, node->a);
    for (size_t i = 0; i < node->parameter_count; i++) {
        if (find_here(&body, node->parameters[i]->value) != NULL) {
            eng_jinja_error_at(p, node->line, node->column, "two parameters are called '%.*s'",
                               (int)node->parameters[i]->value.size,
                               node->parameters[i]->value.as.s);
        }
        declare(p, &body, node->parameters[i], node->parameters[i]->value);
    }
    declare_specials(p, &body, node);
    look_at_all(p, &body, node->values, node->name_count);
    look_at_all(p, &body, node->items, node->count);
    finish(p, &body, &node->frame);
    bind_all(p, &body, node->parameters, node->parameter_count);
    bind_all(p, &body, node->values, node->name_count);
    bind_all(p, &body, node->items, node->count);
    node->slots = (uint16_t)activation.slots;
}

static void bind_with(struct jparser *p, struct scope *s, struct jnode *node)
{
    struct scope body = {.parent = s, .activation = s->activation};
    bind_all(p, s, node->values, node->name_count);
    for (size_t i = 0; i < node->parameter_count; i++) {
        declare_targets(p, &body, node->parameters[i]);
    }
    look_at_all(p, &body, node->items, node->count);
    finish(p, &body, &node->frame);
    bind_all(p, &body, node->parameters, node->parameter_count);
    bind_all(p, &body, node->items, node->count);
}

static void bind_expression(struct jparser *p, struct scope *s, struct jnode *node)
{
    struct jnode *parts[] = {node->a, node->b, node->c};
    bind_all(p, s, parts, 3);
    bind_all(p, s, node->items, node->count);
    bind_all(p, s, node->values, node->name_count);
}

/* An `if` or a choice: what it holds may never run. */
static void bind_branches(struct jparser *p, struct scope *s, struct jnode *node)
{
    const bool soft = s->soft;
    s->soft = true;
    bind_expression(p, s, node);
    bind_all(p, s, node->else_items, node->else_count);
    s->soft = soft;
}

/* The filters of a block belong to the block. */
static void bind_filters(struct jparser *p, struct scope *s, struct jnode *filters)
{
    const bool soft = s->soft;
    s->soft = false;
    bind(p, s, filters);
    s->soft = soft;
}

static void check_known(struct jparser *p, const struct scope *s, const struct jnode *node)
{
    if (node->id == 0 && !s->soft) {
        eng_jinja_error_at(p, node->line, node->column, "there is no %s '%.*s'",
                           node->kind == JN_FILTER ? "filter" : "test", (int)node->value.size,
                           node->value.as.s);
    }
}

static void bind(struct jparser *p, struct scope *s, struct jnode *node)
{
    switch (node->kind) {
    case JN_NAME:
        if (!find(s, node->value, &node->place)) { /* only after an error */
            node->place = (struct jplace){0};
        }
        break;
    case JN_IF:
    case JN_CHOICE:
        bind_branches(p, s, node);
        break;
    case JN_FILTER:
    case JN_TEST:
        check_known(p, s, node);
        bind_expression(p, s, node);
        break;
    case JN_FOR:
        bind_for(p, s, node);
        break;
    case JN_MACRO:
    case JN_CALL_BLOCK:
        bind_macro(p, s, node);
        break;
    case JN_WITH:
        bind_with(p, s, node);
        break;
    case JN_SET_BLOCK:
        bind(p, s, node->a);
        if (node->b != NULL) {
            bind_filters(p, s, node->b);
        }
        bind_block(p, s, &node->frame, node->items, node->count);
        break;
    case JN_FILTER_BLOCK:
        bind_filters(p, s, node->b);
        bind_block(p, s, &node->frame, node->items, node->count);
        break;
    case JN_GENERATION:
        bind_block(p, s, &node->frame, node->items, node->count);
        break;
    default:
        bind_expression(p, s, node);
    }
}

void eng_jinja_resolve(struct jparser *p)
{
    struct activation activation = {0};
    struct scope s = {.activation = &activation};
    look_at_all(p, &s, p->template->items, p->template->count);
    finish(p, &s, &p->template->frame);
    bind_all(p, &s, p->template->items, p->template->count);
    p->template->slots = (uint16_t)activation.slots;
}
