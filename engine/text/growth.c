/* Growing arrays with doubling capacity.
 * Called by engine/text and engine/data; must not know what is stored. */
#include "growth.h"

#include <stdint.h>
#include <stdlib.h>

void *eng_grown(void *items, size_t *capacity, size_t needed, size_t item_bytes)
{
    enum { FIRST_CAPACITY = 16 };
    if (needed <= *capacity && items != NULL) {
        return items;
    }
    size_t wanted = *capacity < FIRST_CAPACITY ? FIRST_CAPACITY : *capacity * 2;
    if (wanted < needed) {
        wanted = needed;
    }
    if (wanted > SIZE_MAX / 2 / item_bytes) {
        return NULL;
    }
    void *const grown = realloc(items, wanted * item_bytes);
    if (grown != NULL) {
        *capacity = wanted;
    }
    return grown;
}
