/* Minimum hitting sets by bounded search, prices of shared inputs, subsumption.
 * Used by the reports; must not know what a check or a fault is. */
#include "har_stat_cover.h"

#include <string.h>

static size_t bits_of(uint32_t mask)
{
    return (size_t)__builtin_popcount(mask);
}

size_t har_stat_cover_count(const uint32_t *masks, size_t count, uint32_t checks)
{
    size_t met = 0;
    for (size_t i = 0; i < count; i++) {
        met += (masks[i] & checks) != 0;
    }
    return met;
}

/* Of the masks that `chosen` does not meet, the one with the fewest checks left; 0 = all are met.
 */
static uint32_t narrowest(const uint32_t *masks, size_t count, uint32_t allowed, uint32_t chosen)
{
    uint32_t best = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t left = masks[i] & allowed;
        if (left != 0 && (masks[i] & chosen) == 0 && (best == 0 || bits_of(left) < bits_of(best))) {
            best = left;
        }
    }
    return best;
}

/* Whether `chosen` with at most `more` further checks meets all. Depth is the size of the set. */
static bool hit_all(const uint32_t *masks, size_t count, uint32_t allowed, size_t more,
                    uint32_t *chosen)
{
    uint32_t left = narrowest(masks, count, allowed, *chosen);
    if (left == 0 || more == 0) {
        return left == 0;
    }
    for (; left != 0; left &= left - 1) {
        uint32_t with = *chosen | (left & -left);
        if (hit_all(masks, count, allowed, more - 1, &with)) {
            *chosen = with;
            return true;
        }
    }
    return false;
}

uint32_t har_stat_cover_all(const uint32_t *masks, size_t count, uint32_t allowed)
{
    for (size_t size = 0; size <= bits_of(allowed); size++) {
        uint32_t chosen = 0;
        if (hit_all(masks, count, allowed, size, &chosen)) {
            return chosen;
        }
    }
    return allowed; /* not reached: all of the allowed ones meet all they can */
}

/* The next larger number with as many bits (Gosper). */
static uint32_t next_of_size(uint32_t set)
{
    const uint32_t lowest = set & -set;
    const uint32_t ripple = set + lowest;
    return (((ripple ^ set) >> 2) / lowest) | ripple;
}

/* Spreads the low bits of `packed` over the positions of `allowed`. */
static uint32_t spread(uint32_t packed, uint32_t allowed)
{
    uint32_t out = 0;
    for (; packed != 0 && allowed != 0; packed >>= 1, allowed &= allowed - 1) {
        out |= (packed & 1) != 0 ? allowed & -allowed : 0;
    }
    return out;
}

bool har_stat_cover_reach(const uint32_t *masks, size_t count, uint32_t allowed, size_t need,
                          uint32_t *out)
{
    const size_t checks = bits_of(allowed);
    if (har_stat_cover_count(masks, count, allowed) < need || checks > HAR_COVER_CHECKS_MAX) {
        return false;
    }
    if (need == 0) {
        *out = 0;
        return true;
    }
    for (size_t size = 1; size <= checks; size++) {
        const uint32_t end = UINT32_C(1) << checks;
        for (uint32_t set = (UINT32_C(1) << size) - 1; set < end; set = next_of_size(set)) {
            const uint32_t chosen = spread(set, allowed);
            if (har_stat_cover_count(masks, count, chosen) >= need) {
                *out = chosen;
                return true;
            }
        }
    }
    return false;
}

static uint32_t inputs_of(const struct har_cover_cost *cost, uint32_t checks)
{
    uint32_t inputs = 0;
    for (int i = 0; i < HAR_COVER_CHECKS_MAX; i++) {
        inputs |= (checks >> i & 1) != 0 ? cost->inputs[i] : 0;
    }
    return inputs;
}

static double price_of(const struct har_cover_cost *cost, uint32_t inputs)
{
    double price = 0.0;
    for (size_t i = 0; i < cost->input_count; i++) {
        price += (inputs >> i & 1) != 0 ? cost->price[i] : 0.0;
    }
    return price;
}

double har_stat_cover_price(const struct har_cover_cost *cost, uint32_t checks)
{
    return price_of(cost, inputs_of(cost, checks));
}

bool har_stat_cover_cheapest(const uint32_t *masks, size_t count, uint32_t allowed,
                             const struct har_cover_cost *cost, size_t need, uint32_t *out)
{
    double best = 0.0;
    uint32_t best_allowed = 0;
    bool found = false;
    /* Every set of inputs pays for all checks that need no more: few sets, so all are tried. */
    for (uint32_t inputs = 0; inputs < UINT32_C(1) << cost->input_count; inputs++) {
        uint32_t affordable = 0;
        for (int i = 0; i < HAR_COVER_CHECKS_MAX; i++) {
            const bool paid = (cost->inputs[i] & ~inputs) == 0;
            affordable |= paid ? allowed & UINT32_C(1) << i : 0;
        }
        const double price = price_of(cost, inputs);
        if (har_stat_cover_count(masks, count, affordable) >= need && (!found || price < best)) {
            found = true;
            best = price;
            best_allowed = affordable;
        }
    }
    return found && har_stat_cover_reach(masks, count, best_allowed, need, out);
}

size_t har_stat_subsume(const uint32_t *masks, size_t count, size_t *representative, bool *root)
{
    size_t roots = 0;
    for (size_t i = 0; i < count; i++) {
        representative[i] = i;
        for (size_t k = 0; masks[i] != 0 && k < i; k++) {
            if (masks[k] == masks[i]) {
                representative[i] = k;
                break;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        root[i] = masks[i] != 0 && representative[i] == i;
        for (size_t k = 0; root[i] && k < count; k++) {
            const bool stricter =
                masks[k] != 0 && masks[k] != masks[i] && (masks[k] & ~masks[i]) == 0;
            root[i] = !stricter;
        }
        roots += root[i];
    }
    return roots;
}
