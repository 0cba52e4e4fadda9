/* Source to tokens, with Jinja2's rules for blanks around tags (trim_blocks, lstrip_blocks on,
 * keep_trailing_newline off). Called by jinja; must not know grammar. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jinja_ast.h"
#include "text_utf8.h"

enum { OPEN_MAX = 200 };

struct lexer {
    struct jparser *p;
    const char *source;
    size_t size, at;
    uint32_t line;
    size_t line_start;
    bool line_starting;  /* the last token ended a line */
    char open[OPEN_MAX]; /* brackets that wait for their end */
    size_t open_count;
    size_t capacity;
};

static void fail(struct lexer *x, const char *what)
{
    eng_jinja_error_at(x->p, x->line, (uint32_t)(x->at - x->line_start + 1), "%s", what);
}

/* Moves on, counting lines. */
static void advance(struct lexer *x, size_t bytes)
{
    for (; bytes > 0; bytes--) {
        if (x->source[x->at++] == '\n') {
            x->line++;
            x->line_start = x->at;
        }
    }
    x->line_starting = x->at > 0 && x->source[x->at - 1] == '\n';
}

static struct jtoken *push(struct lexer *x, enum jtoken_type type)
{
    struct jparser *const p = x->p;
    if (p->token_count == x->capacity) {
        const size_t capacity = x->capacity == 0 ? 256 : x->capacity * 2;
        struct jtoken *const grown = eng_jinja_array(p->mem, capacity, sizeof *grown);
        if (grown == NULL) {
            p->token_count = 0;
            return p->tokens;
        }
        if (p->token_count > 0) {
            memcpy(grown, p->tokens, p->token_count * sizeof *grown);
        }
        p->tokens = grown;
        x->capacity = capacity;
    }
    struct jtoken *const token = &p->tokens[p->token_count++];
    *token = (struct jtoken){
        .type = type, .line = x->line, .column = (uint32_t)(x->at - x->line_start + 1)};
    return token;
}

static bool starts(const struct lexer *x, size_t at, const char *text)
{
    const size_t size = strlen(text);
    return x->size - at >= size && memcmp(x->source + at, text, size) == 0;
}

/* Bytes of white space, as \s of Python's re has it, from `at`. */
static size_t blanks(const struct lexer *x, size_t at)
{
    const size_t from = at;
    while (at < x->size) {
        size_t n = 0;
        eng_jinja_point(x->source + at, &n);
        const struct eng_text rest = eng_text_trim((struct eng_text){x->source + at, n});
        if (rest.size > 0) {
            break;
        }
        at += n;
    }
    return at - from;
}

/* Emits the text before a tag, stripped as its sign and lstrip_blocks ask. */
static void put_data(struct lexer *x, size_t end, char sign, bool is_print)
{
    size_t kept = end;
    struct jv text = jv_str(x->source + x->at, end - x->at, 0);
    if (sign == '-') {
        kept = x->at + eng_jinja_strip(x->p->mem, text, jv_none(), false, true).size;
    } else if (sign != '+' && !is_print) {
        size_t line = end;
        while (line > x->at && x->source[line - 1] != '\n') {
            line--;
        }
        const size_t blank = blanks(x, line);
        if ((line > x->at || x->line_starting) && line < end && line + blank >= end) {
            kept = line;
        }
    }
    if (kept > x->at) {
        push(x, JT_DATA)->value = jv_str(x->source + x->at, kept - x->at, 0);
    }
    advance(x, end - x->at);
}

/* The size of a tag's end at the place, with the blanks it takes along; 0 when there is none. */
static size_t end_size(const struct lexer *x, const char *end, bool takes_newline)
{
    if (starts(x, x->at, "-") && starts(x, x->at + 1, end)) {
        return 3 + blanks(x, x->at + 3);
    }
    if (takes_newline && starts(x, x->at, "+") && starts(x, x->at + 1, end)) {
        return 3;
    }
    if (!starts(x, x->at, end)) {
        return 0;
    }
    return takes_newline && starts(x, x->at + 2, "\n") ? 3 : 2;
}

