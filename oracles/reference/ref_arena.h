/* Memory that is taken piece by piece and given back at once. Used for tapes, strings and
 * documents; knows nothing of what lies in it. Not thread-safe. */
#pragma once

#include <stddef.h>

struct orc_ref_arena;

/* Heap object; NULL when there is no memory. Memory is made in chunks of chunk_bytes (a multiple of
 * 64), larger ones where a piece needs it; chunks of 2 MiB and more lie in huge pages. */
struct orc_ref_arena *orc_ref_arena_create(size_t chunk_bytes);

/* Accepts NULL. Frees everything taken. */
void orc_ref_arena_destroy(struct orc_ref_arena *arena);

/* count elements of size bytes, not cleared, aligned to a cache line; NULL when there is no
 * memory or the product overflows. Zero elements give a valid pointer. */
void *orc_ref_arena_take(struct orc_ref_arena *arena, size_t count, size_t size);

/* A copy of length bytes of text with a NUL behind. */
char *orc_ref_arena_text(struct orc_ref_arena *arena, const char *text, size_t length);

/* Forgets everything taken but keeps the memory for the next round. */
void orc_ref_arena_reset(struct orc_ref_arena *arena);
