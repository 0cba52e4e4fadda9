/* Tests of the alarms on loss differences. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "har_stat_alarm.h"

enum { RUNS = 24, STEPS = 32 };
static const double alpha = 0.05;
static double healthy[RUNS * STEPS];

static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

/* A standard normal (Box and Muller). */
static double normal(uint64_t *state)
{
    const double radius = sqrt(-2.0 * log(uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

static struct har_alarm_null calibrated(uint64_t *state)
{
    struct har_alarm_null null;
    for (int i = 0; i < RUNS * STEPS; i++) {
        healthy[i] = 1e-8 * normal(state);
    }
    cr_assert(har_stat_alarm_calibrate(healthy, RUNS, STEPS, &null));
    return null;
}

static struct har_alarm_times judge(const struct har_alarm_null *null, const double *run)
{
    struct har_alarm_times times;
    har_stat_alarm_run(null, run, STEPS, alpha, &times);
    return times;
}

Test(har_stat_alarm, a_large_difference_is_seen_in_its_step)
{
    uint64_t state = 3;
    struct har_alarm_null null = calibrated(&state);
    double run[STEPS] = {0.0};
    run[9] = 1e-5;
    const struct har_alarm_times times = judge(&null, run);
    cr_expect_eq(times.e_step, 10);
    cr_expect_eq(times.cusum_step, 10);
    run[9] = HUGE_VAL;
    cr_expect_eq(judge(&null, run).e_step, 10, "a loss that is not finite");
    har_stat_alarm_fini(&null);
}

Test(har_stat_alarm, a_bias_below_the_scale_is_seen_in_time)
{
    uint64_t state = 4;
    struct har_alarm_null null = calibrated(&state);
    double run[STEPS];
    for (int i = 0; i < STEPS; i++) {
        run[i] = -0.9e-8;
    }
    const struct har_alarm_times times = judge(&null, run);
    cr_expect_gt(times.e_step, 5, "one step of that size is nothing");
    cr_expect_lt(times.e_step, STEPS);
    for (int i = 0; i < STEPS; i++) {
        run[i] = i % 2 == 0 ? 0.9e-8 : -0.9e-8;
    }
    cr_expect_eq(judge(&null, run).e_step, 0, "the same sizes without a bias are healthy");
    har_stat_alarm_fini(&null);
}

Test(har_stat_alarm, what_cannot_be_compared_is_skipped)
{
    uint64_t state = 5;
    struct har_alarm_null null = calibrated(&state);
    double run[STEPS];
    for (int i = 0; i < STEPS; i++) {
        run[i] = (double)NAN;
    }
    cr_expect_eq(judge(&null, run).e_step, 0);
    cr_expect_eq(judge(&null, run).cusum_step, 0);
    har_stat_alarm_fini(&null);
    cr_expect_not(har_stat_alarm_calibrate(healthy, 1, STEPS, &null));
    cr_expect_not(har_stat_alarm_calibrate(healthy, 5, 0, &null));
}

Test(har_stat_alarm, equal_losses_leave_no_room_for_another)
{
    double equal[3 * 2] = {0.0};
    struct har_alarm_null null;
    const double run[2] = {0.0, 1e-12};
    struct har_alarm_times times;
    cr_assert(har_stat_alarm_calibrate(equal, 3, 2, &null));
    har_stat_alarm_run(&null, run, 2, alpha, &times);
    cr_expect_eq(times.e_step, 2);
    har_stat_alarm_fini(&null);
}
