/* Strict JSON: lines that are records, and lines that are not, each with its cause. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_record.h"

#define CHAT                                                                                       \
    "\"messages\": [{\"role\": \"user\", \"content\": \"Q\"}, {\"role\": \"assistant\", "          \
    "\"content\": \"A\"}]"
#define USER(text)                                                                                 \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"" text "\"}, "                            \
    "{\"role\": \"assistant\", \"content\": \"A\"}]}"

/* A question, an answer that has these tool calls, and what follows it. */
#define CALLS(calls, role, content)                                                                \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Q\"}, {\"role\": \"assistant\", "         \
    "\"content\": \"A\", \"tool_calls\": " calls "}, "                                             \
    "{\"role\": \"" role "\", \"content\": " content "}, "                                         \
    "{\"role\": \"assistant\", \"content\": \"B\"}]}"

struct bad_line {
    const char *line, *cause;
};

static const struct bad_line bad_lines[] = {
    {"", "empty line"},
    {"   ", "an object is expected"},
    {"[]", "an object is expected"},
    {"\"x\"", "an object is expected"},
    {"\xEF\xBB\xBF{" CHAT "}", "an object is expected (byte 1)"},
    {"{}", "no key 'messages'"},
    {"{\"messages\": []}", "messages is empty"},
    {"{\"messages\": null}", "messages must be an array"},
    {"{\"messages\": {}}", "messages must be an array"},
    {"{\"messages\": [1]}", "an object is expected"},
    {"{" CHAT "} x", "something follows the object"},
    {"{" CHAT "}{}", "something follows the object"},
    {"{" CHAT, "',' or '}' is expected"},
    {"{" CHAT ",}", "a string is expected"},
    {"{" CHAT " \"x\": 1}", "',' or '}' is expected"},
    {"{" CHAT ", \"x\" 1}", "':' is expected"},
    {"{" CHAT ", x: 1}", "a string is expected"},
    {"{" CHAT ", 'x': 1}", "a string is expected"},
    {"{" CHAT ", \"x\": }", "malformed value"},
    {"{" CHAT ", \"x\": nul}", "malformed value"},
    {"{" CHAT ", \"x\": NaN}", "malformed value"},
    {"{" CHAT ", \"x\": Infinity}", "malformed value"},
    {"{" CHAT ", \"x\": +1}", "malformed value"},
    {"{" CHAT ", \"x\": 01}", "malformed value"},
    {"{" CHAT ", \"x\": -}", "malformed value"},
    {"{" CHAT ", \"x\": .5}", "malformed value"},
    {"{" CHAT ", \"x\": 1.}", "malformed number"},
    {"{" CHAT ", \"x\": 1e}", "malformed number"},
    {"{" CHAT ", \"x\": 1e+}", "malformed number"},
    {"{" CHAT ", \"x\": 0x10}", "',' or '}' is expected"},
    {"{" CHAT ", \"x\": [1,]}", "malformed value"},
    {"{" CHAT ", \"x\": [1 2]}", "',' or ']' is expected"},
    {"{" CHAT ", \"x\": [1", "',' or ']' is expected"},
    {"{" CHAT ", \"x\": \"", "string without an end"},
    {"{" CHAT ", \"x\": // no\n 1}", "malformed value"},
    {"{" CHAT ", \"x\": 1, \"x\": 2}", "duplicate key 'x'"},
    {"{" CHAT ", \"x\": 1, \"\\u0078\": 2}", "duplicate key 'x'"},
    {"{" CHAT ", " CHAT "}", "duplicate key 'messages'"},
    {"{" CHAT ", \"x\": {\"y\": {\"z\": 1, \"z\": 1}}}", "duplicate key 'z'"},
    {"{" CHAT ", \"id\": 5}", "a string is expected"},
    {"{" CHAT ", \"id\": null}", "a string is expected"},
    {"{" CHAT ", \"id\": \"a\\u0000b\"}", "id holds a NUL"},
    {USER("\t"), "raw control character 0x09"},
    {USER("\x1F"), "raw control character 0x1f"},
    {USER("\\a"), "unknown escape"},
    {USER("\\'"), "unknown escape"},
    {USER("\\u12g4"), "four hexadecimal digits"},
    {USER("\\uD800"), "lone surrogate \\ud800"},
    {USER("\\uD800x"), "lone surrogate \\ud800"},
    {USER("\\uD800\\n"), "lone surrogate \\ud800"},
    {USER("\\uD800\\u0041"), "lone surrogate \\ud800"},
    {USER("\\uD800\\uD800"), "lone surrogate \\ud800"},
    {USER("\\uDC00"), "lone surrogate \\udc00"},
    {USER("\xFF"), "invalid UTF-8"},
    {USER("\xC0\x80"), "invalid UTF-8"},
    {USER("\xC3"), "invalid UTF-8"},
    {USER("\xED\xA0\x80"), "invalid UTF-8"},
    {USER("\xF4\x90\x80\x80"), "invalid UTF-8"},
    {USER("12345678\x80"), "invalid UTF-8"},
    {"{\"messages\": [{\"role\": \"user\"}]}", "message 1 has no content"},
    {"{\"messages\": [{\"content\": \"Q\"}]}", "message 1 has no role"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": 7}]}", "a string is expected"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": [\"Q\"]}]}", "a string is expected"},
    {"{\"messages\": [{\"role\": \"user\", \"role\": \"user\"}]}", "duplicate key 'role'"},
    {"{\"messages\": [{\"role\": \"tool\", \"content\": \"Q\"}]}",
     "message 1: user is expected, not tool"},
    {"{\"messages\": [{\"role\": \"critic\", \"content\": \"Q\"}]}", "role 'critic' is none of"},
    {CALLS("[{}]", "user", "\"R\""), "message 3: tool is expected, not user"},
    {CALLS("[]", "assistant", "\"R\""), "message 3: user or tool is expected, not assistant"},
    {CALLS("[{}]", "tool", "null"), "message 3 has no content"},
    {CALLS("[{}]", "tool", "\"R\", \"tool_calls\": []"),
     "message 3 has tool_calls, but is not the assistant's"},
    {CALLS("[1]", "tool", "\"R\""), "an element of the list is not an object"},
    {CALLS("{}", "tool", "\"R\""), "tool_calls must be an array"},
    {CALLS("[{\"a\": 1, \"a\": 1}]", "tool", "\"R\""), "duplicate key 'a'"},
    {"{\"tools\": {}, " CHAT "}", "tools must be an array"},
    {"{\"documents\": [[]], " CHAT "}", "an element of the list is not an object"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": \"Q\", \"tool_call_id\": \"1\"}]}",
     "message 1 has tool_call_id, but is not a tool's"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": \"Q\", \"name\": 1}]}",
     "a string is expected"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": null}]}", "message 1 has no content"},
    {"{\"messages\": [{\"role\": \"User\", \"content\": \"Q\"}]}", "role 'User' is none of"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": \"Q\"}]}",
     "last message is not the assistant"},
    {"{\"messages\": [{\"role\": \"system\", \"content\": \"S\"}]}",
     "last message is not the assistant"},
    {"{\"messages\": [{\"role\": \"assistant\", \"content\": \"A\"}]}",
     "message 1: user is expected"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": \"Q\"}, {\"role\": \"user\", \"content\": "
     "\"Q\"}]}",
     "message 2: assistant is expected"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": \"Q\"}, {\"role\": \"system\", "
     "\"content\": \"S\"}]}",
     "message 2: system may only come first"},
};

