/* The allocator: caches, pending blocks, the finalizer queue, each rung of the ladder, the ledger.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "dev_toy.h"

enum { KIB = 1024 };

struct bench {
    dev *d;
    dev_stream a, b;
    struct dev_ledger l;
};

static void open_bench(struct bench *t, struct dev_conf conf)
{
    cr_assert_eq(dev_open(&conf, &t->d), DEV_OK);
    cr_assert_eq(dev_stream_create(t->d, "a", &t->a), DEV_OK);
    cr_assert_eq(dev_stream_create(t->d, "b", &t->b), DEV_OK);
}

static void open_bytes(struct bench *t, size_t bytes, enum dev_sched sched)
{
    struct dev_conf conf = toy_conf(sched, 1);
    conf.heap_bytes = bytes;
    open_bench(t, conf);
}

static void *take(struct bench *t, dev_stream stream, size_t bytes)
{
    void *ptr = NULL;
    const enum dev_status status = dev_malloc(t->d, stream, bytes, "block", &ptr);
    cr_assert_eq(status, DEV_OK, "%s", dev_error(t->d));
    return ptr;
}

static void give(struct bench *t, void *ptr)
{
    cr_assert_eq(dev_free(t->d, ptr), DEV_OK, "%s", dev_error(t->d));
}

/* An operation that keeps a lazy stream busy with the block. */
static void touch(struct bench *t, dev_stream stream, void *ptr, size_t bytes)
{
    cr_assert_eq(dev_fill(t->d, stream, ptr, 1, bytes, "touch"), DEV_OK);
}

static const struct dev_ledger *ledger(struct bench *t)
{
    dev_ledger(t->d, &t->l);
    cr_assert_eq(t->l.live_bytes + t->l.cached_bytes + t->l.pending_bytes + t->l.deferred_bytes +
                     t->l.free_bytes,
                 t->l.budget_bytes);
    return &t->l;
}

Test(dev_alloc, a_freed_block_is_reused_on_its_stream_only)
{
    struct bench t;
    open_bytes(&t, 64 * KIB, DEV_SCHED_LAZY);
    void *first = take(&t, t.a, 1000);
    give(&t, first);
    cr_assert_eq(ledger(&t)->cached_bytes, 1024);
    void *other = take(&t, t.b, 1000);
    cr_assert_neq(other, first);
    cr_assert_eq(take(&t, t.a, 1000), first);
    cr_assert_eq(ledger(&t)->reclaims, 0);
    dev_close(t.d);
}

Test(dev_alloc, a_block_used_elsewhere_waits_for_that_stream)
{
    struct bench t;
    open_bytes(&t, 64 * KIB, DEV_SCHED_LAZY);
    void *block = take(&t, t.a, 4 * KIB);
    touch(&t, t.b, block, 4 * KIB);
    cr_assert_eq(dev_used_on(t.d, block, t.b), DEV_OK);
    give(&t, block);
    cr_assert_eq(ledger(&t)->pending_bytes, 4 * KIB);
    cr_assert_neq(take(&t, t.a, 4 * KIB), block);
    cr_assert_eq(dev_sync_stream(t.d, t.b), DEV_OK);
    cr_assert_eq(take(&t, t.a, 4 * KIB), block);
    cr_assert_eq(ledger(&t)->pending_bytes, 0);
    dev_close(t.d);
}

Test(dev_alloc, a_block_in_quarantine_is_reused_after_enough_others_or_when_memory_is_short)
{
    struct bench t;
    struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 1);
    conf.heap_bytes = 8 * KIB;
    conf.quarantine_bytes = 2 * KIB;
    open_bench(&t, conf);
    void *first = take(&t, t.a, KIB);
    give(&t, first);
    cr_assert_eq(ledger(&t)->pending_bytes, KIB);
    cr_assert_eq(dev_fill(t.d, t.a, first, 1, KIB, "stale"), DEV_ESPAN);
    void *second = take(&t, t.a, KIB);
    cr_assert_neq(second, first);
    cr_assert_eq(dev_fill(t.d, t.a, first, 1, KIB, "still stale"), DEV_ESPAN);
    give(&t, second);
    void *third = take(&t, t.a, KIB);
    cr_assert(third != first && third != second);
    give(&t, third);
    cr_assert_eq(ledger(&t)->pending_bytes, 3 * KIB);
    cr_assert_eq(take(&t, t.a, KIB), first, "the oldest, and no more than needed");
    cr_assert_eq(ledger(&t)->pending_bytes, 2 * KIB);
    cr_assert_eq(t.l.reclaims, 0);
    take(&t, t.a, 7 * KIB);
    cr_assert_eq(ledger(&t)->pending_bytes, 0);
    cr_assert_eq(t.l.ooms, 0);
    dev_close(t.d);
}

