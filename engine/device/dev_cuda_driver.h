/* What the CUDA back end asks of a device: a table of functions in a shared library that is loaded
 * when a run asks for the device. The library made by nvcc has cudart and cuBLAS behind it; tests
 * have a stand-in. Included by dev_cuda*.c and the libraries; knows no dev.
 *
 * Streams are numbered from 1 and never blocked by one another or by a default stream. Functions
 * return 0, or DEV_CUDA_FAILED or DEV_CUDA_OOM with a sentence in *error that names the call and
 * the cause. Any thread may call; one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fault_launch.h"
#include "gemm.h"
#include "kernel.h"

enum { DEV_CUDA_VERSION = 1, DEV_CUDA_STREAMS = 8 };
enum { DEV_CUDA_FAILED = 1, DEV_CUDA_OOM = 2 };

struct dev_cuda_error {
    char text[256];
};
struct dev_cuda_context;
typedef struct dev_cuda_context dev_cuda_context;

struct dev_cuda_request {
    size_t slab_bytes, pinned_bytes; /* device memory; page-locked host memory, may be 0 */
    size_t sites;                    /* fault sites, 0 in production */
    bool exact_products;             /* products as chains of fmaf like the host's, not by cuBLAS */
};
/* Both zeroed. pinned may be touched by host and device. */
struct dev_cuda_memory {
    void *slab, *pinned;
};

struct dev_cuda_launch {
    enum k_id kernel;
    bool twin;
    int rows;
    const void *args;        /* struct k_<name>_args, copied before the call returns */
    struct mut_launch fault; /* first_step is filled in by the library */
};

struct dev_cuda_driver {
    int version; /* DEV_CUDA_VERSION */
    /* Prepares a device and names it: "NVIDIA H200, CUDA 13.0". */
    int (*open)(const struct dev_cuda_request *request, dev_cuda_context **out,
                struct dev_cuda_memory *memory, char *name, size_t name_bytes,
                struct dev_cuda_error *error);
    void (*close)(dev_cuda_context *c); /* accepts NULL */
    int (*stream_open)(dev_cuda_context *c, int stream, struct dev_cuda_error *error);

    int (*launch)(dev_cuda_context *c, int stream, const struct dev_cuda_launch *launch,
                  struct dev_cuda_error *error);
    int (*gemm)(dev_cuda_context *c, int stream, const struct k_gemm_args *args,
                struct dev_cuda_error *error);
    int (*copy)(dev_cuda_context *c, int stream, void *dst, const void *src, size_t bytes,
                struct dev_cuda_error *error);
    int (*fill)(dev_cuda_context *c, int stream, void *dst, unsigned char byte, size_t bytes,
                struct dev_cuda_error *error);
    /* Keeps the stream busy for about that long. */
    int (*delay)(dev_cuda_context *c, int stream, unsigned microseconds,
                 struct dev_cuda_error *error);

    /* An event may be recorded again once what it stood for has been seen to be done. */
    int (*event_create)(dev_cuda_context *c, void **event, struct dev_cuda_error *error);
    int (*event_record)(dev_cuda_context *c, void *event, int stream, struct dev_cuda_error *error);
    int (*event_query)(dev_cuda_context *c, void *event, bool *done, struct dev_cuda_error *error);
    int (*event_sync)(dev_cuda_context *c, void *event, struct dev_cuda_error *error);
    int (*stream_wait)(dev_cuda_context *c, int stream, void *event, struct dev_cuda_error *error);

    /* Reach record: before the first launch, MUT_SITE_... of each site; later what the twins made
     * of it, once everything launched is done. */
    int (*watch)(dev_cuda_context *c, const int32_t *first_step, struct dev_cuda_error *error);
    int (*reached)(dev_cuda_context *c, int32_t *first_step, struct dev_cuda_error *error);
};

/* The one symbol of a library. */
#define DEV_CUDA_ENTRY "dev_cuda_driver"
typedef const struct dev_cuda_driver *dev_cuda_entry_fn(void);
const struct dev_cuda_driver *dev_cuda_driver(void);
