/* A thread per stream: operations interleave as the machine likes. Not replayable.
 * Called by dev_sched.c and dev_policy.c; must not know what operations do.
 *
 * The host is one thread, so only queues and spare operations are shared. The count of operations
 * done is atomic: reading it orders what they wrote before what the reader does. The step of a
 * fault armed from a later step on is the host's, not the operation's. */
#include <pthread.h>
#include <stdlib.h>

#include "dev_sched.h"

struct dev_workers {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct dev_worker {
        dev *d;
        dev_stream stream;
        pthread_t thread;
    } worker[DEV_ACTORS];
    int started;
    bool stop;
};

void dev_threads_lock(const dev *d)
{
    if (d->workers != NULL) {
        pthread_mutex_lock(&d->workers->lock);
    }
}

void dev_threads_unlock(const dev *d)
{
    if (d->workers != NULL) {
        pthread_mutex_unlock(&d->workers->lock);
    }
}

void dev_threads_wake(dev *d)
{
    pthread_cond_broadcast(&d->workers->changed);
}

void dev_threads_wait(dev *d, struct dev_point point)
{
    dev_threads_lock(d);
    while (!dev_passed(d, point)) {
        pthread_cond_wait(&d->workers->changed, &d->workers->lock);
    }
    dev_threads_unlock(d);
}

/* Takes the first operation, which is done, off its queue. The lock is held. */
static void finish(dev *d, dev_stream stream)
{
    struct dev_queue *q = &d->queue[stream];
    struct dev_op *op = q->head;
    q->head = op->next;
    q->tail = q->head == NULL ? NULL : q->tail;
    dev_op_put(d, op);
    const uint64_t done = atomic_load_explicit(&q->done, memory_order_relaxed) + 1;
    atomic_store_explicit(&q->done, done, memory_order_release);
    d->schedule_hash = (d->schedule_hash ^ (uint64_t)stream) * 0x100000001B3u;
    dev_threads_wake(d);
}

static void *work(void *context)
{
    const struct dev_worker *w = context;
    dev *d = w->d;
    struct dev_workers *all = d->workers;
    pthread_mutex_lock(&all->lock);
    while (!all->stop) {
        if (!dev_ready(d, w->stream)) {
            pthread_cond_wait(&all->changed, &all->lock);
            continue;
        }
        const struct dev_op *op = d->queue[w->stream].head;
        if (op->kind != DEV_OP_WAIT) {
            pthread_mutex_unlock(&all->lock);
            dev_execute_alone(d, op, w->stream);
            pthread_mutex_lock(&all->lock);
        }
        finish(d, w->stream);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

enum dev_status dev_threads_open(dev *d)
{
    struct dev_workers *all = calloc(1, sizeof *all);
    if (all == NULL) {
        return DEV_EHOSTMEM;
    }
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->changed, NULL);
    d->workers = all;
    return DEV_OK;
}

bool dev_threads_start(dev *d, dev_stream stream)
{
    struct dev_workers *all = d->workers;
    if (all == NULL) {
        return true;
    }
    struct dev_worker *w = &all->worker[all->started];
    *w = (struct dev_worker){.d = d, .stream = stream};
    if (pthread_create(&w->thread, NULL, work, w) != 0) {
        return false;
    }
    all->started++;
    return true;
}

void dev_threads_close(dev *d)
{
    struct dev_workers *all = d->workers;
    if (all == NULL) {
        return;
    }
    pthread_mutex_lock(&all->lock);
    all->stop = true;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    for (int i = 0; i < all->started; i++) {
        pthread_join(all->worker[i].thread, NULL);
    }
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    free(all);
    d->workers = NULL;
}