Test(eng_data_json, names_the_cause_of_every_bad_line)
{
    struct eng_conversation chat = {0};
    size_t compared = 0;
    for (size_t i = 0; i < sizeof bad_lines / sizeof bad_lines[0]; i++) {
        /* An exact copy on the heap, so that a sanitizer sees a read behind the line. */
        const size_t size = strlen(bad_lines[i].line);
        char *const line = malloc(size + 1);
        struct eng_error cause = {""};
        memcpy(line, bad_lines[i].line, size);
        char *const exact = realloc(line, size > 0 ? size : 1);
        cr_assert_eq(eng_record_parse(ENG_FORMAT_MESSAGES, exact, size, &chat, &cause), ENG_EINPUT,
                     "%s", bad_lines[i].line);
        cr_assert_neq(strstr(cause.text, bad_lines[i].cause), NULL, "%s: '%s' is not in '%s'",
                      bad_lines[i].line, bad_lines[i].cause, cause.text);
        free(exact);
        compared++;
    }
    cr_assert_gt(compared, 0);
    eng_conversation_fini(&chat);
}

/* Every beginning of a good line is no record. */
Test(eng_data_json, a_cut_line_is_refused_wherever_it_is_cut)
{
    static const char line[] =
        "{\"id\": \"\\u00e9\\ud83d\\ude00\", \"x\": [1.5e-3, {\"y\": [true, null]}], " CHAT "}";
    struct eng_conversation chat = {0};
    const size_t size = sizeof line - 1;
    cr_assert_eq(eng_record_parse(ENG_FORMAT_MESSAGES, line, size, &chat, NULL), ENG_OK);
    for (size_t cut = 0; cut < size; cut++) {
        char *const part = malloc(cut + 1);
        memcpy(part, line, cut);
        char *const exact = realloc(part, cut > 0 ? cut : 1);
        cr_assert_eq(eng_record_parse(ENG_FORMAT_MESSAGES, exact, cut, &chat, NULL), ENG_EINPUT,
                     "cut at %zu", cut);
        free(exact);
    }
    eng_conversation_fini(&chat);
}

