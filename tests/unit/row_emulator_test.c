/* Emulated lanes: every order of lanes is used, a sum over what the lanes share is right in each,
 * and a row whose lanes do not all meet ends the process with the exit code of a broken rule. */
#include <criterion/criterion.h>

#include "row_emulator.h"

enum { LANES = 32, ROWS = 3 };

struct record {
    uint32_t sums[ROWS][LANES];
    int order[ROWS * LANES], count;
};

/* Each lane notes that it ran, gives its number and adds up what all gave. */
static void add_up(const void *args, int row, int lane)
{
    struct record *r = *(struct record *const *)args;
    r->order[r->count++] = lane;
    const uint32_t *all = row_emulator_share((uint32_t)lane, lane);
    for (int i = 0; i < LANES; i++) {
        r->sums[row][lane] += all[i];
    }
}

static void half_meets(const void *args, int row, int lane)
{
    (void)args;
    (void)row;
    if (lane % 2 == 0) {
        row_emulator_meet();
    }
}

Test(row_emulator, lanes_see_what_all_gave_in_any_order)
{
    struct record one = {.count = 0}, two = {.count = 0};
    struct record *args = &one;
    row_emulator_seed(1);
    row_emulator_run(add_up, LANES, &args, 0, ROWS);
    args = &two;
    row_emulator_seed(2);
    row_emulator_run(add_up, LANES, &args, 0, ROWS);
    for (int row = 0; row < ROWS; row++) {
        for (int lane = 0; lane < LANES; lane++) {
            cr_assert_eq(one.sums[row][lane], LANES * (LANES - 1) / 2);
            cr_assert_eq(two.sums[row][lane], LANES * (LANES - 1) / 2);
        }
    }
    cr_assert_eq(one.count, ROWS * LANES);
    cr_assert_arr_neq(one.order, two.order, sizeof one.order);
}

Test(row_emulator, lanes_that_do_not_all_meet_end_the_process, .exit_code = 9)
{
    row_emulator_run(half_meets, LANES, NULL, 0, 1);
}
