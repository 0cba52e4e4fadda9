/* The five chat layouts as one table of texts around the contents, and what they share with
 * templates from files. Called by engine/data and template; must not know tokens. */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "growth.h"
#include "layout_parts.h"
#include "text_utf8.h"

struct shape {
    const char *name;
    const char *start; /* once, before everything */
    const char *system_before, *system_after;
    const char *user_before, *user_after;
    const char *answer_before, *answer_after; /* around the span */
    const char *answer_end;                   /* last bytes of the span */
    const char *end_of_turn;                  /* the marker within answer_end */
    bool system_in_user;                      /* system text follows the first user_before */
    bool trim_system, trim_turns;
};

static const struct shape shapes[ENG_LAYOUT_COUNT] = {
    [ENG_LAYOUT_CHATML] = {.name = "chatml",
                           .start = "",
                           .system_before = "<|im_start|>system\n",
                           .system_after = "<|im_end|>\n",
                           .user_before = "<|im_start|>user\n",
                           .user_after = "<|im_end|>\n",
                           .answer_before = "<|im_start|>assistant\n",
                           .answer_end = "<|im_end|>",
                           .answer_after = "\n",
                           .end_of_turn = "<|im_end|>"},
    [ENG_LAYOUT_LLAMA2] = {.name = "llama2",
                           .start = "",
                           .system_before = "<<SYS>>\n",
                           .system_after = "\n<</SYS>>\n\n",
                           .user_before = "<s>[INST] ",
                           .user_after = "",
                           .answer_before = " [/INST] ",
                           .answer_end = " </s>",
                           .answer_after = "",
                           .end_of_turn = "</s>",
                           .system_in_user = true,
                           .trim_turns = true},
    [ENG_LAYOUT_LLAMA3] = {.name = "llama3",
                           .start = "<|begin_of_text|>",
                           .system_before = "<|start_header_id|>system<|end_header_id|>\n\n",
                           .system_after = "<|eot_id|>",
                           .user_before = "<|start_header_id|>user<|end_header_id|>\n\n",
                           .user_after = "<|eot_id|>",
                           .answer_before = "<|start_header_id|>assistant<|end_header_id|>\n\n",
                           .answer_end = "<|eot_id|>",
                           .answer_after = "",
                           .end_of_turn = "<|eot_id|>",
                           .trim_system = true,
                           .trim_turns = true},
    [ENG_LAYOUT_GEMMA] = {.name = "gemma",
                          .start = "<bos>",
                          .system_before = "",
                          .system_after = "\n\n",
                          .user_before = "<start_of_turn>user\n",
                          .user_after = "<end_of_turn>\n",
                          .answer_before = "<start_of_turn>model\n",
                          .answer_end = "<end_of_turn>",
                          .answer_after = "\n",
                          .end_of_turn = "<end_of_turn>",
                          .system_in_user = true,
                          .trim_system = true,
                          .trim_turns = true},
    [ENG_LAYOUT_PLAIN] = {.name = "plain",
                          .start = "",
                          .system_before = "System: ",
                          .system_after = "\n",
                          .user_before = "User: ",
                          .user_after = "\n",
                          .answer_before = "Assistant: ",
                          .answer_end = "<|endoftext|>",
                          .answer_after = "\n",
                          .end_of_turn = "<|endoftext|>"},
};

enum eng_status eng_layout_find(const char *name, enum eng_layout *out, struct eng_error *error)
{
    for (int i = 0; i < ENG_LAYOUT_COUNT; i++) {
        if (strcmp(shapes[i].name, name) == 0) {
            *out = (enum eng_layout)i;
            return ENG_OK;
        }
    }
    return eng_fail(error, ENG_EUSAGE,
                    "unknown template '%s': chatml, llama2, llama3, gemma, plain are known", name);
}

bool eng_layout_has_start(enum eng_layout layout)
{
    return shapes[layout].start[0] != '\0';
}

const char *eng_layout_end_of_turn(enum eng_layout layout)
{
    return shapes[layout].end_of_turn;
}

void eng_layout_put(struct eng_rendered *out, struct eng_text text)
{
    char *const bytes = eng_grown(out->bytes, &out->capacity, out->size + text.size, 1);
    if (bytes == NULL) {
        out->out_of_memory = true;
        return;
    }
    out->bytes = bytes;
    if (text.size > 0) {
        memcpy(bytes + out->size, text.bytes, text.size);
    }
    out->size += text.size;
}

static void put_literal(struct eng_rendered *out, const char *text)
{
    eng_layout_put(out, (struct eng_text){text, strlen(text)});
}

void eng_layout_put_content(struct eng_rendered *out, struct eng_text text)
{
    if (text.size == 0) {
        return;
    }
    struct eng_span *const spans =
        eng_grown(out->contents, &out->content_capacity, out->content_count + 1, sizeof *spans);
    if (spans == NULL) {
        out->out_of_memory = true;
        return;
    }
    out->contents = spans;
    spans[out->content_count++] = (struct eng_span){out->size, out->size + text.size};
    eng_layout_put(out, text);
}

