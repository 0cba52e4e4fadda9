/* Literals, names, subscripts, calls, filters and tests of a template's expressions.
 * Called by jinja_expr; must not know operators or values. */
#include <string.h>

#include "jinja_ast.h"
#include "jinja_names.h"

struct jnode *eng_jinja_node(struct jparser *p, enum jnode_kind kind)
{
    struct jnode *const node = eng_jinja_alloc(p->mem, sizeof *node);
    const struct jtoken *const token = eng_jinja_peek(p, 0);
    *node = (struct jnode){.kind = (uint8_t)kind, .line = token->line, .column = token->column};
    return node;
}

void eng_jinja_add_node(struct jparser *p, struct jnodes *nodes, struct jnode *node)
{
    if (nodes->count == nodes->capacity) {
        const size_t capacity = nodes->capacity == 0 ? 4 : nodes->capacity * 2;
        struct jnode **const grown = eng_jinja_array(p->mem, capacity, sizeof *grown);
        if (grown == NULL) {
            return;
        }
        if (nodes->count > 0) {
            memcpy(grown, nodes->items, nodes->count * sizeof *grown);
        }
        nodes->items = grown;
        nodes->capacity = capacity;
    }
    nodes->items[nodes->count++] = node;
}

struct jnode *eng_jinja_operands(struct jparser *p, enum jnode_kind kind, struct jnode *a,
                                 struct jnode *b)
{
    struct jnode *const node = eng_jinja_node(p, kind);
    node->line = a->line;
    node->column = a->column;
    node->a = a;
    node->b = b;
    return node;
}

/* False, with an error, when expressions stand too deep in each other. */
bool eng_jinja_enter(struct jparser *p)
{
    if (p->depth >= JINJA_NESTING_MAX) {
        const struct jtoken *const t = eng_jinja_peek(p, 0);
        eng_jinja_error_at(p, t->line, t->column, "nested more than %d deep", JINJA_NESTING_MAX);
        return false;
    }
    p->depth++;
    return true;
}

/* ---- primary expressions */

static struct jnode *constant(struct jparser *p, struct jv value)
{
    struct jnode *const node = eng_jinja_node(p, JN_CONST);
    node->value = value;
    p->at++;
    return node;
}

static struct jnode *parse_name(struct jparser *p)
{
    static const char *const words[] = {"true", "True", "false", "False", "none", "None"};
    const struct jtoken *const token = eng_jinja_peek(p, 0);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (eng_jinja_is_name(token, words[i])) {
            return constant(p, i < 4 ? jv_bool(i < 2) : jv_none());
        }
    }
    struct jnode *const node = eng_jinja_node(p, JN_NAME);
    node->value = token->value;
    p->at++;
    return node;
}

/* Texts that stand side by side are one. */
static struct jnode *parse_strings(struct jparser *p)
{
    struct jnode *const node = constant(p, eng_jinja_peek(p, 0)->value);
    while (eng_jinja_peek(p, 0)->type == JT_STRING) {
        const struct jv both[2] = {node->value, eng_jinja_peek(p, 0)->value};
        node->value = eng_jinja_joined(p->mem, both, 2);
        p->at++;
    }
    return node;
}

static struct jnode *parse_list(struct jparser *p)
{
    struct jnode *const node = eng_jinja_node(p, JN_LIST);
    struct jnodes items = {0};
    p->at++;
    while (!p->mem->failed && !eng_jinja_at_operator(p, "]")) {
        if (items.count > 0) {
            eng_jinja_expect_operator(p, ",");
            if (eng_jinja_at_operator(p, "]")) {
                break;
            }
        }
        eng_jinja_add_node(p, &items, eng_jinja_parse_expression(p, true));
    }
    eng_jinja_expect_operator(p, "]");
    node->items = items.items;
    node->count = items.count;
    return node;
}

