/* Statements of a template.
 * Called by jinja; must not know values or how names are found. */
#include <string.h>

#include "jinja_ast.h"

static void expect_block_end(struct jparser *p)
{
    if (eng_jinja_peek(p, 0)->type != JT_BLOCK_END) {
        eng_jinja_syntax_error(p, "'%}'");
        return;
    }
    p->at++;
}

static struct jnodes parse_body(struct jparser *p, const char *const *ends);

/* The body of a statement up to one of the end words, which stays the current token. */
static struct jnodes parse_statements(struct jparser *p, const char *const *ends)
{
    eng_jinja_skip_operator(p, ":");
    expect_block_end(p);
    const struct jnodes body = parse_body(p, ends);
    if (eng_jinja_peek(p, 0)->type == JT_END) {
        eng_jinja_syntax_error(p, ends[0]);
    }
    return body;
}

static void set_items(struct jnode *node, struct jnodes body)
{
    node->items = body.items;
    node->count = body.count;
}

/* Makes targets of names; anything else cannot be assigned to. */
static void check_target(struct jparser *p, struct jnode *target)
{
    if (target->kind == JN_NAME) {
        target->is_store = true;
        if (jv_is(target->value, "loop", 4)) {
            eng_jinja_error_at(p, target->line, target->column, "'loop' cannot be set");
        }
        return;
    }
    if (target->kind != JN_TUPLE) {
        eng_jinja_error_at(p, target->line, target->column, "this cannot be assigned to");
        return;
    }
    for (size_t i = 0; i < target->count; i++) {
        check_target(p, target->items[i]);
    }
}

static struct jnode *parse_target(struct jparser *p)
{
    const struct jtoken *const token = eng_jinja_peek(p, 0);
    const struct jtoken *const next = eng_jinja_peek(p, 1);
    if (token->type == JT_NAME && next->type == JT_OPERATOR && strcmp(next->operator, ".") == 0) {
        struct jnode *const node = eng_jinja_node(p, JN_ATTR);
        node->a = eng_jinja_node(p, JN_NAME);
        node->a->value = token->value;
        p->at += 2;
        if (eng_jinja_peek(p, 0)->type != JT_NAME) {
            eng_jinja_syntax_error(p, "a name");
            return node;
        }
        node->value = eng_jinja_peek(p, 0)->value;
        node->is_store = true;
        p->at++;
        return node;
    }
    struct jnode *const target = eng_jinja_parse_targets(p);
    check_target(p, target);
    return target;
}

static struct jnode *parse_if(struct jparser *p)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    struct jnode *const node = eng_jinja_node(p, JN_IF);
    p->at++;
    node->a = eng_jinja_parse_tuple(p, false);
    set_items(node, parse_statements(p, ends));
    if (eng_jinja_at_name(p, "elif")) {
        struct jnode **const other = eng_jinja_array(p->mem, 1, sizeof *other);
        if (p->depth >= JINJA_NESTING_MAX * 4 || other == NULL) {
            eng_jinja_error_at(p, node->line, node->column, "too many 'elif'");
            return node;
        }
        p->depth++;
        other[0] = parse_if(p); /* ends the whole statement */
        p->depth--;
        node->else_items = other;
        node->else_count = 1;
        return node;
    }
    if (eng_jinja_skip_name(p, "else")) {
        const struct jnodes body = parse_statements(p, (const char *const[]){"endif", NULL});
        node->else_items = body.items;
        node->else_count = body.count;
    }
    p->at++;
    return node;
}

static struct jnode *parse_for(struct jparser *p)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    struct jnode *const node = eng_jinja_node(p, JN_FOR);
    p->at++;
    node->a = eng_jinja_parse_targets(p);
    check_target(p, node->a);
    if (!eng_jinja_skip_name(p, "in")) {
        eng_jinja_syntax_error(p, "'in'");
    }
    node->b = eng_jinja_parse_tuple(p, false);
    if (eng_jinja_skip_name(p, "if")) {
        node->c = eng_jinja_parse_expression(p, true);
    }
    if (eng_jinja_at_name(p, "recursive")) {
        const struct jtoken *const token = eng_jinja_peek(p, 0);
        eng_jinja_error_at(p, token->line, token->column, "recursive loops are not supported");
    }
    p->loops++;
    set_items(node, parse_statements(p, ends));
    p->loops--;
    if (eng_jinja_skip_name(p, "else")) {
        const struct jnodes body = parse_statements(p, (const char *const[]){"endfor", NULL});
        node->else_items = body.items;
        node->else_count = body.count;
    }
    p->at++;
    return node;
}

