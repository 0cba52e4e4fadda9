/* Fisher-Yates over SplitMix64, as written in corpus/RECIPE.md.
 * Called by loader; must not know what is ordered. */
#include "order.h"

#include "fault.h"

static uint64_t next_random(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void eng_order_fill(uint32_t *order, size_t count, uint64_t seed, uint64_t epoch)
{
    const uint64_t mixed = FAULT(order_epoch, epoch);
    uint64_t state = seed * 0x9E3779B97F4A7C15u + mixed * 0xD1B54A32D192ED03u;
    for (size_t i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
    }
    for (size_t i = count; i-- > 1;) {
        const uint64_t drawn = next_random(&state);
        const size_t j = FAULT(order_draw, (size_t)(drawn % (i + 1)));
        const uint32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}
