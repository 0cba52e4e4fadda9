/* Operations and events: argument and span errors, products, worker threads, rebinding of waits. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "dev_toy.h"

struct bench {
    dev *d;
    dev_stream a, b;
    char *block;
    char *pinned;
};

enum { BLOCK = 1024 };

static void open_bench(struct bench *t, enum dev_sched sched, int threads)
{
    struct dev_conf conf = toy_conf(sched, 3);
    conf.threads = threads;
    conf.heap_bytes = 1 << 22;
    conf.pinned_bytes = 1 << 21;
    cr_assert_eq(dev_open(&conf, &t->d), DEV_OK);
    cr_assert_eq(dev_stream_create(t->d, "a", &t->a), DEV_OK);
    cr_assert_eq(dev_stream_create(t->d, "b", &t->b), DEV_OK);
    cr_assert_eq(dev_malloc(t->d, t->a, BLOCK, "block", (void **)&t->block), DEV_OK);
    cr_assert_eq(dev_pinned(t->d, BLOCK, "pinned", (void **)&t->pinned), DEV_OK);
}

Test(dev_ops, a_configuration_that_makes_no_sense_is_refused)
{
    struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
    dev *d = NULL;
    conf.threads = 0;
    cr_assert_eq(dev_open(&conf, &d), DEV_EARG);
    conf = toy_conf(DEV_SCHED_FIFO, 0);
    conf.heap_bytes = 0;
    cr_assert_eq(dev_open(&conf, &d), DEV_EARG);
    cr_assert_null(d);
    dev_close(NULL);
}

Test(dev_ops, spans_must_lie_in_one_live_block)
{
    struct bench t;
    struct toy_count_args args = {NULL};
    open_bench(&t, DEV_SCHED_FIFO, 1);
    char local[4];
    const struct dev_span bad[] = {
        {t.block, BLOCK + 1, DEV_READ}, {t.block + BLOCK, 1, DEV_READ},
        {t.block - 1, 1, DEV_READ},     {t.pinned + BLOCK - 1, 2, DEV_READ},
        {local, 4, DEV_READ},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(dev_launch(t.d, t.a, TOY_COUNT_ROWS, 1, &args, &bad[i], 1, "reader"),
                     DEV_ESPAN, "span %zu", i);
        cr_assert_not_null(strstr(dev_error(t.d), "reader"), "%s", dev_error(t.d));
    }
    cr_assert_eq(dev_launch(t.d, t.a, TOY_COUNT_ROWS, 1, &args, &bad[0], 1, "reader"), DEV_ESPAN);
    cr_assert_not_null(strstr(dev_error(t.d), "'block' of 1024"), "%s", dev_error(t.d));
    cr_assert_eq(dev_free(t.d, t.block), DEV_OK);
    cr_assert_eq(dev_fill(t.d, t.a, t.block, 0, 1, "late"), DEV_ESPAN);
    dev_close(t.d);
}

Test(dev_ops, arguments_are_checked)
{
    struct bench t;
    struct toy_count_args args = {NULL};
    char local[16];
    void *p = NULL;
    open_bench(&t, DEV_SCHED_FIFO, 1);
    const struct dev_span no_mode = {t.block, 4, 0};
    cr_assert_eq(dev_launch(t.d, t.a, TOY_COUNT_ROWS, -1, &args, NULL, 0, "x"), DEV_EARG);
    cr_assert_eq(dev_launch(t.d, t.a, TOY_COUNT_ROWS, 1, NULL, NULL, 0, "x"), DEV_EARG);
    cr_assert_eq(dev_launch(t.d, t.a, K_ID_COUNT, 1, &args, NULL, 0, "x"), DEV_EARG);
    cr_assert_eq(dev_launch(t.d, 7, TOY_COUNT_ROWS, 1, &args, NULL, 0, "x"), DEV_EARG);
    cr_assert_eq(dev_launch(t.d, t.a, TOY_COUNT_ROWS, 1, &args, &no_mode, 1, "x"), DEV_EARG);
    cr_assert_eq(dev_launch(t.d, t.a, TOY_COUNT_ROWS, 0, &args, NULL, 0, "x"), DEV_OK);
    cr_assert_eq(dev_copy(t.d, t.a, t.block, local, 16, "pageable"), DEV_EARG);
    cr_assert_not_null(strstr(dev_error(t.d), "pageable: the source"), "%s", dev_error(t.d));
    cr_assert_eq(dev_copy(t.d, t.a, local, t.block, 16, "pageable"), DEV_EARG);
    cr_assert_eq(dev_copy(t.d, t.a, t.block, t.block + 8, 16, "shift"), DEV_EARG);
    cr_assert_eq(dev_copy(t.d, t.a, t.block, t.pinned, 0, "nothing"), DEV_OK);
    cr_assert_eq(dev_host(t.d, t.block, 4, DEV_READ, "peek"), DEV_EARG);
    cr_assert_eq(dev_record(t.d, 1, t.a), DEV_EARG);
    cr_assert_eq(dev_wait(t.d, t.a, 0), DEV_EARG);
    cr_assert_eq(dev_sync_event(t.d, 9), DEV_EARG);
    for (int i = 0; i < 5; i++) {
        dev_stream s = 0;
        cr_assert_eq(dev_stream_create(t.d, "more", &s), DEV_OK);
    }
    dev_stream s = 0;
    cr_assert_eq(dev_stream_create(t.d, "too many", &s), DEV_ESTATE);
    (void)p;
    dev_close(t.d);
}

Test(dev_ops, a_wait_on_an_event_never_recorded_is_no_operation)
{
    struct bench t;
    dev_event e = 0;
    open_bench(&t, DEV_SCHED_LAZY, 1);
    cr_assert_eq(dev_event_create(t.d, "never", &e), DEV_OK);
    cr_assert_eq(dev_wait(t.d, t.a, e), DEV_OK);
    cr_assert_eq(dev_sync_event(t.d, e), DEV_OK);
    cr_assert_eq(dev_sync_all(t.d), DEV_OK);
    dev_close(t.d);
}

/* pinned[0] is copied before anything ran: a wait decides which fill it sees. */
static char first_byte_after(int waits_before_second_record, int second_record)
{
    struct bench t;
    dev_event e = 0;
    open_bench(&t, DEV_SCHED_LAZY, 1);
    cr_assert_eq(dev_event_create(t.d, "filled", &e), DEV_OK);
    cr_assert_eq(dev_fill(t.d, t.a, t.block, 1, 4, "first fill"), DEV_OK);
    cr_assert_eq(dev_record(t.d, e, t.a), DEV_OK);
    if (waits_before_second_record) {
        cr_assert_eq(dev_wait(t.d, t.b, e), DEV_OK);
    }
    cr_assert_eq(dev_fill(t.d, t.a, t.block, 2, 4, "second fill"), DEV_OK);
    if (second_record) {
        cr_assert_eq(dev_record(t.d, e, t.a), DEV_OK);
    }
    if (!waits_before_second_record) {
        cr_assert_eq(dev_wait(t.d, t.b, e), DEV_OK);
    }
    cr_assert_eq(dev_copy(t.d, t.b, t.pinned, t.block, 4, "copy"), DEV_OK);
    cr_assert_eq(dev_sync_stream(t.d, t.b), DEV_OK);
    const char seen = t.pinned[0];
    cr_assert_eq(dev_race_count(t.d) > 0, waits_before_second_record || !second_record);
    dev_close(t.d);
    return seen;
}