static void expect_text(struct eng_text text, const char *wanted, size_t size)
{
    cr_assert_eq(text.size, size);
    cr_assert_eq(memcmp(text.bytes, wanted, size), 0);
}

Test(eng_data_json, decodes_escapes_and_keeps_the_rest)
{
    static const char line[] =
        " {\"extra\": {\"a\": [[], {}, -0.5E+2, 0, false]} ,\t\"id\" : \"r\\/1\", "
        "\"messages\" : [ {\"content\": \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00E9"
        "\\u20ac\\uD83D\\uDE00 plain \xC3\xA9\x7F\", \"weight\": 1, \"role\": \"user\"}, "
        "{\"role\": \"\\u0061ssistant\", \"content\": \"\"} ] } \r";
    static const char wanted[] =
        "\"\\/\b\f\n\r\t\0\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 plain \xC3\xA9\x7F";
    struct eng_conversation chat = {0};
    struct eng_error cause = {""};
    cr_assert_eq(eng_record_parse(ENG_FORMAT_MESSAGES, line, sizeof line - 1, &chat, &cause),
                 ENG_OK, "%s", cause.text);
    cr_assert_eq(chat.message_count, 2);
    expect_text(chat.id, "r/1", 3);
    cr_assert_eq(chat.messages[0].role, ENG_ROLE_USER);
    expect_text(chat.messages[0].content, wanted, sizeof wanted - 1);
    cr_assert_eq(chat.messages[1].role, ENG_ROLE_ASSISTANT);
    cr_assert_eq(chat.messages[1].content.size, 0);
    eng_conversation_fini(&chat);
}

Test(eng_data_json, reads_tools_as_they_stand)
{
    static const char line[] =
        "{\"tools\": [ {\"b\": 1, \"a\": [2]} ], \"documents\": null, \"messages\": ["
        "{\"role\": \"user\", \"content\": \"Q\"}, {\"role\": \"assistant\", "
        "\"tool_calls\": [{\"name\": \"f\"}], \"reasoning_content\": \"why\"}, "
        "{\"role\": \"tool\", \"tool_call_id\": \"7\", \"content\": \"\", \"name\": null}, "
        "{\"role\": \"assistant\", \"content\": \"A\", \"tool_calls\": null}]}";
    struct eng_conversation chat = {0};
    struct eng_error cause = {""};
    cr_assert_eq(eng_record_parse(ENG_FORMAT_MESSAGES, line, sizeof line - 1, &chat, &cause),
                 ENG_OK, "%s", cause.text);
    const struct eng_extras extras = eng_conversation_extras(&chat);
    cr_assert_eq(chat.message_count, 4);
    expect_text(extras.tools, "[ {\"b\": 1, \"a\": [2]} ]", 22);
    cr_assert_eq(extras.documents.bytes, NULL);
    cr_assert_neq(extras.messages, NULL);
    cr_assert_eq(chat.messages[1].content.bytes, NULL);
    expect_text(extras.messages[1].tool_calls, "[{\"name\": \"f\"}]", 15);
    expect_text(extras.messages[1].reasoning_content, "why", 3);
    cr_assert_eq(chat.messages[2].role, ENG_ROLE_TOOL);
    expect_text(extras.messages[2].tool_call_id, "7", 1);
    cr_assert_eq(extras.messages[2].name.bytes, NULL);
    cr_assert_eq(extras.messages[3].tool_calls.bytes, NULL);
    static const char plain[] = "{" CHAT "}";
    cr_assert_eq(eng_record_parse(ENG_FORMAT_MESSAGES, plain, sizeof plain - 1, &chat, NULL),
                 ENG_OK);
    cr_assert_eq(eng_conversation_extras(&chat).messages, NULL);
    cr_assert_eq(eng_conversation_extras(&chat).tools.bytes, NULL);
    eng_conversation_fini(&chat);
}

