/* Operators of a template's expressions, with Jinja2's precedence, tightest first.
 * Called by jinja_parse and jinja_primary; must not know statements or values. */
#include <string.h>

#include "jinja_ast.h"

static struct jnode *parse_unary(struct jparser *p, bool with_filter)
{
    const bool is_minus = eng_jinja_at_operator(p, "-");
    struct jnode *node = NULL;
    if (!eng_jinja_enter(p)) {
        return eng_jinja_node(p, JN_CONST);
    }
    if (is_minus || eng_jinja_at_operator(p, "+")) {
        struct jnode *const sign = eng_jinja_node(p, JN_UNARY);
        p->at++;
        sign->op = is_minus ? JO_NEG : JO_POS;
        sign->a = parse_unary(p, false);
        node = sign;
    } else {
        node = eng_jinja_parse_primary(p);
    }
    node = eng_jinja_parse_postfix(p, node);
    p->depth--;
    return with_filter ? eng_jinja_parse_applied(p, node) : node;
}

struct binary_op {
    const char *text;
    enum jop op;
};

/* The operator of the table at this place, skipped; NULL when there is none. */
static const struct binary_op *skip_binary(struct jparser *p, const struct binary_op *table,
                                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (eng_jinja_skip_operator(p, table[i].text)) {
            return &table[i];
        }
    }
    return NULL;
}

static struct jnode *binary(struct jparser *p, const struct binary_op *found, struct jnode *left,
                            struct jnode *right)
{
    struct jnode *const node = eng_jinja_operands(p, JN_BINARY, left, right);
    node->op = (uint8_t)found->op;
    return node;
}

static struct jnode *parse_power(struct jparser *p)
{
    static const struct binary_op power = {"**", JO_POW};
    struct jnode *left = parse_unary(p, true);
    while (!p->mem->failed && skip_binary(p, &power, 1) != NULL) {
        left = binary(p, &power, left, parse_unary(p, true));
    }
    return left;
}

static struct jnode *parse_product(struct jparser *p)
{
    static const struct binary_op ops[] = {
        {"*", JO_MUL}, {"/", JO_DIV}, {"//", JO_FLOOR}, {"%", JO_MOD}};
    struct jnode *left = parse_power(p);
    const struct binary_op *found = NULL;
    while (!p->mem->failed && (found = skip_binary(p, ops, 4)) != NULL) {
        left = binary(p, found, left, parse_power(p));
    }
    return left;
}

static struct jnode *parse_join(struct jparser *p)
{
    struct jnode *const first = parse_product(p);
    if (!eng_jinja_at_operator(p, "~")) {
        return first;
    }
    struct jnode *const node = eng_jinja_operands(p, JN_JOIN, first, NULL);
    struct jnodes items = {0};
    eng_jinja_add_node(p, &items, first);
    while (!p->mem->failed && eng_jinja_skip_operator(p, "~")) {
        eng_jinja_add_node(p, &items, parse_product(p));
    }
    node->a = NULL;
    node->items = items.items;
    node->count = items.count;
    return node;
}

static struct jnode *parse_sum(struct jparser *p)
{
    static const struct binary_op ops[] = {{"+", JO_ADD}, {"-", JO_SUB}};
    struct jnode *left = parse_join(p);
    const struct binary_op *found = NULL;
    while (!p->mem->failed && (found = skip_binary(p, ops, 2)) != NULL) {
        left = binary(p, found, left, parse_join(p));
    }
    return left;
}

/* The comparison at this place, skipped; -1 when there is none. */
static int skip_comparison(struct jparser *p)
{
    static const struct binary_op ops[] = {{"==", JO_EQ}, {"!=", JO_NE}, {"<", JO_LT},
                                           {"<=", JO_LE}, {">", JO_GT},  {">=", JO_GE}};
    const struct binary_op *const found = skip_binary(p, ops, 6);
    if (found != NULL) {
        return (int)found->op;
    }
    if (eng_jinja_skip_name(p, "in")) {
        return JO_IN;
    }
    if (eng_jinja_at_name(p, "not") && eng_jinja_is_name(eng_jinja_peek(p, 1), "in")) {
        p->at += 2;
        return JO_NOT_IN;
    }
    return -1;
}

static struct jnode *parse_comparison(struct jparser *p)
{
    struct jnode *const first = parse_sum(p);
    struct jnodes items = {0};
    uint8_t ops[JINJA_ARGUMENTS_MAX];
    int op = 0;
    while (!p->mem->failed && (op = skip_comparison(p)) >= 0) {
        if (items.count == JINJA_ARGUMENTS_MAX) {
            eng_jinja_error_at(p, first->line, first->column, "more than %d comparisons in a row",
                               JINJA_ARGUMENTS_MAX);
            break;
        }
        ops[items.count] = (uint8_t)op;
        eng_jinja_add_node(p, &items, parse_sum(p));
    }
    if (items.count == 0) {
        return first;
    }
    struct jnode *const node = eng_jinja_operands(p, JN_COMPARE, first, NULL);
    node->items = items.items;
    node->count = items.count;
    node->ops = eng_jinja_array(p->mem, items.count, 1);
    if (node->ops != NULL) {
        memcpy(node->ops, ops, items.count);
    }
    return node;
}

static struct jnode *parse_not(struct jparser *p)
{
    struct jnode *const node = eng_jinja_node(p, JN_NOT);
    if (!eng_jinja_enter(p)) {
        return node;
    }
    if (!eng_jinja_skip_name(p, "not")) {
        p->depth--;
        return parse_comparison(p);
    }
    node->a = parse_not(p);
    p->depth--;
    return node;
}

static struct jnode *parse_and(struct jparser *p)
{
    struct jnode *left = parse_not(p);
    while (!p->mem->failed && eng_jinja_skip_name(p, "and")) {
        left = eng_jinja_operands(p, JN_AND, left, NULL);
        left->b = parse_not(p);
    }
    return left;
}

static struct jnode *parse_or(struct jparser *p)
{
    struct jnode *left = parse_and(p);
    while (!p->mem->failed && eng_jinja_skip_name(p, "or")) {
        left = eng_jinja_operands(p, JN_OR, left, NULL);
        left->b = parse_and(p);
    }
    return left;
}

struct jnode *eng_jinja_parse_expression(struct jparser *p, bool with_choice)
{
    if (!eng_jinja_enter(p)) {
        return eng_jinja_node(p, JN_CONST);
    }
    struct jnode *result = parse_or(p);
    while (with_choice && !p->mem->failed && eng_jinja_skip_name(p, "if")) {
        struct jnode *const choice = eng_jinja_operands(p, JN_CHOICE, result, NULL);
        choice->b = parse_or(p);
        choice->c = eng_jinja_skip_name(p, "else") ? eng_jinja_parse_expression(p, true) : NULL;
        result = choice;
    }
    p->depth--;
    return result;
}
