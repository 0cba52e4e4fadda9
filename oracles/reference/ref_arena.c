/* Arena of chunks. See ref_arena.h. */
#include "ref_arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Huge pages, since the first touch of small ones took a quarter of a short run. */
enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

struct chunk {
    struct chunk *next;
    char *data;
    size_t bytes, used;
};

struct orc_ref_arena {
    struct chunk *first, *current;
    size_t chunk_bytes;
};

struct orc_ref_arena *orc_ref_arena_create(size_t chunk_bytes)
{
    struct orc_ref_arena *const arena = calloc(1, sizeof *arena);
    if (arena != NULL)
        arena->chunk_bytes = chunk_bytes;
    return arena;
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
    chunk->bytes = bytes < arena->chunk_bytes ? arena->chunk_bytes : bytes;
    const bool huge = chunk->bytes >= HUGE_PAGE;
    if (huge)
        chunk->bytes = (chunk->bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    chunk->data = aligned_alloc(huge ? HUGE_PAGE : ALIGNMENT, chunk->bytes);
    if (chunk->data == NULL) {
        free(chunk);
        return NULL;
    }
    if (huge)
        (void)madvise(chunk->data, chunk->bytes, MADV_HUGEPAGE); /* a refusal costs speed alone */
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
