/* A chat in memory: what the JSON reader fills and a layout renders.
 * Used by engine/text and engine/data; owns nothing. */
#pragma once

#include <stddef.h>

/* Well-formed UTF-8, not terminated; may hold NUL. */
struct eng_text {
    const char *bytes;
    size_t size;
};

enum eng_role { ENG_ROLE_SYSTEM, ENG_ROLE_USER, ENG_ROLE_ASSISTANT };

struct eng_message {
    enum eng_role role;
    struct eng_text content;
};
