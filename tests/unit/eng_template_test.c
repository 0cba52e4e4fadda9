/* Templates from files: answers by marks and by prefixes, contents, tokens of a configuration,
 * refusals. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eng_text_fixture.h"
#include "template.h"

static const struct eng_message chat[] = {
    {ENG_ROLE_SYSTEM, {"S", 1}}, {ENG_ROLE_USER, {" Q1", 3}},     {ENG_ROLE_ASSISTANT, {"A1", 2}},
    {ENG_ROLE_USER, {"Q2", 2}},  {ENG_ROLE_ASSISTANT, {"A2", 2}},
};

/* A file of that ending with that text. */
static char *written(const char *ending, const char *text)
{
    char *const plain = fixture_file(text);
    char *const path = malloc(strlen(plain) + strlen(ending) + 1);
    sprintf(path, "%s%s", plain, ending);
    cr_assert_eq(rename(plain, path), 0);
    free(plain);
    return path;
}

/* "text|answer,answer|content,content", or the error without the path. */
static void expect(const char *ending, const char *file, const char *variant, const char *wanted)
{
    char *const path = written(ending, file);
    char name[600];
    char shown[2000] = "";
    struct eng_error error = {""};
    struct eng_rendered r = {0};
    eng_template *t = NULL;
    snprintf(name, sizeof name, "%s%s", path, variant);
    enum eng_status status = eng_template_open(name, &t, &error);
    if (status == ENG_OK) {
        status = eng_template_render(t, chat, 5, NULL, &r, &error);
    }
    if (status != ENG_OK) {
        const char *const at =
            strncmp(error.text, path, strlen(path)) == 0 ? error.text + strlen(path) : error.text;
        snprintf(shown, sizeof shown, "%s", at);
    } else {
        snprintf(shown, sizeof shown, "%.*s|", (int)r.size, r.bytes);
        for (size_t i = 0; i < r.answer_count; i++) {
            snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%.*s,",
                     (int)(r.answers[i].end - r.answers[i].start), r.bytes + r.answers[i].start);
        }
        strcat(shown, "|");
        for (size_t i = 0; i < r.content_count; i++) {
            snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%.*s,",
                     (int)(r.contents[i].end - r.contents[i].start), r.bytes + r.contents[i].start);
        }
    }
    cr_assert_str_eq(shown, wanted, "%s: %s", file, shown);
    eng_template_close(t);
    eng_rendered_fini(&r);
    fixture_remove(path);
}

Test(eng_template, answers_are_what_generation_blocks_wrote)
{
    expect(".jinja",
           "{% for m in messages %}<{{ m.role[0] }}>{% if m.role == 'assistant' %}"
           "{% generation %}{{ m.content }}.{% endgeneration %}{% else %}{{ m.content | trim }}"
           "{% endif %}{% endfor %}",
           "", "<s>S<u>Q1<a>A1.<u>Q2<a>A2.|A1.,A2.,|S,Q1,A1,Q2,A2,");
}

Test(eng_template, answers_without_marks_follow_a_rendered_prefix)
{
    expect(".jinja",
           "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}.{% endfor %}"
           "{% if add_generation_prompt %}<a>{% endif %}",
           "", "<s>S.<u> Q1.<a>A1.<u>Q2.<a>A2.|A1.,A2.,|S, Q1,A1,Q2,A2,");
    expect(".jinja", "{% for m in messages %}{{ m.content }}{% endfor %}{{ messages | length }}",
           "",
           "the template has no generation block, and what it writes for the first 2 messages and "
           "a generation prompt does not begin what it writes for all");
}

Test(eng_template, a_configuration_brings_the_template_and_its_tokens)
{
    static const char config[] =
        "{\"bos_token\": {\"content\": \"<b>\"}, \"eos_token\": \"<e>\", \"pad_token\": null,"
        " \"chat_template\": [{\"name\": \"default\", \"template\": "
        "\"{{ bos_token }}{% generation %}{{ eos_token }}{% endgeneration %}\"},"
        " {\"name\": \"other\", \"template\": \"{% generation %}o{% endgeneration %}\"}]}";
    expect(".json", config, "", "<b><e>|<e>,|");
    expect(".json", config, "#other", "o|o,|");
    expect(".json", config, "#third", ": no chat_template called third");
    expect(".json", "{\"bos_token\": 1, \"chat_template\": \"x\"}", "", ":1: bos_token is no text");
    expect(".json",
           "{\"cls_token\": \"<c>\", \"additional_special_tokens\": [\"<x>\", {\"content\": "
           "\"<y>\"}], "
           "\"chat_template\": \"{% generation %}{{ cls_token ~ additional_special_tokens[1] ~ "
           "additional_special_tokens | length }}{% endgeneration %}\"}",
           "", "<c><y>2|<c><y>2,|");
    expect(".json", "{\"additional_special_tokens\": \"a\", \"chat_template\": \"x\"}", "",
           ":1: additional_special_tokens is no list");
    expect(".json", "{\"additional_special_tokens\": [\"a\", 1], \"chat_template\": \"x\"}", "",
           ":1: additional_special_tokens is no text");
    expect(".json", "{\"x\": 1,\n\"chat_template\": 1}", "",
           ":2: chat_template is neither a text nor a list of templates");
    expect(".json", "{\"chat_template\": [\n\"a\"]}", "",
           ":1: chat_template holds something that is no template with a name");
    expect(".json", "{\"chat_template\": [{\"name\": \"a\", \"template\": \"\"}]}", "",
           ": no chat_template called default");
    expect(".json", "{\"chat_template\": \"a\\n{{ x | shout }}\"}", "",
           ": chat_template:2:8: there is no filter 'shout'");
    expect(".json",
           "{\"model_max_length\": 1000000000000000019884624838656, \"chat_template\": "
           "\"{% generation %}o{% endgeneration %}\"}",
           "", "o|o,|");
    expect(".json", "{}", "", ": no chat_template");
    expect(".json", "{", "", ":1: not JSON: string or '}' expected near end of file");
}

