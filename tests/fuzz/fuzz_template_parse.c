/* Template sources: what parses renders the same twice within its limits, what does not names line
 * and column. The mutator puts pieces of the language between others, so that inputs stay near what
 * parses. Called by libFuzzer and replay_main.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "jinja.h"

enum { SOURCE_MAX = 1 << 14 };

static const struct eng_jinja_limits limits = {
    .memory_bytes = 4 << 20, .output_bytes = 1 << 18, .steps = 200000};

static void set_variables(struct eng_jinja_renderer *r)
{
    struct jmem *const m = &r->mem;
    const struct jv messages = eng_jinja_list(m, J_LIST, 2);
    for (int i = 0; i < 2; i++) {
        const struct jv message = eng_jinja_dict(m, 2);
        eng_jinja_set(m, message, eng_jinja_literal("role"),
                      eng_jinja_literal(i == 0 ? "user" : "assistant"));
        eng_jinja_set(m, message, eng_jinja_literal("content"),
                      jv_str(i == 0 ? " Q\xC3\xA9 " : "A\n", i == 0 ? 5 : 2, JS_CONTENT));
        eng_jinja_append(m, messages, message);
    }
    eng_jinja_variable(r, "messages", messages);
    eng_jinja_variable(r, "tools", jv_none());
    eng_jinja_variable(r, "add_generation_prompt", jv_bool(true));
    eng_jinja_variable(r, "x", jv_int(3));
}

static bool names_a_place(const char *text)
{
    unsigned line = 0;
    unsigned column = 0;
    return sscanf(text, "t:%u:%u: ", &line, &column) == 2 && line > 0 && column > 0;
}

/* Marks lie inside the text, contents in order and apart. */
static void check_marks(const struct jbuf *text)
{
    size_t border = 0;
    for (size_t i = 0; i < text->mark_count; i++) {
        const struct jmark mark = text->marks[i];
        fuzz_require(mark.start <= mark.end);
        fuzz_require(mark.end <= text->size);
        if (mark.kind == JMARK_CONTENT) {
            fuzz_require(mark.start >= border);
            fuzz_require(mark.end > mark.start);
            border = mark.end;
        }
    }
}

static void check_renders(const eng_jinja *template)
{
    struct eng_jinja_renderer r;
    struct eng_error first = {""};
    struct eng_error second = {""};
    const struct jbuf *text = NULL;
    char *kept = NULL;
    size_t size = 0;
    fuzz_require(eng_jinja_init(&r, &limits, NULL) == ENG_OK);
    set_variables(&r);
    const enum eng_status status = eng_jinja_render(&r, template, &text, &first);
    if (status == ENG_OK) {
        fuzz_require(fuzz_is_utf8(text->bytes, text->size));
        check_marks(text);
        size = text->size;
        kept = fuzz_exact(text->bytes, size);
    } else {
        fuzz_require(names_a_place(first.text));
    }
    eng_jinja_begin(&r);
    set_variables(&r);
    fuzz_require(eng_jinja_render(&r, template, &text, &second) == status);
    if (status == ENG_OK) {
        fuzz_require(text->size == size);
        fuzz_require(size == 0 || memcmp(text->bytes, kept, size) == 0);
    } else {
        fuzz_require(strcmp(first.text, second.text) == 0);
    }
    free(kept);
    eng_jinja_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    eng_jinja *template = NULL;
    struct eng_error error = {""};
    char *const source = fuzz_exact(data, size);
    if (size > SOURCE_MAX) {
        free(source);
        return 0;
    }
    if (eng_jinja_parse("t", source, size, &template, &error) == ENG_OK) {
        check_renders(template);
    } else {
        const bool is_text = fuzz_is_utf8(source, size);
        fuzz_require(is_text ? names_a_place(error.text) : strcmp(error.text, "t: not UTF-8") == 0);
    }
    eng_jinja_destroy(template);
    free(source);
    return 0;
}

/* ---- mutation */

__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

static const char *const pieces[] = {"{{ x }}",
                                     "{% if x %}",
                                     "{% elif y %}",
                                     "{% else %}",
                                     "{% endif %}",
                                     "{% for m in messages %}",
                                     "{% for i in range(3) if i %}",
                                     "{% endfor %}",
                                     "{% break %}",
                                     "{% set a = x %}",
                                     "{% set n = namespace(a=1) %}",
                                     "{% set n.a = n.a + 1 %}",
                                     "{% set b %}",
                                     "{% endset %}",
                                     "{% macro f(a, b=2) %}",
                                     "{% endmacro %}",
                                     "{{ f(1) }}",
                                     "{% generation %}",
                                     "{% endgeneration %}",
                                     "{% filter upper %}",
                                     "{% endfilter %}",
                                     "{# c #}",
                                     "{%-",
                                     "-%}",
                                     "{{-",
                                     "-}}",
                                     "\n",
                                     "  ",
                                     "m.content",
                                     "messages[0]['role']",
                                     "messages[1:]",
                                     "[::-1]",
                                     " | trim",
                                     " | tojson",
                                     " | length",
                                     " | join(', ')",
                                     " | selectattr('role', 'equalto', 'user') | list",
                                     " | map(attribute='content')",
                                     " | default('d', true)",
                                     " | replace('a', 'b')",
                                     " is defined",
                                     " is string",
                                     " is not none",
                                     ".split('a')",
                                     ".strip()",
                                     ".items()",
                                     "loop.last",
                                     "loop.index0",
                                     " + 'a'",
                                     " ~ 1",
                                     " * 3",
                                     " // 2",
                                     " == 1",
                                     " in 'abc'",
                                     " not in [1]",
                                     " if x else y",
                                     "(1, 2)",
                                     "{'a': [1, 2.5, none]}",
                                     "'\\n\\u00e9'",
                                     "\xE3\x80\x80",
                                     "not ",
                                     "-x",
                                     "1e20",
                                     "raise_exception('no')",
                                     "strftime_now('%Y')"};

/* The end of what stands at a place: a tag, or a run of text. */
static size_t unit_end(const uint8_t *data, size_t size, size_t at)
{
    const bool in_tag = data[at] == '{';
    for (size_t i = at + 1; i < size; i++) {
        if (in_tag && data[i] == '}' && (data[i - 1] == '%' || data[i - 1] == '}')) {
            return i + 1;
        }
        if (!in_tag && (data[i] == '{' || data[i] == ' ')) {
            return i;
        }
    }
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    const char *const piece = pieces[(seed >> 8) % (sizeof pieces / sizeof pieces[0])];
    const size_t length = strlen(piece);
    const size_t at = size == 0 ? 0 : (seed >> 16) % (size + 1);
    size_t border = 0;
    if (seed % 4 == 0 && LLVMFuzzerMutate != NULL) {
        return LLVMFuzzerMutate(data, size, most);
    }
    while (border < at && border < size) { /* to the end of the unit that holds the place */
        border = unit_end(data, size, border);
    }
    if (seed % 4 == 1 && border < size) {
        const size_t end = unit_end(data, size, border);
        memmove(data + border, data + end, size - end);
        return size - (end - border);
    }
    if (size + length > most) {
        return size;
    }
    border = seed % 4 == 2 ? at : border; /* sometimes inside of a unit */
    memmove(data + border + length, data + border, size - border);
    memcpy(data + border, piece, length);
    return size + length;
}
