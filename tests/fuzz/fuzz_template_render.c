/* The Jinja engine against the table of layouts, which renders the same five templates in another
 * way, and against templates written out by hand: dated_turns.jinja, whose answers are found by
 * rendering prefixes, tool_turns.jinja, with tools, documents and calls, and those of a
 * tokenizer_config.json with special tokens: same bytes, answers and contents. What a template
 * would lose is refused. First byte: layout, or (0x40) dated_turns, or (0x20) tool_turns, or (0x60)
 * a config; system (0x80); then contents between 0xFF. Called by libFuzzer and replay_main.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eng_features.h"
#include "fuzz.h"
#include "template.h"

enum { MESSAGES_MAX = 32, DATED_TURNS = ENG_LAYOUT_COUNT, TOOL_TURNS, TEMPLATES };

static eng_template *jinja_of(unsigned which)
{
    static const char *const names[TEMPLATES] = {"chatml", "llama2",      "llama3",    "gemma",
                                                 "plain",  "dated_turns", "tool_turns"};
    static eng_template *opened[TEMPLATES];
    if (opened[which] == NULL) {
        char path[600];
        snprintf(path, sizeof path, FL_TOP "/corpus/templates/%s.jinja", names[which]);
        fuzz_require(eng_template_open(path, &opened[which], NULL) == ENG_OK);
        const uint64_t dated = ENG_FEATURE_dated | ENG_FEATURE_by_prefix;
        fuzz_require(eng_template_features(opened[which]) == (which == DATED_TURNS ? dated : 0));
        fuzz_require(eng_template_end_of_turn(opened[which])[0] == '\0');
    }
    return opened[which];
}

static eng_template *layout_of(enum eng_layout layout)
{
    static const char *const names[] = {"chatml", "llama2", "llama3", "gemma", "plain"};
    static eng_template *opened[ENG_LAYOUT_COUNT];
    if (opened[layout] == NULL) {
        fuzz_require(eng_template_open(names[layout], &opened[layout], NULL) == ENG_OK);
        const uint64_t bos = eng_layout_has_start(layout) ? ENG_FEATURE_bos : 0;
        fuzz_require(eng_template_features(opened[layout]) == bos);
        const char *const end = eng_template_end_of_turn(opened[layout]);
        fuzz_require(strcmp(end, eng_layout_end_of_turn(layout)) == 0);
    }
    return opened[layout];
}

/* Where a recipe's template is looked for, and what is none. */
static void check_names(void)
{
    static const struct {
        const char *name, *found; /* for the recipe a/b/r.yaml */
    } names[] = {{"chatml", "chatml"},
                 {"own.jinja", "a/b/own.jinja"},
                 {"/own.json#n", "/own.json#n"},
                 {"no_such", FL_TOP "/corpus/templates/no_such.jinja"}};
    static const char *const absent[] = {"no_such", "/proc/self/no such.jinja",
                                         "/proc/self/no such.json#x"};
    static const enum eng_status wanted[] = {ENG_EUSAGE, ENG_EIO, ENG_EIO};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *const found = eng_template_locate("a/b/r.yaml", names[i].name);
        fuzz_require(found != NULL && strcmp(found, names[i].found) == 0);
        free(found);
    }
    char *const beside = eng_template_locate(FL_TOP "/corpus/recipes/pico.yaml", "dated_turns");
    fuzz_require(strcmp(beside, FL_TOP "/corpus/recipes/../templates/dated_turns.jinja") == 0);
    free(beside);
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        struct eng_error error = {""};
        eng_template *template = NULL;
        fuzz_require(eng_template_open(absent[i], &template, &error) == wanted[i]);
        fuzz_require(template == NULL && error.text[0] != '\0');
    }
}

static void same_spans(const struct eng_span *a, size_t a_count, const struct eng_span *b,
                       size_t b_count)
{
    fuzz_require(a_count == b_count);
    for (size_t i = 0; i < a_count; i++) {
        fuzz_require(a[i].start == b[i].start);
        fuzz_require(a[i].end == b[i].end);
    }
}

