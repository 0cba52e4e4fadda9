/* Layouts: every span where it belongs, contents as given (stripped where the template says so),
 * and the text around them independent of what they say. First byte: layout and system; then
 * contents between 0xFF. Called by libFuzzer and replay_main.c. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "layout_parts.h"

enum { MESSAGES_MAX = 32 };

/* Python's str.isspace(). */
static bool is_space(unsigned c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

/* str.strip() by looking at every code point. */
static struct eng_text strip(struct eng_text text)
{
    size_t first = text.size;
    size_t end = 0;
    for (size_t i = 0, length = 0; i < text.size; i += length) {
        if (!is_space(fuzz_code_point(text.bytes + i, &length))) {
            first = first == text.size ? i : first;
            end = i + length;
        }
    }
    return end == 0 ? (struct eng_text){text.bytes, 0}
                    : (struct eng_text){text.bytes + first, end - first};
}

/* What a template writes for a message. */
static struct eng_text written(enum eng_layout layout, const struct eng_message *message)
{
    const bool turn = message->role != ENG_ROLE_SYSTEM;
    const bool strips = layout == ENG_LAYOUT_LLAMA3 || layout == ENG_LAYOUT_GEMMA ||
                        (layout == ENG_LAYOUT_LLAMA2 && turn);
    return strips ? strip(message->content) : message->content;
}

static bool same(const char *bytes, struct eng_text text)
{
    return text.size == 0 || memcmp(bytes, text.bytes, text.size) == 0;
}

/* Each non-empty content has one span, in order, that holds it. */
static void check_contents(enum eng_layout layout, const struct eng_message *messages, size_t count,
                           const struct eng_rendered *r)
{
    size_t span = 0;
    size_t border = 0;
    for (size_t i = 0; i < count; i++) {
        const struct eng_text text = written(layout, &messages[i]);
        if (text.size == 0) {
            continue;
        }
        fuzz_require(span < r->content_count);
        const struct eng_span at = r->contents[span++];
        fuzz_require(at.start >= border);
        fuzz_require(at.end <= r->size);
        fuzz_require(at.end - at.start == text.size);
        fuzz_require(same(r->bytes + at.start, text));
        border = at.end;
    }
    fuzz_require(span == r->content_count);
}

/* One span an answer, in order: its content, then the end of the turn and nothing else. */
static void check_answers(enum eng_layout layout, const struct eng_message *messages, size_t count,
                          const struct eng_rendered *r)
{
    const char *const end_of_turn = eng_layout_end_of_turn(layout);
    const size_t end_bytes = strlen(end_of_turn);
    size_t span = 0;
    size_t border = 0;
    for (size_t i = 0; i < count; i++) {
        if (messages[i].role != ENG_ROLE_ASSISTANT) {
            continue;
        }
        const struct eng_text text = written(layout, &messages[i]);
        fuzz_require(span < r->answer_count);
        const struct eng_span at = r->answers[span++];
        fuzz_require(at.start >= border);
        fuzz_require(at.end <= r->size);
        const size_t behind = layout == ENG_LAYOUT_LLAMA2 ? 1 : 0; /* a blank before the marker */
        fuzz_require(at.end - at.start == text.size + behind + end_bytes);
        fuzz_require(same(r->bytes + at.start, text));
        fuzz_require(memcmp(r->bytes + at.end - end_bytes, end_of_turn, end_bytes) == 0);
        border = at.end;
    }
    fuzz_require(span == r->answer_count);
}

/* The bytes outside the contents; the caller frees. */
static char *frame_of(const struct eng_rendered *r, size_t *size)
{
    char *const frame = malloc(r->size + 1);
    fuzz_require(frame != NULL);
    *size = 0;
    size_t span = 0;
    for (size_t i = 0; i < r->size; i++) {
        while (span < r->content_count && i >= r->contents[span].end) {
            span++;
        }
        if (span == r->content_count || i < r->contents[span].start) {
            frame[(*size)++] = r->bytes[i];
        }
    }
    return frame;
}

static void check_frame(enum eng_layout layout, const struct eng_message *messages, size_t count,
                        const struct eng_rendered *r)
{
    struct eng_message others[MESSAGES_MAX];
    struct eng_rendered other = {0};
    for (size_t i = 0; i < count; i++) {
        others[i] = (struct eng_message){messages[i].role, {"x", 1}};
    }
    fuzz_require(eng_layout_render(layout, others, count, &other, NULL) == ENG_OK);
    fuzz_require(other.content_count == count);
    size_t size = 0;
    size_t other_size = 0;
    char *const frame = frame_of(r, &size);
    char *const other_frame = frame_of(&other, &other_size);
    fuzz_require(size == other_size);
    fuzz_require(memcmp(frame, other_frame, size) == 0);
    free(frame);
    free(other_frame);
    eng_rendered_fini(&other);
}

/* Names find their layouts, no other name does, and a chat begins with its layout's own token. */
static void check_names(void)
{
    static const struct {
        const char *name;
        enum eng_layout layout;
        const char *start;
    } names[] = {{"chatml", ENG_LAYOUT_CHATML, ""},
                 {"llama2", ENG_LAYOUT_LLAMA2, ""},
                 {"llama3", ENG_LAYOUT_LLAMA3, "<|begin_of_text|>"},
                 {"gemma", ENG_LAYOUT_GEMMA, "<bos>"},
                 {"plain", ENG_LAYOUT_PLAIN, ""}};
    static const char *const unknown[] = {"", "chatm", "chatmll", "ChatML", "gemma.jinja"};
    const struct eng_message messages[] = {{ENG_ROLE_USER, {"q", 1}},
                                           {ENG_ROLE_ASSISTANT, {"a", 1}}};
    enum eng_layout found = ENG_LAYOUT_COUNT;
    for (size_t i = 0; i < ENG_LAYOUT_COUNT; i++) {
        struct eng_rendered rendered = {0};
        const size_t start = strlen(names[i].start);
        fuzz_require(eng_layout_find(names[i].name, &found, NULL) == ENG_OK);
        fuzz_require(found == names[i].layout && eng_layout_chosen(found) == found);
        fuzz_require(eng_layout_has_start(found) == (start > 0));
        fuzz_require(eng_layout_render(found, messages, 2, &rendered, NULL) == ENG_OK);
        fuzz_require(memcmp(rendered.bytes, names[i].start, start) == 0);
        eng_rendered_fini(&rendered);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        struct eng_error error = {""};
        fuzz_require(eng_layout_find(unknown[i], &found, &error) == ENG_EUSAGE);
        fuzz_require(strstr(error.text, unknown[i]) != NULL);
    }
}

/* A text larger than memory is not begun. */
static void check_too_large(void)
{
    struct eng_rendered out = {0};
    eng_layout_put(&out, (struct eng_text){"ab", 2});
    eng_layout_put(&out, (struct eng_text){"c", SIZE_MAX - 4096});
    fuzz_require(out.out_of_memory);
    fuzz_require(out.size == 2 && memcmp(out.bytes, "ab", 2) == 0);
    eng_rendered_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool names_checked;
    struct fuzz_input in = {data, data + size};
    if (!names_checked) {
        check_names();
        check_too_large();
        names_checked = true;
    }
    const unsigned choice = fuzz_byte(&in);
    const enum eng_layout layout = (enum eng_layout)(choice % ENG_LAYOUT_COUNT);
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
    right = right && count > system && (count - system) % 2 == 0;
    if (right) {
        struct eng_rendered rendered = {0};
        for (int round = 0; round < 2; round++) { /* the second reuses the memory of the first */
            fuzz_require(eng_layout_render(layout, messages, count, &rendered, NULL) == ENG_OK);
            check_contents(layout, messages, count, &rendered);
            check_answers(layout, messages, count, &rendered);
            check_frame(layout, messages, count, &rendered);
        }
        eng_rendered_fini(&rendered);
    }
    for (size_t i = 0; i < count; i++) {
        free(copies[i]);
    }
    return 0;
}