Test(eng_data_json, a_completion_keeps_its_calls_wherever_it_stands)
{
    static const char line[] =
        "{\"completion\": [{\"role\": \"assistant\", \"content\": \"A\", \"tool_calls\": [{}]}], "
        "\"prompt\": [{\"role\": \"user\", \"content\": \"Q\", \"name\": \"n\"}]}";
    struct eng_conversation chat = {0};
    cr_assert_eq(eng_record_parse(ENG_FORMAT_COMPLETION, line, sizeof line - 1, &chat, NULL),
                 ENG_OK);
    cr_assert_eq(chat.message_count, 2);
    const struct eng_extras extras = eng_conversation_extras(&chat);
    cr_assert_neq(extras.messages, NULL);
    expect_text(extras.messages[0].name, "n", 1);
    cr_assert_eq(extras.messages[0].tool_calls.bytes, NULL);
    expect_text(extras.messages[1].tool_calls, "[{}]", 4);
    eng_conversation_fini(&chat);
}

Test(eng_data_json, keeps_nothing_of_the_line_before)
{
    static const char first[] = "{\"id\": \"x\", " CHAT "}";
    static const char second[] = "{" CHAT "}";
    struct eng_conversation chat = {0};
    cr_assert_eq(eng_record_parse(ENG_FORMAT_MESSAGES, first, sizeof first - 1, &chat, NULL),
                 ENG_OK);
    cr_assert_eq(eng_record_parse(ENG_FORMAT_MESSAGES, second, sizeof second - 1, &chat, NULL),
                 ENG_OK);
    cr_assert_eq(chat.id.bytes, NULL);
    cr_assert_eq(chat.message_count, 2);
    eng_conversation_fini(&chat);
}

static char *nested(size_t depth)
{
    char *const line = calloc(2 * depth + 400, 1);
    strcpy(line, "{" CHAT ", \"x\": ");
    memset(line + strlen(line), '[', depth);
    memset(line + strlen(line), ']', depth);
    strcat(line, "}");
    return line;
}

Test(eng_data_json, limits_nesting)
{
    struct eng_conversation chat = {0};
    struct eng_error cause = {""};
    char *const good = nested(63);
    char *const bad = nested(100000);
    cr_assert_eq(eng_record_parse(ENG_FORMAT_MESSAGES, good, strlen(good), &chat, NULL), ENG_OK);
    cr_assert_eq(eng_record_parse(ENG_FORMAT_MESSAGES, bad, strlen(bad), &chat, &cause),
                 ENG_EINPUT);
    cr_assert_neq(strstr(cause.text, "nested deeper"), NULL);
    free(good);
    free(bad);
    eng_conversation_fini(&chat);
}

Test(eng_data_json, limits_the_id)
{
    struct eng_conversation chat = {0};
    for (int size = 126; size <= 129; size++) {
        char line[512];
        char id[130] = "";
        memset(id, 'i', (size_t)size);
        snprintf(line, sizeof line, "{\"id\": \"%.*s\", %s}", size, id, CHAT);
        cr_assert_eq(eng_record_parse(ENG_FORMAT_MESSAGES, line, strlen(line), &chat, NULL),
                     size <= 127 ? ENG_OK : ENG_EINPUT);
    }
    eng_conversation_fini(&chat);
}

/* ---- the other formats ---- */

struct format_line {
    enum eng_format format;
    const char *line, *wanted; /* roles and contents "u:..|a:..", or the cause */
};

