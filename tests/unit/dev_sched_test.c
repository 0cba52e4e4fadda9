/* Schedules and the race checker: a correct program gives the same bits in every schedule, and each
 * omitted wait is reported in every schedule and shows in the numbers of some. */
#include <criterion/criterion.h>
#include <string.h>

#include "dev_toy.h"

enum { STEPS = 16, SEEDS = 60 };

static uint64_t reference(void)
{
    const struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
    struct toy_result r;
    toy_run(&conf, TOY_COMPLETE, STEPS, &r);
    cr_assert_eq(r.status, DEV_OK, "%s", r.error);
    return r.numbers;
}

Test(dev_sched, a_correct_program_gives_the_same_bits_in_every_schedule)
{
    const uint64_t numbers = reference();
    int compared = 0;
    for (int sched = DEV_SCHED_FIFO; sched <= DEV_SCHED_PCT; sched++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            for (int poison = 0; poison < 2; poison++) {
                struct dev_conf conf = toy_conf(sched, seed);
                struct toy_result r;
                conf.poison = poison != 0;
                toy_run(&conf, TOY_COMPLETE, STEPS, &r);
                cr_assert_eq(r.status, DEV_OK, "%s", r.error);
                cr_assert_eq(r.races, 0, "sched %d seed %d: %s | %s on %s", sched, (int)seed,
                             r.first.first_what, r.first.second_what, r.first.buffer);
                cr_assert_eq(r.numbers, numbers, "sched %d seed %d", sched, (int)seed);
                compared++;
            }
        }
    }
    cr_assert_gt(compared, 0);
}

Test(dev_sched, threads_change_nothing)
{
    const uint64_t numbers = reference();
    for (int threads = 1; threads <= 4; threads++) {
        struct dev_conf conf = toy_conf(DEV_SCHED_PCT, 7);
        struct toy_result r;
        conf.threads = threads;
        toy_run(&conf, TOY_COMPLETE, STEPS, &r);
        cr_assert_eq(r.numbers, numbers, "%d threads", threads);
    }
}

Test(dev_sched, the_checker_reports_each_omission_in_every_schedule)
{
    for (int omission = TOY_COMPLETE + 1; omission < TOY_OMISSIONS; omission++) {
        for (int sched = DEV_SCHED_FIFO; sched <= DEV_SCHED_PCT; sched++) {
            for (uint64_t seed = 0; seed < SEEDS / 2; seed++) {
                const struct dev_conf conf = toy_conf(sched, seed);
                struct toy_result r;
                toy_run(&conf, omission, STEPS, &r);
                cr_assert_gt(r.races, 0, "omission %d sched %d seed %d", omission, sched,
                             (int)seed);
                cr_assert_gt(r.pairs, 0);
                cr_assert_leq(r.pairs, r.races);
            }
        }
    }
}

Test(dev_sched, fifo_hides_each_omission_and_other_schedules_show_it)
{
    const uint64_t numbers = reference();
    for (int omission = TOY_COMPLETE + 1; omission < TOY_OMISSIONS; omission++) {
        struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
        struct toy_result r;
        toy_run(&conf, omission, STEPS, &r);
        cr_assert_eq(r.numbers, numbers, "fifo shows omission %d", omission);
        for (int sched = DEV_SCHED_LAZY; sched <= DEV_SCHED_PCT; sched++) {
            int wrong = 0;
            for (uint64_t seed = 0; seed < SEEDS; seed++) {
                conf = toy_conf(sched, seed);
                toy_run(&conf, omission, STEPS, &r);
                wrong += r.numbers != numbers;
            }
            cr_log_info("omission %d, schedule %d: %d of %d", omission, sched, wrong, SEEDS);
            cr_assert_gt(wrong, 0, "no seed of schedule %d shows omission %d", sched, omission);
        }
    }
}

Test(dev_sched, a_race_names_operations_streams_buffer_and_steps)
{
    const struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
    struct toy_result r;
    toy_run(&conf, TOY_NO_STAGE_WAIT, STEPS, &r);
    cr_assert_eq(r.pairs, 1);
    cr_assert_str_eq(r.first.first_what, "copy in");
    cr_assert_str_eq(r.first.second_what, "fill stage");
    cr_assert_str_eq(r.first.first_stream, "copy");
    cr_assert_str_eq(r.first.second_stream, "host");
    cr_assert_str_eq(r.first.buffer, "stage");
    cr_assert_eq(r.first.first_mode, DEV_READ);
    cr_assert_eq(r.first.second_mode, DEV_WRITE);
    /* Two buffers, and the host reads a loss only every third step: the first refill of a buffer
     * whose copy nobody waited for is in step 3. */
    cr_assert_eq(r.first.first_step, 1);
    cr_assert_eq(r.first.second_step, 3);
}

Test(dev_sched, program_and_seed_fix_the_schedule)
{
    uint64_t seen[SEEDS];
    int different = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct dev_conf conf = toy_conf(DEV_SCHED_PCT, seed);
        struct toy_result first, second;
        toy_run(&conf, TOY_NO_CONSUMED_WAIT, STEPS, &first);
        toy_run(&conf, TOY_NO_CONSUMED_WAIT, STEPS, &second);
        cr_assert_eq(first.schedule, second.schedule);
        cr_assert_eq(first.numbers, second.numbers);
        seen[seed] = first.schedule;
        different += seed > 0 && seen[seed] != seen[seed - 1];
    }
    cr_assert_gt(different, SEEDS / 2, "only %d seeds differ from the one before", different);
}

Test(dev_sched, threads_do_not_change_the_schedule)
{
    struct dev_conf conf = toy_conf(DEV_SCHED_PCT, 11);
    struct toy_result one, four;
    toy_run(&conf, TOY_COMPLETE, STEPS, &one);
    conf.threads = 4;
    toy_run(&conf, TOY_COMPLETE, STEPS, &four);
    cr_assert_eq(one.schedule, four.schedule);
}

Test(dev_sched, without_the_checker_nothing_is_reported)
{
    struct dev_conf conf = toy_conf(DEV_SCHED_LAZY, 0);
    struct toy_result r;
    conf.check_races = false;
    toy_run(&conf, TOY_NO_COPIED_WAIT, STEPS, &r);
    cr_assert_eq(r.status, DEV_OK);
    cr_assert_eq(r.races, 0);
}
