/* One line of a training file: strict JSON, strict UTF-8, the roles in order.
 * Called by documents; must not know files, layouts or tokens. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "messages.h"

/* A parsed record. Zero-initialise; reused by every parse, which replaces all of it. */
struct eng_conversation {
    struct eng_message *messages;
    size_t message_count, message_capacity;
    struct eng_text id; /* bytes is NULL when the record has none */
    char *decoded;      /* what messages and id point into */
    size_t decoded_capacity;
    struct eng_json_key {
        uint64_t hash;
        struct eng_text text;
    } * keys; /* of the objects that are open */
    size_t key_capacity;
};

/* Purpose: parses a line without its line end and checks it by the rules of corpus/RECIPE.md.
 * Returns EINPUT with the cause and the byte where it shows, or EHOSTMEM; the caller knows file and
 * line. Besides RFC 8259 it limits nesting, keys an object and the id: see the enum in the source.
 */
ENG_CHECKED enum eng_status eng_json_messages_parse(const char *line, size_t size,
                                                    struct eng_conversation *out,
                                                    struct eng_error *cause);
void eng_conversation_fini(struct eng_conversation *conversation);
