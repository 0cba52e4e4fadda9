/* The order of an epoch: values from an independent program, and the rules written out plainly. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "order.h"

static void expect_order(uint64_t seed, uint64_t epoch, const uint32_t *wanted, size_t count)
{
    uint32_t order[16];
    eng_order_fill(order, count, seed, epoch);
    cr_assert_gt(count, 0);
    cr_assert_eq(memcmp(order, wanted, count * sizeof *order), 0);
}

/* Made by a few lines of Python from the text of corpus/RECIPE.md. */
Test(eng_data_order, gives_the_known_permutations)
{
    expect_order(1, 0, (const uint32_t[]){8, 7, 6, 5, 3, 9, 2, 4, 1, 0}, 10);
    expect_order(1, 1, (const uint32_t[]){4, 1, 7, 0, 5, 9, 6, 2, 3, 8}, 10);
    expect_order(0, 0, (const uint32_t[]){6, 3, 2, 9, 8, 1, 4, 7, 0, 5}, 10);
    expect_order(UINT64_MAX, 3, (const uint32_t[]){4, 1, 2, 3, 5, 6, 0}, 7);
    expect_order(5, 9, (const uint32_t[]){0}, 1);
}

static void plain_loop(uint32_t *p, uint32_t n, uint64_t seed, uint64_t epoch)
{
    uint64_t state = seed * UINT64_C(11400714819323198485) + epoch * UINT64_C(15111065706836454659);
    for (uint32_t i = 0; i < n; i++) {
        p[i] = i;
    }
    for (uint32_t i = n - 1; i >= 1; i--) {
        state = state + UINT64_C(11400714819323198485);
        uint64_t z = state;
        z = (z ^ (z >> 30)) * UINT64_C(13787848793156543929);
        z = (z ^ (z >> 27)) * UINT64_C(10723151780598845931);
        z = z ^ (z >> 31);
        const uint32_t j = (uint32_t)(z % ((uint64_t)i + 1));
        const uint32_t t = p[i];
        p[i] = p[j];
        p[j] = t;
    }
}

Test(eng_data_order, follows_the_rules_for_many_seeds_and_epochs)
{
    enum { COUNT = 1000 };
    uint32_t order[COUNT];
    uint32_t wanted[COUNT];
    size_t compared = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        for (uint64_t epoch = 0; epoch < 5; epoch++) {
            uint8_t seen[COUNT] = {0};
            eng_order_fill(order, COUNT, seed * 0x123456789ABCDEFu, epoch);
            plain_loop(wanted, COUNT, seed * 0x123456789ABCDEFu, epoch);
            for (size_t i = 0; i < COUNT; i++) {
                cr_assert_eq(order[i], wanted[i]);
                cr_assert_lt(order[i], COUNT);
                cr_assert_eq(seen[order[i]]++, 0);
                compared++;
            }
        }
    }
    cr_assert_gt(compared, 0);
}

/* ---- the cipher ---- */

static size_t cipher_item(size_t count, uint64_t seed, uint64_t epoch, size_t nth)
{
    struct eng_order_of_epoch order = {.rule = ENG_ORDER_CIPHER, .seed = seed, .count = count};
    cr_assert_eq(eng_order_open(&order, NULL), ENG_OK);
    const size_t item = eng_order_item(&order, epoch, nth);
    eng_order_close(&order);
    return item;
}

/* Made by a few lines of Python from the text of corpus/RECIPE.md. */
Test(eng_data_order, the_cipher_gives_the_known_orders)
{
    static const size_t seed1[] = {4, 2, 6, 0, 1, 7, 3, 8, 9, 5};
    static const size_t seed9[] = {8, 15, 10, 7, 1, 6, 14, 4, 9, 2};
    for (size_t n = 0; n < 10; n++) {
        cr_assert_eq(cipher_item(10, 1, 0, n), seed1[n]);
        cr_assert_eq(cipher_item(17, UINT64_MAX, 3, n), seed9[n]);
    }
    cr_assert_eq(cipher_item(1, 4, 2, 0), 0);
    cr_assert_eq(cipher_item(5000000000u, 1, 1, 4999999999u), 3067468426u);
}

Test(eng_data_order, the_cipher_is_a_permutation_of_every_size_and_differs_by_epoch)
{
    enum { LARGEST = 300 };
    for (size_t count = 1; count <= LARGEST; count++) {
        struct eng_order_of_epoch order = {.rule = ENG_ORDER_CIPHER, .seed = 7, .count = count};
        uint8_t seen[LARGEST] = {0};
        size_t moved = 0;
        cr_assert_eq(eng_order_open(&order, NULL), ENG_OK);
        for (size_t n = 0; n < count; n++) {
            const size_t item = eng_order_item(&order, 1, n);
            cr_assert_lt(item, count);
            cr_assert_eq(seen[item]++, 0);
            moved += item != eng_order_item(&order, 2, n);
        }
        cr_assert(count < 16 || moved > count / 2, "%zu of %zu moved", moved, count);
        eng_order_close(&order);
    }
}
