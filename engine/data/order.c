/* Fisher-Yates over SplitMix64, or a Feistel cipher walked over, as written in corpus/RECIPE.md.
 * Called by loader; must not know what is ordered. */
#include "order.h"

#include <stdlib.h>

#include "fault.h"

enum { ROUNDS = 6 };

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static uint64_t next_random(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    return mix(*state);
}

static uint64_t first_state(uint64_t seed, uint64_t epoch)
{
    const uint64_t mixed = FAULT(order_epoch, epoch);
    return seed * 0x9E3779B97F4A7C15u + mixed * 0xD1B54A32D192ED03u;
}

void eng_order_fill(uint32_t *order, size_t count, uint64_t seed, uint64_t epoch)
{
    uint64_t state = first_state(seed, epoch);
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

static void prepare(struct eng_order_of_epoch *order, uint64_t epoch)
{
    order->epoch = epoch;
    if (order->rule == ENG_ORDER_PERMUTATION) {
        eng_order_fill(order->permutation, order->count, order->seed, epoch);
        return;
    }
    uint64_t state = first_state(order->seed, epoch);
    for (int r = 0; r < ROUNDS; r++) {
        order->keys[r] = next_random(&state);
    }
}

enum eng_status eng_order_open(struct eng_order_of_epoch *order, struct eng_error *error)
{
    order->half_bits = 1;
    while (order->half_bits < 31 && order->count > (size_t)1 << 2 * order->half_bits) {
        order->half_bits++;
    }
    if (order->count > (size_t)1 << 2 * order->half_bits) {
        return eng_fail(error, ENG_EUSAGE, "an epoch of %zu items is too large", order->count);
    }
    if (order->rule == ENG_ORDER_PERMUTATION && order->count > UINT32_MAX) {
        return eng_fail(error, ENG_EUSAGE, "an epoch of %zu items needs data.order: cipher",
                        order->count);
    }
    if (order->rule == ENG_ORDER_PERMUTATION) {
        order->permutation = calloc(order->count + 1, sizeof *order->permutation);
        if (order->permutation == NULL) {
            return eng_fail(error, ENG_EHOSTMEM, "no memory for the order of %zu items",
                            order->count);
        }
    }
    prepare(order, 0);
    return ENG_OK;
}

void eng_order_close(struct eng_order_of_epoch *order)
{
    free(order->permutation);
    *order = (struct eng_order_of_epoch){0};
}

/* One step of a permutation of 0 .. 4^half_bits - 1. */
static uint64_t encipher(const struct eng_order_of_epoch *order, uint64_t x)
{
    const uint64_t mask = ((uint64_t)1 << order->half_bits) - 1;
    uint64_t left = x >> order->half_bits;
    uint64_t right = x & mask;
    for (int r = 0; r < ROUNDS; r++) {
        const uint64_t kept = right;
        right = left ^ (mix(right + order->keys[r]) & mask);
        left = kept;
    }
    return left << order->half_bits | right;
}

size_t eng_order_item(struct eng_order_of_epoch *order, uint64_t epoch, size_t nth)
{
    if (epoch != order->epoch) {
        prepare(order, epoch);
    }
    if (order->rule == ENG_ORDER_PERMUTATION) {
        return order->permutation[nth];
    }
    uint64_t x = encipher(order, nth);
    while (x >= order->count) { /* a cycle through nth leads back below count */
        x = FAULT(order_walk, encipher(order, x));
    }
    return (size_t)x;
}
