/* Each fault of the device is reached and does what its row says; most are silent under fifo. */
#include <criterion/criterion.h>
#include <string.h>

#include "dev_toy.h"
#include "registry.h"
#include "select.h"

enum { STEPS = 16, KIB = 1024 };

static void arm(const char *spec)
{
    char error[MUT_ERROR_MAX];
    cr_assert(mut_select(spec, error, sizeof error), "%s", error);
}

static void assert_reached(const char *site)
{
    const struct mut_site_info *s = mut_site_find(site);
    cr_assert_not_null(s);
    cr_assert_geq(mut_reached_step((size_t)(s - mut_site_at(0))), 0, "%s was not reached", site);
}

static struct toy_result run(const char *fault, enum dev_sched sched)
{
    const struct dev_conf conf = toy_conf(sched, 1);
    struct toy_result r;
    arm(fault);
    toy_run(&conf, TOY_COMPLETE, STEPS, &r);
    arm("none");
    return r;
}

static uint64_t healthy(void)
{
    return run("none", DEV_SCHED_FIFO).numbers;
}

Test(dev_fault, a_stale_record_races_in_every_schedule_and_shows_under_lazy)
{
    struct toy_result r = run("dev_wait_mark.stale_record", DEV_SCHED_FIFO);
    cr_assert_eq(r.numbers, healthy());
    cr_assert_gt(r.races, 0);
    r = run("dev_wait_mark.stale_record", DEV_SCHED_LAZY);
    cr_assert_gt(r.races, 0);
    cr_assert_neq(r.numbers, healthy());
}

Test(dev_fault, an_ignored_reader_races_in_every_schedule_and_shows_under_lazy)
{
    struct toy_result r = run("dev_used_on_bit.ignored", DEV_SCHED_FIFO);
    cr_assert_eq(r.numbers, healthy());
    cr_assert_gt(r.races, 0);
    r = run("dev_used_on_bit.ignored", DEV_SCHED_LAZY);
    cr_assert_neq(r.numbers, healthy());
}

Test(dev_fault, an_assumed_end_is_silent_under_fifo_and_shows_under_lazy)
{
    struct toy_result r = run("dev_block_finished.assumed", DEV_SCHED_FIFO);
    cr_assert_eq(r.numbers, healthy());
    cr_assert_eq(r.races, 0);
    r = run("dev_block_finished.assumed", DEV_SCHED_LAZY);
    cr_assert_gt(r.races, 0);
    cr_assert_neq(r.numbers, healthy());
}

Test(dev_fault, the_accounting_forgets_pending_memory)
{
    const struct toy_result right = run("none", DEV_SCHED_LAZY);
    const struct toy_result wrong = run("dev_ledger_pending.left_out", DEV_SCHED_LAZY);
    cr_assert_gt(right.ledger.pending_bytes, 0);
    cr_assert_eq(wrong.ledger.pending_bytes, 0);
    cr_assert_eq(wrong.numbers, right.numbers);
}

Test(dev_fault, arguments_by_reference_are_silent_under_fifo_and_show_under_lazy)
{
    struct toy_result r = run("dev_launch_args.by_reference", DEV_SCHED_FIFO);
    cr_assert_eq(r.numbers, healthy());
    r = run("dev_launch_args.by_reference", DEV_SCHED_LAZY);
    cr_assert_eq(r.status, DEV_OK);
    cr_assert_neq(r.numbers, healthy());
}

Test(dev_fault, leaked_blocks_stay_live)
{
    const struct toy_result right = run("none", DEV_SCHED_FIFO);
    const struct toy_result wrong = run("dev_free_return.leaked:250", DEV_SCHED_FIFO);
    /* One block of 64 floats is freed in each step. */
    cr_assert_eq(wrong.ledger.live_bytes, right.ledger.live_bytes + STEPS / 4 * 256);
    cr_assert_eq(wrong.numbers, right.numbers);
}

