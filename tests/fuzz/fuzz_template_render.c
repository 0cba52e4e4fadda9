/* The Jinja engine against the table of layouts, which renders the same five templates in another
 * way: same bytes, answers and contents. First byte: layout and system; then contents between 0xFF.
 * Called by libFuzzer and replay_main.c. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "template.h"

enum { MESSAGES_MAX = 32 };

static eng_template *jinja_of(enum eng_layout layout)
{
    static const char *const names[] = {"chatml", "llama2", "llama3", "gemma", "plain"};
    static eng_template *opened[ENG_LAYOUT_COUNT];
    if (opened[layout] == NULL) {
        char path[600];
        strcpy(path, FL_TOP "/corpus/templates/");
        strcat(path, names[layout]);
        strcat(path, ".jinja");
        fuzz_require(eng_template_open(path, &opened[layout], NULL) == ENG_OK);
    }
    return opened[layout];
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

static void compare(enum eng_layout layout, const struct eng_message *messages, size_t count)
{
    struct eng_rendered table = {0};
    struct eng_rendered jinja = {0};
    struct eng_error error = {""};
    fuzz_require(eng_layout_render(layout, messages, count, &table, NULL) == ENG_OK);
    const enum eng_status status =
        eng_template_render(jinja_of(layout), messages, count, &jinja, &error);
    fuzz_require(status == ENG_OK);
    fuzz_require(table.size == jinja.size);
    fuzz_require(table.size == 0 || memcmp(table.bytes, jinja.bytes, table.size) == 0);
    same_spans(table.answers, table.answer_count, jinja.answers, jinja.answer_count);
    same_spans(table.contents, joined(table.contents, table.content_count), jinja.contents,
               joined(jinja.contents, jinja.content_count));
    eng_rendered_fini(&table);
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
        compare((enum eng_layout)(choice % ENG_LAYOUT_COUNT), messages, count);
    }
    for (size_t i = 0; i < count; i++) {
        free(copies[i]);
    }
    return 0;
}
