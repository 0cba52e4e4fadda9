/* One line of a training file as a chat: the four formats of corpus/RECIPE.md, roles in order.
 * Called by documents; must not know files, layouts or tokens. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "eng_status.h"
#include "json_reader.h"
#include "loader.h"
#include "messages.h"

/* A parsed record. Zero-initialise; reused by every parse, which replaces all of it. Texts point
 * into the line where it says them plainly, so they live as long as it and this. */
struct eng_conversation {
    struct eng_message *messages;
    size_t message_count, message_capacity;
    struct eng_message_extra *extra; /* of each message, when extra_count is not 0 */
    size_t extra_count, extra_capacity;
    struct eng_text tools, documents; /* JSON; bytes is NULL: none */
    struct eng_text id; /* bytes is NULL when the record has none */
    bool added_input;   /* Alpaca: an input that is not empty */
    struct eng_json_memory memory;
};

/* Purpose: parses a line without its line end and checks it by the rules of corpus/RECIPE.md.
 * Returns EINPUT with the cause and the byte where it shows, or EHOSTMEM; the caller knows file and
 * line. Besides RFC 8259 it limits nesting, keys an object and the id: see the enums in the
 * sources. */
ENG_CHECKED enum eng_status eng_record_parse(enum eng_format format, const char *line, size_t size,
                                             struct eng_conversation *out, struct eng_error *cause);
/* What a parsed record has besides messages; borrows from it. */
struct eng_extras eng_conversation_extras(const struct eng_conversation *conversation);
void eng_conversation_fini(struct eng_conversation *conversation);
