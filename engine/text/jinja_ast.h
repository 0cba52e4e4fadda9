/* Tokens and the syntax tree of a template.
 * Written by jinja_lex, jinja_parse, jinja_expr and jinja_scope, read by jinja_render and
 * jinja_eval; must not know how anything is computed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "jinja_value.h"

enum jtoken_type {
    JT_END,
    JT_DATA,
    JT_BLOCK_BEGIN,
    JT_BLOCK_END,
    JT_PRINT_BEGIN,
    JT_PRINT_END,
    JT_NAME,
    JT_STRING,
    JT_NUMBER, /* integer or float: see value */
    JT_OPERATOR
};

struct jtoken {
    enum jtoken_type type;
    uint32_t line, column;
    struct jv value;  /* text of data, names and strings; numbers */
    char operator[3]; /* of JT_OPERATOR */
};

enum jnode_kind {
    /* expressions */
    JN_CONST,
    JN_NAME,
    JN_LIST,    /* items */
    JN_TUPLE,   /* items */
    JN_DICT,    /* items: key, value, key, value ... */
    JN_ATTR,    /* a . text */
    JN_ITEM,    /* a [ b ] */
    JN_SLICE,   /* a [ items[0] : items[1] : items[2] ], NULL = absent */
    JN_CALL,    /* a ( items, *b, names, **c ); b and c may be NULL */
    JN_FILTER,  /* a | id ( likewise ); a is NULL in a filter block */
    JN_TEST,    /* a is id ( likewise ) */
    JN_UNARY,   /* op a */
    JN_BINARY,  /* a op b */
    JN_JOIN,    /* items joined by ~ */
    JN_COMPARE, /* a, then ops[i] items[i] */
    JN_AND,
    JN_OR,
    JN_NOT,
    JN_CHOICE, /* a if b else c, c may be NULL */
    /* statements */
    JN_DATA,         /* value */
    JN_PRINT,        /* a */
    JN_IF,           /* a; items; else_items */
    JN_FOR,          /* target a in b if c: items; else_items */
    JN_SET,          /* a = b */
    JN_SET_BLOCK,    /* a; filter b or NULL; items */
    JN_FILTER_BLOCK, /* filter b; items */
    JN_GENERATION,   /* items */
    JN_MACRO,        /* text; parameters, defaults; items */
    JN_CALL_BLOCK,   /* call a with a macro of parameters, defaults; items */
    JN_WITH,         /* parameters = values; items */
    JN_BREAK,
    JN_CONTINUE
};

enum jop {
    JO_ADD,
    JO_SUB,
    JO_MUL,
    JO_DIV,
    JO_FLOOR,
    JO_MOD,
    JO_POW,
    JO_EQ,
    JO_NE,
    JO_LT,
    JO_LE,
    JO_GT,
    JO_GE,
    JO_IN,
    JO_NOT_IN,
    JO_NEG,
    JO_POS
};

/* Where a name lives: `hops` functions outwards, at `slot`. */
struct jplace {
    uint16_t hops, slot;
};

/* What happens to a slot when its frame is entered. */
enum jload_kind { JL_PARAMETER, JL_UNDEFINED, JL_ALIAS, JL_GLOBAL };
struct jload {
    enum jload_kind kind;
    uint16_t slot;
    struct jplace from; /* JL_ALIAS */
    uint16_t global;    /* JL_GLOBAL: number of the name among those of the template */
};

/* Names of a stretch of template that Jinja2 calls a frame. */
struct jframe {
    struct jload *loads;
    size_t load_count;
};

/* Names that a macro has without declaring them, when its body reads them. */
enum jspecial { JSPECIAL_CALLER, JSPECIAL_KWARGS, JSPECIAL_VARARGS, JSPECIALS };

