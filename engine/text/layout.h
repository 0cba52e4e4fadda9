/* Chat layouts: messages in, bytes and spans out. The meaning of each is
 * corpus/templates/<name>.jinja. Called by engine/data and by template, which has Jinja templates
 * from files as well; must not know tokens. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "eng_status.h"
#include "messages.h"

enum eng_layout {
    ENG_LAYOUT_CHATML,
    ENG_LAYOUT_LLAMA2,
    ENG_LAYOUT_LLAMA3,
    ENG_LAYOUT_GEMMA,
    ENG_LAYOUT_PLAIN,
    ENG_LAYOUT_COUNT
};

/* Bytes start .. end - 1. */
struct eng_span {
    size_t start, end;
};

/* Spans in order of place, each kind without overlap. Zero-initialise; reused by every render. */
struct eng_rendered {
    char *bytes;
    size_t size, capacity;
    struct eng_span *answers; /* an answer's content and its end-of-turn marker */
    size_t answer_count, answer_capacity;
    struct eng_span *contents; /* what message contents wrote; empty contents have none */
    size_t content_count, content_capacity;
    bool out_of_memory;
};

/* EUSAGE when no layout has that name. */
ENG_CHECKED enum eng_status eng_layout_find(const char *name, enum eng_layout *out,
                                            struct eng_error *error);
/* Whether a chat begins with a token of its own, e.g. "<bos>". */
bool eng_layout_has_start(enum eng_layout layout);
/* The text that ends an answer, e.g. "<|im_end|>". */
const char *eng_layout_end_of_turn(enum eng_layout layout);

/* Purpose: renders a chat whose roles are in order: system only first, then user and assistant in
 * turn, an assistant last. Replaces what `out` held. EHOSTMEM when memory is refused. */
ENG_CHECKED enum eng_status eng_layout_render(enum eng_layout layout,
                                              const struct eng_message *messages, size_t count,
                                              struct eng_rendered *out, struct eng_error *error);
void eng_rendered_fini(struct eng_rendered *rendered);