static struct jnode *parse_set(struct jparser *p)
{
    struct jnode *const node = eng_jinja_node(p, JN_SET);
    p->at++;
    node->a = parse_target(p);
    if (eng_jinja_skip_operator(p, "=")) {
        node->b = eng_jinja_parse_tuple(p, true);
        return node;
    }
    node->kind = JN_SET_BLOCK;
    node->b = eng_jinja_parse_filters(p, NULL, false);
    set_items(node, parse_statements(p, (const char *const[]){"endset", NULL}));
    p->at++;
    return node;
}

/* A block whose body runs as a function of its own in Jinja2: no break leaves it. */
static void parse_function_body(struct jparser *p, struct jnode *node, const char *end)
{
    const unsigned loops = p->loops;
    p->loops = 0;
    set_items(node, parse_statements(p, (const char *const[]){end, NULL}));
    p->loops = loops;
    p->at++;
}

static struct jnode *parse_filter_block(struct jparser *p)
{
    struct jnode *const node = eng_jinja_node(p, JN_FILTER_BLOCK);
    p->at++;
    node->b = eng_jinja_parse_filters(p, NULL, true);
    set_items(node, parse_statements(p, (const char *const[]){"endfilter", NULL}));
    p->at++;
    return node;
}

static struct jnode *parse_generation(struct jparser *p)
{
    struct jnode *const node = eng_jinja_node(p, JN_GENERATION);
    p->at++;
    p->template->has_generation = true;
    parse_function_body(p, node, "endgeneration");
    return node;
}

static void parse_signature(struct jparser *p, struct jnode *node)
{
    struct jnodes parameters = {0};
    struct jnodes defaults = {0};
    eng_jinja_expect_operator(p, "(");
    while (!p->mem->failed && !eng_jinja_at_operator(p, ")")) {
        if (parameters.count > 0) {
            eng_jinja_expect_operator(p, ",");
        }
        if (eng_jinja_peek(p, 0)->type != JT_NAME) {
            eng_jinja_syntax_error(p, "a name");
            break;
        }
        struct jnode *const name = eng_jinja_parse_primary(p);
        check_target(p, name);
        if (eng_jinja_skip_operator(p, "=")) {
            eng_jinja_add_node(p, &defaults, eng_jinja_parse_expression(p, true));
        } else if (defaults.count > 0) {
            eng_jinja_syntax_error(p, "a default value");
        }
        eng_jinja_add_node(p, &parameters, name);
    }
    eng_jinja_expect_operator(p, ")");
    if (parameters.count > JINJA_ARGUMENTS_MAX) {
        eng_jinja_error_at(p, node->line, node->column, "more than %d parameters",
                           JINJA_ARGUMENTS_MAX);
    }
    node->parameters = parameters.items;
    node->parameter_count = parameters.count;
    node->values = defaults.items;
    node->name_count = defaults.count;
}

static struct jnode *parse_macro(struct jparser *p)
{
    struct jnode *const node = eng_jinja_node(p, JN_MACRO);
    p->at++;
    if (eng_jinja_peek(p, 0)->type != JT_NAME) {
        eng_jinja_syntax_error(p, "the name of a macro");
        return node;
    }
    node->a = eng_jinja_parse_primary(p);
    check_target(p, node->a);
    node->value = node->a->value;
    parse_signature(p, node);
    parse_function_body(p, node, "endmacro");
    return node;
}

static struct jnode *parse_call_block(struct jparser *p)
{
    struct jnode *const node = eng_jinja_node(p, JN_CALL_BLOCK);
    p->at++;
    if (eng_jinja_at_operator(p, "(")) {
        parse_signature(p, node);
    }
    node->a = eng_jinja_parse_expression(p, true);
    if (node->a->kind != JN_CALL) {
        eng_jinja_error_at(p, node->a->line, node->a->column, "a call expected");
    }
    parse_function_body(p, node, "endcall");
    return node;
}

