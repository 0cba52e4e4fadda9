/* A stand-in for the CUDA library: streams are threads of this process, memory is the host's,
 * kernels are the host's row programs. Loaded by tests through FAULTLINE_CUDA_LIBRARY, to run the
 * CUDA back end and tests/gpu/check.sh where no device is. FAULTLINE_STAND_IN_FAIL=N makes the Nth
 * launch fail, and everything after it, as a broken device does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dev_cuda_driver.h"
#include "fault.h"
#include "select.h"

enum { RING = 4096 };

struct job {
    enum { LAUNCH, GEMM, COPY, FILL, DELAY, RECORD, WAIT } kind;
    struct dev_cuda_launch launch;
    unsigned char args[256];
    struct k_gemm_args gemm;
    char *dst;
    const char *src;
    size_t bytes;
    unsigned char byte;
    unsigned microseconds;
    struct event *event;
    uint64_t number; /* of the record to make or to wait for */
};

struct event {
    uint64_t recorded, done;
};

struct lane_of_work {
    dev_cuda_context *context;
    pthread_t thread;
    bool started;
    struct job *ring;
    size_t issued, taken; /* under the context's lock */
};

struct dev_cuda_context {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_mutex_t twin; /* fault state is one a process: twins take turns */
    struct lane_of_work stream[DEV_CUDA_STREAMS];
    struct event events[4096];
    size_t event_count;
    void *slab, *pinned, *workspace;
    size_t slab_bytes, pinned_bytes, sites;
    long launches_left; /* before the device breaks; negative = never */
    bool broken, stop;
};

static void run_launch(dev_cuda_context *c, const struct job *j)
{
    const struct k_kernel *k = k_kernel_at(j->launch.kernel);
    if (!j->launch.twin) {
        k->rows(j->args, 0, j->launch.rows);
        return;
    }
    pthread_mutex_lock(&c->twin);
    mut_selected = j->launch.fault.selected;
    mut_dose = j->launch.fault.dose;
    mut_step = j->launch.fault.step;
    k->rows_twin(j->args, 0, j->launch.rows);
    pthread_mutex_unlock(&c->twin);
}

static void run_job(dev_cuda_context *c, const struct job *j)
{
    switch (j->kind) {
    case LAUNCH:
        run_launch(c, j);
        break;
    case GEMM:
        pthread_mutex_lock(&c->twin);
        k_gemm_part(&j->gemm, 0, 1, c->workspace);
        pthread_mutex_unlock(&c->twin);
        break;
    case COPY:
        memcpy(j->dst, j->src, j->bytes);
        break;
    case FILL:
        memset(j->dst, j->byte, j->bytes);
        break;
    case DELAY:
        usleep(j->microseconds);
        break;
    default: /* the worker's, under the lock */
        break;
    }
}