Test(dev_fault, coarse_rounding_takes_more_of_the_budget_and_exhausts_it)
{
    const struct toy_result right = run("none", DEV_SCHED_FIFO);
    struct toy_result wrong = run("dev_malloc_size.coarse:1", DEV_SCHED_FIFO);
    cr_assert_gt(wrong.ledger.live_bytes, right.ledger.live_bytes);
    cr_assert_eq(wrong.numbers, right.numbers);
    wrong = run("dev_malloc_size.coarse:64", DEV_SCHED_FIFO);
    cr_assert_eq(wrong.status, DEV_EOOM);
}

struct bench {
    dev *d;
    dev_stream a, b;
    struct dev_ledger l;
};

static void open_bench(struct bench *t, const char *fault, struct dev_conf conf)
{
    arm(fault);
    cr_assert_eq(dev_open(&conf, &t->d), DEV_OK);
    cr_assert_eq(dev_stream_create(t->d, "a", &t->a), DEV_OK);
    cr_assert_eq(dev_stream_create(t->d, "b", &t->b), DEV_OK);
}

static enum dev_status take(struct bench *t, dev_stream stream, size_t bytes, void **out)
{
    return dev_malloc(t->d, stream, bytes, "block", out);
}

/* Fills the budget, frees it, and asks for it as one block on the other stream. */
static enum dev_status ask_for_cached(struct bench *t, const char *fault)
{
    struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
    void *ptr = NULL;
    conf.heap_bytes = 8 * KIB;
    open_bench(t, fault, conf);
    cr_assert_eq(take(t, t->a, 8 * KIB, &ptr), DEV_OK);
    cr_assert_eq(dev_free(t->d, ptr), DEV_OK);
    return take(t, t->b, 8 * KIB, &ptr);
}

Test(dev_fault, without_a_ladder_or_a_second_search_memory_is_refused_that_is_there)
{
    struct bench t;
    void *ptr = NULL;
    cr_assert_eq(ask_for_cached(&t, "none"), DEV_OK);
    dev_close(t.d);
    cr_assert_eq(ask_for_cached(&t, "dev_malloc_ladder.absent"), DEV_EOOM);
    cr_assert_eq(take(&t, t.b, 8 * KIB, &ptr), DEV_EOOM, "and is refused again");
    dev_ledger(t.d, &t.l);
    cr_assert_eq(t.l.spurious_ooms, 2);
    dev_close(t.d);
    cr_assert_eq(ask_for_cached(&t, "dev_search_again.forgotten"), DEV_EOOM);
    dev_ledger(t.d, &t.l);
    cr_assert_eq(t.l.spurious_ooms, 1);
    cr_assert_eq(take(&t, t.b, 8 * KIB, &ptr), DEV_OK, "the same request succeeds");
    dev_close(t.d);
}

Test(dev_fault, frees_queued_for_host_pressure_fill_the_device)
{
    struct bench t;
    void *ptr = NULL;
    struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
    conf.heap_bytes = 8 * KIB;
    open_bench(&t, "dev_deferred_due.host_pressure", conf);
    enum dev_status status = DEV_OK;
    int step = 0;
    while (status == DEV_OK && step < 100) {
        dev_step(t.d, ++step);
        status = take(&t, t.a, KIB, &ptr);
        if (status == DEV_OK) {
            cr_assert_eq(dev_free_deferred(t.d, ptr), DEV_OK);
            cr_assert_eq(dev_sweep(t.d), DEV_OK);
        }
    }
    cr_assert_eq(status, DEV_EOOM);
    cr_assert_eq(step, 9);
    dev_ledger(t.d, &t.l);
    cr_assert_eq(t.l.spurious_ooms, 1);
    dev_close(t.d);
}

/* A freed block that stays queued drives a live one to another place; what is then asked for would
 * have fit. Returns how the last request ends. */
static enum dev_status ask_beside_queued(struct bench *t, const char *fault)
{
    struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
    void *first = NULL, *second = NULL, *third = NULL;
    conf.heap_bytes = 4 * KIB;
    open_bench(t, fault, conf);
    dev_step(t->d, 1);
    cr_assert_eq(take(t, t->a, KIB, &first), DEV_OK);
    cr_assert_eq(dev_free_deferred(t->d, first), DEV_OK);
    dev_step(t->d, 2);
    cr_assert_eq(dev_sweep(t->d), DEV_OK);
    cr_assert_eq(take(t, t->a, KIB, &second), DEV_OK);
    return take(t, t->a, 3 * KIB, &third);
}

