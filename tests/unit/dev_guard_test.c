/* Guard mode: device memory is out of reach of the host and of operations that do not declare it;
 * touching it ends the process with the guard's exit status. A correct program notices nothing. */
#include <criterion/criterion.h>

#include "dev_guard.h"
#include "dev_toy.h"
#include "select.h"

enum { STEPS = 8, COUNT = 64 };

struct bench {
    dev *d;
    dev_stream stream;
    int *block, *other; /* COUNT numbers each: a whole granule */
};

static void open_bench(struct bench *b, enum dev_sched sched)
{
    struct dev_conf conf = toy_conf(sched, 1);
    conf.guard = true;
    cr_assert_eq(dev_open(&conf, &b->d), DEV_OK);
    cr_assert_eq(dev_stream_create(b->d, "stream", &b->stream), DEV_OK);
    cr_assert_eq(dev_malloc(b->d, b->stream, COUNT * sizeof(int), "block", (void **)&b->block),
                 DEV_OK);
    cr_assert_eq(dev_malloc(b->d, b->stream, COUNT * sizeof(int), "other", (void **)&b->other),
                 DEV_OK);
    dev_fill(b->d, b->stream, b->block, 0, COUNT * sizeof(int), "clear");
    dev_sync_all(b->d);
}

static void count(struct bench *b, int rows, const void *declared, enum dev_mode mode)
{
    const struct toy_count_args args = {b->block};
    const struct dev_span span = {declared, COUNT * sizeof(int), mode};
    dev_launch(b->d, b->stream, TOY_COUNT_ROWS, rows, &args, &span, 1, "count");
    dev_sync_all(b->d);
}

Test(dev_guard, a_correct_program_gives_the_same_bits)
{
    for (int sched = DEV_SCHED_FIFO; sched <= DEV_SCHED_PCT; sched++) {
        struct dev_conf conf = toy_conf(sched, 3);
        struct toy_result plain, guarded;
        toy_run(&conf, TOY_COMPLETE, STEPS, &plain);
        conf.guard = true;
        toy_run(&conf, TOY_COMPLETE, STEPS, &guarded);
        cr_assert_eq(guarded.status, DEV_OK, "%s", guarded.error);
        cr_assert_eq(guarded.numbers, plain.numbers);
        cr_assert_eq(guarded.schedule, plain.schedule);
        cr_assert_eq(guarded.ledger.live_bytes, plain.ledger.live_bytes);
    }
}

Test(dev_guard, declared_memory_is_in_reach)
{
    struct bench b;
    open_bench(&b, DEV_SCHED_LAZY);
    count(&b, COUNT, b.block, DEV_READ_WRITE);
    dev_close(b.d);
}

Test(dev_guard, the_host_cannot_read_device_memory, .exit_code = DEV_GUARD_EXIT)
{
    struct bench b;
    open_bench(&b, DEV_SCHED_FIFO);
    cr_assert_eq(*(volatile int *)b.block, 0);
}

Test(dev_guard, a_kernel_cannot_touch_what_it_did_not_declare, .exit_code = DEV_GUARD_EXIT)
{
    struct bench b;
    open_bench(&b, DEV_SCHED_FIFO);
    count(&b, COUNT, b.other, DEV_READ_WRITE);
}

Test(dev_guard, a_kernel_cannot_write_what_it_declared_as_read, .exit_code = DEV_GUARD_EXIT)
{
    struct bench b;
    open_bench(&b, DEV_SCHED_LAZY);
    count(&b, COUNT, b.block, DEV_READ);
}

Test(dev_guard, an_overrun_is_caught_at_its_first_byte, .exit_code = DEV_GUARD_EXIT)
{
    struct bench b;
    open_bench(&b, DEV_SCHED_FIFO);
    count(&b, COUNT + 1, b.block, DEV_READ_WRITE);
}

Test(dev_guard, blocks_that_overlap_in_the_heap_end_the_process, .exit_code = DEV_GUARD_EXIT)
{
    struct bench b;
    char error[200];
    void *large = NULL, *next = NULL;
    cr_assert(mut_select("dev_heap_split.one_granule_short", error, sizeof error), "%s", error);
    open_bench(&b, DEV_SCHED_FIFO);
    dev_step(b.d, 1);
    const size_t bytes = toy_conf(DEV_SCHED_FIFO, 1).heap_bytes / 8;
    cr_assert_eq(dev_malloc(b.d, b.stream, bytes, "large", &large), DEV_OK);
    cr_assert_eq(dev_malloc(b.d, b.stream, COUNT * sizeof(int), "next", &next), DEV_OK);
}

Test(dev_guard, threads_and_a_second_device_are_refused)
{
    struct bench b;
    struct dev_conf conf = toy_conf(DEV_SCHED_THREADS, 1);
    dev *second = NULL;
    conf.guard = true;
    cr_assert_eq(dev_open(&conf, &second), DEV_EARG);
    open_bench(&b, DEV_SCHED_FIFO);
    conf.sched = DEV_SCHED_FIFO;
    cr_assert_eq(dev_open(&conf, &second), DEV_ESTATE);
    dev_close(b.d);
    cr_assert_eq(dev_open(&conf, &second), DEV_OK);
    dev_close(second);
}