struct eng_text eng_layout_edges(struct eng_text content, bool trim)
{
    return FAULT(layout_trim, trim ? eng_text_trim(content) : content);
}

static void put_content(struct eng_rendered *out, struct eng_text content, bool trim)
{
    eng_layout_put_content(out, eng_layout_edges(content, trim));
}

static void put_system(struct eng_rendered *out, const struct shape *shape, struct eng_text content)
{
    put_literal(out, shape->system_before);
    put_content(out, content, shape->trim_system);
    put_literal(out, shape->system_after);
}

void eng_layout_put_answer(struct eng_rendered *out, struct eng_span span)
{
    struct eng_span *const spans =
        eng_grown(out->answers, &out->answer_capacity, out->answer_count + 1, sizeof *spans);
    if (spans == NULL) {
        out->out_of_memory = true;
        return;
    }
    out->answers = spans;
    spans[out->answer_count++] = span;
}

size_t eng_layout_answer_start(const struct eng_rendered *out, size_t header)
{
    (void)header;
    return FAULT(layout_span_start, out->size);
}

bool eng_layout_ends_turn(void)
{
    return FAULT(layout_end_of_turn, true);
}

static void put_answer(struct eng_rendered *out, const struct shape *shape, struct eng_text content)
{
    put_literal(out, shape->answer_before);
    const size_t start = eng_layout_answer_start(out, strlen(shape->answer_before));
    put_content(out, content, shape->trim_turns);
    if (eng_layout_ends_turn()) {
        put_literal(out, shape->answer_end);
    }
    eng_layout_put_answer(out, (struct eng_span){start, out->size});
    put_literal(out, shape->answer_after);
}

const struct eng_message *eng_layout_system(const struct eng_message *messages, size_t count,
                                            struct eng_message *room)
{
    (void)room;
    const bool has_system = count > 0 && messages[0].role == ENG_ROLE_SYSTEM;
    return FAULT(layout_system, has_system ? messages : NULL);
}

/* A content behind its think block; right only in a fault. */
__attribute__((unused)) static struct eng_text without_reasoning(struct eng_text content)
{
    static const char end[] = "</think>";
    const char *at = content.bytes;
    const char *const stop = content.bytes == NULL ? NULL : content.bytes + content.size;
    for (const char *found = at; found != NULL; at = found == NULL ? at : found) {
        found = memmem(at, (size_t)(stop - at), end, sizeof end - 1);
        found = found == NULL ? NULL : found + sizeof end - 1;
    }
    while (at != content.bytes && at < stop && *at == '\n') {
        at++;
    }
    return (struct eng_text){at, (size_t)(stop - at)};
}

struct eng_text eng_layout_turn(const struct eng_message *messages, size_t count, size_t i)
{
    (void)count;
    return FAULT(layout_history, messages[i].content);
}

enum eng_layout eng_layout_chosen(enum eng_layout layout)
{
    return FAULT(layout_choice, layout);
}

enum eng_status eng_layout_render(enum eng_layout layout, const struct eng_message *messages,
                                  size_t count, struct eng_rendered *out, struct eng_error *error)
{
    const struct shape *const shape = &shapes[layout];
    out->size = out->answer_count = out->content_count = 0;
    out->out_of_memory = false;
    const bool has_system = count > 0 && messages[0].role == ENG_ROLE_SYSTEM;
    struct eng_message room;
    const struct eng_message *system = eng_layout_system(messages, count, &room);
    const char *const added = ""; /* the tokenizer adds nothing of its own */
    put_literal(out, FAULT(layout_bos, added));
    put_literal(out, FAULT(layout_start, shape->start));
    if (system != NULL && !shape->system_in_user) {
        put_system(out, shape, system->content);
        system = NULL;
    }
    for (size_t i = has_system ? 1 : 0; i < count; i++) {
        const struct eng_text content = eng_layout_turn(messages, count, i);
        if (messages[i].role == ENG_ROLE_ASSISTANT) {
            put_answer(out, shape, content);
            continue;
        }
        put_literal(out, shape->user_before);
        if (system != NULL) {
            put_system(out, shape, system->content);
            system = NULL;
        }
        put_content(out, content, shape->trim_turns);
        put_literal(out, shape->user_after);
    }
    return out->out_of_memory ? eng_fail(error, ENG_EHOSTMEM, "no memory for a rendered chat")
                              : ENG_OK;
}

void eng_rendered_fini(struct eng_rendered *rendered)
{
    free(rendered->bytes);
    free(rendered->answers);
    free(rendered->contents);
    *rendered = (struct eng_rendered){0};
}
