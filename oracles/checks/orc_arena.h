/* Bump allocator: everything a trace holds is freed at once.
 * Used by the trace reader and the class table; must not know what it stores. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct orc_arena_block;

/* Zero-initialise before use. failed stays set after the first refusal, so callers may check once.
 */
struct orc_arena {
    struct orc_arena_block *blocks;
    bool failed;
};

/* Zeroed memory for count elements of size bytes, aligned for any type; NULL when exhausted. */
void *orc_arena_take(struct orc_arena *arena, size_t count, size_t size);
/* A copy of text; NULL when text is NULL or memory is exhausted. */
char *orc_arena_text(struct orc_arena *arena, const char *text);
void orc_arena_fini(struct orc_arena *arena);