static void *work(void *argument)
{
    struct lane_of_work *s = argument;
    dev_cuda_context *c = s->context;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        const struct job *j = &s->ring[s->taken % RING];
        if (s->taken == s->issued || (j->kind == WAIT && j->event->done < j->number)) {
            if (c->stop && s->taken == s->issued) {
                break;
            }
            pthread_cond_wait(&c->changed, &c->lock);
            continue;
        }
        pthread_mutex_unlock(&c->lock);
        run_job(c, j);
        pthread_mutex_lock(&c->lock);
        if (j->kind == RECORD) {
            j->event->done = j->number;
        }
        s->taken++;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static int broken(const dev_cuda_context *c, struct dev_cuda_error *error)
{
    if (c->broken) {
        snprintf(error->text, sizeof error->text,
                 "standInLaunch: standInErrorIllegalAddress: the stand-in was told to fail");
    }
    return c->broken ? DEV_CUDA_FAILED : 0;
}

static int issue(dev_cuda_context *c, int stream, const struct job *job,
                 struct dev_cuda_error *error)
{
    struct lane_of_work *s = &c->stream[stream];
    if (job->kind == LAUNCH && c->launches_left >= 0 && c->launches_left-- == 0) {
        c->broken = true;
    }
    const int result = broken(c, error);
    if (result != 0) {
        return result;
    }
    pthread_mutex_lock(&c->lock);
    while (s->issued - s->taken == RING) {
        pthread_cond_wait(&c->changed, &c->lock);
    }
    struct job *slot = &s->ring[s->issued % RING];
    *slot = *job;
    if (job->kind == LAUNCH) {
        memcpy(slot->args, job->launch.args, k_kernel_at(job->launch.kernel)->args_bytes);
    }
    s->issued++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static void close_context(dev_cuda_context *c)
{
    if (c == NULL) {
        return;
    }
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    for (int s = 0; s < DEV_CUDA_STREAMS; s++) {
        if (c->stream[s].started) {
            pthread_join(c->stream[s].thread, NULL);
        }
        free(c->stream[s].ring);
    }
    if (c->slab != NULL) {
        munmap(c->slab, c->slab_bytes);
    }
    if (c->pinned != NULL) {
        munmap(c->pinned, c->pinned_bytes);
    }
    free(c->workspace);
    free(c);
}

static void *map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static int open_context(const struct dev_cuda_request *request, dev_cuda_context **out,
                        struct dev_cuda_memory *memory, char *name, size_t name_bytes,
                        struct dev_cuda_error *error)
{
    enum { ALIGN = 64 };
    dev_cuda_context *c = calloc(1, sizeof *c);
    const char *fail = getenv("FAULTLINE_STAND_IN_FAIL");
    if (c == NULL) {
        abort();
    }
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->twin, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->launches_left = fail != NULL ? strtol(fail, NULL, 10) : -1;
    c->slab_bytes = request->slab_bytes;
    c->pinned_bytes = request->pinned_bytes;
    c->sites = request->sites;
    c->slab = map(request->slab_bytes);
    c->pinned = request->pinned_bytes > 0 ? map(request->pinned_bytes) : NULL;
    c->workspace = aligned_alloc(ALIGN, (k_gemm_workspace_bytes() / ALIGN + 1) * ALIGN);
    if (c->slab == NULL || (c->pinned == NULL && request->pinned_bytes > 0) ||
        c->workspace == NULL) {
        snprintf(error->text, sizeof error->text, "standInMalloc: out of memory");
        close_context(c);
        return DEV_CUDA_OOM;
    }
    snprintf(name, name_bytes, "stand-in: threads of the host, no device");
    *memory = (struct dev_cuda_memory){c->slab, c->pinned};
    *out = c;
    return 0;
}

static int stream_open(dev_cuda_context *c, int stream, struct dev_cuda_error *error)
{
    struct lane_of_work *s = &c->stream[stream];
    s->context = c;
    s->ring = calloc(RING, sizeof *s->ring);
    s->started = s->ring != NULL && pthread_create(&s->thread, NULL, work, s) == 0;
    snprintf(error->text, sizeof error->text, "standInStreamCreate: no thread");
    return s->started ? 0 : DEV_CUDA_FAILED;
}

static int launch(dev_cuda_context *c, int stream, const struct dev_cuda_launch *l,
                  struct dev_cuda_error *error)
{
    return issue(c, stream, &(struct job){.kind = LAUNCH, .launch = *l}, error);
}

static int gemm(dev_cuda_context *c, int stream, const struct k_gemm_args *args,
                struct dev_cuda_error *error)
{
    return issue(c, stream, &(struct job){.kind = GEMM, .gemm = *args}, error);
}

static int copy(dev_cuda_context *c, int stream, void *dst, const void *src, size_t bytes,
                struct dev_cuda_error *error)
{
    return issue(c, stream, &(struct job){.kind = COPY, .dst = dst, .src = src, .bytes = bytes},
                 error);
}

static int fill(dev_cuda_context *c, int stream, void *dst, unsigned char byte, size_t bytes,
                struct dev_cuda_error *error)
{
    return issue(c, stream, &(struct job){.kind = FILL, .dst = dst, .byte = byte, .bytes = bytes},
                 error);
}

static int delay(dev_cuda_context *c, int stream, unsigned microseconds,
                 struct dev_cuda_error *error)
{
    return issue(c, stream, &(struct job){.kind = DELAY, .microseconds = microseconds}, error);
}

static int event_create(dev_cuda_context *c, void **event, struct dev_cuda_error *error)
{
    if (c->event_count == sizeof c->events / sizeof c->events[0]) {
        snprintf(error->text, sizeof error->text, "standInEventCreate: too many events");
        return DEV_CUDA_FAILED;
    }
    *event = &c->events[c->event_count++];
    return 0;
}

static int event_record(dev_cuda_context *c, void *event, int stream, struct dev_cuda_error *error)
{
    struct event *e = event;
    pthread_mutex_lock(&c->lock);
    const uint64_t number = ++e->recorded;
    pthread_mutex_unlock(&c->lock);
    return issue(c, stream, &(struct job){.kind = RECORD, .event = e, .number = number}, error);
}

static int event_query(dev_cuda_context *c, void *event, bool *done, struct dev_cuda_error *error)
{
    const struct event *e = event;
    pthread_mutex_lock(&c->lock);
    *done = e->done == e->recorded;
    pthread_mutex_unlock(&c->lock);
    return broken(c, error);
}

static int event_sync(dev_cuda_context *c, void *event, struct dev_cuda_error *error)
{
    const struct event *e = event;
    pthread_mutex_lock(&c->lock);
    while (e->done != e->recorded) {
        pthread_cond_wait(&c->changed, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return broken(c, error);
}

static int stream_wait(dev_cuda_context *c, int stream, void *event, struct dev_cuda_error *error)
{
    struct event *e = event;
    return issue(c, stream, &(struct job){.kind = WAIT, .event = e, .number = e->recorded}, error);
}

static int watch(dev_cuda_context *c, const int32_t *first_step, struct dev_cuda_error *error)
{
    (void)error;
    for (size_t i = 0; i < c->sites; i++) {
        mut_watch[i] = first_step[i] != MUT_SITE_UNWATCHED;
        mut_first_step[i] = MUT_SITE_NOT_REACHED;
    }
    return 0;
}

static int reached(dev_cuda_context *c, int32_t *first_step, struct dev_cuda_error *error)
{
    pthread_mutex_lock(&c->twin);
    for (size_t i = 0; i < c->sites; i++) {
        first_step[i] = mut_watch[i] != 0 ? mut_first_step[i] : (int32_t)MUT_SITE_UNWATCHED;
    }
    pthread_mutex_unlock(&c->twin);
    return broken(c, error);
}

const struct dev_cuda_driver *dev_cuda_driver(void)
{
    static const struct dev_cuda_driver driver = {
        .version = DEV_CUDA_VERSION,
        .open = open_context,
        .close = close_context,
        .stream_open = stream_open,
        .launch = launch,
        .gemm = gemm,
        .copy = copy,
        .fill = fill,
        .delay = delay,
        .event_create = event_create,
        .event_record = event_record,
        .event_query = event_query,
        .event_sync = event_sync,
        .stream_wait = stream_wait,
        .watch = watch,
        .reached = reached,
    };
    return &driver;
}
