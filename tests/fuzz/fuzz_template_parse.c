/* Template sources: what parses renders two chats, the first one twice the same, within its limits;
 * what does not names line and column. Called by libFuzzer and replay_main.c. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "jinja.h"
#include "jinja_json.h"

enum { SOURCE_MAX = 1 << 14 };

static const struct eng_jinja_limits limits = {
    .memory_bytes = 4 << 20, .output_bytes = 1 << 18, .steps = 200000};

/* What templates are given: a chat with everything that a record may hold, and one with nothing. */
static const char *const chats[] = {
    "{\"messages\":[{\"role\":\"system\",\"content\":\" S\\n\"},"
    "{\"role\":\"user\",\"content\":\" Q\\u00e9 \"},{\"role\":\"assistant\",\"content\":null,"
    "\"reasoning_content\":\"R\",\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":"
    "{\"name\":\"f\",\"arguments\":{\"b\":[1,2.5,null],\"a\":\"x\"}}}]},"
    "{\"role\":\"tool\",\"content\":\"<T>&\",\"tool_call_id\":\"c1\",\"name\":\"f\"},"
    "{\"role\":\"assistant\",\"content\":\"A\\n\"},{\"role\":\"user\",\"content\":\"B\"},"
    "{\"role\":\"assistant\",\"content\":\"<think>t</think>C\"}],"
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"D\","
    "\"parameters\":"
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"enum\":[\"x\",\"y\"]},"
    "\"b\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"number\"}}},\"required\":[\"a\"]}}}"
    "],"
    "\"documents\":[{\"title\":\"t\",\"text\":\"d\"}],\"add_generation_prompt\":true,\"x\":3}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Q\"},{\"role\":\"assistant\",\"content\":\"\"}"
    "],"
    "\"tools\":null,\"documents\":null,\"add_generation_prompt\":false,\"x\":\"ab\"}"};
enum { CHATS = sizeof chats / sizeof chats[0] };

static void set_variables(struct eng_jinja_renderer *r, size_t chat)
{
    static json_t *parsed[CHATS];
    if (parsed[chat] == NULL) {
        parsed[chat] = json_loads(chats[chat], 0, NULL);
        fuzz_require(parsed[chat] != NULL);
    }
    const char *name;
    json_t *value;
    json_object_foreach(parsed[chat], name, value)
    {
        eng_jinja_variable(r, name, eng_jinja_from_json(&r->mem, value, JS_CONTENT));
    }
    eng_jinja_variable(r, "bos_token", eng_jinja_literal("<s>"));
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

/* One render: right text, or a message with a place. */
static enum eng_status render(struct eng_jinja_renderer *r, const eng_jinja *template, size_t chat,
                              const struct jbuf **text, struct eng_error *error)
{
    eng_jinja_begin(r);
    set_variables(r, chat);
    const enum eng_status status = eng_jinja_render(r, template, text, error);
    if (status == ENG_OK) {
        fuzz_require((*text)->size <= limits.output_bytes);
        fuzz_require(fuzz_is_utf8((*text)->bytes, (*text)->size));
        check_marks(*text);
    } else {
        fuzz_require(status == ENG_EINPUT);
        fuzz_require(names_a_place(error->text));
    }
    return status;
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
    const enum eng_status status = render(&r, template, 0, &text, &first);
    if (status == ENG_OK) {
        size = text->size;
        kept = fuzz_exact(text->bytes, size);
    }
    (void)render(&r, template, 1, &text, &second);
    fuzz_require(render(&r, template, 0, &text, &second) == status);
    if (status == ENG_OK) {
        fuzz_require(text->size == size);
        fuzz_require(size == 0 || memcmp(text->bytes, kept, size) == 0);
    } else {
        fuzz_require(strcmp(first.text, second.text) == 0);
    }
    free(kept);
    eng_jinja_fini(&r);
}

/* What the parser notes agrees with the source: words that do not stand in it are not read. */
static void check_notes(const eng_jinja *template, const char *source, size_t size)
{
    static const char *const names[] = {"strftime_now", "tools", "messages"};
    for (size_t i = 0; size > 0 && i < sizeof names / sizeof names[0]; i++) {
        const bool stands = memmem(source, size, names[i], strlen(names[i])) != NULL;
        fuzz_require(stands || !eng_jinja_reads(template, names[i]));
    }
    const bool generation = size > 0 && memmem(source, size, "generation", 10) != NULL;
    const bool trims = size > 0 && memmem(source, size, "tri", 3) != NULL; /* trim, strip */
    fuzz_require(generation || !eng_jinja_has_generation(template));
    fuzz_require(trims || !eng_jinja_trims(template));
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
        check_notes(template, source, size);
        check_renders(template);
    } else {
        const bool is_text = fuzz_is_utf8(source, size);
        fuzz_require(is_text ? names_a_place(error.text) : strcmp(error.text, "t: not UTF-8") == 0);
    }
    eng_jinja_destroy(template);
    free(source);
    return 0;
}
