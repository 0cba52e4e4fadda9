/* The Jinja engine by itself: meaning of expressions, places of errors, limits, marks. What Jinja2
 * says about the same sources is asked by jinja_gallery.py. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "eng_text_fixture.h"
#include "jinja.h"

struct outcome {
    enum eng_status status;
    struct eng_error error;
    char text[4096];
    struct jmark marks[32];
    size_t mark_count;
};

static struct eng_jinja_limits limits = {
    .memory_bytes = 8 << 20, .output_bytes = 1 << 16, .steps = 2000000, .milliseconds = 1000};

/* Renders with one variable, `x`, that the data wrote. */
static struct outcome rendered(const char *source, const char *x)
{
    struct outcome o = {.status = ENG_OK};
    eng_jinja *template = NULL;
    struct eng_jinja_renderer renderer;
    const struct jbuf *text = NULL;
    o.status = eng_jinja_parse("t", source, strlen(source), &template, &o.error);
    if (o.status != ENG_OK) {
        return o;
    }
    cr_assert_eq(eng_jinja_init(&renderer, &limits, &o.error), ENG_OK);
    for (int round = 0; round < 2; round++) { /* the second reuses the memory of the first */
        eng_jinja_begin(&renderer);
        eng_jinja_variable(&renderer, "x", eng_jinja_copy(&renderer.mem, x, strlen(x), JS_CONTENT));
        o.status = eng_jinja_render(&renderer, template, &text, &o.error);
    }
    if (o.status == ENG_OK) {
        cr_assert_lt(text->size, sizeof o.text);
        memcpy(o.text, text->size > 0 ? text->bytes : "", text->size);
        o.text[text->size] = '\0';
        cr_assert_leq(text->mark_count, 32);
        o.mark_count = text->mark_count;
        if (text->mark_count > 0) {
            memcpy(o.marks, text->marks, text->mark_count * sizeof o.marks[0]);
        }
    }
    eng_jinja_fini(&renderer);
    eng_jinja_destroy(template);
    return o;
}

static void expect(const char *source, const char *wanted)
{
    const struct outcome o = rendered(source, "it's");
    cr_assert_eq(o.status, ENG_OK, "%s: %s", source, o.error.text);
    cr_assert_str_eq(o.text, wanted, "%s: %s", source, o.text);
}

static void refuse(const char *source, const char *wanted)
{
    const struct outcome o = rendered(source, "it's");
    cr_assert_eq(o.status, ENG_EINPUT, "%s", source);
    cr_assert_neq(strstr(o.error.text, wanted), NULL, "%s: %s", source, o.error.text);
}

Test(eng_jinja, values_print_as_python_prints_them)
{
    expect("{{ none }} {{ true }} {{ 3.0 }} {{ 1e20 }} {{ 10/2 }} {{ -7//2 }} {{ -7%3 }}",
           "None True 3.0 1e+20 5.0 -4 2");
    expect("{{ ['a', x, \"q'\\\"\"] }} {{ {'a': 1, 'b': none} }} {{ (1,) }}",
           "['a', \"it's\", 'q\\'\"'] {'a': 1, 'b': None} (1,)");
    expect("{{ 0.1+0.2 }} {{ 1e-5 }} {{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ -0.0 }}",
           "0.30000000000000004 1e-05 1e+16 1000000000000000.0 0.0001 -0.0");
    expect("{{ 'a'|safe + '<b>' }} {{ 'a'|safe ~ '<b>' }}", "a&lt;b&gt; a<b>");
    expect("{{ [1, 2.5, none, true, 'é\\n</b>'] | tojson }}", "[1, 2.5, null, true, \"é\\n</b>\"]");
}

Test(eng_jinja, white_space_around_tags_is_that_of_transformers)
{
    expect("  {% if true %}\n  a\n  {% endif %}\n{{ 1 }} {% if true %} b{% endif %}\n",
           "  a\n1  b");
    expect("a \n{%- if true -%} \n b {%- endif %}\n c", "ab c");
    expect("a\n\n", "a\n");
    expect("a  {# c #}\n b {%+ if true %} c {% endif +%}\n", "a   b  c ");
}

Test(eng_jinja, names_have_the_scopes_of_jinja2)
{
    expect("{% set a = 0 %}{% for i in [1, 2] %}{{ a }}{% set a = i %}{{ a }}{% endfor %}{{ a }}",
           "01020");
    expect("{% set n = namespace(a=0) %}{% for i in [1, 2] %}{% set n.a = n.a + i %}{% endfor %}"
           "{{ n.a }}",
           "3");
    expect("{% macro f(a, b=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{% set c = 9 %}{{ f(1) }}"
           "{{ f(b=2, a=3) }}",
           "119329");
    expect("{% if false %}{% set x = 1 %}{% endif %}{{ x }}", "it's");
    expect("{% for i in [1] %}{{ x }}|{% endfor %}{% set x = 2 %}{{ x }}", "|2");
}

