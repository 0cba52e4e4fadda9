/* Worker threads of one device. Called by dev_host.c; must not know what a part does. */
#include "dev_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "eng_assert.h"

/* The ticket holds job number, number of parts and next part, so that a thread claims a part of
 * exactly one job with one atomic addition, and never looks at a job that is over. */
enum { NEXT_BITS = 16, PARTS_BITS = 16 };

/* Turns of a waiting loop. A worker looks for the next job for about a millisecond, longer than a
 * step's gaps between launches: one that sleeps is often woken on the caller's core and waits. */
enum { WORKER_SPINS = 60000, CALLER_SPINS = 4000 };

struct worker {
    dev_pool *pool;
    int index;
    pthread_t thread;
};

struct dev_pool {
    _Alignas(64) _Atomic uint64_t ticket;
    _Alignas(64) _Atomic int done;
    _Alignas(64) _Atomic int sleepers;
    _Atomic bool stop;
    dev_part_fn *fn; /* of the job at hand; written before the ticket is published */
    void *context;
    uint32_t job;
    int threads, started;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct worker *workers;
};

static int next_of(uint64_t ticket)
{
    return (int)(ticket & ((1u << NEXT_BITS) - 1));
}

static int parts_of(uint64_t ticket)
{
    return (int)(ticket >> NEXT_BITS & ((1u << PARTS_BITS) - 1));
}

static void relax(void)
{
    __builtin_ia32_pause();
}

/* Runs parts of the job at hand while there are any. */
static void take_parts(dev_pool *pool, int thread)
{
    uint64_t ticket = atomic_load(&pool->ticket);
    while (next_of(ticket) < parts_of(ticket)) {
        ticket = atomic_fetch_add(&pool->ticket, 1);
        if (next_of(ticket) < parts_of(ticket)) {
            pool->fn(pool->context, next_of(ticket), parts_of(ticket), thread);
            atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
            ticket = atomic_load(&pool->ticket);
        }
    }
}

static bool has_work(dev_pool *pool)
{
    const uint64_t ticket = atomic_load(&pool->ticket);
    return next_of(ticket) < parts_of(ticket) || atomic_load(&pool->stop);
}

static void wait_for_work(dev_pool *pool)
{
    for (int i = 0; i < WORKER_SPINS; i++) {
        if (has_work(pool)) {
            return;
        }
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while (!has_work(pool)) {
        pthread_cond_wait(&pool->wake, &pool->lock);
    }
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
}

static void *work(void *context)
{
    const struct worker *w = context;
    while (!atomic_load(&w->pool->stop)) {
        wait_for_work(w->pool);
        take_parts(w->pool, w->index);
    }
    return NULL;
}

static void wake_sleepers(dev_pool *pool)
{
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
    }
}

dev_pool *dev_pool_create(int threads)
{
    dev_pool *pool = aligned_alloc(64, sizeof *pool);
    if (pool == NULL) {
        return NULL;
    }
    *pool = (dev_pool){.threads = threads};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    bool ok = pool->workers != NULL;
    for (int i = 1; ok && i < threads; i++) {
        struct worker *w = &pool->workers[i];
        *w = (struct worker){.pool = pool, .index = i};
        ok = pthread_create(&w->thread, NULL, work, w) == 0;
        pool->started += ok;
    }
    if (!ok) {
        dev_pool_destroy(pool);
        return NULL;
    }
    return pool;
}

void dev_pool_destroy(dev_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    atomic_store(&pool->stop, true);
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i <= pool->started; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

int dev_pool_threads(const dev_pool *pool)
{
    return pool->threads;
}

void dev_pool_run(dev_pool *pool, dev_part_fn *fn, void *context, int parts)
{
    eng_assert(parts >= 1 && parts <= DEV_POOL_PARTS_MAX);
    if (pool->threads == 1 || parts == 1) {
        for (int part = 0; part < parts; part++) {
            fn(context, part, parts, 0);
        }
        return;
    }
    pool->fn = fn;
    pool->context = context;
    pool->job++;
    atomic_store(&pool->done, 0);
    atomic_store(&pool->ticket,
                 (uint64_t)pool->job << (NEXT_BITS + PARTS_BITS) | (uint64_t)parts << NEXT_BITS);
    wake_sleepers(pool);
    take_parts(pool, 0);
    for (int i = 0; atomic_load_explicit(&pool->done, memory_order_acquire) < parts; i++) {
        if (i < CALLER_SPINS) {
            relax();
        } else {
            sched_yield(); /* the thread that holds the last part lost its processor */
        }
    }
}