static void lex_comment(struct lexer *x)
{
    const char *const end = memmem(x->source + x->at, x->size - x->at, "#}", 2);
    if (end == NULL) {
        fail(x, "a comment has no end");
        return;
    }
    size_t at = (size_t)(end - x->source);
    if (at > x->at && (x->source[at - 1] == '-' || x->source[at - 1] == '+')) {
        at--;
    }
    advance(x, at - x->at);
    advance(x, end_size(x, "#}", true));
}

/* The end of `{% word %}` from `at`, which stands behind "{%"; 0 when it is another tag. */
static size_t whole_tag(const struct lexer *x, size_t at, const char *word, bool takes_newline)
{
    if (at < x->size && (x->source[at] == '-' || x->source[at] == '+')) {
        at++;
    }
    at += blanks(x, at);
    if (!starts(x, at, word)) {
        return 0;
    }
    at += strlen(word);
    at += blanks(x, at);
    struct lexer there = *x;
    there.at = at;
    const bool plus = starts(x, at, "+");
    const size_t size = plus && !takes_newline ? 0 : end_size(&there, "%}", takes_newline);
    return size == 0 ? 0 : at + size;
}

/* From behind `{% raw %}` to behind `{% endraw %}`: text as it stands. */
static void lex_raw(struct lexer *x)
{
    for (size_t at = x->at; at + 1 < x->size; at++) {
        const size_t end = starts(x, at, "{%") ? whole_tag(x, at + 2, "endraw", true) : 0;
        if (end != 0) {
            put_data(x, at, x->source[at + 2], false);
            advance(x, end - x->at);
            return;
        }
    }
    fail(x, "a raw block has no end");
}

static bool is_word(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void lex_name(struct lexer *x)
{
    size_t size = 0;
    while (x->at + size < x->size && is_word((unsigned char)x->source[x->at + size])) {
        if ((unsigned char)x->source[x->at + size] >= 0x80) {
            fail(x, "names of other than ASCII characters are not supported");
            return;
        }
        size++;
    }
    push(x, JT_NAME)->value = jv_str(x->source + x->at, size, JS_ASCII);
    advance(x, size);
}

/* Copies a number without its underscores; false when it is too long. */
static bool plain_number(const struct lexer *x, size_t size, char out[64])
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (x->source[x->at + i] != '_') {
            if (n == 63) {
                return false;
            }
            out[n++] = x->source[x->at + i];
        }
    }
    out[n] = '\0';
    return true;
}

/* Digits with single underscores between them. */
static size_t digits_size(const struct lexer *x, size_t at)
{
    const size_t from = at;
    while (at < x->size && (is_digit(x->source[at]) ||
                            (at > from && x->source[at] == '_' && at + 1 < x->size &&
                             is_digit(x->source[at + 1]) && is_digit(x->source[at - 1])))) {
        at++;
    }
    return at - from;
}

static size_t exponent_size(const struct lexer *x, size_t at)
{
    if (at >= x->size || (x->source[at] | 32) != 'e') {
        return 0;
    }
    const size_t sign =
        at + 1 < x->size && (x->source[at + 1] == '+' || x->source[at + 1] == '-') ? 1 : 0;
    const size_t digits = digits_size(x, at + 1 + sign);
    return digits == 0 ? 0 : 1 + sign + digits;
}

static void lex_number(struct lexer *x)
{
    char text[64];
    size_t size = digits_size(x, x->at);
    const bool after_point = x->at > 0 && x->source[x->at - 1] == '.';
    bool is_float = false;
    if (!after_point) {
        size_t end = x->at + size;
        if (end < x->size && x->source[end] == '.' && digits_size(x, end + 1) > 0) {
            end += 1 + digits_size(x, end + 1);
            is_float = true;
        }
        const size_t exponent = exponent_size(x, end);
        is_float = is_float || exponent > 0;
        size = is_float ? end + exponent - x->at : size;
    }
    if (!is_float && size > 1 && x->source[x->at] == '0') {
        size = 1; /* no leading zeros, as in Jinja2: the rest is another token */
        while (x->source[x->at + size] == '0') {
            size++;
        }
    }
    if (size == 1 && x->source[x->at] == '0' && x->at + 1 < x->size &&
        strchr("xXoObB", x->source[x->at + 1]) != NULL) {
        fail(x, "numbers of other bases than ten are not supported");
        return;
    }
    errno = 0;
    const bool fits = plain_number(x, size, text);
    const long long number = fits ? strtoll(text, NULL, 10) : 0;
    if (!fits || (!is_float && errno != 0)) {
        fail(x, "a number is too large");
        return;
    }
    push(x, JT_NUMBER)->value = is_float ? jv_float(strtod(text, NULL)) : jv_int(number);
    advance(x, size);
}