static struct jnode *parse_with(struct jparser *p)
{
    struct jnode *const node = eng_jinja_node(p, JN_WITH);
    struct jnodes targets = {0};
    struct jnodes values = {0};
    p->at++;
    while (!p->mem->failed && eng_jinja_peek(p, 0)->type != JT_BLOCK_END) {
        if (targets.count > 0) {
            eng_jinja_expect_operator(p, ",");
        }
        struct jnode *const target = eng_jinja_parse_targets(p);
        check_target(p, target);
        eng_jinja_add_node(p, &targets, target);
        eng_jinja_expect_operator(p, "=");
        eng_jinja_add_node(p, &values, eng_jinja_parse_expression(p, true));
    }
    node->parameters = targets.items;
    node->parameter_count = targets.count;
    node->values = values.items;
    node->name_count = values.count;
    set_items(node, parse_statements(p, (const char *const[]){"endwith", NULL}));
    p->at++;
    return node;
}

static struct jnode *parse_jump(struct jparser *p, enum jnode_kind kind)
{
    struct jnode *const node = eng_jinja_node(p, kind);
    p->at++;
    if (p->loops == 0) {
        eng_jinja_error_at(p, node->line, node->column, "'%s' is not in a loop of its own block",
                           kind == JN_BREAK ? "break" : "continue");
    }
    return node;
}

static struct jnode *parse_statement(struct jparser *p)
{
    static const struct {
        const char *word;
        struct jnode *(*parse)(struct jparser *);
    } known[] = {{"if", parse_if},
                 {"for", parse_for},
                 {"set", parse_set},
                 {"macro", parse_macro},
                 {"filter", parse_filter_block},
                 {"call", parse_call_block},
                 {"with", parse_with},
                 {"generation", parse_generation}};
    const struct jtoken *const token = eng_jinja_peek(p, 0);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (eng_jinja_at_name(p, known[i].word)) {
            return known[i].parse(p);
        }
    }
    if (eng_jinja_at_name(p, "break") || eng_jinja_at_name(p, "continue")) {
        return parse_jump(p, eng_jinja_at_name(p, "break") ? JN_BREAK : JN_CONTINUE);
    }
    if (token->type == JT_NAME) {
        eng_jinja_error_at(p, token->line, token->column, "there is no statement '%.*s'",
                           token->value.size < 40 ? (int)token->value.size : 40, token->value.as.s);
    } else {
        eng_jinja_syntax_error(p, "a statement");
    }
    return eng_jinja_node(p, JN_DATA);
}

static bool at_one_of(const struct jparser *p, const char *const *ends)
{
    for (size_t i = 0; ends != NULL && ends[i] != NULL; i++) {
        if (eng_jinja_at_name(p, ends[i])) {
            return true;
        }
    }
    return false;
}

static struct jnode *parse_print(struct jparser *p)
{
    p->at++;
    struct jnode *const node = eng_jinja_node(p, JN_PRINT);
    node->a = eng_jinja_parse_tuple(p, true);
    if (eng_jinja_peek(p, 0)->type != JT_PRINT_END) {
        eng_jinja_syntax_error(p, "'}}'");
    } else {
        p->at++;
    }
    return node;
}

static struct jnodes parse_body(struct jparser *p, const char *const *ends)
{
    struct jnodes body = {0};
    if (p->depth >= JINJA_NESTING_MAX) {
        const struct jtoken *const t = eng_jinja_peek(p, 0);
        eng_jinja_error_at(p, t->line, t->column, "nested more than %d deep", JINJA_NESTING_MAX);
    }
    p->depth++;
    while (!p->mem->failed && eng_jinja_peek(p, 0)->type != JT_END) {
        const struct jtoken *const token = eng_jinja_peek(p, 0);
        if (token->type == JT_DATA) {
            struct jnode *const node = eng_jinja_node(p, JN_DATA);
            node->value = token->value;
            p->at++;
            eng_jinja_add_node(p, &body, node);
        } else if (token->type == JT_PRINT_BEGIN) {
            eng_jinja_add_node(p, &body, parse_print(p));
        } else {
            p->at++;
            if (at_one_of(p, ends)) {
                break;
            }
            eng_jinja_add_node(p, &body, parse_statement(p));
            expect_block_end(p);
        }
    }
    p->depth--;
    return body;
}

void eng_jinja_parse_template(struct jparser *p)
{
    const struct jnodes body = parse_body(p, NULL);
    p->template->items = body.items;
    p->template->count = body.count;
}