Test(dev_ops, a_wait_binds_to_the_last_record_before_it)
{
    cr_assert_eq(first_byte_after(0, 1), 2);
    cr_assert_eq(first_byte_after(1, 1), 1);
    cr_assert_eq(first_byte_after(0, 0), 1);
}

Test(dev_ops, an_event_recorded_on_another_stream_forgets_the_first)
{
    struct bench t;
    dev_event e = 0;
    open_bench(&t, DEV_SCHED_LAZY, 1);
    cr_assert_eq(dev_event_create(t.d, "moved", &e), DEV_OK);
    cr_assert_eq(dev_fill(t.d, t.a, t.block, 1, 4, "fill"), DEV_OK);
    cr_assert_eq(dev_record(t.d, e, t.a), DEV_OK);
    cr_assert_eq(dev_record(t.d, e, t.b), DEV_OK);
    cr_assert_eq(dev_sync_event(t.d, e), DEV_OK);
    cr_assert_eq(dev_copy(t.d, t.b, t.pinned, t.block, 4, "copy"), DEV_OK);
    cr_assert_eq(dev_race_count(t.d), 1);
    dev_close(t.d);
}

Test(dev_ops, rows_run_once_each_whatever_the_number_of_threads)
{
    enum { ROWS = 100003 };
    for (int threads = 1; threads <= 4; threads++) {
        struct bench t;
        struct toy_count_args args;
        int *host = NULL;
        open_bench(&t, DEV_SCHED_FIFO, threads);
        cr_assert_eq(dev_malloc(t.d, t.a, ROWS * sizeof(int), "rows", (void **)&args.out), DEV_OK);
        cr_assert_eq(dev_pinned(t.d, ROWS * sizeof(int), "rows on host", (void **)&host), DEV_OK);
        cr_assert_eq(dev_fill(t.d, t.a, args.out, 0, ROWS * sizeof(int), "zero"), DEV_OK);
        const struct dev_span span = {args.out, ROWS * sizeof(int), DEV_READ_WRITE};
        for (int round = 0; round < 3; round++) {
            cr_assert_eq(dev_launch(t.d, t.a, TOY_COUNT_ROWS, ROWS, &args, &span, 1, "count"),
                         DEV_OK);
        }
        cr_assert_eq(dev_copy(t.d, t.a, host, args.out, ROWS * sizeof(int), "out"), DEV_OK);
        cr_assert_eq(dev_sync_stream(t.d, t.a), DEV_OK);
        for (int i = 0; i < ROWS; i++) {
            cr_assert_eq(host[i], 3 * (i + 1), "row %d with %d threads", i, threads);
        }
        dev_close(t.d);
    }
}