Test(dev_alloc, the_ladder_waits_for_pending_blocks)
{
    struct bench t;
    open_bytes(&t, 8 * KIB, DEV_SCHED_LAZY);
    void *block = take(&t, t.a, 8 * KIB);
    touch(&t, t.b, block, 8 * KIB);
    cr_assert_eq(dev_used_on(t.d, block, t.b), DEV_OK);
    give(&t, block);
    cr_assert_eq(take(&t, t.a, 8 * KIB), block);
    cr_assert_eq(ledger(&t)->reclaims, 1);
    cr_assert_eq(t.l.ooms, 0);
    dev_close(t.d);
}

Test(dev_alloc, the_ladder_drains_the_finalizer_queue)
{
    struct bench t;
    open_bytes(&t, 8 * KIB, DEV_SCHED_FIFO);
    void *block = take(&t, t.a, 8 * KIB);
    cr_assert_eq(dev_free_deferred(t.d, block), DEV_OK);
    cr_assert_eq(ledger(&t)->deferred_bytes, 8 * KIB);
    cr_assert_eq(take(&t, t.a, 8 * KIB), block);
    cr_assert_eq(ledger(&t)->deferred_bytes, 0);
    dev_close(t.d);
}

Test(dev_alloc, the_ladder_releases_caches_and_merges)
{
    struct bench t;
    open_bytes(&t, 8 * KIB, DEV_SCHED_LAZY);
    void *parts[8];
    for (int i = 0; i < 8; i++) {
        parts[i] = take(&t, i % 2 == 0 ? t.a : t.b, KIB);
        touch(&t, i % 2 == 0 ? t.a : t.b, parts[i], KIB);
    }
    for (int i = 0; i < 8; i++) {
        give(&t, parts[i]);
    }
    cr_assert_eq(ledger(&t)->cached_bytes, 8 * KIB);
    void *whole = take(&t, t.a, 8 * KIB);
    touch(&t, t.a, whole, 8 * KIB);
    cr_assert_eq(ledger(&t)->cached_bytes, 0);
    cr_assert_eq(dev_race_count(t.d), 0, "the ladder's wait is an edge for the blocks it took");
    dev_close(t.d);
}

Test(dev_alloc, out_of_memory_is_named_and_leaves_the_device_usable)
{
    struct bench t;
    open_bytes(&t, 8 * KIB, DEV_SCHED_FIFO);
    void *block = take(&t, t.a, 5 * KIB);
    void *ptr = &t;
    dev_step(t.d, 3);
    cr_assert_eq(dev_malloc(t.d, t.a, 4 * KIB, "logits", &ptr), DEV_EOOM);
    cr_assert_eq(ptr, (void *)&t, "the result is untouched");
    cr_assert_not_null(strstr(dev_error(t.d), "'logits' of 4096 bytes in step 3"), "%s",
                       dev_error(t.d));
    cr_assert_not_null(strstr(dev_error(t.d), "live 5120"), "%s", dev_error(t.d));
    cr_assert_eq(ledger(&t)->ooms, 1);
    cr_assert_eq(t.l.spurious_ooms, 0);
    cr_assert_eq(dev_malloc(t.d, t.a, SIZE_MAX, "huge", &ptr), DEV_EOOM);
    give(&t, block);
    take(&t, t.a, 8 * KIB);
    dev_close(t.d);
}

