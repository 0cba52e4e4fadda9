/* The Jinja engine against the table of layouts, which renders the same five templates in another
 * way, and against dated_turns.jinja written out by hand, whose answers are found by rendering
 * prefixes: same bytes, answers and contents. First byte: layout or (0x40) dated_turns, system
 * (0x80); then contents between 0xFF. Called by libFuzzer and replay_main.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "template.h"

enum { MESSAGES_MAX = 32, DATED_TURNS = ENG_LAYOUT_COUNT };

static eng_template *jinja_of(unsigned which)
{
    static const char *const names[] = {"chatml", "llama2", "llama3",
                                        "gemma",  "plain",  "dated_turns"};
    static eng_template *opened[DATED_TURNS + 1];
    if (opened[which] == NULL) {
        char path[600];
        snprintf(path, sizeof path, FL_TOP "/corpus/templates/%s.jinja", names[which]);
        fuzz_require(eng_template_open(path, &opened[which], NULL) == ENG_OK);
    }
    return opened[which];
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
        const enum eng_layout layout = (enum eng_layout)which;
        fuzz_require(eng_layout_render(layout, messages, count, &wanted, NULL) == ENG_OK);
    }
    const enum eng_status status =
        eng_template_render(jinja_of(which), messages, count, NULL, &jinja, &error);
    fuzz_require(status == ENG_OK);
    fuzz_require(wanted.size == jinja.size);
    fuzz_require(wanted.size == 0 || memcmp(wanted.bytes, jinja.bytes, wanted.size) == 0);
    same_spans(wanted.answers, wanted.answer_count, jinja.answers, jinja.answer_count);
    same_spans(wanted.contents, joined(wanted.contents, wanted.content_count), jinja.contents,
               joined(jinja.contents, jinja.content_count));
    if (which == DATED_TURNS) {
        free(wanted.bytes);
    } else {
        eng_rendered_fini(&wanted);
    }
    eng_rendered_fini(&jinja);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    const unsigned choice = fuzz_byte(&in);
    const size_t system = choice & 0x80 ? 1 : 0;
    struct eng_message messages[MESSAGES_MAX];
    char *copies[MESSAGES_MAX];
    size_t count = 0;
    bool right = true;
    const char *bytes = NULL;
    size_t length = 0;
    while (count < MESSAGES_MAX && fuzz_segment(&in, &bytes, &length)) {
        const enum eng_role turn = (count - system) % 2 == 0 ? ENG_ROLE_USER : ENG_ROLE_ASSISTANT;
        right = right && fuzz_is_utf8(bytes, length);
        copies[count] = fuzz_exact(bytes, length);
        messages[count] =
            (struct eng_message){count < system ? ENG_ROLE_SYSTEM : turn, {copies[count], length}};
        count++;
    }
    if (right && count > system && (count - system) % 2 == 0) {
        compare((choice & 0x40) != 0 ? DATED_TURNS : choice % ENG_LAYOUT_COUNT, messages, count);
    }
    for (size_t i = 0; i < count; i++) {
        free(copies[i]);
    }
    return 0;
}