/* Contents that touch are one for the engine. */
static size_t joined(struct eng_span *spans, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && spans[kept - 1].end == spans[i].start) {
            spans[kept - 1].end = spans[i].end;
        } else {
            spans[kept++] = spans[i];
        }
    }
    return kept;
}

static void require_same(struct eng_rendered *wanted, struct eng_rendered *made)
{
    fuzz_require(wanted->size == made->size);
    fuzz_require(wanted->size == 0 || memcmp(wanted->bytes, made->bytes, wanted->size) == 0);
    same_spans(wanted->answers, wanted->answer_count, made->answers, made->answer_count);
    same_spans(wanted->contents, joined(wanted->contents, wanted->content_count), made->contents,
               joined(made->contents, made->content_count));
}

/* ---- dated_turns.jinja by hand */

static void write_bytes(struct eng_rendered *out, const char *bytes, size_t size)
{
    out->bytes = realloc(out->bytes, out->size + size + 1);
    fuzz_require(out->bytes != NULL);
    if (size > 0) {
        memcpy(out->bytes + out->size, bytes, size);
    }
    out->size += size;
}

static void write_text(struct eng_rendered *out, const char *text)
{
    write_bytes(out, text, strlen(text));
}

static void write_content(struct eng_rendered *out, struct eng_text content)
{
    if (content.size > 0) {
        out->contents[out->content_count++] =
            (struct eng_span){out->size, out->size + content.size};
    }
    write_bytes(out, content.bytes, content.size);
}

static void write_dated_turns(const struct eng_message *messages, size_t count,
                              struct eng_rendered *out)
{
    static struct eng_span answers[MESSAGES_MAX];
    static struct eng_span contents[MESSAGES_MAX];
    const size_t system = messages[0].role == ENG_ROLE_SYSTEM ? 1 : 0;
    out->answers = answers;
    out->contents = contents;
    write_text(out, "<|im_start|>system\nToday is 01 January 2024.");
    if (system == 1) {
        write_text(out, " ");
        write_content(out, messages[0].content);
    }
    write_text(out, "<|im_end|>\n");
    for (size_t i = system; i < count; i++) {
        const bool answers_here = messages[i].role == ENG_ROLE_ASSISTANT;
        write_text(out, answers_here ? "<|im_start|>assistant\n" : "<|im_start|>user\n");
        const size_t start = out->size; /* of what a generation prompt leaves to write */
        write_content(out, messages[i].content);
        write_text(out, "<|im_end|>\n");
        if (answers_here) {
            answers[out->answer_count++] = (struct eng_span){start, out->size};
        }
    }
}

static void compare(unsigned which, const struct eng_message *messages, size_t count)
{
    struct eng_rendered wanted = {0};
    struct eng_rendered jinja = {0};
    struct eng_error error = {""};
    if (which == DATED_TURNS) {
        write_dated_turns(messages, count, &wanted);
    } else {
        eng_template *const layout = layout_of((enum eng_layout)which);
        fuzz_require(eng_template_render(layout, messages, count, NULL, &wanted, NULL) == ENG_OK);
    }
    const enum eng_status status =
        eng_template_render(jinja_of(which), messages, count, NULL, &jinja, &error);
    fuzz_require(status == ENG_OK);
    require_same(&wanted, &jinja);
    if (which == DATED_TURNS) {
        free(wanted.bytes);
    } else {
        eng_rendered_fini(&wanted);
    }
    eng_rendered_fini(&jinja);
}

/* ---- templates of a tokenizer_config.json */

#define EACH "{% for m in messages %}{{ m.content }}{% endfor %}"
#define LEARNED(text) "{% generation %}" text "{% endgeneration %}"

