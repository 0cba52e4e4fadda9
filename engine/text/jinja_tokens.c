/* Looking at the tokens of a template, and errors at them.
 * Called by jinja_expr and jinja_parse; must not know the tree. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jinja_ast.h"

const struct jtoken *eng_jinja_peek(const struct jparser *p, size_t ahead)
{
    const size_t at = p->at + ahead;
    return &p->tokens[at < p->token_count ? at : p->token_count - 1];
}

bool eng_jinja_at_operator(const struct jparser *p, const char *text)
{
    const struct jtoken *const token = eng_jinja_peek(p, 0);
    return token->type == JT_OPERATOR && strcmp(token->operator, text) == 0;
}

bool eng_jinja_is_name(const struct jtoken *token, const char *text)
{
    return token->type == JT_NAME && jv_is(token->value, text, strlen(text));
}

bool eng_jinja_at_name(const struct jparser *p, const char *text)
{
    return eng_jinja_is_name(eng_jinja_peek(p, 0), text);
}

bool eng_jinja_skip_operator(struct jparser *p, const char *text)
{
    const bool there = eng_jinja_at_operator(p, text);
    p->at += there ? 1 : 0;
    return there;
}

bool eng_jinja_skip_name(struct jparser *p, const char *text)
{
    const bool there = eng_jinja_at_name(p, text);
    p->at += there ? 1 : 0;
    return there;
}

void eng_jinja_error_at(struct jparser *p, uint32_t line, uint32_t column, const char *format, ...)
{
    char text[200];
    if (p->mem->failed) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    p->mem->at_line = line;
    p->mem->at_column = column;
    eng_jinja_fail(p->mem, "%s", text);
    p->at = p->token_count - 1; /* every loop of the parser ends at the end */
}

void eng_jinja_syntax_error(struct jparser *p, const char *expected)
{
    const struct jtoken *const t = eng_jinja_peek(p, 0);
    static const char *const kinds[] = {"the end of the template",
                                        "text",
                                        "'{%'",
                                        "'%}'",
                                        "'{{'",
                                        "'}}'",
                                        "",
                                        "a text",
                                        "a number",
                                        ""};
    if (t->type == JT_NAME || t->type == JT_OPERATOR) {
        const char *const text = t->type == JT_NAME ? t->value.as.s : t->operator;
        const int size = t->type == JT_NAME ? (int)t->value.size : (int)strlen(t->operator);
        eng_jinja_error_at(p, t->line, t->column, "%s expected, not '%.*s'", expected,
                           size < 40 ? size : 40, text);
        return;
    }
    eng_jinja_error_at(p, t->line, t->column, "%s expected, not %s", expected, kinds[t->type]);
}

void eng_jinja_expect_operator(struct jparser *p, const char *text)
{
    char expected[8];
    snprintf(expected, sizeof expected, "'%s'", text);
    if (!eng_jinja_skip_operator(p, text)) {
        eng_jinja_syntax_error(p, expected);
    }
}
