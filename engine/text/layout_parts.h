/* What the table of layouts and templates from files share: pieces of a rendering, and the choices
 * that both make for a chat. Used by layout and template; must not know files or tokens. */
#pragma once

#include <stdbool.h>

#include "layout.h"

/* Appends bytes the template wrote; bytes a content wrote; an answer. */
void eng_layout_put(struct eng_rendered *out, struct eng_text text);
void eng_layout_put_content(struct eng_rendered *out, struct eng_text text);
void eng_layout_put_answer(struct eng_rendered *out, struct eng_span span);

/* The layout a chat is rendered with, given the model's own. */
enum eng_layout eng_layout_chosen(enum eng_layout layout);
/* The system message of a chat, NULL when it has none. room is storage for one that is not the
 * chat's; a healthy trainer never has such a one. */
const struct eng_message *eng_layout_system(const struct eng_message *messages, size_t count,
                                            struct eng_message *room);
/* What turn i says. */
struct eng_text eng_layout_turn(const struct eng_message *messages, size_t count, size_t i);
/* A content with its edges as the template wants them: without white space, or as they are. */
struct eng_text eng_layout_edges(struct eng_text content, bool trim);
/* Where an answer starts whose header of that many bytes has just been written. */
size_t eng_layout_answer_start(const struct eng_rendered *out, size_t header);
/* Whether what ends a turn is written behind an answer. */
bool eng_layout_ends_turn(void);