Test(dev_ops, many_small_jobs_in_a_row_lose_no_part)
{
    enum { ROWS = 12000, ROUNDS = 2000 };
    struct bench t;
    struct toy_count_args args;
    int *host = NULL;
    open_bench(&t, DEV_SCHED_FIFO, 3);
    cr_assert_eq(dev_malloc(t.d, t.a, ROWS * sizeof(int), "rows", (void **)&args.out), DEV_OK);
    cr_assert_eq(dev_pinned(t.d, ROWS * sizeof(int), "rows on host", (void **)&host), DEV_OK);
    cr_assert_eq(dev_fill(t.d, t.a, args.out, 0, ROWS * sizeof(int), "zero"), DEV_OK);
    const struct dev_span span = {args.out, ROWS * sizeof(int), DEV_READ_WRITE};
    for (int round = 0; round < ROUNDS; round++) {
        cr_assert_eq(dev_launch(t.d, t.a, TOY_COUNT_ROWS, ROWS, &args, &span, 1, "count"), DEV_OK);
    }
    cr_assert_eq(dev_copy(t.d, t.a, host, args.out, ROWS * sizeof(int), "out"), DEV_OK);
    cr_assert_eq(dev_sync_stream(t.d, t.a), DEV_OK);
    for (int i = 0; i < ROWS; i++) {
        cr_assert_eq(host[i], ROUNDS * (i + 1), "row %d", i);
    }
    dev_close(t.d);
}

