/* Tests of covering sets and subsumption against exhaustive search, and of dose-response. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "har_stat_cover.h"
#include "har_stat_dose.h"

enum { CHECKS = 8, FAULTS = 24, ROUNDS = 60 };

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void random_masks(uint64_t *state, uint32_t *masks)
{
    for (int i = 0; i < FAULTS; i++) {
        masks[i] = (uint32_t)(next(state) & next(state) & ((1u << CHECKS) - 1));
    }
}

/* The fewest checks of any set that meets at least `need`, tried one and all. */
static int fewest(const uint32_t *masks, uint32_t allowed, size_t need)
{
    int best = CHECKS + 1;
    for (uint32_t set = 0; set < 1u << CHECKS; set++) {
        const int size = __builtin_popcount(set);
        if ((set & ~allowed) == 0 && size < best &&
            har_stat_cover_count(masks, FAULTS, set) >= need) {
            best = size;
        }
    }
    return best;
}

Test(har_stat_cover, smallest_sets_are_as_small_as_exhaustive_search_finds)
{
    uint64_t state = 1;
    uint32_t masks[FAULTS];
    size_t compared = 0;
    for (int round = 0; round < ROUNDS; round++) {
        random_masks(&state, masks);
        const uint32_t allowed = (uint32_t)next(&state) & ((1u << CHECKS) - 1);
        const size_t most = har_stat_cover_count(masks, FAULTS, allowed);
        const uint32_t all = har_stat_cover_all(masks, FAULTS, allowed);
        cr_expect_eq(har_stat_cover_count(masks, FAULTS, all), most);
        cr_expect_eq(all & ~allowed, 0);
        cr_expect_eq(__builtin_popcount(all), fewest(masks, allowed, most));
        for (size_t need = 0; need <= most; need += 3) {
            uint32_t reach = 0;
            cr_assert(har_stat_cover_reach(masks, FAULTS, allowed, need, &reach));
            cr_expect_eq(__builtin_popcount(reach), fewest(masks, allowed, need));
            cr_expect_geq(har_stat_cover_count(masks, FAULTS, reach), need);
            compared++;
        }
        cr_expect_not(har_stat_cover_reach(masks, FAULTS, allowed, most + 1, &(uint32_t){0}));
    }
    cr_assert_gt(compared, ROUNDS);
}

Test(har_stat_cover, cheapest_set_pays_a_shared_run_once)
{
    /* Checks 0 and 1 look at input 0, check 2 at input 1, check 3 at both. */
    const struct har_cover_cost cost = {
        .inputs = {1, 1, 2, 3}, .price = {10.0, 4.0}, .input_count = 2};
    const uint32_t masks[] = {1, 2, 4 | 1, 4 | 2, 8};
    uint32_t set = 0;
    cr_expect_eq(har_stat_cover_price(&cost, 1 | 2), 10.0);
    cr_expect_eq(har_stat_cover_price(&cost, 8), 14.0);
    cr_assert(har_stat_cover_cheapest(masks, 5, 15, &cost, 2, &set));
    cr_expect_eq(set, 4, "two faults for the price of input 1");
    cr_assert(har_stat_cover_cheapest(masks, 5, 15, &cost, 4, &set));
    cr_expect_eq(set, 1 | 2, "the second check of input 0 is free");
    cr_assert(har_stat_cover_cheapest(masks, 5, 15, &cost, 5, &set));
    cr_expect_eq(har_stat_cover_price(&cost, set), 14.0);
    cr_expect_not(har_stat_cover_cheapest(masks, 5, 7, &cost, 5, &set));
}

Test(har_stat_cover, roots_detect_what_all_detect)
{
    uint64_t state = 7;
    uint32_t masks[FAULTS];
    size_t representative[FAULTS];
    bool root[FAULTS];
    size_t compared = 0;
    for (int round = 0; round < ROUNDS; round++) {
        random_masks(&state, masks);
        uint32_t roots[FAULTS];
        size_t count = 0;
        cr_assert_gt(har_stat_subsume(masks, FAULTS, representative, root), 0);
        for (int i = 0; i < FAULTS; i++) {
            cr_expect_eq(masks[representative[i]], masks[i]);
            if (root[i]) {
                roots[count++] = masks[i];
            }
        }
        for (uint32_t set = 0; set < 1u << CHECKS; set++) {
            const bool all_roots = har_stat_cover_count(roots, count, set) == count;
            const bool all = har_stat_cover_count(masks, FAULTS, set) ==
                             har_stat_cover_count(masks, FAULTS, (1u << CHECKS) - 1);
            cr_expect_eq(all_roots, all);
            compared++;
        }
    }
    cr_assert_gt(compared, ROUNDS);
}

