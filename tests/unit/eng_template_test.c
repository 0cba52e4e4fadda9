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
        status = eng_template_render(t, chat, 5, &r, &error);
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
    expect(".json", "{\"bos_token\": 1, \"chat_template\": \"x\"}", "", ": bos_token is no text");
    expect(".json", "{\"chat_template\": 1}", "", ": no chat_template");
    expect(".json", "{", "", ":1: not JSON: string or '}' expected near end of file");
}

Test(eng_template, what_is_wrong_in_a_template_is_named_with_its_place)
{
    expect(".jinja", "a\n{{ x | shout }}", "", ":2:8: there is no filter 'shout'");
    expect(".jinja", "{{ raise_exception('no tools') }}", "",
           ":1:4: the template raises: no tools");
    expect(".jinja", "{{ strftime_now('%Y') }}{% generation %}{% endgeneration %}", "", "2024|,|");
    struct eng_error error = {""};
    eng_template *t = NULL;
    cr_assert_eq(eng_template_open("vicuna", &t, &error), ENG_EUSAGE);
    cr_assert_eq(eng_template_open("/nowhere/x.jinja", &t, &error), ENG_EIO);
    cr_assert_neq(strstr(error.text, "/nowhere/x.jinja"), NULL);
}
