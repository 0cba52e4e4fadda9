/* The heap against a map of granules: exact budget, best fit, no overlap, whole again when empty.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "dev_heap.h"
#include "dev_toy.h"

enum { GRANULES = 1024, BLOCKS = 200, OPERATIONS = 20000 };

struct model {
    short owner[GRANULES]; /* 0 = free, else slot + 1 */
};

/* Best fit by looking at every hole: smallest that fits, lowest address among equals. */
static int model_place(const struct model *m, int wanted)
{
    int best = -1;
    int best_length = GRANULES + 1;
    for (int i = 0; i < GRANULES;) {
        int length = 0;
        while (i + length < GRANULES && m->owner[i + length] == 0) {
            length++;
        }
        if (length >= wanted && length < best_length) {
            best = i;
            best_length = length;
        }
        i += length > 0 ? length : 1;
    }
    return best;
}

static size_t model_free(const struct model *m)
{
    size_t count = 0;
    for (int i = 0; i < GRANULES; i++) {
        count += m->owner[i] == 0;
    }
    return count * DEV_GRANULE;
}

static int granules_of(uint64_t random)
{
    return 1 + (int)((random >> 8) % (random % 8 == 0 ? 200 : 12));
}

Test(dev_heap, agrees_with_a_map_of_granules)
{
    struct dev_heap heap;
    struct model m = {{0}};
    int slots[BLOCKS];
    uint64_t state = 5;
    int taken = 0;
    int refused = 0;
    cr_assert(dev_heap_init(&heap, GRANULES * DEV_GRANULE));
    memset(slots, -1, sizeof slots);
    for (int i = 0; i < OPERATIONS; i++) {
        const int slot = (int)(toy_random(&state) % BLOCKS);
        if (slots[slot] >= 0) {
            dev_heap_give(&heap, slots[slot]);
            slots[slot] = -1;
            for (int g = 0; g < GRANULES; g++) {
                m.owner[g] = m.owner[g] == slot + 1 ? 0 : m.owner[g];
            }
        } else {
            const int granules = granules_of(toy_random(&state));
            const int expected = model_place(&m, granules);
            slots[slot] = dev_heap_take(&heap, (size_t)granules * DEV_GRANULE);
            cr_assert_eq(slots[slot] >= 0, expected >= 0, "operation %d", i);
            refused += expected < 0;
            if (expected >= 0) {
                const struct dev_block *b = &heap.blocks[slots[slot]];
                cr_assert_eq(b->offset, (size_t)expected * DEV_GRANULE, "operation %d", i);
                cr_assert_eq(b->bytes, (size_t)granules * DEV_GRANULE);
                for (int g = 0; g < granules; g++) {
                    m.owner[expected + g] = (short)(slot + 1);
                }
                taken++;
            }
        }
        cr_assert_eq(heap.free_bytes, model_free(&m));
    }
    cr_assert_gt(taken, 1000);
    cr_assert_gt(refused, 10);
    for (int i = 0; i < BLOCKS; i++) {
        if (slots[i] >= 0) {
            dev_heap_give(&heap, slots[i]);
        }
    }
    cr_assert_eq(dev_heap_largest(&heap), heap.budget_bytes);
    cr_assert_geq(dev_heap_take(&heap, heap.budget_bytes), 0);
    dev_heap_fini(&heap);
}

Test(dev_heap, every_byte_of_the_budget_can_be_had)
{
    struct dev_heap heap;
    cr_assert(dev_heap_init(&heap, GRANULES * DEV_GRANULE));
    for (int i = 0; i < GRANULES; i++) {
        cr_assert_geq(dev_heap_take(&heap, DEV_GRANULE), 0, "block %d", i);
    }
    cr_assert_eq(heap.free_bytes, 0);
    cr_assert_eq(dev_heap_largest(&heap), 0);
    cr_assert_eq(dev_heap_take(&heap, DEV_GRANULE), DEV_NO_BLOCK);
    dev_heap_fini(&heap);
}