/* The first writes special tokens and contents, every other is refused. */
static const struct {
    const char *source, *tools, *refused;
} configs[] = {
    {"{{ bos_token }}{{ additional_special_tokens[1] }}" EACH, NULL, NULL},
    {EACH, "[{\"a\": 1e999}]", "tools"},
    {LEARNED(LEARNED("x")), NULL, "within another"},
    {"{{ messages|length + 10 }}" EACH, NULL, "does not begin"},
    {"{{ messages[2 if messages[0].role == 'system' else 1].content }}", NULL, "undefined"},
    {"q{{ 'a' if add_generation_prompt or messages|length > 3 }}", NULL, "no place"},
};
enum { CONFIGS = sizeof configs / sizeof configs[0] };

static eng_template *config_of(unsigned which)
{
    static eng_template *opened[CONFIGS];
    if (opened[which] == NULL) {
        char path[] = "/tmp/fuzz_template_render_XXXXXX.json"; /* the name says what it holds */
        const int descriptor = mkstemps(path, 5);
        fuzz_require(descriptor >= 0);
        const int size = dprintf(descriptor,
                                 "{\"bos_token\": \"<s>\", \"additional_special_tokens\": "
                                 "[\"<x>\", \"<y>\"], \"chat_template\": \"%s\"}",
                                 configs[which].source);
        fuzz_require(size > 0 && close(descriptor) == 0);
        fuzz_require(eng_template_open(path, &opened[which], NULL) == ENG_OK);
        unlink(path);
    }
    return opened[which];
}

static void write_contents(const struct eng_message *messages, size_t count,
                           struct eng_rendered *out)
{
    static struct eng_span answers[MESSAGES_MAX];
    static struct eng_span contents[MESSAGES_MAX];
    out->answers = answers;
    out->contents = contents;
    write_text(out, "<s><y>");
    for (size_t i = 0; i < count; i++) {
        const size_t start = out->size;
        write_content(out, messages[i].content);
        if (messages[i].role == ENG_ROLE_ASSISTANT) {
            answers[out->answer_count++] = (struct eng_span){start, out->size};
        }
    }
}

static void compare_config(unsigned which, const struct eng_message *messages, size_t count)
{
    const char *const tools = configs[which].tools;
    const struct eng_extras extras = {.tools = {tools, tools == NULL ? 0 : strlen(tools)}};
    const bool one_round = count < 4;
    const char *const refused = /* the last finds no end to look for in one round */
        which == CONFIGS - 1 && one_round ? "does not begin" : configs[which].refused;
    struct eng_error error = {""};
    struct eng_rendered wanted = {0};
    struct eng_rendered made = {0};
    const enum eng_status status =
        eng_template_render(config_of(which), messages, count, &extras, &made, &error);
    if (refused != NULL) {
        fuzz_require(status == ENG_EINPUT && strstr(error.text, refused) != NULL);
    } else {
        write_contents(messages, count, &wanted);
        fuzz_require(status == ENG_OK);
        require_same(&wanted, &made);
    }
    free(wanted.bytes);
    eng_rendered_fini(&made);
}

/* ---- tool_turns.jinja by hand */

enum { JSON_BYTES = 16384 };

