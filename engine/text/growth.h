/* Growing arrays. Used by engine/text and engine/data; knows no element type. */
#pragma once

#include <stddef.h>

/* Purpose: room for `needed` items of `item_bytes`; capacity at least doubles when it grows.
 * Returns the array, perhaps moved, or NULL when memory is refused: then the old one still stands.
 * Ownership: the caller frees the result with free(). */
void *eng_grown(void *items, size_t *capacity, size_t needed, size_t item_bytes);