Test(dev_alloc, holes_between_live_blocks_make_no_refusal_spurious)
{
    struct bench t;
    open_bytes(&t, 3 * KIB, DEV_SCHED_FIFO);
    void *first = take(&t, t.a, KIB);
    take(&t, t.a, KIB);
    void *last = take(&t, t.a, KIB);
    void *ptr = NULL;
    give(&t, first);
    give(&t, last);
    cr_assert_eq(dev_malloc(t.d, t.a, 2 * KIB, "wide", &ptr), DEV_EOOM);
    cr_assert_eq(ledger(&t)->ooms, 1);
    cr_assert_eq(t.l.spurious_ooms, 0);
    cr_assert_not_null(strstr(dev_error(t.d), "largest hole 1024"), "%s", dev_error(t.d));
    dev_close(t.d);
}

Test(dev_alloc, the_test_hook_refuses_once)
{
    struct bench t;
    struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
    void *ptr = NULL;
    conf.oom_step = 2;
    open_bench(&t, conf);
    dev_step(t.d, 1);
    take(&t, t.a, KIB);
    dev_step(t.d, 2);
    cr_assert_eq(dev_malloc(t.d, t.a, KIB, "first", &ptr), DEV_EOOM);
    take(&t, t.a, KIB);
    dev_step(t.d, 3);
    dev_step(t.d, 2);
    take(&t, t.a, KIB);
    cr_assert_eq(ledger(&t)->ooms, 1);
    cr_assert_eq(t.l.spurious_ooms, 0);
    dev_close(t.d);
}

Test(dev_alloc, a_sweep_frees_what_is_older_than_a_step_or_pressing)
{
    struct bench t;
    open_bytes(&t, 64 * KIB, DEV_SCHED_FIFO);
    dev_step(t.d, 1);
    cr_assert_eq(dev_free_deferred(t.d, take(&t, t.a, KIB)), DEV_OK);
    cr_assert_eq(dev_sweep(t.d), DEV_OK);
    cr_assert_eq(ledger(&t)->deferred_bytes, KIB);
    dev_step(t.d, 2);
    cr_assert_eq(dev_sweep(t.d), DEV_OK);
    cr_assert_eq(ledger(&t)->deferred_bytes, 0);
    take(&t, t.a, 56 * KIB);
    cr_assert_eq(dev_free_deferred(t.d, take(&t, t.a, KIB)), DEV_OK);
    cr_assert_eq(dev_sweep(t.d), DEV_OK);
    cr_assert_eq(ledger(&t)->deferred_bytes, 0);
    dev_close(t.d);
}

Test(dev_alloc, bad_pointers_are_refused)
{
    struct bench t;
    open_bytes(&t, 64 * KIB, DEV_SCHED_FIFO);
    char *block = take(&t, t.a, KIB);
    void *ptr = NULL;
    cr_assert_eq(dev_free(t.d, block + 256), DEV_ESPAN);
    cr_assert_eq(dev_free(t.d, &t), DEV_ESPAN);
    give(&t, block);
    cr_assert_eq(dev_free(t.d, block), DEV_ESPAN, "a second free");
    cr_assert_eq(dev_free_deferred(t.d, block), DEV_ESPAN);
    cr_assert_eq(dev_used_on(t.d, block, t.b), DEV_ESPAN);
    cr_assert_eq(dev_malloc(t.d, t.a, 0, "empty", &ptr), DEV_EARG);
    cr_assert_eq(dev_malloc(t.d, 9, KIB, "stray", &ptr), DEV_EARG);
    dev_close(t.d);
}

Test(dev_alloc, poison_is_seen_in_fresh_and_in_reused_blocks)
{
    struct bench t;
    struct dev_conf conf = toy_conf(DEV_SCHED_LAZY, 0);
    float *host = NULL;
    conf.poison = true;
    open_bench(&t, conf);
    cr_assert_eq(dev_pinned(t.d, 4, "host", (void **)&host), DEV_OK);
    for (int round = 0; round < 3; round++) {
        void *block = take(&t, t.a, KIB);
        cr_assert_eq(dev_copy(t.d, t.a, host, block, 4, "look"), DEV_OK);
        cr_assert_eq(dev_sync_stream(t.d, t.a), DEV_OK);
        cr_assert(isnan(*host), "round %d", round);
        touch(&t, t.a, block, KIB);
        give(&t, block);
    }
    dev_close(t.d);
}

