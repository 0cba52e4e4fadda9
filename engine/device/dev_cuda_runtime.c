/* The CUDA library's driver: cudart through its C API. Compiled where nvcc is; called by dev_cuda.c
 * through the table; must not know fences or schedules. */
#include "dev_cuda_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"

#define CHECK(call) dev_cuda_check((call), #call, error)

int dev_cuda_check(cudaError_t result, const char *call, struct dev_cuda_error *error)
{
    if (result == cudaSuccess) {
        return 0;
    }
    (void)cudaGetLastError();
    const size_t name = strcspn(call, "(");
    snprintf(error->text, sizeof error->text, "%.*s: %s: %s", (int)name, call,
             cudaGetErrorName(result), cudaGetErrorString(result));
    return result == cudaErrorMemoryAllocation ? DEV_CUDA_OOM : DEV_CUDA_FAILED;
}

int dev_cuda_enter(const dev_cuda_context *c, struct dev_cuda_error *error)
{
    static _Thread_local int current = -1;
    if (current == c->device) {
        return 0;
    }
    const int result = CHECK(cudaSetDevice(c->device));
    current = result == 0 ? c->device : -1;
    return result;
}

static int find_device(dev_cuda_context *c, char *name, size_t name_bytes,
                       struct dev_cuda_error *error)
{
    struct cudaDeviceProp properties;
    int count = 0;
    int version = 0;
    int result = CHECK(cudaGetDeviceCount(&count));
    if (result == 0 && count == 0) {
        snprintf(error->text, sizeof error->text, "cudaGetDeviceCount: no device");
        return DEV_CUDA_FAILED;
    }
    c->device = 0; /* CUDA_VISIBLE_DEVICES chooses */
    if (result == 0) {
        result = dev_cuda_enter(c, error);
    }
    if (result == 0) {
        result = CHECK(cudaGetDeviceProperties(&properties, c->device));
    }
    if (result == 0) {
        result = CHECK(cudaRuntimeGetVersion(&version));
    }
    if (result == 0) {
        snprintf(name, name_bytes, "%s (sm_%d%d), CUDA %d.%d", properties.name, properties.major,
                 properties.minor, version / 1000, version % 1000 / 10);
    }
    return result;
}

static int take_memory(dev_cuda_context *c, const struct dev_cuda_request *request,
                       struct dev_cuda_error *error)
{
    int result = CHECK(cudaMalloc(&c->slab, request->slab_bytes));
    if (result == 0) {
        result = CHECK(cudaMemset(c->slab, 0, request->slab_bytes));
    }
    if (result == 0 && request->pinned_bytes > 0) {
        result = CHECK(cudaMallocHost(&c->pinned, request->pinned_bytes));
    }
    if (result == 0 && request->pinned_bytes > 0) {
        memset(c->pinned, 0, request->pinned_bytes);
    }
    if (result == 0 && request->sites > 0) {
        result = CHECK(cudaMalloc((void **)&c->first_step, request->sites * sizeof(int32_t)));
    }
    /* The only use of the default stream: nothing else has been issued yet. */
    return result == 0 ? CHECK(cudaDeviceSynchronize()) : result;
}

static void close_context(dev_cuda_context *c)
{
    struct dev_cuda_error ignored;
    if (c == NULL) {
        return;
    }
    if (dev_cuda_enter(c, &ignored) == 0) {
        (void)cudaDeviceSynchronize();
        dev_cuda_blas_close(c);
        for (size_t i = 0; i < c->event_count; i++) {
            (void)cudaEventDestroy(c->events[i]);
        }
        for (int s = 0; s < DEV_CUDA_STREAMS; s++) {
            if (c->stream[s] != NULL) {
                (void)cudaStreamDestroy(c->stream[s]);
            }
        }
        (void)cudaFree(c->first_step);
        (void)cudaFreeHost(c->pinned);
        (void)cudaFree(c->slab);
        (void)cudaGetLastError();
    }
    free(c->events);
    free(c);
}

static int open_context(const struct dev_cuda_request *request, dev_cuda_context **out,
                        struct dev_cuda_memory *memory, char *name, size_t name_bytes,
                        struct dev_cuda_error *error)
{
    dev_cuda_context *c = calloc(1, sizeof *c);
    if (c == NULL) {
        snprintf(error->text, sizeof error->text, "host memory exhausted");
        return DEV_CUDA_FAILED;
    }
    c->sites = request->sites;
    c->exact_products = request->exact_products;
    int result = find_device(c, name, name_bytes, error);
    if (result == 0) {
        result = take_memory(c, request, error);
    }
    if (result != 0) {
        close_context(c);
        return result;
    }
    *memory = (struct dev_cuda_memory){c->slab, c->pinned};
    *out = c;
    return 0;
}

static int stream_open(dev_cuda_context *c, int stream, struct dev_cuda_error *error)
{
    const int result = dev_cuda_enter(c, error);
    return result != 0
               ? result
               : CHECK(cudaStreamCreateWithFlags(&c->stream[stream], cudaStreamNonBlocking));
}

