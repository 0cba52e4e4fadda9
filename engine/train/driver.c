/* The two drivers. Called by the loop; must not know what the phases do. */
#include "driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "fault.h"

enum { POOL_THREADS = 2 };

struct worker {
    eng_driver *driver;
    int index;
    pthread_t thread;
    bool started;
};

struct eng_driver {
    dev *device;
    const struct eng_memory *memory;
    enum eng_driver_kind kind;
    uint64_t tasks_run;
    struct worker worker[POOL_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under lock: the task at hand and whose turn it is; turn -1 = nobody's. */
    const struct eng_task *task;
    struct eng_error *error;
    enum eng_status result;
    int turn;
    bool stop;
};

static enum eng_status run_here(eng_driver *d, const struct eng_task *task, struct eng_error *error)
{
    if (FAULT(driver_bind, true)) {
        dev_bind(d->device, task->stream);
    }
    d->tasks_run++;
    return task->run(task->context, error);
}

static void *work(void *context)
{
    struct worker *w = context;
    eng_driver *d = w->driver;
    (void)eng_memory_enter(d->memory, ENG_COMPONENT_train);
    pthread_mutex_lock(&d->lock);
    while (!d->stop) {
        if (d->turn != w->index) {
            pthread_cond_wait(&d->changed, &d->lock);
            continue;
        }
        d->result = run_here(d, d->task, d->error);
        d->turn = -1;
        pthread_cond_broadcast(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

enum eng_status eng_driver_open(dev *device, const struct eng_memory *memory,
                                enum eng_driver_kind kind, eng_driver **out,
                                struct eng_error *error)
{
    eng_driver *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "driver: host memory exhausted");
    }
    d->device = device;
    d->memory = memory;
    d->kind = kind;
    d->turn = -1;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    for (int i = 0; kind == ENG_DRIVER_TASKS && i < POOL_THREADS; i++) {
        struct worker *w = &d->worker[i];
        *w = (struct worker){.driver = d, .index = i};
        w->started = pthread_create(&w->thread, NULL, work, w) == 0;
        if (!w->started) {
            eng_driver_close(d);
            return eng_fail(error, ENG_EINTERNAL, "driver: a thread cannot be started");
        }
    }
    *out = d;
    return ENG_OK;
}

void eng_driver_close(eng_driver *d)
{
    if (d == NULL) {
        return;
    }
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    for (int i = 0; i < POOL_THREADS; i++) {
        if (d->worker[i].started) {
            pthread_join(d->worker[i].thread, NULL);
        }
    }
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

enum eng_status eng_driver_run(eng_driver *d, const struct eng_task *task, struct eng_error *error)
{
    if (d->kind == ENG_DRIVER_SINGLE) {
        return run_here(d, task, error);
    }
    pthread_mutex_lock(&d->lock);
    d->task = task;
    d->error = error;
    d->turn = (int)(d->tasks_run % POOL_THREADS);
    pthread_cond_broadcast(&d->changed);
    while (d->turn >= 0) {
        pthread_cond_wait(&d->changed, &d->lock);
    }
    const enum eng_status result = d->result;
    pthread_mutex_unlock(&d->lock);
    return result;
}
