/* Bump allocator, see the header.
 * Used by the trace reader and the class table; must not know what it stores. */
#include "orc_arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ORC_ARENA_BLOCK = 1 << 16 };

struct orc_arena_block {
    struct orc_arena_block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
};

void *orc_arena_take(struct orc_arena *arena, size_t count, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (arena->failed || (size != 0 && count > (SIZE_MAX / 2) / size)) {
        arena->failed = true;
        return NULL;
    }
    const size_t bytes = (count * size + align - 1) / align * align;
    struct orc_arena_block *block = arena->blocks;
    if (block == NULL || block->size - block->used < bytes) {
        const size_t room = bytes > ORC_ARENA_BLOCK ? bytes : ORC_ARENA_BLOCK;
        block = calloc(1, sizeof *block + room);
        if (block == NULL) {
            arena->failed = true;
            return NULL;
        }
        block->size = room;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *out = block->bytes + block->used;
    block->used += bytes;
    return out;
}

char *orc_arena_text(struct orc_arena *arena, const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    const size_t bytes = strlen(text) + 1;
    char *out = orc_arena_take(arena, bytes, 1);
    if (out != NULL) {
        memcpy(out, text, bytes);
    }
    return out;
}

void orc_arena_fini(struct orc_arena *arena)
{
    struct orc_arena_block *block = arena->blocks;
    while (block != NULL) {
        struct orc_arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena->blocks = NULL;
}