/* Value of `count` hexadecimal digits, -1 when they are not there. */
static long hex_value(const char *at, const char *end, size_t count)
{
    long value = 0;
    for (size_t i = 0; i < count; i++) {
        const char c = at + i < end ? at[i] : ' ';
        const char *const digit = memchr("0123456789abcdefABCDEF", c, 22);
        if (digit == NULL) {
            return -1;
        }
        value = value * 16 + (is_digit(c) ? c - '0' : (c | 32) - 'a' + 10);
    }
    return value;
}

/* One escape of Python's unicode-escape, behind the backslash; its size, 0 when it is wrong. */
static size_t put_escape(struct jmem *m, struct jbuf *b, const char *at, const char *end)
{
    static const char from[] = "abfnrtv\\'\"";
    static const char to[] = "\a\b\f\n\r\t\v\\'\"";
    const char *const simple = memchr(from, at[0], sizeof from - 1);
    char bytes[8];
    if (simple != NULL) {
        eng_jinja_put(m, b, &to[simple - from], 1);
        return 1;
    }
    if (at[0] == '\n') {
        return 1;
    }
    if (at[0] >= '0' && at[0] <= '7') {
        unsigned value = 0;
        size_t n = 0;
        for (; n < 3 && at + n < end && at[n] >= '0' && at[n] <= '7'; n++) {
            value = value * 8 + (unsigned)(at[n] - '0');
        }
        eng_jinja_put(m, b, bytes, eng_utf8_put(bytes, value));
        return n;
    }
    if (at[0] == 'x' || at[0] == 'u' || at[0] == 'U') {
        const size_t count = at[0] == 'x' ? 2 : at[0] == 'u' ? 4 : 8;
        const long value = hex_value(at + 1, end, count);
        if (value < 0 || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
            return 0;
        }
        eng_jinja_put(m, b, bytes, eng_utf8_put(bytes, (unsigned)value));
        return 1 + count;
    }
    if (at[0] == 'N' || (unsigned char)at[0] >= 0x80) {
        return 0;
    }
    eng_jinja_put(m, b, "\\", 1); /* Python keeps the backslash of what it does not know */
    eng_jinja_put(m, b, at, 1);
    return 1;
}

static void lex_string(struct lexer *x)
{
    const char quote = x->source[x->at];
    size_t end = x->at + 1;
    bool escapes = false;
    for (; end < x->size && x->source[end] != quote; end++) {
        if (x->source[end] == '\\') {
            escapes = true;
            end++;
        }
    }
    if (end >= x->size) {
        fail(x, "a text has no closing quote");
        return;
    }
    struct jtoken *const token = push(x, JT_STRING);
    const char *at = x->source + x->at + 1;
    const char *const stop = x->source + end;
    token->value = jv_str(at, (size_t)(stop - at), 0);
    if (escapes) {
        struct jbuf *const b = eng_jinja_open(x->p->mem);
        while (at < stop && !x->p->mem->failed) {
            if (*at != '\\') {
                eng_jinja_put(x->p->mem, b, at++, 1);
                continue;
            }
            const size_t size = put_escape(x->p->mem, b, at + 1, stop);
            if (size == 0) {
                fail(x, "a text has an escape that is wrong or not supported");
            }
            at += 1 + size;
        }
        token->value = eng_jinja_close(x->p->mem);
    }
    if (eng_text_is_ascii(jv_text(token->value))) {
        token->value.flags |= JS_ASCII;
    }
    advance(x, end + 1 - x->at);
}