Test(dev_alloc, the_pinned_budget_is_exact_and_the_memory_zero)
{
    struct bench t;
    struct dev_conf conf = toy_conf(DEV_SCHED_FIFO, 0);
    unsigned char *ptr = NULL;
    void *more = NULL;
    conf.pinned_bytes = 1000;
    open_bench(&t, conf);
    cr_assert_eq(dev_pinned(t.d, 1, "small", (void **)&ptr), DEV_OK);
    cr_assert_eq(dev_pinned(t.d, 999, "rest", (void **)&ptr), DEV_OK);
    cr_assert_eq((uintptr_t)ptr % 64, 0);
    for (int i = 0; i < 999; i++) {
        cr_assert_eq(ptr[i], 0);
    }
    cr_assert_eq(dev_pinned(t.d, 1, "over", &more), DEV_EOOM);
    cr_assert_not_null(strstr(dev_error(t.d), "'over' of 1 bytes"));
    dev_close(t.d);
}

enum { SLOTS = 40 };
struct slot {
    unsigned char *ptr;
    size_t bytes;
};

static void check_overlap(const struct slot *slots)
{
    for (int i = 0; i < SLOTS; i++) {
        for (int j = 0; j < SLOTS && slots[i].ptr != NULL; j++) {
            cr_assert(i == j || slots[j].ptr == NULL ||
                      slots[j].ptr >= slots[i].ptr + slots[i].bytes ||
                      slots[i].ptr >= slots[j].ptr + slots[j].bytes);
        }
    }
}

static void random_program(enum dev_sched sched, uint64_t seed)
{
    struct bench t;
    struct slot slots[SLOTS] = {{NULL, 0}};
    uint64_t state = seed;
    size_t live = 0;
    open_bytes(&t, 48 * KIB, sched);
    for (int i = 0; i < 1500; i++) {
        struct slot *s = &slots[toy_random(&state) % SLOTS];
        const uint64_t choice = toy_random(&state) % 8;
        if (choice == 7) {
            dev_step(t.d, i / 50);
            cr_assert_eq(dev_sweep(t.d), DEV_OK);
        } else if (s->ptr == NULL) {
            s->bytes = 1 + toy_random(&state) % 6000;
            const size_t rounded = (s->bytes + 255) / 256 * 256;
            void *ptr = NULL;
            const enum dev_status status =
                dev_malloc(t.d, choice % 2 == 0 ? t.a : t.b, s->bytes, "slot", &ptr);
            cr_assert(status == DEV_OK || status == DEV_EOOM);
            s->ptr = ptr;
            live += status == DEV_OK ? rounded : 0;
            if (status == DEV_OK) {
                touch(&t, choice % 2 == 0 ? t.a : t.b, ptr, s->bytes);
            }
        } else {
            live -= (s->bytes + 255) / 256 * 256;
            if (choice % 3 == 0) {
                cr_assert_eq(dev_used_on(t.d, s->ptr, t.b), DEV_OK);
            }
            cr_assert_eq(choice % 4 == 1 ? dev_free_deferred(t.d, s->ptr) : dev_free(t.d, s->ptr),
                         DEV_OK);
            s->ptr = NULL;
        }
        cr_assert_eq(ledger(&t)->live_bytes, live);
        check_overlap(slots);
    }
    cr_assert_gt(t.l.mallocs, 200);
    cr_assert_gt(t.l.reclaims, 0);
    cr_assert_gt(t.l.ooms, 0);
    cr_assert_eq(t.l.spurious_ooms, 0, "a full ladder holds nothing back");
    cr_assert_eq(dev_race_count(t.d), 0, "each block was touched on its own stream only");
    dev_close(t.d);
}

Test(dev_alloc, random_programs_conserve_every_byte)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        for (int sched = DEV_SCHED_FIFO; sched <= DEV_SCHED_PCT; sched++) {
            random_program(sched, seed);
        }
    }
}
