/* Control tokens by text. Filled by tokenizer, asked by text_encode; knows no vocabulary. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "messages.h"

/* What a token asks of the text beside it. */
enum {
    ENG_CONTROL_TAKES_LEFT = 1,  /* the white space before it is its own */
    ENG_CONTROL_TAKES_RIGHT = 2, /* likewise behind it */
    ENG_CONTROL_ALONE = 4        /* it is none where a character of a word touches it */
};

struct eng_control {
    char *text; /* size bytes and a terminator */
    size_t size;
    int32_t id;
    unsigned flags; /* ENG_CONTROL_* */
};

/* Control tokens of one length: items[first] and what follows. */
struct eng_control_group {
    size_t first, count;
};

/* Zero-initialise, add, seal, then ask. */
struct eng_control_set {
    struct eng_control *items;
    size_t count, capacity;
    struct eng_control_group *groups; /* longer texts first, so that the first match is longest */
    size_t group_count, group_capacity;
    bool starts[256];   /* some text begins with this byte */
    size_t start_count; /* how many such bytes there are */
};

/* Copies the text. EINPUT for an empty one. */
ENG_CHECKED enum eng_status eng_control_add(struct eng_control_set *set, const char *text,
                                            size_t size, int32_t id, unsigned flags,
                                            struct eng_error *error);
/* Makes the set ready to be asked. EINPUT for a repeated text. */
ENG_CHECKED enum eng_status eng_control_seal(struct eng_control_set *set, struct eng_error *error);
void eng_control_fini(struct eng_control_set *set);
/* The longest control token whose text stands at the start of bytes, NULL when there is none. */
const struct eng_control *eng_control_match(const struct eng_control_set *set, const char *bytes,
                                            size_t size);
/* The control token with exactly this text, NULL when there is none. */
const struct eng_control *eng_control_find(const struct eng_control_set *set, struct eng_text text);
/* Leftmost-longest occurrence in bytes; *at is its place. NULL when there is none. */
const struct eng_control *eng_control_search(const struct eng_control_set *set, const char *bytes,
                                             size_t size, size_t *at);