Test(eng_jinja, unknown_filters_matter_where_they_are_called)
{
    expect(
        "{% if not x %}{{ x | shout }}{% elif x is defined %}a{% else %}{{ x is loud }}{% endif %}",
        "a");
    expect("{{ x | shout if false else 'b' }}{{ 'trim' is filter }}{{ 'shout' is filter }}",
           "bTrueFalse");
}

Test(eng_jinja, texts_are_split_as_python_splits_them)
{
    expect("{{ ' a b  c '.split(none, 1) }}{{ ' a b  c '.rsplit(none, 1) }}",
           "['a', 'b  c '][' a b', 'c']");
    expect("{{ '{a} {a} {b}'.format(a=1, b=x) }}", "1 1 it's");
}

Test(eng_jinja, macros_take_bodies_and_spread_arguments)
{
    expect("{% macro f(a) %}{{ a }}{{ varargs }}{{ kwargs }}{{ caller(2) if caller }}{% endmacro %}"
           "{{ f(*[1, x], **{'k': 3}) }}{% call(n) f('b') %}{{ n }}{{ x }}{% endcall %}",
           "1(\"it's\",){'k': 3}b(){}2it's");
    expect("{% set a = 1 %}{% with a = a + 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}", "211");
    refuse("{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}", "the caller is undefined");
    refuse("{% call x %}{% endcall %}", "t:1:9: a call expected");
    refuse("{{ dict(**{}, a=1) }}", "t:1:15: an argument behind those that must be the last");
    refuse("{{ dict(a=1, **{'a': 2}) }}", "an argument by no name or twice by one");
    refuse("{{ range(*5) }}", "a int cannot be iterated over");
}

Test(eng_jinja, text_counts_in_code_points)
{
    expect("{{ '\xF0\x9F\x98\x80\xC3\xA9' | length }} {{ '\xC3\xA9z'[::-1] }} {{ 'abc'[-2:] }}",
           "2 z\xC3\xA9 bc");
    expect("{{ '\xE3\x80\x80x\xC2\xA0' | trim }}{{ 'xxa'.lstrip('x') }}{{ '\xC3\x9F' | upper }}",
           "xaSS");
}

Test(eng_jinja, errors_name_line_and_column)
{
    refuse("a\n {{ 1 + }}", "t:2:9: an expression expected, not '}}'");
    refuse("{% if x %}\n{{ x | shout }}{% endif %}", "t:2:8: there is no filter 'shout'");
    refuse("{{ x is loud }}", "t:1:9: there is no test 'loud'");
    refuse("{% if false %}{% for c in x %}{{ c | shout }}{% endfor %}{% endif %}",
           "t:1:38: there is no filter 'shout'");
    refuse("{% include 'a' %}", "t:1:4: there is no statement 'include'");
    refuse("{{ a.b }}", "t:1:6: a is undefined");
    refuse("\n\n{{ [1].append(2) }}", "t:3:8: append is undefined");
    refuse("{{ raise_exception('no ' ~ x) }}", "the template raises: no it's");
    refuse("{{ 'a' + 1 }}", "t:1:4: str + int has no meaning");
    refuse("{% for i in [1] %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
           "t:1:38: 'break' is not in a loop of its own block");
    refuse("{# open", "t:1:3: a comment has no end");
    refuse("{{ lipsum() }}", "t:1:4: 'lipsum' is not supported");
    refuse("\xFF", "t: not UTF-8");
}

static uint64_t always_later(void)
{
    static uint64_t now = 0;
    return now += 600;
}

/* `first`, then `count` times `link`, within `format`. */
static void refuse_chain(const char *format, const char *first, const char *link, size_t count,
                         const char *cause)
{
    char *const chain = malloc(strlen(first) + count * strlen(link) + 1);
    char *const source = malloc(strlen(format) + strlen(first) + count * strlen(link) + 1);
    char *end = stpcpy(chain, first);
    for (size_t i = 0; i < count; i++) {
        end = stpcpy(end, link);
    }
    sprintf(source, format, chain);
    const struct outcome o = rendered(source, "it's");
    cr_assert_eq(o.status, ENG_EINPUT, "%s%s%s...", first, link, link);
    cr_assert_neq(strstr(o.error.text, cause), NULL, "%s%s...: %s", first, link, o.error.text);
    free(chain);
    free(source);
}