Test(eng_template, what_is_wrong_in_a_template_is_named_with_its_place)
{
    expect(".jinja", "a\n{{ x | shout }}", "", ":2:8: there is no filter 'shout'");
    expect(".jinja", "{{ raise_exception('no tools') }}", "",
           ":1:4: the template raises: no tools");
    expect(".jinja", "{{ raise_exception('no\\n\\x1b[1mtools') }}", "",
           ":1:4: the template raises: no  [1mtools");
    expect(".jinja", "{{ strftime_now('%') }}", "", ":1:4: '%' of strftime_now is not supported");
    expect(".jinja", "{{ strftime_now('%Y') }}{% generation %}{% endgeneration %}", "", "2024|,|");
    struct eng_error error = {""};
    eng_template *t = NULL;
    cr_assert_eq(eng_template_open("vicuna", &t, &error), ENG_EUSAGE);
    cr_assert_eq(eng_template_open("/nowhere/x.jinja", &t, &error), ENG_EIO);
    cr_assert_neq(strstr(error.text, "/nowhere/x.jinja"), NULL);
}

Test(eng_template, tools_and_calls_keep_the_order_of_the_record)
{
    static const struct eng_message messages[] = {{ENG_ROLE_USER, {"Q", 1}},
                                                  {ENG_ROLE_ASSISTANT, {NULL, 0}},
                                                  {ENG_ROLE_TOOL, {"R", 1}},
                                                  {ENG_ROLE_ASSISTANT, {"A", 1}}};
    static const char calls[] = "[{\"z\": 1.50, \"a\": \"<e>\"}]";
    struct eng_message_extra extra[4] = {{{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}}};
    extra[1].tool_calls = (struct eng_text){calls, sizeof calls - 1};
    extra[2].name = (struct eng_text){"n", 1};
    struct eng_extras extras = {.tools = {"[{\"b\": -0, \"a\": null}]", 22}, .messages = extra};
    char *const path = written(".jinja", "{{ tools | tojson }}{{ documents is none }}"
                                         "{% for m in messages %}{{ m | tojson }}"
                                         "{% generation %}{{ m.tool_calls }}{% endgeneration %}"
                                         "{% endfor %}");
    static const char wanted[] =
        "[{\"b\": 0, \"a\": null}]True{\"role\": \"user\", \"content\": \"Q\"}"
        "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": "
        "[{\"z\": 1.5, \"a\": \"<e>\"}]}[{'z': 1.5, 'a': '<e>'}]"
        "{\"role\": \"tool\", \"content\": \"R\", \"name\": \"n\"}"
        "{\"role\": \"assistant\", \"content\": \"A\"}";
    struct eng_error error = {""};
    struct eng_rendered r = {0};
    eng_template *t = NULL;
    cr_assert_eq(eng_template_open(path, &t, &error), ENG_OK, "%s", error.text);
    cr_assert_eq(eng_template_render(t, messages, 4, &extras, &r, &error), ENG_OK, "%s",
                 error.text);
    cr_assert_eq(r.size, sizeof wanted - 1, "%.*s", (int)r.size, r.bytes);
    cr_assert_eq(memcmp(r.bytes, wanted, r.size), 0, "%.*s", (int)r.size, r.bytes);
    extras.tools = (struct eng_text){"[{\"b\": 9223372036854775808}]", 28};
    cr_assert_eq(eng_template_render(t, messages, 4, &extras, &r, &error), ENG_EINPUT);
    cr_assert_neq(strstr(error.text, "tools: too big integer"), NULL, "%s", error.text);
    eng_rendered_fini(&r);
    eng_template_close(t);
    fixture_remove(path);
}

Test(eng_template, what_the_template_does_not_name_is_refused)
{
    static const struct eng_message_extra extra[5] = {[2] = {.tool_calls = {"[]", 2}}};
    static const struct {
        struct eng_extras extras;
        const char *word;
    } cases[] = {{{.tools = {"[]", 2}}, "has tools, which"},
                 {{.documents = {"[]", 2}}, "has documents, which"},
                 {{.messages = extra}, "has tool_calls, which"}};
    struct eng_rendered r = {0};
    eng_template *t = NULL;
    cr_assert_eq(eng_template_open("chatml", &t, NULL), ENG_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct eng_error error = {""};
        cr_assert_eq(eng_template_render(t, chat, 5, &cases[i].extras, &r, &error), ENG_EINPUT);
        cr_assert_neq(strstr(error.text, cases[i].word), NULL, "%s", error.text);
    }
    static const struct eng_message told[] = {{ENG_ROLE_TOOL, {"R", 1}}};
    struct eng_error error = {""};
    cr_assert_eq(eng_template_render(t, told, 1, NULL, &r, &error), ENG_EINPUT);
    cr_assert_neq(strstr(error.text, "messages of role tool, which"), NULL, "%s", error.text);
    eng_rendered_fini(&r);
    eng_template_close(t);
}
