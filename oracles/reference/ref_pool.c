/* Pool of threads. See ref_pool.h. */
#include "ref_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct worker {
    struct orc_ref_pool *pool;
    size_t index;
    pthread_t thread;
};

struct orc_ref_pool {
    pthread_mutex_t lock;
    pthread_cond_t started, finished;
    size_t threads, running;
    unsigned long round;
    bool stop;
    orc_ref_task *run;
    void *context;
    size_t tasks;
    atomic_size_t next;
    struct worker workers[];
};

static void take_tasks(struct orc_ref_pool *pool, size_t worker)
{
    for (;;) {
        const size_t task = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (task >= pool->tasks)
            return;
        pool->run(pool->context, task, worker);
    }
}

static void *worker_main(void *argument)
{
    struct worker *const self = argument;
    struct orc_ref_pool *const pool = self->pool;
    unsigned long seen = 0;
    (void)pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->stop && pool->round == seen)
            (void)pthread_cond_wait(&pool->started, &pool->lock);
        if (pool->stop)
            break;
        seen = pool->round;
        (void)pthread_mutex_unlock(&pool->lock);
        take_tasks(pool, self->index);
        (void)pthread_mutex_lock(&pool->lock);
        if (--pool->running == 0)
            (void)pthread_cond_signal(&pool->finished);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

struct orc_ref_pool *orc_ref_pool_create(size_t threads)
{
    struct orc_ref_pool *const pool = calloc(1, sizeof *pool + threads * sizeof *pool->workers);
    if (pool == NULL)
        return NULL;
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->started, NULL);
    (void)pthread_cond_init(&pool->finished, NULL);
    for (pool->threads = 1; pool->threads < threads; pool->threads++) {
        struct worker *const worker = &pool->workers[pool->threads];
        worker->pool = pool;
        worker->index = pool->threads;
        if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0) {
            orc_ref_pool_destroy(pool);
            return NULL;
        }
    }
    return pool;
}

void orc_ref_pool_destroy(struct orc_ref_pool *pool)
{
    if (pool == NULL)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    (void)pthread_cond_broadcast(&pool->started);
    (void)pthread_mutex_unlock(&pool->lock);
    for (size_t i = 1; i < pool->threads; i++)
        (void)pthread_join(pool->workers[i].thread, NULL);
    (void)pthread_cond_destroy(&pool->finished);
    (void)pthread_cond_destroy(&pool->started);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

size_t orc_ref_pool_threads(const struct orc_ref_pool *pool)
{
    return pool->threads;
}

void orc_ref_pool_run(struct orc_ref_pool *pool, size_t tasks, orc_ref_task *run, void *context)
{
    if (pool->threads == 1 || tasks == 1) {
        for (size_t task = 0; task < tasks; task++)
            run(context, task, 0);
        return;
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->run = run;
    pool->context = context;
    pool->tasks = tasks;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    pool->running = pool->threads - 1;
    pool->round++;
    (void)pthread_cond_broadcast(&pool->started);
    (void)pthread_mutex_unlock(&pool->lock);
    take_tasks(pool, 0);
    (void)pthread_mutex_lock(&pool->lock);
    while (pool->running > 0)
        (void)pthread_cond_wait(&pool->finished, &pool->lock);
    (void)pthread_mutex_unlock(&pool->lock);
}