static const struct format_line good_lines[] = {
    {ENG_FORMAT_SHAREGPT,
     "{\"conversations\": [{\"from\": \"human\", \"value\": \"Q\"}, {\"value\": \"A\", \"from\": "
     "\"gpt\"}], \"messages\": 7}",
     "u:Q|a:A|"},
    {ENG_FORMAT_SHAREGPT,
     "{\"system\": \"S\", \"conversations\": [{\"from\": \"user\", \"value\": \"Q\"}, {\"from\": "
     "\"assistant\", \"value\": \"A\"}]}",
     "s:S|u:Q|a:A|"},
    {ENG_FORMAT_SHAREGPT,
     "{\"conversations\": [{\"from\": \"system\", \"value\": \"S\"}, {\"from\": \"human\", "
     "\"value\": \"Q\"}, {\"from\": \"gpt\", \"value\": \"A\"}], \"system\": \"\"}",
     "s:S|u:Q|a:A|"},
    {ENG_FORMAT_ALPACA, "{\"instruction\": \"I\", \"output\": \"O\"}", "u:I|a:O|"},
    {ENG_FORMAT_ALPACA, "{\"output\": \"O\", \"input\": \"X\", \"instruction\": \"I\"}",
     "u:I\nX|a:O|"},
    {ENG_FORMAT_ALPACA, "{\"output\": \"O\", \"input\": \"\", \"instruction\": \"I\\n\"}",
     "u:I\n|a:O|"},
    {ENG_FORMAT_ALPACA,
     "{\"history\": [[\"q\", \"a\"], [\"r\", \"b\"]], \"system\": \"S\", \"input\": \"\\u00e9\", "
     "\"instruction\": \"I\\t\", \"output\": \"O\"}",
     "s:S|u:q|a:a|u:r|a:b|u:I\t\n\xC3\xA9|a:O|"},
    {ENG_FORMAT_ALPACA,
     "{\"instruction\": \"\", \"input\": \"X\", \"output\": \"\", \"history\": []}", "u:\nX|a:|"},
    {ENG_FORMAT_COMPLETION, "{\"prompt\": \"P\", \"completion\": \"C\"}", "u:P|a:C|"},
    {ENG_FORMAT_COMPLETION,
     "{\"completion\": [{\"role\": \"assistant\", \"content\": \"C\"}], \"prompt\": [{\"role\": "
     "\"system\", \"content\": \"S\"}, {\"role\": \"user\", \"content\": \"P\"}]}",
     "s:S|u:P|a:C|"},
    {ENG_FORMAT_COMPLETION,
     "{\"completion\": \"C\", \"prompt\": [{\"role\": \"user\", \"content\": \"P\"}, {\"role\": "
     "\"assistant\", \"content\": \"A\"}, {\"role\": \"user\", \"content\": \"Q\"}]}",
     "u:P|a:A|u:Q|a:C|"},
};

static const struct format_line bad_formats[] = {
    {ENG_FORMAT_SHAREGPT, "{" CHAT "}", "no key 'conversations'"},
    {ENG_FORMAT_SHAREGPT, "{\"conversations\": []}", "messages is empty"},
    {ENG_FORMAT_SHAREGPT, "{\"conversations\": {}}", "conversations must be an array"},
    {ENG_FORMAT_SHAREGPT, "{\"conversations\": [{\"from\": \"tool\", \"value\": \"x\"}]}",
     "role 'tool' is none of system, human, user, gpt, assistant"},
    {ENG_FORMAT_SHAREGPT, "{\"conversations\": [{\"role\": \"human\", \"value\": \"x\"}]}",
     "message 1 has no from"},
    {ENG_FORMAT_SHAREGPT, "{\"conversations\": [{\"from\": \"human\", \"content\": \"x\"}]}",
     "message 1 has no value"},
    {ENG_FORMAT_SHAREGPT,
     "{\"system\": \"S\", \"conversations\": [{\"from\": \"system\", \"value\": \"T\"}, {\"from\": "
     "\"human\", \"value\": \"Q\"}, {\"from\": \"gpt\", \"value\": \"A\"}]}",
     "message 2: system may only come first"},
    {ENG_FORMAT_SHAREGPT, "{\"conversations\": [], \"system\": null}", "a string is expected"},
    {ENG_FORMAT_ALPACA, "{\"output\": \"O\"}", "no key 'instruction'"},
    {ENG_FORMAT_ALPACA, "{\"instruction\": \"I\"}", "no key 'output'"},
    {ENG_FORMAT_ALPACA, "{\"instruction\": \"I\", \"output\": 1}", "a string is expected"},
    {ENG_FORMAT_ALPACA, "{\"instruction\": \"I\", \"output\": \"O\", \"input\": null}",
     "a string is expected"},
    {ENG_FORMAT_ALPACA, "{\"instruction\": \"I\", \"output\": \"O\", \"history\": null}",
     "history must be an array"},
    {ENG_FORMAT_ALPACA, "{\"instruction\": \"I\", \"output\": \"O\", \"history\": [\"q\", \"a\"]}",
     "an element of history must be an array"},
    {ENG_FORMAT_ALPACA, "{\"instruction\": \"I\", \"output\": \"O\", \"history\": [[\"q\"]]}",
     "an element of history has 1 strings, not 2"},
    {ENG_FORMAT_ALPACA, "{\"instruction\": \"I\", \"output\": \"O\", \"history\": [[\"q\", 1]]}",
     "a string is expected"},
    {ENG_FORMAT_COMPLETION, "{\"prompt\": \"P\"}", "no key 'completion'"},
    {ENG_FORMAT_COMPLETION, "{\"completion\": \"C\"}", "no key 'prompt'"},
    {ENG_FORMAT_COMPLETION, "{\"prompt\": 1, \"completion\": \"C\"}", "prompt must be an array"},
    {ENG_FORMAT_COMPLETION, "{\"prompt\": [], \"completion\": \"C\"}",
     "message 1: user is expected"},
    {ENG_FORMAT_COMPLETION,
     "{\"prompt\": \"P\", \"completion\": [{\"role\": \"user\", \"content\": \"C\"}]}",
     "completion is not one message of the assistant"},
    {ENG_FORMAT_COMPLETION, "{\"prompt\": \"P\", \"completion\": []}",
     "completion is not one message of the assistant"},
};