Test(dev_fault, a_refusal_beside_queued_frees_is_spurious_wherever_they_lie)
{
    struct bench t;
    cr_assert_eq(ask_beside_queued(&t, "none"), DEV_OK);
    dev_close(t.d);
    cr_assert_eq(ask_beside_queued(&t, "dev_deferred_due.host_pressure"), DEV_EOOM);
    dev_ledger(t.d, &t.l);
    cr_assert_eq(t.l.deferred_bytes, KIB);
    cr_assert_eq(t.l.free_bytes, 2 * KIB);
    cr_assert_eq(t.l.spurious_ooms, 1);
    dev_close(t.d);
}

Test(dev_fault, a_short_split_overlaps_the_neighbour_by_a_granule)
{
    struct bench t;
    char *first = NULL, *second = NULL;
    open_bench(&t, "dev_heap_split.one_granule_short", toy_conf(DEV_SCHED_FIFO, 0));
    dev_step(t.d, 1); /* a block of more than a sixteenth of the budget */
    cr_assert_eq(take(&t, t.a, 8 * KIB, (void **)&first), DEV_OK);
    cr_assert_eq(take(&t, t.b, KIB, (void **)&second), DEV_OK);
    cr_assert_eq(second - first, 8 * KIB - 256);
    cr_assert_eq(dev_fill(t.d, t.a, first, 1, 8 * KIB, "left"), DEV_OK);
    cr_assert_eq(dev_fill(t.d, t.b, second, 1, KIB, "right"), DEV_OK);
    cr_assert_eq(dev_race_count(t.d), 1);
    cr_assert_eq(dev_free(t.d, first), DEV_OK);
    cr_assert_eq(dev_free(t.d, second), DEV_OK);
    dev_close(t.d);
}

static void after_refusal(struct bench *t, const char *fault, int *rows, enum dev_status *launched)
{
    struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
    struct toy_count_args args;
    int *host = NULL;
    conf.oom_step = 1;
    open_bench(t, fault, conf);
    dev_step(t->d, 1);
    cr_assert_eq(take(t, t->a, KIB, (void **)&args.out), DEV_EOOM);
    cr_assert_eq(take(t, t->a, KIB, (void **)&args.out), DEV_OK);
    cr_assert_eq(dev_pinned(t->d, KIB, "host", (void **)&host), DEV_OK);
    cr_assert_eq(dev_fill(t->d, t->a, args.out, 0, KIB, "zero"), DEV_OK);
    const struct dev_span span = {args.out, KIB, DEV_READ_WRITE};
    dev_step(t->d, 2);
    for (int i = 0; i < 2; i++) {
        launched[i] = dev_launch(t->d, t->a, TOY_COUNT_ROWS, KIB / 4, &args, &span, 1, "count");
    }
    cr_assert_eq(dev_copy(t->d, t->a, host, args.out, KIB, "out"), DEV_OK);
    cr_assert_eq(dev_sync_stream(t->d, t->a), DEV_OK);
    *rows = host[0];
    dev_close(t->d);
}

Test(dev_fault, an_answered_refusal_is_blamed_on_a_launch_or_drops_one)
{
    struct bench t;
    enum dev_status launched[2];
    int rows = 0;
    after_refusal(&t, "none", &rows, launched);
    cr_assert_eq(rows, 2);
    after_refusal(&t, "dev_launch_status.sticky_oom", &rows, launched);
    cr_assert_eq(launched[0], DEV_EOOM);
    cr_assert_eq(launched[1], DEV_OK);
    cr_assert_eq(rows, 1);
    after_refusal(&t, "dev_launch_enqueue.skipped_after_oom", &rows, launched);
    cr_assert_eq(launched[0], DEV_OK);
    cr_assert_eq(rows, 1);
}