/* Long chains are trees as deep, and each level of one needs stack. */
Test(eng_jinja, chains_of_operators_have_a_limit)
{
    static const char *const links[] = {" + 1", " * 1", " ** 1", " or 0", " and 1",      "|upper",
                                        ".b",   "[0]",  "(1)",   " if 0", " ~ 1 * 1 - 1"};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        refuse_chain("{{ %s }}", "x", links[i], 15000, "more than 1000 operations in each other");
    }
    refuse_chain("{%% filter %s %%}x{%% endfilter %%}", "upper", "|upper", 15000, "operations");
    refuse_chain("{%% set y | %s %%}x{%% endset %%}", "upper", "|upper", 15000, "operations");
    refuse_chain("{%% macro f() %%}{{ %s }}{%% endmacro %%}{{ f() }}", "f()", " * 1", 400,
                 "nested more than 2000 deep");
    refuse("{% macro f() %}{{ 0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + "
           "(0 + (0 + (0 + (0 + (0 + (0 + f()))))))))))))))))))) }}{% endmacro %}{{ f() }}",
           "nested more than 2000 deep");
}

Test(eng_jinja, every_resource_has_a_limit)
{
    refuse("{% set r = range(200) | list %}"
           "{% for i in r %}{% for j in r %}{% for k in r %}{% endfor %}{% endfor %}{% endfor %}",
           "steps");
    refuse("{% set n = namespace(s='0123456789') %}{% for i in range(40) %}"
           "{% set n.s = n.s + n.s %}{% endfor %}",
           "more than 65536 bytes");
    refuse("{% for i in range(9999) %}{{ x }} 0123456789{% endfor %}", "writes more than");
    /* Also where the buffer has grown beyond the limit. */
    refuse("{{ 'x' * 40000 }}{% for i in range(3000) %}0123456789{% endfor %}", "writes more than");
    refuse("{% set n = namespace(l=[1]) %}{% for i in range(40) %}"
           "{% set n.l = n.l + n.l %}{% endfor %}",
           "8388608 bytes of memory");
    refuse("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deep");
    refuse("{{ range(100001) }}", "more than 100000");
    char deep[310] = "{{ ";
    memset(deep + 3, '(', 150);
    deep[153] = '1';
    memset(deep + 154, ')', 150);
    strcpy(deep + 304, " }}");
    refuse(deep, "nested more than 120 deep");
    limits.now_ms = always_later;
    refuse("{% for i in range(5000) %}{{ i }}{% endfor %}", "too long");
    limits.now_ms = NULL;
}

static void expect_marks(const char *source, const char *x, const char *wanted)
{
    const struct outcome o = rendered(source, x);
    char shown[1024] = "";
    cr_assert_eq(o.status, ENG_OK, "%s: %s", source, o.error.text);
    for (size_t i = 0; i < o.mark_count; i++) {
        snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%s%.*s;",
                 o.marks[i].kind == JMARK_ANSWER ? "answer " : "",
                 (int)(o.marks[i].end - o.marks[i].start), o.text + o.marks[i].start);
    }
    cr_assert_str_eq(shown, wanted, "%s in %s: %s", source, o.text, shown);
}

Test(eng_jinja, answers_are_marked_inside_macros_and_captures_too)
{
    expect_marks("a{% generation %}b{% endgeneration %}c", "", "answer b;");
    expect_marks("{% macro f() %}<{% generation %}b{% endgeneration %}>{% endmacro %}a{{ f() }}"
                 "{{ 'x' ~ f() | upper }}",
                 "", "answer b;answer B;");
    expect_marks("{% set y %}<{% generation %}b{% endgeneration %}>{% endset %}a{{ y }}{{ y[1:] }}",
                 "", "answer b;answer b;");
    expect_marks("{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}a{% generation %}b"
                 "{% endgeneration %}{% endcall %}",
                 "", "answer b;");
    expect_marks("{% for i in [1, 2] %}{% generation %}{{ i }}{% endgeneration %}{% endfor %}", "",
                 "answer 1;answer 2;");
}

Test(eng_jinja, content_stays_marked_through_texts_made_of_it)
{
    expect_marks("<{{ x }}>", "ab", "ab;");
    expect_marks("<{{ x + '|' + x }}>", "ab", "ab;ab;");
    expect_marks("{{ ('<' + x + '>')[1:2] }}", "ab", "a;");
    expect_marks("{{ ('-' ~ x).split('b') | join('+') }}", "abc", "a;c;");
    expect_marks("{{ [x, 1, 'y'] }}", "ab", "'ab';");
    expect_marks("{{ {'k': x} | tojson }}", "a\"b", "\"a\\\"b\";");
    expect_marks("{{ 'a.b'.replace('.', x) }}", "zz", "zz;");
    expect_marks("{{ x | trim | upper }}", " ab ", "AB;");
    expect_marks("{{ ('<' ~ x ~ '>') | e }}", "a&b", "a&amp;b;");
    expect_marks(
        "{% macro f() %}<{% generation %}'b'{% endgeneration %}>{% endmacro %}{{ f() | e }}", "",
        "answer &#39;b&#39;;");
    expect_marks("{{ '{}<{n}>'.format(x, n=x) }}{{ '%s%s' % (x, 1) }}", "ab", "ab;ab;ab;");
}