/* As in good_lines. */
static void spell(const struct eng_conversation *chat, char *out)
{
    *out = '\0';
    for (size_t i = 0; i < chat->message_count; i++) {
        const struct eng_message *const m = &chat->messages[i];
        out += sprintf(out, "%c:%.*s|", "sua"[m->role], (int)m -> content.size, m->content.bytes);
    }
}

Test(eng_data_json, reads_every_format_into_messages)
{
    struct eng_conversation chat = {0};
    for (size_t i = 0; i < sizeof good_lines / sizeof good_lines[0]; i++) {
        const struct format_line *const f = &good_lines[i];
        struct eng_error cause = {""};
        char spelt[256];
        const size_t size = strlen(f->line);
        char *const line = memcpy(malloc(size), f->line, size);
        cr_assert_eq(eng_record_parse(f->format, line, size, &chat, &cause), ENG_OK, "%s: %s",
                     f->line, cause.text);
        spell(&chat, spelt);
        cr_assert_str_eq(spelt, f->wanted);
        free(line);
    }
    eng_conversation_fini(&chat);
}

Test(eng_data_json, names_the_cause_of_lines_that_are_no_record_of_the_format)
{
    struct eng_conversation chat = {0};
    for (size_t i = 0; i < sizeof bad_formats / sizeof bad_formats[0]; i++) {
        const struct format_line *const f = &bad_formats[i];
        struct eng_error cause = {""};
        const size_t size = strlen(f->line);
        char *const line = memcpy(malloc(size), f->line, size);
        cr_assert_eq(eng_record_parse(f->format, line, size, &chat, &cause), ENG_EINPUT, "%s",
                     f->line);
        cr_assert_neq(strstr(cause.text, f->wanted), NULL, "%s: '%s' is not in '%s'", f->line,
                      f->wanted, cause.text);
        free(line);
    }
    eng_conversation_fini(&chat);
}

/* A special byte at every place of a long string, so at every place of the vectors that scan it. */
Test(eng_data_json, finds_what_is_special_wherever_it_stands)
{
    static const struct {
        const char *special, *cause; /* cause NULL: accepted */
    } cases[] = {{"\\n", NULL}, {"\xC3\xA9", NULL}, {"\x1F", "control"}, {"\xFF", "UTF-8"}};
    struct eng_conversation chat = {0};
    size_t compared = 0;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        for (size_t place = 0; place < 100; place++) {
            char content[128];
            char line[400];
            struct eng_error cause = {""};
            memset(content, 'x', 100);
            content[100] = '\0';
            memcpy(content + place, cases[k].special, strlen(cases[k].special));
            content[100 + (place == 99)] = '\0';
            const int size =
                snprintf(line, sizeof line, "{\"instruction\":\"%s\",\"output\":\"\"}", content);
            const enum eng_status status =
                eng_record_parse(ENG_FORMAT_ALPACA, line, (size_t)size, &chat, &cause);
            cr_assert_eq(status == ENG_OK, cases[k].cause == NULL, "place %zu: %s", place,
                         cause.text);
            if (status == ENG_OK && k == 0) {
                cr_assert_eq(chat.messages[0].content.bytes[place], '\n');
            } else if (status != ENG_OK) {
                cr_assert_neq(strstr(cause.text, cases[k].cause), NULL, "%s", cause.text);
            }
            compared++;
        }
    }
    cr_assert_gt(compared, 0);
    eng_conversation_fini(&chat);
}