/* A text as json.dumps writes it without escapes for what is not ASCII; what is too long, empty. */
static char *put_json(char *at, struct eng_text text)
{
    static const char escaped[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    *at++ = '"';
    for (size_t i = 0; i < text.size && text.size < JSON_BYTES / 8; i++) {
        const char c = text.bytes[i];
        const char *const found = c == '\0' ? NULL : strchr(escaped, c);
        if (found != NULL) {
            at += sprintf(at, "\\%c", letters[found - escaped]);
        } else {
            at += sprintf(at, (unsigned char)c < 0x20 ? "\\u%04x" : "%c", c);
        }
    }
    *at++ = '"';
    *at = '\0';
    return at;
}

/* A chat with calls, and the rooms of its texts. */
struct calls {
    struct eng_message_extra extra[MESSAGES_MAX];
    char arguments[MESSAGES_MAX][JSON_BYTES], list[MESSAGES_MAX][JSON_BYTES + 64];
    char documents[JSON_BYTES + 64];
    struct eng_extras extras;
    bool with_tools, with_documents;
};

static const char tool_text[] =
    "{\"name\": \"f\", \"on\": null, \"of\": [1, 2.5, true, {\"\xC3\xA9\": []}]}";

static void make_extras(unsigned choice, const struct eng_message *messages, size_t count,
                        struct calls *c)
{
    static char tools[sizeof tool_text + 2];
    snprintf(tools, sizeof tools, "[%s]", tool_text);
    memset(c->extra, 0, sizeof c->extra);
    c->extras = (struct eng_extras){.messages = c->extra};
    c->with_tools = (choice & 1) != 0;
    c->with_documents = (choice & 2) != 0;
    if (c->with_tools) {
        c->extras.tools = (struct eng_text){tools, strlen(tools)};
    }
    if (c->with_documents) {
        char *const at = c->documents + sprintf(c->documents, "[{\"title\": \"T\", \"text\": ");
        strcpy(put_json(at, messages[count - 1].content), "}]");
        c->extras.documents = (struct eng_text){c->documents, strlen(c->documents)};
    }
    for (size_t i = 0; i + 1 < count; i++) {
        struct eng_message_extra *const extra = &c->extra[i];
        if (messages[i + 1].role == ENG_ROLE_TOOL) { /* its content is the argument */
            char *const at = c->arguments[i] + sprintf(c->arguments[i], "{\"a\": ");
            strcpy(put_json(at, messages[i].content), ", \"n\": 1}");
            const int size =
                sprintf(c->list[i], "[{\"function\": {\"name\": \"f\", \"arguments\": %s}}]",
                        c->arguments[i]);
            extra->tool_calls = (struct eng_text){c->list[i], (size_t)size};
        }
        if (messages[i].role == ENG_ROLE_TOOL && (choice & 4) != 0) {
            extra->name = (struct eng_text){"f", 1};
            extra->tool_call_id = (struct eng_text){"1", 1};
        }
    }
    if ((choice & 8) != 0) {
        c->extra[count - 1].reasoning_content = (struct eng_text){"r", 1};
    }
}

static void write_tool_turns(const struct eng_message *messages, size_t count,
                             const struct calls *c, struct eng_rendered *out)
{
    static struct eng_span answers[MESSAGES_MAX];
    static struct eng_span contents[MESSAGES_MAX + 1];
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    out->answers = answers;
    out->contents = contents;
    if (c->with_tools) {
        write_text(out, "<|im_start|>system\nTools:\n");
        write_text(out, tool_text);
        write_text(out, "\n<|im_end|>\n");
    }
    if (c->with_documents) {
        write_text(out, "<|im_start|>system\nT: ");
        write_content(out, messages[count - 1].content);
        write_text(out, "<|im_end|>\n");
    }
    for (size_t i = 0; i < count; i++) {
        write_text(out, "<|im_start|>");
        write_text(out, roles[messages[i].role]);
        write_text(out, c->extra[i].name.bytes != NULL ? " f\n" : "\n");
        const size_t start = out->size;
        if (c->extra[i].tool_calls.bytes == NULL) {
            write_content(out, messages[i].content);
        } else {
            write_text(out, "\n<call>f ");
            write_text(out, c->arguments[i]);
            write_text(out, "</call>");
        }
        write_text(out, "<|im_end|>");
        if (messages[i].role == ENG_ROLE_ASSISTANT) {
            answers[out->answer_count++] = (struct eng_span){start, out->size};
        }
        write_text(out, "\n");
    }
}

/* Each content of a message lies in what the engine calls content. */
static void check_covered(const struct eng_rendered *wanted, const struct eng_rendered *made)
{
    size_t at = 0;
    for (size_t i = 0; i < wanted->content_count; i++) {
        while (at < made->content_count && made->contents[at].end < wanted->contents[i].end) {
            at++;
        }
        fuzz_require(at < made->content_count);
        fuzz_require(made->contents[at].start <= wanted->contents[i].start);
    }
}

/* Layouts have no place for calls. */
static void check_refusal(const struct eng_message *messages, size_t count,
                          const struct eng_extras *extras, eng_template *template, const char *word)
{
    struct eng_error error = {""};
    struct eng_rendered none = {0};
    fuzz_require(eng_template_accepts(template, messages, count, extras, NULL) == ENG_EINPUT);
    fuzz_require(eng_template_render(template, messages, count, extras, &none, &error) ==
                 ENG_EINPUT);
    fuzz_require(strstr(error.text, word) != NULL);
}

static void compare_tool_turns(unsigned choice, struct eng_message *messages, size_t count)
{
    static struct calls c;
    struct eng_rendered wanted = {0};
    struct eng_rendered made = {0};
    make_extras(choice, messages, count, &c);
    write_tool_turns(messages, count, &c, &wanted);
    for (size_t i = 0; i < count; i++) {
        if (c.extra[i].tool_calls.bytes != NULL) {
            messages[i].content = (struct eng_text){NULL, 0};
        }
    }
    check_refusal(messages, count, &c.extras, layout_of(ENG_LAYOUT_CHATML),
                  c.with_tools       ? "tools"
                  : c.with_documents ? "documents"
                                     : "tool_calls");
    eng_template *const template = jinja_of(TOOL_TURNS);
    if ((choice & 8) != 0) {
        check_refusal(messages, count, &c.extras, template, "reasoning_content");
    } else {
        fuzz_require(eng_template_render(template, messages, count, &c.extras, &made, NULL) ==
                     ENG_OK);
        fuzz_require(wanted.size == made.size);
        fuzz_require(memcmp(wanted.bytes, made.bytes, wanted.size) == 0);
        same_spans(wanted.answers, wanted.answer_count, made.answers, made.answer_count);
        check_covered(&wanted, &made);
    }
    free(wanted.bytes);
    eng_rendered_fini(&made);
}

/* ---- the input */

/* Roles in turn; with calls each answer to a user is one, followed by the tool and an answer. */
static enum eng_role role_of(bool calls, size_t turn)
{
    static const enum eng_role roles[] = {ENG_ROLE_USER, ENG_ROLE_ASSISTANT, ENG_ROLE_TOOL,
                                          ENG_ROLE_ASSISTANT};
    return roles[turn % (calls ? 4 : 2)];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool begun;
    struct fuzz_input in = {data, data + size};
    if (!begun) { /* what stays allocated would make libFuzzer run a later input twice */
        check_names();
        for (unsigned i = 0; i < CONFIGS; i++) {
            (void)config_of(i);
        }
        begun = true;
    }
    const unsigned choice = fuzz_byte(&in);
    const size_t system = choice & 0x80 ? 1 : 0;
    const bool calls = (choice & 0x60) == 0x20;
    struct eng_message messages[MESSAGES_MAX];
    char *copies[MESSAGES_MAX];
    size_t count = 0;
    bool right = true;
    const char *bytes = NULL;
    size_t length = 0;
    while (count < MESSAGES_MAX && fuzz_segment(&in, &bytes, &length)) {
        const enum eng_role role =
            count < system ? ENG_ROLE_SYSTEM : role_of(calls, count - system);
        right = right && fuzz_is_utf8(bytes, length) && length < JSON_BYTES / 8;
        copies[count] = fuzz_exact(bytes, length);
        messages[count] = (struct eng_message){role, {copies[count], length}};
        count++;
    }
    right = right && count > system && (count - system) % (calls ? 4 : 2) == 0;
    if (right && calls) {
        compare_tool_turns(choice, messages, count);
    } else if (right && (choice & 0x60) == 0x60) {
        compare_config((choice & 0x1F) % CONFIGS, messages, count);
    } else if (right) {
        compare((choice & 0x40) != 0 ? DATED_TURNS : choice % ENG_LAYOUT_COUNT, messages, count);
    }
    for (size_t i = 0; i < count; i++) {
        free(copies[i]);
    }
    return 0;
}
