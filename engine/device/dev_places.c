/* Sorted table of live blocks and pinned buffers. Called by dev_ops.c and dev_alloc.c; must not
 * know streams. */
#include <stdlib.h>
#include <string.h>

#include "dev_internal.h"

/* Index of the first place that begins behind `at`. */
static size_t upper_bound(const struct dev_places *places, uintptr_t at)
{
    size_t low = 0;
    size_t high = places->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (places->items[middle].lo <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const struct dev_place *dev_places_find(const struct dev_places *places, const void *ptr)
{
    const size_t behind = upper_bound(places, (uintptr_t)ptr);
    if (behind == 0 || places->items[behind - 1].hi <= (uintptr_t)ptr) {
        return NULL;
    }
    return &places->items[behind - 1];
}

bool dev_places_add(struct dev_places *places, struct dev_place place)
{
    if (places->count == places->capacity) {
        const size_t capacity = places->capacity == 0 ? 128 : 2 * places->capacity;
        struct dev_place *grown = realloc(places->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        places->items = grown;
        places->capacity = capacity;
    }
    const size_t at = upper_bound(places, place.lo);
    memmove(&places->items[at + 1], &places->items[at], (places->count - at) * sizeof place);
    places->items[at] = place;
    places->count++;
    return true;
}

void dev_places_remove(struct dev_places *places, const struct dev_place *place)
{
    const size_t at = (size_t)(place - places->items);
    places->count--;
    memmove(&places->items[at], &places->items[at + 1], (places->count - at) * sizeof *place);
}
