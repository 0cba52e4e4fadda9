/* The layouts against the real Jinja2, byte for byte and span for span; skipped where
 * python3-jinja2 is missing. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eng_text_fixture.h"
#include "layout.h"

enum { CHATS = 400, MESSAGES_MAX = 9 };

static const char *const names[] = {"chatml", "llama2", "llama3", "gemma", "plain"};

/* Pieces whose random concatenations make hostile contents. */
static const char *const pieces[] = {"word",
                                     " ",
                                     "  ",
                                     "\n",
                                     "\n\n",
                                     "\r\n",
                                     "\t",
                                     "",
                                     "A",
                                     "12345",
                                     "{{ x }}",
                                     "{% if %}",
                                     "{# c #}",
                                     "<|im_end|>",
                                     "<|im_start|>user\n",
                                     "<|eot_id|>",
                                     "[/INST]",
                                     "</s>",
                                     "<bos>",
                                     "<end_of_turn>",
                                     "\xC2\xA0",
                                     "\xE3\x80\x80",
                                     "\xE1\xA0\x8E",
                                     "\xEF\xBB\xBF",
                                     "\x1C",
                                     "\xC2\x85",
                                     "\xE2\x80\xA8",
                                     "e\xCC\x81",
                                     "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xAC",
                                     "\xD7\xA9\xD7\x9C",
                                     "<b>&amp;",
                                     "\"quote\"",
                                     "back\\slash",
                                     "'s",
                                     "%}",
                                     "\xE2\x80\x8B"};

struct chat {
    struct eng_message messages[MESSAGES_MAX];
    size_t count;
    char contents[MESSAGES_MAX][256];
};

static void draw_chat(struct chat *chat, uint64_t *state)
{
    const size_t first = fixture_draw(state) % 3 == 0 ? 1 : 0;
    chat->count = first + 2 * (1 + fixture_draw(state) % 4);
    for (size_t i = 0; i < chat->count; i++) {
        char *const content = chat->contents[i];
        content[0] = '\0';
        for (size_t n = fixture_draw(state) % 7; n > 0; n--) {
            strcat(content, pieces[fixture_draw(state) % (sizeof pieces / sizeof pieces[0])]);
        }
        chat->messages[i].role = i < first              ? ENG_ROLE_SYSTEM
                                 : (i - first) % 2 == 0 ? ENG_ROLE_USER
                                                        : ENG_ROLE_ASSISTANT;
        chat->messages[i].content = fixture_text(content);
    }
}

static char *write_chats(const struct chat *chats)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    char *const path = fixture_file("");
    FILE *const f = fopen(path, "wb");
    for (size_t c = 0; c < CHATS; c++) {
        json_t *const list = json_array();
        for (size_t i = 0; i < chats[c].count; i++) {
            json_array_append_new(list,
                                  json_pack("{s:s, s:s}", "role", roles[chats[c].messages[i].role],
                                            "content", chats[c].contents[i]));
        }
        json_t *const record = json_pack("{s:o}", "messages", list);
        json_dumpf(record, f, JSON_COMPACT | JSON_ENSURE_ASCII);
        fputc('\n', f);
        json_decref(record);
    }
    fclose(f);
    return path;
}

static void compare(const struct chat *chat, enum eng_layout layout, const json_t *wanted)
{
    struct eng_rendered text = {0};
    cr_assert_eq(eng_layout_render(layout, chat->messages, chat->count, &text, NULL), ENG_OK);
    char *const hex = calloc(text.size + 1, 2);
    for (size_t i = 0; i < text.size; i++) {
        sprintf(hex + 2 * i, "%02x", (unsigned char)text.bytes[i]);
    }
    cr_assert_str_eq(hex, json_string_value(json_object_get(wanted, "text")), "%s", names[layout]);
    const json_t *const answers = json_object_get(wanted, "answers");
    cr_assert_eq(json_array_size(answers), text.answer_count);
    cr_assert_gt(text.answer_count, 0);
    for (size_t i = 0; i < text.answer_count; i++) {
        const json_t *const span = json_array_get(answers, i);
        cr_assert_eq((size_t)json_integer_value(json_array_get(span, 0)), text.answers[i].start);
        cr_assert_eq((size_t)json_integer_value(json_array_get(span, 1)), text.answers[i].end);
    }
    free(hex);
    eng_rendered_fini(&text);
}

Test(eng_text_jinja, layouts_render_as_their_templates)
{
    if (system("/usr/bin/python3 -c 'import jinja2' 2>/dev/null") != 0) {
        cr_skip_test("python3-jinja2 is not installed");
    }
    static struct chat chats[CHATS];
    uint64_t state = 7;
    for (size_t c = 0; c < CHATS; c++) {
        draw_chat(&chats[c], &state);
    }
    char *const path = write_chats(chats);
    size_t compared = 0;
    for (int layout = 0; layout < ENG_LAYOUT_COUNT; layout++) {
        char command[1024];
        snprintf(command, sizeof command,
                 "/usr/bin/python3 %s/tests/unit/eng_text_jinja.py "
                 "%s/corpus/templates/%s.jinja %s",
                 FL_TOP, FL_TOP, names[layout], path);
        FILE *const pipe = popen(command, "r");
        for (size_t c = 0; c < CHATS; c++) {
            json_t *const wanted = json_loadf(pipe, JSON_DISABLE_EOF_CHECK, NULL);
            cr_assert_neq(wanted, NULL, "%s ended early", names[layout]);
            compare(&chats[c], (enum eng_layout)layout, wanted);
            json_decref(wanted);
            compared++;
        }
        while (fgetc(pipe) != EOF) { /* lets the child write its last line end */
        }
        cr_assert_eq(pclose(pipe), 0);
    }
    cr_assert_eq(compared, CHATS * ENG_LAYOUT_COUNT);
    fixture_remove(path);
}