Test(dev_ops, a_product_touches_exactly_its_strided_extent)
{
    struct bench t;
    float *a = NULL;
    open_bench(&t, DEV_SCHED_FIFO, 2);
    /* Two problems of 2 x 3 times 3 x 2 side by side in one buffer: 6 + 6 + 4 floats each. */
    cr_assert_eq(dev_malloc(t.d, t.a, 256, "operands", (void **)&a), DEV_OK);
    struct k_gemm_args g = {.a = a,
                            .b = a + 12,
                            .c = a + 24,
                            .m = 2,
                            .n = 2,
                            .k = 3,
                            .lda = 3,
                            .ldb = 2,
                            .ldc = 2,
                            .batch_outer = 1,
                            .batch_inner = 2,
                            .a_inner = 6,
                            .b_inner = 6,
                            .c_inner = 4};
    float *host = (float *)t.pinned;
    for (int i = 0; i < 32; i++) {
        host[i] = (float)(i % 5);
    }
    cr_assert_eq(dev_copy(t.d, t.a, a, host, 32 * sizeof *a, "in"), DEV_OK);
    cr_assert_eq(dev_gemm(t.d, t.a, &g, "product"), DEV_OK, "%s", dev_error(t.d));
    cr_assert_eq(dev_copy(t.d, t.a, host + 64, a, 32 * sizeof *a, "out"), DEV_OK);
    cr_assert_eq(dev_sync_stream(t.d, t.a), DEV_OK);
    int compared = 0;
    for (int p = 0; p < 2; p++) {
        for (int i = 0; i < 2; i++) {
            for (int j = 0; j < 2; j++) {
                float sum = 0.0f; /* small whole numbers: exact */
                for (int k = 0; k < 3; k++) {
                    sum += host[p * 6 + i * 3 + k] * host[12 + p * 6 + k * 2 + j];
                }
                cr_assert_eq(host[64 + 24 + p * 4 + i * 2 + j], sum);
                compared++;
            }
        }
    }
    cr_assert_eq(compared, 8);
    g.c = a + 64 - 8;
    cr_assert_eq(dev_gemm(t.d, t.a, &g, "fits"), DEV_OK);
    g.c = a + 64 - 7;
    cr_assert_eq(dev_gemm(t.d, t.a, &g, "does not fit"), DEV_ESPAN);
    g.ldc = 1;
    cr_assert_eq(dev_gemm(t.d, t.a, &g, "narrow"), DEV_EARG);
    dev_close(t.d);
}

struct visit {
    dev *d;
    dev_stream unbound, bound;
};

static void *visit(void *context)
{
    struct visit *v = context;
    v->unbound = dev_current(v->d);
    dev_bind(v->d, 2);
    v->bound = dev_current(v->d);
    return NULL;
}

Test(dev_ops, the_current_stream_belongs_to_thread_and_device)
{
    struct bench t, other;
    pthread_t thread;
    open_bench(&t, DEV_SCHED_LAZY, 1);
    open_bench(&other, DEV_SCHED_LAZY, 1);
    cr_assert_eq(dev_current(t.d), 0);
    dev_bind(t.d, t.b);
    dev_bind(other.d, other.a);
    cr_assert_eq(dev_current(t.d), t.b);
    cr_assert_eq(dev_current(other.d), other.a);
    struct visit v = {.d = other.d};
    cr_assert_eq(pthread_create(&thread, NULL, visit, &v), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(v.unbound, 0);
    cr_assert_eq(v.bound, 2);
    cr_assert_eq(dev_current(other.d), other.a);
    /* Work without a stream goes to the bound one: on stream b it races with stream a. */
    cr_assert_eq(dev_fill(t.d, t.a, t.block, 1, 4, "fill"), DEV_OK);
    cr_assert_eq(dev_fill(t.d, 0, t.block, 2, 4, "fill again"), DEV_OK);
    cr_assert_eq(dev_race_count(t.d), 1);
    dev_close(other.d);
    dev_close(t.d);
    open_bench(&t, DEV_SCHED_LAZY, 1);
    cr_assert_eq(dev_current(t.d), 0, "a binding ends with its device");
    dev_close(t.d);
}

Test(dev_ops, no_stream_no_work)
{
    const struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
    dev *d = NULL;
    void *ptr = NULL;
    cr_assert_eq(dev_open(&conf, &d), DEV_OK);
    cr_assert_str_eq(dev_error(d), "");
    cr_assert_eq(dev_malloc(d, 0, 4, "early", &ptr), DEV_ESTATE);
    cr_assert_str_eq(dev_status_name(DEV_EOOM), "EOOM");
    cr_assert_str_eq(dev_status_text(DEV_EOOM), "device memory budget exhausted");
    dev_close(d);
}