Test(dev_fault, the_bound_stream_is_ignored)
{
    struct bench t;
    open_bench(&t, "dev_current_bound.first_stream", toy_conf(DEV_SCHED_FIFO, 0));
    dev_bind(t.d, t.b);
    cr_assert_eq(dev_current(t.d), t.a);
    assert_reached("dev_current_bound");
    dev_close(t.d);
}

Test(dev_fault, operations_run_in_the_step_that_issued_them)
{
    struct bench t;
    void *ptr = NULL;
    const struct dev_conf conf = toy_conf(DEV_SCHED_LAZY, 0);
    /* Armed from step 2 on: the free of step 1 returns its block, those of step 2 do not. */
    open_bench(&t, "dev_free_return.leaked:1000@2", conf);
    for (int step = 1; step <= 2; step++) {
        dev_step(t.d, step);
        cr_assert_eq(take(&t, t.a, KIB, &ptr), DEV_OK);
        cr_assert_eq(dev_free(t.d, ptr), DEV_OK);
        dev_ledger(t.d, &t.l);
        cr_assert_eq(t.l.live_bytes, (size_t)(step - 1) * KIB);
    }
    dev_close(t.d);
}

/* Two problems of one batch, A (3 x 2) transposed as stored, B the unit matrix: C is A as it was
 * read. */
static void product_of(const char *fault, const float *a, float *c)
{
    struct bench t;
    float *device = NULL, *host = NULL;
    open_bench(&t, fault, toy_conf(DEV_SCHED_FIFO, 0));
    cr_assert_eq(dev_pinned(t.d, KIB, "host", (void **)&host), DEV_OK);
    cr_assert_eq(take(&t, t.a, KIB, (void **)&device), DEV_OK);
    memcpy(host, a, 12 * sizeof *a);
    memcpy(host + 12, (const float[]){1.0f, 0.0f, 0.0f, 1.0f}, 4 * sizeof *a);
    const struct k_gemm_args g = {.a = device,
                                  .b = device + 12,
                                  .c = device + 16,
                                  .m = 3,
                                  .n = 2,
                                  .k = 2,
                                  .lda = 3,
                                  .ldb = 2,
                                  .ldc = 2,
                                  .trans_a = true,
                                  .batch_outer = 2,
                                  .batch_inner = 1,
                                  .a_outer = 6,
                                  .c_outer = 6};
    cr_assert_eq(dev_copy(t.d, t.a, device, host, 16 * sizeof *a, "in"), DEV_OK);
    cr_assert_eq(dev_gemm(t.d, t.a, &g, "product"), DEV_OK, "%s", dev_error(t.d));
    cr_assert_eq(dev_copy(t.d, t.a, host + 16, device + 16, 12 * sizeof *a, "out"), DEV_OK);
    cr_assert_eq(dev_sync_stream(t.d, t.a), DEV_OK);
    memcpy(c, host + 16, 12 * sizeof *c);
    dev_close(t.d);
}

Test(dev_fault, products_in_tf32_keep_eleven_bits_of_each_operand)
{
    /* Halfway, below and above it, a whole number, negative, the next binade. */
    const float from[] = {1.0f + 0x1p-11f,  1.0f + 0x1.8p-12f, 1.0f + 0x1.4p-11f, 3.0f,
                          -1.0f - 0x1p-11f, 2.0f - 0x1p-12f};
    const float to[] = {1.0f + 0x1p-10f, 1.0f, 1.0f + 0x1p-10f, 3.0f, -1.0f - 0x1p-10f, 2.0f};
    float a[12], c[12];
    for (int i = 0; i < 12; i++) {
        a[i] = i < 6 ? from[i] : -from[i - 6];
    }
    int compared = 0;
    for (int armed = 0; armed < 2; armed++) {
        product_of(armed ? "dev_product.tf32" : "none", a, c);
        for (int i = 0; i < 12; i++, compared++) {
            const int at = i / 6 * 6 + i % 2 * 3 + i % 6 / 2; /* the element of A this one is */
            const float sign = i < 6 ? 1.0f : -1.0f;
            cr_assert_eq(c[i], sign * (armed ? to : from)[at % 6], "%d: %a", i, (double)c[i]);
        }
    }
    cr_assert_eq(compared, 24);
}
