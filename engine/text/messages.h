/* A chat in memory: what the JSON reader fills and a layout renders.
 * Used by engine/text and engine/data; owns nothing. */
#pragma once

#include <stddef.h>

/* Well-formed UTF-8, not terminated; may hold NUL. */
struct eng_text {
    const char *bytes;
    size_t size;
};

enum eng_role { ENG_ROLE_SYSTEM, ENG_ROLE_USER, ENG_ROLE_ASSISTANT, ENG_ROLE_TOOL };

struct eng_message {
    enum eng_role role;
    struct eng_text content; /* bytes is NULL in an assistant's message that only calls tools */
};

/* What only some messages have; bytes is NULL where one has it not. */
struct eng_message_extra {
    struct eng_text reasoning_content, tool_call_id, name;
    struct eng_text tool_calls; /* JSON: a list of objects */
};

/* What a chat brings besides roles and contents. */
struct eng_extras {
    struct eng_text tools, documents;         /* JSON, lists of objects; bytes is NULL: none */
    const struct eng_message_extra *messages; /* one for each; NULL: none has any */
};
