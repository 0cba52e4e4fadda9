/* Arena of chunks. See ref_arena.h. */
#include "ref_arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, CHUNK_BYTES_MIN = 1 << 20 };

struct chunk {
    struct chunk *next;
    char *data;
    size_t bytes, used;
};

struct orc_ref_arena {
    struct chunk *first, *current;
};

struct orc_ref_arena *orc_ref_arena_create(void)
{
    return calloc(1, sizeof(struct orc_ref_arena));
}

void orc_ref_arena_destroy(struct orc_ref_arena *arena)
{
    if (arena == NULL)
        return;
    for (struct chunk *chunk = arena->first, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk->data);
        free(chunk);
    }
    free(arena);
}

/* Appends a chunk that holds bytes; NULL when there is no memory. */
static struct chunk *add_chunk(struct orc_ref_arena *arena, struct chunk *after, size_t bytes)
{
    struct chunk *const chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL)
        return NULL;
    chunk->bytes = bytes < CHUNK_BYTES_MIN ? CHUNK_BYTES_MIN : bytes;
    chunk->data = aligned_alloc(ALIGNMENT, chunk->bytes);
    if (chunk->data == NULL) {
        free(chunk);
        return NULL;
    }
    if (after != NULL)
        after->next = chunk;
    else
        arena->first = chunk;
    return chunk;
}

void *orc_ref_arena_take(struct orc_ref_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct chunk *chunk = arena->current, *last = arena->current;
    while (chunk != NULL && chunk->bytes - chunk->used < bytes) {
        last = chunk;
        chunk = chunk->next;
    }
    if (chunk == NULL)
        chunk = add_chunk(arena, last, bytes);
    if (chunk == NULL)
        return NULL;
    arena->current = chunk;
    void *const result = chunk->data + chunk->used;
    chunk->used += bytes;
    return result;
}

char *orc_ref_arena_text(struct orc_ref_arena *arena, const char *text, size_t length)
{
    char *const copy = orc_ref_arena_take(arena, length + 1, 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

void orc_ref_arena_reset(struct orc_ref_arena *arena)
{
    for (struct chunk *chunk = arena->first; chunk != NULL; chunk = chunk->next)
        chunk->used = 0;
    arena->current = arena->first;
}