static struct jnode *parse_dict(struct jparser *p)
{
    struct jnode *const node = eng_jinja_node(p, JN_DICT);
    struct jnodes items = {0};
    p->at++;
    while (!p->mem->failed && !eng_jinja_at_operator(p, "}")) {
        if (items.count > 0) {
            eng_jinja_expect_operator(p, ",");
            if (eng_jinja_at_operator(p, "}")) {
                break;
            }
        }
        eng_jinja_add_node(p, &items, eng_jinja_parse_expression(p, true));
        eng_jinja_expect_operator(p, ":");
        eng_jinja_add_node(p, &items, eng_jinja_parse_expression(p, true));
    }
    eng_jinja_expect_operator(p, "}");
    node->items = items.items;
    node->count = items.count;
    return node;
}

static bool ends_tuple(const struct jparser *p)
{
    const enum jtoken_type type = eng_jinja_peek(p, 0)->type;
    return type == JT_PRINT_END || type == JT_BLOCK_END || eng_jinja_at_operator(p, ")");
}

/* Like Jinja2's parse_tuple. `simple`: only primary expressions; `bracketed`: may be empty. */
static struct jnode *parse_items(struct jparser *p, bool simple, bool with_choice, bool bracketed)
{
    struct jnode *const node = eng_jinja_node(p, JN_TUPLE);
    struct jnodes items = {0};
    bool is_tuple = false;
    while (!p->mem->failed) {
        if (items.count > 0) {
            eng_jinja_expect_operator(p, ",");
        }
        if (ends_tuple(p)) {
            break;
        }
        eng_jinja_add_node(p, &items,
                           simple ? eng_jinja_parse_primary(p)
                                  : eng_jinja_parse_expression(p, with_choice));
        if (!eng_jinja_at_operator(p, ",")) {
            break;
        }
        is_tuple = true;
    }
    if (!is_tuple && items.count > 0) {
        return items.items[0];
    }
    if (!is_tuple && !bracketed) {
        eng_jinja_syntax_error(p, "an expression");
    }
    node->items = items.items;
    node->count = items.count;
    return node;
}

struct jnode *eng_jinja_parse_tuple(struct jparser *p, bool with_choice)
{
    return parse_items(p, false, with_choice, false);
}

struct jnode *eng_jinja_parse_targets(struct jparser *p)
{
    return parse_items(p, true, true, false);
}

struct jnode *eng_jinja_parse_primary(struct jparser *p)
{
    const struct jtoken *const token = eng_jinja_peek(p, 0);
    struct jnode *node = NULL;
    if (!eng_jinja_enter(p)) {
        return eng_jinja_node(p, JN_CONST);
    }
    if (token->type == JT_NAME) {
        node = parse_name(p);
    } else if (token->type == JT_STRING) {
        node = parse_strings(p);
    } else if (token->type == JT_NUMBER) {
        node = constant(p, token->value);
    } else if (eng_jinja_skip_operator(p, "(")) {
        node = parse_items(p, false, true, true);
        eng_jinja_expect_operator(p, ")");
    } else if (eng_jinja_at_operator(p, "[")) {
        node = parse_list(p);
    } else if (eng_jinja_at_operator(p, "{")) {
        node = parse_dict(p);
    } else {
        node = eng_jinja_node(p, JN_CONST);
        eng_jinja_syntax_error(p, "an expression");
    }
    p->depth--;
    return node;
}

/* ---- postfix expressions */

/* Reads `*list` or `**dict` into its place in node; false when there is none here. */
static bool parse_spread(struct jparser *p, struct jnode *node)
{
    const struct jtoken *const token = eng_jinja_peek(p, 0);
    const bool is_list = eng_jinja_skip_operator(p, "*");
    if (!is_list && !eng_jinja_skip_operator(p, "**")) {
        return false;
    }
    if (node->c != NULL || (is_list && node->b != NULL)) {
        eng_jinja_error_at(p, token->line, token->column, "no %s here", is_list ? "*" : "**");
    }
    *(is_list ? &node->b : &node->c) = eng_jinja_parse_expression(p, true);
    return true;
}