static int launch(dev_cuda_context *c, int stream, const struct dev_cuda_launch *l,
                  struct dev_cuda_error *error)
{
    k_launch_fn *const fn = k_launch_at(l->kernel, l->twin);
    struct mut_launch fault = l->fault;
    fault.first_step = c->first_step;
    if (fn == NULL) {
        snprintf(error->text, sizeof error->text, "this library has no mutable twins");
        return DEV_CUDA_FAILED;
    }
    const int result = dev_cuda_enter(c, error);
    return result != 0
               ? result
               : dev_cuda_check((cudaError_t)fn(c->stream[stream], l->rows, l->args, &fault),
                                "cudaLaunchKernel", error);
}

static int copy(dev_cuda_context *c, int stream, void *dst, const void *src, size_t bytes,
                struct dev_cuda_error *error)
{
    const int result = dev_cuda_enter(c, error);
    /* Unified addresses tell the direction; both ends are page-locked or on the device. */
    return result != 0 || bytes == 0
               ? result
               : CHECK(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, c->stream[stream]));
}

static int fill(dev_cuda_context *c, int stream, void *dst, unsigned char byte, size_t bytes,
                struct dev_cuda_error *error)
{
    const int result = dev_cuda_enter(c, error);
    return result != 0 || bytes == 0 ? result
                                     : CHECK(cudaMemsetAsync(dst, byte, bytes, c->stream[stream]));
}

static int delay(dev_cuda_context *c, int stream, unsigned microseconds,
                 struct dev_cuda_error *error)
{
    const int result = dev_cuda_enter(c, error);
    return result != 0
               ? result
               : dev_cuda_check((cudaError_t)dev_cuda_launch_delay(c->stream[stream], microseconds),
                                "cudaLaunchKernel", error);
}

static int event_create(dev_cuda_context *c, void **event, struct dev_cuda_error *error)
{
    cudaEvent_t created = NULL;
    if (c->event_count == c->event_capacity) {
        const size_t capacity = c->event_capacity == 0 ? 64 : 2 * c->event_capacity;
        cudaEvent_t *grown = realloc(c->events, capacity * sizeof *grown);
        if (grown == NULL) {
            snprintf(error->text, sizeof error->text, "events: host memory exhausted");
            return DEV_CUDA_FAILED;
        }
        c->events = grown;
        c->event_capacity = capacity;
    }
    int result = dev_cuda_enter(c, error);
    if (result == 0) {
        result = CHECK(cudaEventCreateWithFlags(&created, cudaEventDisableTiming));
    }
    if (result == 0) {
        c->events[c->event_count++] = created;
        *event = created;
    }
    return result;
}

static int event_record(dev_cuda_context *c, void *event, int stream, struct dev_cuda_error *error)
{
    const int result = dev_cuda_enter(c, error);
    return result != 0 ? result : CHECK(cudaEventRecord((cudaEvent_t)event, c->stream[stream]));
}

static int event_query(dev_cuda_context *c, void *event, bool *done, struct dev_cuda_error *error)
{
    const int result = dev_cuda_enter(c, error);
    if (result != 0) {
        return result;
    }
    const cudaError_t state = cudaEventQuery((cudaEvent_t)event);
    *done = state == cudaSuccess;
    if (state == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* an answer, not a failure: it must not stay behind as one */
        return 0;
    }
    return dev_cuda_check(state, "cudaEventQuery", error);
}

static int event_sync(dev_cuda_context *c, void *event, struct dev_cuda_error *error)
{
    const int result = dev_cuda_enter(c, error);
    return result != 0 ? result : CHECK(cudaEventSynchronize((cudaEvent_t)event));
}

static int stream_wait(dev_cuda_context *c, int stream, void *event, struct dev_cuda_error *error)
{
    const int result = dev_cuda_enter(c, error);
    return result != 0 ? result
                       : CHECK(cudaStreamWaitEvent(c->stream[stream], (cudaEvent_t)event, 0));
}

static int watch(dev_cuda_context *c, const int32_t *first_step, struct dev_cuda_error *error)
{
    int result = dev_cuda_enter(c, error);
    if (result == 0) {
        result = CHECK(cudaMemcpy(c->first_step, first_step, c->sites * sizeof *first_step,
                                  cudaMemcpyHostToDevice));
    }
    /* A copy from pageable memory may return before it has arrived, and our streams do not wait. */
    return result == 0 ? CHECK(cudaDeviceSynchronize()) : result;
}

static int reached(dev_cuda_context *c, int32_t *first_step, struct dev_cuda_error *error)
{
    int result = dev_cuda_enter(c, error);
    if (result == 0) {
        result = CHECK(cudaDeviceSynchronize());
    }
    return result != 0 ? result
                       : CHECK(cudaMemcpy(first_step, c->first_step, c->sites * sizeof *first_step,
                                          cudaMemcpyDeviceToHost));
}

const struct dev_cuda_driver *dev_cuda_driver(void)
{
    static const struct dev_cuda_driver driver = {
        .version = DEV_CUDA_VERSION,
        .open = open_context,
        .close = close_context,
        .stream_open = stream_open,
        .launch = launch,
        .gemm = dev_cuda_gemm,
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
