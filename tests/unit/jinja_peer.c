/* Renders templates for a comparison with Jinja2: reads JSON Lines {"source", "variables": [...]}
 * and writes for each variables one line {"text", "answers"} or {"error"}; a template that does not
 * parse gives one line {"parse"} alone. Called by jinja_gallery.py; must not know Jinja2. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jinja.h"
#include "jinja_json.h"

enum { CLOCK = 1767225600 + 3661 }; /* 2026-01-01 01:01:01, as jinja_gallery.py has it */

static json_t *spans_of(const struct jbuf *text, enum jmark_kind kind)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < text->mark_count; i++) {
        if (text->marks[i].kind == kind) {
            json_array_append_new(list, json_pack("[I, I]", (json_int_t)text->marks[i].start,
                                                  (json_int_t)text->marks[i].end));
        }
    }
    return list;
}

/* Texts of a chat are content, roles are not. */
static struct jv message_value(struct jmem *m, const json_t *message)
{
    const struct jv dict = eng_jinja_dict(m, 0);
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)message, key, value)
    {
        const uint8_t flags = strcmp(key, "role") == 0 ? 0 : JS_CONTENT;
        eng_jinja_set(m, dict, eng_jinja_copy(m, key, strlen(key), 0),
                      eng_jinja_from_json(m, value, flags));
    }
    return dict;
}

static struct jv variable_value(struct jmem *m, const char *name, const json_t *value)
{
    if (strcmp(name, "messages") != 0 || !json_is_array(value)) {
        const bool given = strcmp(name, "tools") == 0 || strcmp(name, "documents") == 0;
        return eng_jinja_from_json(m, value, given ? JS_CONTENT : 0);
    }
    const struct jv list = eng_jinja_list(m, J_LIST, 0);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *const message = json_array_get(value, i);
        eng_jinja_append(m, list,
                         json_is_object(message) ? message_value(m, message)
                                                 : eng_jinja_from_json(m, message, JS_CONTENT));
    }
    return list;
}

static void render(struct eng_jinja_renderer *renderer, const eng_jinja *template,
                   const json_t *variables)
{
    const char *name = NULL;
    json_t *value = NULL;
    const struct jbuf *text = NULL;
    struct eng_error error = {""};
    eng_jinja_begin(renderer);
    renderer->clock = CLOCK;
    json_object_foreach((json_t *)variables, name, value)
    {
        eng_jinja_variable(renderer, name, variable_value(&renderer->mem, name, value));
    }
    json_t *answer = NULL;
    if (eng_jinja_render(renderer, template, &text, &error) != ENG_OK) {
        answer = json_pack("{s:s}", "error", error.text);
    } else {
        answer = json_pack("{s:s%, s:o, s:o}", "text", text->size > 0 ? text->bytes : "",
                           text->size, "answers", spans_of(text, JMARK_ANSWER), "contents",
                           spans_of(text, JMARK_CONTENT));
    }
    json_dumpf(answer, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(answer);
}

int main(void)
{
    struct eng_jinja_renderer renderer;
    struct eng_error error = {""};
    if (eng_jinja_init(&renderer, &eng_jinja_usual_limits, &error) != ENG_OK) {
        return 1;
    }
    for (;;) {
        json_t *const job = json_loadf(stdin, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL);
        if (job == NULL) {
            break;
        }
        eng_jinja *template = NULL;
        const json_t *const source = json_object_get(job, "source");
        if (eng_jinja_parse("template", json_string_value(source), json_string_length(source),
                            &template, &error) != ENG_OK) {
            json_t *const answer = json_pack("{s:s}", "parse", error.text);
            json_dumpf(answer, stdout, JSON_COMPACT);
            putchar('\n');
            json_decref(answer);
        } else {
            const json_t *const list = json_object_get(job, "variables");
            for (size_t i = 0; i < json_array_size(list); i++) {
                render(&renderer, template, json_array_get(list, i));
            }
        }
        eng_jinja_destroy(template);
        json_decref(job);
        fflush(stdout);
    }
    eng_jinja_fini(&renderer);
    return 0;
}
