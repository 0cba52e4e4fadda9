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
            /* A fair choice at each call starves nobody long enough for waits of two steps ago. */
            const bool far = omission == TOY_NO_STAGE_WAIT || omission == TOY_NO_CONSUMED_WAIT;
            cr_assert(wrong > 0 || (far && sched == DEV_SCHED_RANDOM),
                      "no seed of schedule %d shows omission %d", sched, omission);
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
    cr_assert(strstr(r.first.first_where, "dev_toy.c:") != NULL, "%s", r.first.first_where);
    cr_assert(strstr(r.first.second_where, "dev_toy.c:") != NULL, "%s", r.first.second_where);
    cr_assert_lt(r.first.first_op, r.first.second_op);
}

Test(dev_sched, an_operation_has_one_number_in_every_schedule)
{
    for (int omission = TOY_COMPLETE + 1; omission < TOY_OMISSIONS; omission++) {
        struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
        struct toy_result fifo, other;
        toy_run(&conf, omission, STEPS, &fifo);
        for (int sched = DEV_SCHED_LAZY; sched <= DEV_SCHED_PCT; sched++) {
            conf = toy_conf(sched, 5);
            toy_run(&conf, omission, STEPS, &other);
            cr_assert_eq(other.first.first_op, fifo.first.first_op, "omission %d", omission);
            cr_assert_eq(other.first.second_op, fifo.first.second_op, "omission %d", omission);
        }
    }
}

Test(dev_sched, aimed_shows_each_omission_in_one_run)
{
    const uint64_t numbers = reference();
    for (int omission = TOY_COMPLETE + 1; omission < TOY_OMISSIONS; omission++) {
        struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
        struct toy_result first, aimed, again;
        toy_run(&conf, omission, STEPS, &first);
        cr_assert_gt(first.aim_count, 0);
        conf.sched = DEV_SCHED_AIMED;
        conf.aims = first.aims;
        conf.aim_count = first.aim_count;
        toy_run(&conf, omission, STEPS, &aimed);
        toy_run(&conf, omission, STEPS, &again);
        cr_assert_neq(aimed.numbers, numbers, "omission %d", omission);
        cr_assert_gt(aimed.races, 0);
        cr_assert_eq(aimed.numbers, again.numbers);
        cr_assert_eq(aimed.schedule, again.schedule);
    }
}

Test(dev_sched, aiming_at_pairs_that_are_ordered_changes_nothing)
{
    struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
    struct toy_result first, aimed;
    toy_run(&conf, TOY_NO_COPIED_WAIT, STEPS, &first);
    conf.sched = DEV_SCHED_AIMED;
    conf.aims = first.aims;
    conf.aim_count = first.aim_count;
    toy_run(&conf, TOY_COMPLETE, STEPS, &aimed);
    cr_assert_eq(aimed.status, DEV_OK, "%s", aimed.error);
    cr_assert_eq(aimed.numbers, reference());
}

Test(dev_sched, a_thread_per_stream_gives_the_same_bits)
{
    const uint64_t numbers = reference();
    for (int run = 0; run < 10; run++) {
        struct dev_conf conf = toy_conf(DEV_SCHED_THREADS, 0);
        struct toy_result r;
        conf.poison = run % 2 == 0;
        toy_run(&conf, TOY_COMPLETE, STEPS, &r);
        cr_assert_eq(r.status, DEV_OK, "%s", r.error);
        cr_assert_eq(r.races, 0);
        cr_assert_eq(r.numbers, numbers);
    }
}

enum { TORN_BYTES = 512 };

/* Two unordered copies of one block: the second one reads what the first one writes. Returns
 * whether it saw part of it. */
static bool is_torn(enum dev_sched sched, uint64_t seed)
{
    struct dev_conf conf = toy_conf(sched, seed);
    dev *d = NULL;
    dev_stream one, two;
    char *ones = NULL, *seen = NULL, *block = NULL;
    cr_assert_eq(dev_open(&conf, &d), DEV_OK);
    cr_assert_eq(dev_stream_create(d, "one", &one), DEV_OK);
    cr_assert_eq(dev_stream_create(d, "two", &two), DEV_OK);
    cr_assert_eq(dev_pinned(d, TORN_BYTES, "ones", (void **)&ones), DEV_OK);
    cr_assert_eq(dev_pinned(d, TORN_BYTES, "seen", (void **)&seen), DEV_OK);
    cr_assert_eq(dev_malloc(d, one, TORN_BYTES, "block", (void **)&block), DEV_OK);
    memset(ones, 1, TORN_BYTES);
    dev_fill(d, one, block, 0, TORN_BYTES, "clear");
    dev_sync_all(d);
    for (int step = 1; step <= 8; step++) {
        dev_step(d, step);
    }
    dev_copy(d, one, block, ones, TORN_BYTES, "write");
    dev_copy(d, two, seen, block, TORN_BYTES, "read");
    dev_sync_all(d);
    int sum = 0;
    for (int i = 0; i < TORN_BYTES; i++) {
        sum += seen[i];
    }
    dev_close(d);
    return sum != 0 && sum != TORN_BYTES;
}

Test(dev_sched, a_read_can_be_torn)
{
    int torn[DEV_SCHED_COUNT] = {0};
    for (uint64_t seed = 0; seed < 4 * SEEDS; seed++) {
        torn[DEV_SCHED_RANDOM] += is_torn(DEV_SCHED_RANDOM, seed);
        torn[DEV_SCHED_FIFO] += is_torn(DEV_SCHED_FIFO, seed);
    }
    cr_assert_gt(torn[DEV_SCHED_RANDOM], 0);
    cr_assert_eq(torn[DEV_SCHED_FIFO], 0);
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