static void lex_operator(struct lexer *x)
{
    static const char *const known[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                        "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                        ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!starts(x, x->at, known[i])) {
            continue;
        }
        const char c = known[i][0];
        if (c == '(' || c == '[' || c == '{') {
            if (x->open_count == OPEN_MAX) {
                fail(x, "brackets are nested too deeply");
                return;
            }
            x->open[x->open_count++] = c == '(' ? ')' : c == '[' ? ']' : '}';
        } else if (c == ')' || c == ']' || c == '}') {
            if (x->open_count == 0 || x->open[--x->open_count] != c) {
                fail(x, "a closing bracket has no opening one");
                return;
            }
        }
        strcpy(push(x, JT_OPERATOR)->operator, known[i]);
        advance(x, strlen(known[i]));
        return;
    }
    fail(x, "a character that no expression has");
}

/* Tokens up to the end of a tag. */
static void lex_tag(struct lexer *x, const char *end, bool is_print)
{
    while (!x->p->mem->failed) {
        advance(x, 0);
        const size_t size = x->open_count == 0 ? end_size(x, end, !is_print) : 0;
        if (size > 0) {
            push(x, is_print ? JT_PRINT_END : JT_BLOCK_END);
            advance(x, size);
            return;
        }
        const size_t blank = blanks(x, x->at);
        if (blank > 0) {
            advance(x, blank);
        } else if (x->at >= x->size) {
            fail(x, "a tag has no end");
        } else if (is_digit(x->source[x->at])) {
            lex_number(x);
        } else if (is_word((unsigned char)x->source[x->at])) {
            lex_name(x);
        } else if (x->source[x->at] == '\'' || x->source[x->at] == '"') {
            lex_string(x);
        } else {
            lex_operator(x);
        }
    }
}

/* The source with its line ends made one, and without the last of them. */
static void normalize(struct lexer *x, const char *source, size_t size)
{
    char *const text = eng_jinja_array(x->p->mem, size + 1, 1);
    if (text == NULL) {
        return;
    }
    for (size_t i = 0; i < size; i++) {
        const bool is_crlf = source[i] == '\r' && i + 1 < size && source[i + 1] == '\n';
        text[x->size++] = source[i] == '\r' ? '\n' : source[i];
        i += is_crlf ? 1 : 0;
    }
    x->size -= x->size > 0 && text[x->size - 1] == '\n' ? 1 : 0;
    text[x->size] = '\0';
    x->source = text;
}

/* The place of the next tag at or after x->at, the size when there is none. */
static size_t next_tag(const struct lexer *x)
{
    size_t at = x->at;
    while (at + 1 < x->size) {
        const char *const brace = memchr(x->source + at, '{', x->size - at - 1);
        if (brace == NULL) {
            break;
        }
        at = (size_t)(brace - x->source);
        if (strchr("%{#", x->source[at + 1]) != NULL && x->source[at + 1] != '\0') {
            return at;
        }
        at++;
    }
    return x->size;
}

void eng_jinja_lex(struct jparser *p, const char *source, size_t size)
{
    struct lexer x = {.p = p, .source = "", .line = 1, .line_starting = true};
    normalize(&x, source, size);
    while (!p->mem->failed && x.at < x.size) {
        const size_t tag = next_tag(&x);
        if (tag == x.size) {
            push(&x, JT_DATA)->value = jv_str(x.source + x.at, tag - x.at, 0);
            advance(&x, tag - x.at);
            break;
        }
        const char kind = x.source[tag + 1];
        const char sign = tag + 2 < x.size ? x.source[tag + 2] : '\0';
        const bool has_sign = sign == '-' || sign == '+';
        const size_t raw = kind == '%' ? whole_tag(&x, tag + 2, "raw", false) : 0;
        put_data(&x, tag, sign, kind == '{');
        if (raw != 0) {
            advance(&x, raw - x.at);
            lex_raw(&x);
            continue;
        }
        if (kind != '#') {
            push(&x, kind == '{' ? JT_PRINT_BEGIN : JT_BLOCK_BEGIN);
        }
        advance(&x, has_sign ? 3 : 2);
        if (kind == '#') {
            lex_comment(&x);
        } else {
            lex_tag(&x, kind == '{' ? "}}" : "%}", kind == '{');
        }
    }
    push(&x, JT_END);
}