struct jnode {
    uint8_t kind, op;
    bool is_store; /* JN_NAME: a target, JN_ATTR: a namespace's attribute as target */
    uint16_t id;   /* of a filter, a test or a method name; 0 = none */
    uint32_t line, column;
    struct jnode *a, *b, *c;
    struct jnode **items, **else_items;
    size_t count, else_count;
    struct jnode **values; /* of named arguments; defaults of a macro (the last parameters') */
    struct jv *names;      /* of named arguments */
    size_t name_count;
    struct jnode **parameters; /* JN_MACRO: names; JN_WITH: targets */
    size_t parameter_count;
    struct jv value;     /* of a constant or data; the text of a name */
    uint8_t *ops;        /* JN_COMPARE */
    struct jplace place; /* JN_NAME */
    struct jframe frame, else_frame;
    uint16_t slots;                    /* JN_MACRO: size of its activation */
    uint16_t special_slots[JSPECIALS]; /* JN_MACRO: those it has */
    bool has_special[JSPECIALS];
    uint16_t loop_slot;
};

/* A name that no frame sets: a variable given by the caller or a function. */
struct jglobal {
    struct jv name;
    uint32_t line, column; /* of its first use */
};

struct eng_jinja {
    char *name;      /* of the file, for messages */
    struct jmem mem; /* everything below */
    struct jnode **items;
    size_t count;
    struct jframe frame;
    uint16_t slots;
    struct jglobal *globals;
    size_t global_count, global_capacity;
    bool has_generation, trims;
};

enum { JINJA_NESTING_MAX = 120, JINJA_TREE_MAX = 1000, JINJA_ARGUMENTS_MAX = 24 };

/* A source being parsed. */
struct jparser {
    struct eng_jinja *template;
    struct jmem *mem;
    struct jtoken *tokens;
    size_t token_count, at;
    unsigned depth; /* of expressions and statements */
    unsigned loops; /* loops around this place that a break may end */
};

/* jinja_lex: EINPUT with line and column in the mem's failure. */
void eng_jinja_lex(struct jparser *p, const char *source, size_t size);

/* jinja_tokens */
bool eng_jinja_is_name(const struct jtoken *token, const char *text);
const struct jtoken *eng_jinja_peek(const struct jparser *p, size_t ahead);
bool eng_jinja_at_operator(const struct jparser *p, const char *text);
bool eng_jinja_at_name(const struct jparser *p, const char *text);
bool eng_jinja_skip_operator(struct jparser *p, const char *text);
bool eng_jinja_skip_name(struct jparser *p, const char *text);
void eng_jinja_expect_operator(struct jparser *p, const char *text);
/* The current token in words. */
void eng_jinja_syntax_error(struct jparser *p, const char *expected);
void eng_jinja_error_at(struct jparser *p, uint32_t line, uint32_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Node lists grow while they are read; then they live in the template. */
struct jnodes {
    struct jnode **items;
    size_t count, capacity;
};

/* jinja_primary and jinja_expr */
void eng_jinja_add_node(struct jparser *p, struct jnodes *nodes, struct jnode *node);
struct jnode *eng_jinja_operands(struct jparser *p, enum jnode_kind kind, struct jnode *a,
                                 struct jnode *b);
/* False, with an error, when expressions stand too deep in each other; else p->depth grew. */
bool eng_jinja_enter(struct jparser *p);
/* Subscripts and calls behind an expression; then filters and tests. */
struct jnode *eng_jinja_parse_postfix(struct jparser *p, struct jnode *node);
struct jnode *eng_jinja_parse_applied(struct jparser *p, struct jnode *node);
struct jnode *eng_jinja_node(struct jparser *p, enum jnode_kind kind);
struct jnode *eng_jinja_parse_expression(struct jparser *p, bool with_choice);
/* A tuple without parentheses, or one expression. */
struct jnode *eng_jinja_parse_tuple(struct jparser *p, bool with_choice);
/* The same of primary expressions alone, as stands before `in` and `=`. */
struct jnode *eng_jinja_parse_targets(struct jparser *p);
struct jnode *eng_jinja_parse_primary(struct jparser *p);
/* Filters applied to `node`; NULL node and `inline_first`: those of a filter block. */
struct jnode *eng_jinja_parse_filters(struct jparser *p, struct jnode *node, bool inline_first);

/* jinja_parse */
void eng_jinja_parse_template(struct jparser *p);

/* jinja_scope: gives every name its place, as Jinja2's compiler would. */
void eng_jinja_resolve(struct jparser *p);