/* Arguments between brackets into node: items, then values by names. */
static void parse_arguments(struct jparser *p, struct jnode *node)
{
    struct jnodes items = {0};
    struct jnodes named = {0};
    struct jv names[JINJA_ARGUMENTS_MAX];
    eng_jinja_expect_operator(p, "(");
    while (!p->mem->failed && !eng_jinja_at_operator(p, ")")) {
        if (items.count + named.count > 0 || node->b != NULL || node->c != NULL) {
            eng_jinja_expect_operator(p, ",");
            if (eng_jinja_at_operator(p, ")")) {
                break;
            }
        }
        const struct jtoken *const token = eng_jinja_peek(p, 0);
        const struct jtoken *const next = eng_jinja_peek(p, 1);
        const bool is_named =
            token->type == JT_NAME && next->type == JT_OPERATOR && strcmp(next->operator, "=") == 0;
        if (parse_spread(p, node)) {
            continue;
        }
        if (items.count + named.count == JINJA_ARGUMENTS_MAX) {
            eng_jinja_error_at(p, token->line, token->column, "more than %d arguments",
                               JINJA_ARGUMENTS_MAX);
        } else if (node->c != NULL || (!is_named && (named.count > 0 || node->b != NULL))) {
            eng_jinja_error_at(p, token->line, token->column,
                               "an argument behind those that must be the last");
        } else if (is_named) {
            p->at += 2;
            names[named.count] = token->value;
            eng_jinja_add_node(p, &named, eng_jinja_parse_expression(p, true));
        } else {
            eng_jinja_add_node(p, &items, eng_jinja_parse_expression(p, true));
        }
    }
    eng_jinja_expect_operator(p, ")");
    node->items = items.items;
    node->count = items.count;
    node->values = named.items;
    node->name_count = named.count;
    node->names = eng_jinja_array(p->mem, named.count, sizeof *names);
    if (node->names != NULL) {
        memcpy(node->names, names, named.count * sizeof *names);
    }
}

/* What stands between [ and ]: an expression or a slice. */
static struct jnode *parse_index(struct jparser *p, struct jnode *object)
{
    struct jnode *first = NULL;
    if (eng_jinja_at_operator(p, "]")) { /* nothing is the empty tuple */
        return eng_jinja_operands(p, JN_ITEM, object, eng_jinja_node(p, JN_TUPLE));
    }
    if (!eng_jinja_at_operator(p, ":")) {
        first = eng_jinja_parse_expression(p, true);
        if (!eng_jinja_at_operator(p, ":")) {
            return eng_jinja_operands(p, JN_ITEM, object, first);
        }
    }
    struct jnode *const node = eng_jinja_operands(p, JN_SLICE, object, NULL);
    struct jnode **const parts = eng_jinja_array(p->mem, 3, sizeof *parts);
    if (parts == NULL) {
        return node;
    }
    parts[0] = first;
    parts[1] = parts[2] = NULL;
    for (int i = 1; i < 3 && eng_jinja_skip_operator(p, ":"); i++) {
        if (!eng_jinja_at_operator(p, ":") && !eng_jinja_at_operator(p, "]") &&
            !eng_jinja_at_operator(p, ",")) {
            parts[i] = eng_jinja_parse_expression(p, true);
        }
    }
    node->items = parts;
    node->count = 3;
    return node;
}

/* Whether the template takes blanks off texts. */
static void note_trimming(struct jparser *p, struct jv name)
{
    p->template->trims = p->template->trims || jv_is(name, "trim", 4) || jv_is(name, "strip", 5);
}

static struct jnode *parse_subscript(struct jparser *p, struct jnode *object)
{
    struct jnode *node = NULL;
    if (eng_jinja_skip_operator(p, ".")) {
        const struct jtoken *const token = eng_jinja_peek(p, 0);
        if (token->type == JT_NAME) {
            node = eng_jinja_operands(p, JN_ATTR, object, NULL);
            node->value = token->value;
            node->id = (uint16_t)eng_jinja_method_find(token->value);
            note_trimming(p, token->value);
            p->at++;
        } else if (token->type == JT_NUMBER && token->value.type == J_INT) {
            node = eng_jinja_operands(p, JN_ITEM, object, constant(p, token->value));
        } else {
            eng_jinja_syntax_error(p, "a name or a number");
            return object;
        }
        node->line = token->line;
        node->column = token->column;
        return node;
    }
    eng_jinja_expect_operator(p, "[");
    node = parse_index(p, object);
    if (eng_jinja_at_operator(p, ",")) {
        const struct jtoken *const token = eng_jinja_peek(p, 0);
        eng_jinja_error_at(p, token->line, token->column, "several indices are not supported");
    }
    eng_jinja_expect_operator(p, "]");
    return node;
}