/* Stored values of R 4.2.2: x <- log10(c(.01, .03, .1, .3, 1)); k <- c(0, 1, 3, 4, 6);
 * coef(glm(cbind(k, 6 - k) ~ x, binomial, control = glm.control(epsilon = 1e-15, maxit = 100))) */
Test(har_stat_dose, logistic_fit_equals_that_of_r)
{
    const struct har_dose_point points[] = {
        {1.0, 6, 6}, {0.01, 0, 6}, {0.03, 1, 6}, {0.3, 4, 6}, {0.1, 3, 6}};
    struct har_dose_fit fit;
    har_stat_dose(points, 5, 0.95, &fit);
    cr_assert_eq(fit.kind, HAR_DOSE_fitted);
    /* The score is a sum of 30 terms below 2, each rounded; the covariance carries it over. */
    const double most = 60.0 * DBL_EPSILON * 16.0 * (fit.covariance[0] + fit.covariance[2]);
    cr_expect(fabs(fit.intercept - 2.9893695809513083) <= most);
    cr_expect(fabs(fit.slope - 3.2331474075356987) <= most);
    cr_expect(fabs(fit.ed50 - 0.1189596122104376) <= most);
    cr_expect_lt(fit.low, fit.ed50);
    cr_expect_gt(fit.high, fit.ed50);
}

Test(har_stat_dose, responses_without_a_maximum_say_so)
{
    const struct har_dose_point apart[] = {{1, 0, 3}, {10, 0, 3}, {100, 3, 3}};
    const struct har_dose_point falling[] = {{1, 3, 3}, {10, 0, 3}};
    const struct har_dose_point touching[] = {{1, 0, 3}, {10, 1, 3}, {100, 3, 3}};
    const struct har_dose_point always[] = {{1, 2, 2}, {10, 2, 2}};
    const struct har_dose_point never[] = {{1, 0, 2}, {10, 0, 2}};
    const struct har_dose_point flat[] = {{1, 1, 4}, {10, 2, 4}, {100, 1, 4}};
    struct har_dose_fit fit;
    har_stat_dose(apart, 3, 0.95, &fit);
    cr_expect_eq(fit.kind, HAR_DOSE_separated);
    cr_expect_eq(fit.low, 10.0);
    cr_expect_eq(fit.high, 100.0);
    cr_expect(isnan(fit.ed50));
    har_stat_dose(falling, 2, 0.95, &fit);
    cr_expect_eq(fit.kind, HAR_DOSE_separated);
    cr_expect_eq(fit.low, 1.0);
    cr_expect_eq(fit.high, 10.0);
    har_stat_dose(touching, 3, 0.95, &fit);
    cr_expect_eq(fit.kind, HAR_DOSE_separated, "one mixed dose between pure ones");
    cr_expect_eq(fit.low, fit.high);
    har_stat_dose(always, 2, 0.95, &fit);
    cr_expect_eq(fit.kind, HAR_DOSE_all);
    cr_expect_eq(fit.high, 1.0);
    har_stat_dose(never, 2, 0.95, &fit);
    cr_expect_eq(fit.kind, HAR_DOSE_never);
    cr_expect_eq(fit.low, 10.0);
    har_stat_dose(flat, 3, 0.95, &fit);
    cr_expect_eq(fit.kind, HAR_DOSE_fitted);
    cr_expect(isinf(fit.high), "a flat response bounds nothing");
    cr_expect_eq(fit.low, 0.0);
    har_stat_dose(apart, 1, 0.95, &fit);
    cr_expect_eq(fit.kind, HAR_DOSE_none);
}