static struct jnode *parse_call(struct jparser *p, struct jnode *callee)
{
    struct jnode *const node = eng_jinja_operands(p, JN_CALL, callee, NULL);
    parse_arguments(p, node);
    return node;
}

struct jnode *eng_jinja_parse_postfix(struct jparser *p, struct jnode *node)
{
    while (!p->mem->failed) {
        if (eng_jinja_at_operator(p, ".") || eng_jinja_at_operator(p, "[")) {
            node = parse_subscript(p, node);
        } else if (eng_jinja_at_operator(p, "(")) {
            node = parse_call(p, node);
        } else {
            break;
        }
    }
    return node;
}

/* One filter or test; jinja_scope decides about an unknown one. */
static struct jnode *parse_named(struct jparser *p, enum jnode_kind kind, struct jnode *object)
{
    const struct jtoken *const token = eng_jinja_peek(p, 0);
    struct jnode *const node = eng_jinja_node(p, kind);
    if (token->type != JT_NAME) {
        eng_jinja_syntax_error(p,
                               kind == JN_FILTER ? "the name of a filter" : "the name of a test");
        return node;
    }
    node->a = object;
    node->value = token->value;
    note_trimming(p, token->value);
    node->id = (uint16_t)(kind == JN_FILTER ? eng_jinja_filter_find(token->value)
                                            : eng_jinja_test_find(token->value));
    p->at++;
    return node;
}

struct jnode *eng_jinja_parse_filters(struct jparser *p, struct jnode *node, bool inline_first)
{
    while (!p->mem->failed && (inline_first || eng_jinja_skip_operator(p, "|"))) {
        inline_first = false;
        node = parse_named(p, JN_FILTER, node);
        if (eng_jinja_at_operator(p, "(")) {
            parse_arguments(p, node);
        }
    }
    return node;
}

static bool starts_argument(const struct jparser *p)
{
    const struct jtoken *const token = eng_jinja_peek(p, 0);
    if (token->type == JT_NAME) {
        return !eng_jinja_is_name(token, "else") && !eng_jinja_is_name(token, "or") &&
               !eng_jinja_is_name(token, "and");
    }
    return token->type == JT_STRING || token->type == JT_NUMBER || eng_jinja_at_operator(p, "[") ||
           eng_jinja_at_operator(p, "{");
}

static struct jnode *parse_test(struct jparser *p, struct jnode *object)
{
    p->at++;
    const bool negated = eng_jinja_skip_name(p, "not");
    struct jnode *node = parse_named(p, JN_TEST, object);
    if (eng_jinja_at_operator(p, "(")) {
        parse_arguments(p, node);
    } else if (!p->mem->failed && starts_argument(p)) {
        struct jnodes items = {0};
        if (eng_jinja_at_name(p, "is")) {
            eng_jinja_syntax_error(p, "no second 'is'");
        }
        eng_jinja_add_node(p, &items, eng_jinja_parse_postfix(p, eng_jinja_parse_primary(p)));
        node->items = items.items;
        node->count = items.count;
    }
    return negated ? eng_jinja_operands(p, JN_NOT, node, NULL) : node;
}

struct jnode *eng_jinja_parse_applied(struct jparser *p, struct jnode *node)
{
    while (!p->mem->failed) {
        if (eng_jinja_at_operator(p, "|")) {
            node = eng_jinja_parse_filters(p, node, false);
        } else if (eng_jinja_at_name(p, "is")) {
            node = parse_test(p, node);
        } else if (eng_jinja_at_operator(p, "(")) {
            node = parse_call(p, node);
        } else {
            break;
        }
    }
    return node;
}
