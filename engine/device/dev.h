/* The device: streams, events, copies, launches, memory, with CUDA's semantics.
 * Called by engine/model and engine/train; must not know models, data or traces.
 *
 * A program enqueues operations on streams and orders them with events. On the host back end
 * streams are queues under a seeded scheduler; a run is a function of (program, seed). Every
 * operation declares the memory it reads and writes; the happens-before checker reports each
 * unordered pair.
 *
 * Errors: a call that is refused enqueues nothing, and dev_error() says why. EARG: arguments that
 * make no sense, an unknown stream or event; ESPAN: memory in no live block; ESTATE: no stream yet,
 * or no room for one more. EDRIVER breaks the device: every later call returns it.
 * Ownership: a dev owns its streams, events, device and pinned memory until dev_close().
 * Threads: one thread at a time uses a dev. The current stream is thread-local, as in CUDA. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gemm.h"
#include "kernel.h"

#define DEV_STATUS(X)                                                                              \
    X(OK, "ok")                                                                                    \
    X(EOOM, "device memory budget exhausted")                                                      \
    X(EARG, "bad argument")                                                                        \
    X(ESPAN, "span is not inside a live block")                                                    \
    X(ESTATE, "device used in a wrong state")                                                      \
    X(EHOSTMEM, "host memory exhausted")                                                           \
    X(ENODEVICE, "no such device back end here")                                                   \
    X(EDRIVER, "driver error")

enum dev_status {
#define DEV_ROW_(name, text) DEV_##name,
    DEV_STATUS(DEV_ROW_)
#undef DEV_ROW_
};
#define DEV_CHECKED __attribute__((warn_unused_result))

const char *dev_status_name(enum dev_status status); /* "EOOM" */
const char *dev_status_text(enum dev_status status); /* "device memory budget exhausted" */

typedef struct dev dev;
typedef int dev_stream; /* 0 is never a stream */
typedef int dev_event;  /* 0 is never an event */

/* How queued operations are interleaved with the host. All but THREADS are functions of (program,
 * seed): FIFO runs each operation at once, in issue order (launch-blocking). LAZY runs streams only
 * while the host waits; the seed draws how far ahead each. RANDOM makes a fair choice of who goes
 * on after each call and each tile of an operation. PCT gives random priorities to host and
 * streams, redrawn every 1, 3, 10 or all steps, in one run of four with a change inside an
 * operation. AIMED runs at once, but holds one operation of each pair in `aims` until the other one
 * has run. THREADS is a thread per stream, interleaved by the machine. */
#define DEV_SCHEDS(X)                                                                              \
    X(FIFO, fifo) X(LAZY, lazy) X(RANDOM, random) X(PCT, pct) X(AIMED, aimed) X(THREADS, threads)
enum dev_sched {
#define DEV_ROW_(upper, lower) DEV_SCHED_##upper,
    DEV_SCHEDS(DEV_ROW_)
#undef DEV_ROW_
        DEV_SCHED_COUNT
};
const char *dev_sched_name(enum dev_sched sched); /* "fifo" */

/* Operations by number, as struct dev_race names them: `held` waits until `until` has run or until
 * nothing else can run. */
struct dev_aim {
    uint64_t held, until;
};

/* Where operations run. */
enum dev_kind {
    DEV_KIND_HOST, /* on this processor, streams as queues under a seeded scheduler */
    DEV_KIND_CUDA  /* on a CUDA device, where the library that nvcc built is beside the program */
};

/* Something that happened on the device, for a timeline. */
enum dev_moment_kind {
    DEV_MOMENT_ISSUE, /* the host enqueued an operation, or touches pinned memory */
    DEV_MOMENT_RUN    /* the last tile of an operation ran */
};
struct dev_moment {
    enum dev_moment_kind kind;
    uint64_t op;              /* number of the operation */
    const char *what, *where; /* operation and source line, "" when unknown */
    const char *stream;       /* "host" for the host */
    int step;
};
typedef void dev_watch_fn(void *context, const struct dev_moment *moment);

/* A source line that orders: dev_record, dev_wait or dev_sync_*. */
struct dev_site {
    const char *where, *verb; /* "engine/train/input.c:61", "dev_wait" */
    uint64_t calls;
};

enum { DEV_AIMS_MAX = 1024, DEV_SITES_MAX = 64, DEV_HEAP_BYTES_MIN = 256 };
struct dev_conf {
    enum dev_kind kind;
    size_t heap_bytes;   /* exact budget of device memory, >= DEV_HEAP_BYTES_MIN */
    size_t pinned_bytes; /* exact budget of pinned host memory */
    enum dev_sched sched;
    uint64_t seed;
    int threads;         /* host threads that share the rows of one operation, >= 1 */
    bool check_races;    /* happens-before checker on */
    bool exact_products; /* CUDA: products have the host's bits, slowly; else they are cuBLAS's */
    bool poison;         /* fill blocks with NaN when handed out and when freed */
    size_t quarantine_bytes; /* so many freed bytes wait before the oldest are reused, so that stale
                              * pointers are refused for longer; memory that is short ends it */
    const struct dev_aim *aims; /* of DEV_SCHED_AIMED; kept by reference */
    size_t aim_count;           /* up to DEV_AIMS_MAX */
    dev_watch_fn *watch; /* told of each moment, NULL = nobody; not under DEV_SCHED_THREADS */
    void *watch_context;
    bool guard; /* memory that nobody declared cannot be touched: the process ends with exit status
                 * 10 and a sentence; not under DEV_SCHED_THREADS, one device at a time */
    bool list_sites; /* test hook: list the ordering calls, see dev_sites() */
    int omit_site;   /* test hook: the one left out, counted from 1 in order of first call */
    int oom_step;    /* test hook: the first dev_malloc of this step fails once with EOOM although
                      * memory is there, as a competing process would cause; 0 = never. Not
                      * counted as spurious. */
    char *why;       /* receives a sentence when dev_open fails; may be NULL */
    size_t why_bytes;
};

DEV_CHECKED enum dev_status dev_open(const struct dev_conf *conf, dev **out);
void dev_close(dev *d); /* drains all streams; accepts NULL */

/* The last error of this device as a sentence (operation, sizes, names); "" when none. */
const char *dev_error(const dev *d);

/* Streams and events. Names are kept by reference and must outlive the device (literals). */
DEV_CHECKED enum dev_status dev_stream_create(dev *d, const char *name, dev_stream *out);
DEV_CHECKED enum dev_status dev_event_create(dev *d, const char *name, dev_event *out);
enum dev_status dev_record(dev *d, dev_event event, dev_stream stream);
/* A wait binds to the last record at the time of the call; never recorded = no operation. */
enum dev_status dev_wait(dev *d, dev_stream stream, dev_event event);
enum dev_status dev_sync_event(dev *d, dev_event event);
enum dev_status dev_sync_stream(dev *d, dev_stream stream);
enum dev_status dev_sync_all(dev *d);
/* Afterwards the host knows which fault sites the kernels ran so far. Waits for a device that
 * records them itself; the host back end records them as it goes. */
void dev_collect_reach(dev *d);

/* The calling thread's current stream; a new thread has none until it binds one (0). Operations
 * given stream 0 go to the current stream, and to the device's first stream when none is bound. */
void dev_bind(dev *d, dev_stream stream);
dev_stream dev_current(const dev *d);

enum dev_mode { DEV_READ = 1, DEV_WRITE = 2, DEV_READ_WRITE = 3 };
struct dev_span {
    const void *ptr;
    size_t bytes;
    enum dev_mode mode;
};

/* Enqueues `rows` rows of a kernel. args (struct k_<name>_args) are copied. spans declare every
 * byte the kernel may touch; each must lie inside one live block. `what` names the operation in
 * reports. */
enum dev_status dev_launch(dev *d, dev_stream stream, enum k_id kernel, int rows, const void *args,
                           const struct dev_span *spans, size_t span_count, const char *what);
/* A matrix product; spans follow from the arguments (whole strided extents). */
enum dev_status dev_gemm(dev *d, dev_stream stream, const struct k_gemm_args *args,
                         const char *what);
/* Copies between device and pinned memory in any direction; asynchronous. Other memory = EARG. */
enum dev_status dev_copy(dev *d, dev_stream stream, void *dst, const void *src, size_t bytes,
                         const char *what);
enum dev_status dev_fill(dev *d, dev_stream stream, void *dst, unsigned char byte, size_t bytes,
                         const char *what);

/* Stream-ordered memory. A block may be used on `stream` at once; a freed one returns to the cache
 * of the stream it was allocated on. dev_used_on() must be called before the free for each other
 * stream that touches the block; it is reused only after their work up to the free is done. Out of
 * memory climbs a ladder: cache, finished pending blocks, the deferred queue, waiting for pending
 * blocks, releasing caches, searching again; then EOOM and a named sentence. */
DEV_CHECKED enum dev_status dev_malloc(dev *d, dev_stream stream, size_t bytes, const char *what,
                                       void **out);
enum dev_status dev_used_on(dev *d, const void *ptr, dev_stream stream);
enum dev_status dev_free(dev *d, void *ptr);
/* Like a finalizer: queues the free; dev_sweep() performs the queued ones. */
enum dev_status dev_free_deferred(dev *d, void *ptr);
/* Called at the end of each step: frees the queue when the *device* is under pressure or the queue
 * is older than a step. */
enum dev_status dev_sweep(dev *d);

/* Page-locked host memory for asynchronous copies; lives until dev_close(), zeroed. */
DEV_CHECKED enum dev_status dev_pinned(dev *d, size_t bytes, const char *what, void **out);
/* Declares that the host is about to read or write pinned memory: for the race checker. */
enum dev_status dev_host(dev *d, const void *ptr, size_t bytes, enum dev_mode mode,
                         const char *what);

/* A new training step begins: redraws priorities; operations enqueued from now on carry it. */
void dev_step(dev *d, int step);

/* Accounting of device memory; live + cached + pending + deferred + free == budget always holds. */
struct dev_ledger {
    size_t budget_bytes;
    size_t live_bytes;     /* handed out, not freed */
    size_t cached_bytes;   /* free, kept for reuse on one stream */
    size_t pending_bytes;  /* freed, waiting for another stream or in quarantine */
    size_t deferred_bytes; /* in the finalizer queue */
    size_t free_bytes;     /* in the heap */
    size_t peak_bytes;     /* largest live + pending + deferred so far */
    uint64_t mallocs, frees;
    uint64_t ooms; /* requests that ended in EOOM */
    /* Of those: a hole was large enough, or the bytes were there while freed memory was still
     * cached, pending or deferred. */
    uint64_t spurious_ooms;
    uint64_t reclaims; /* times the ladder went past the caches */
    size_t host_bytes; /* host memory in use, the pressure signal a collector would see */
};
void dev_ledger(const dev *d, struct dev_ledger *out);

/* One unordered pair of accesses, at least one of them a write. */
struct dev_race {
    const char *first_what, *second_what;     /* operations, in issue order */
    const char *first_stream, *second_stream; /* stream names, "host" for the host */
    enum dev_mode first_mode, second_mode;
    const char *buffer; /* name of the allocation */
    int first_step, second_step;
    const char *first_where, *second_where; /* source lines, "" when unknown */
    uint64_t first_op, second_op; /* numbers of the operations, the same in every schedule */
};
/* Pairs found so far, each (first_what, second_what, buffer) once; *count never shrinks. The array
 * is owned by d and valid until the next call on d. */
const struct dev_race *dev_races(const dev *d, size_t *count);
/* All unordered pairs counted, repeats included. */
uint64_t dev_race_count(const dev *d);
/* The first DEV_AIMS_MAX of them, repeats included: what a later run can aim at. */
const struct dev_aim *dev_race_aims(const dev *d, size_t *count);
/* Ordering calls so far, in order of the first call of each; needs list_sites. */
const struct dev_site *dev_sites(const dev *d, int *count);
/* A hash of the order in which operations ran, host calls included: equal for equal (program,
 * seed). */
uint64_t dev_schedule_hash(const dev *d);

/* Notes the source line of the next call and numbers it. Returns d. */
dev *dev_at(dev *d, const char *where);

/* Each call below carries its source line, so that a race can be shown by it. */
#define DEV_TEXT_(line) #line
#define DEV_LINE_(line) DEV_TEXT_(line)
#define DEV_HERE_ __FILE__ ":" DEV_LINE_(__LINE__)
#define dev_record(d, ...) dev_record(dev_at(d, DEV_HERE_), __VA_ARGS__)
#define dev_wait(d, ...) dev_wait(dev_at(d, DEV_HERE_), __VA_ARGS__)
#define dev_sync_event(d, ...) dev_sync_event(dev_at(d, DEV_HERE_), __VA_ARGS__)
#define dev_sync_stream(d, ...) dev_sync_stream(dev_at(d, DEV_HERE_), __VA_ARGS__)
#define dev_sync_all(d) dev_sync_all(dev_at(d, DEV_HERE_))
#define dev_launch(d, ...) dev_launch(dev_at(d, DEV_HERE_), __VA_ARGS__)
#define dev_gemm(d, ...) dev_gemm(dev_at(d, DEV_HERE_), __VA_ARGS__)
#define dev_copy(d, ...) dev_copy(dev_at(d, DEV_HERE_), __VA_ARGS__)
#define dev_fill(d, ...) dev_fill(dev_at(d, DEV_HERE_), __VA_ARGS__)
#define dev_host(d, ...) dev_host(dev_at(d, DEV_HERE_), __VA_ARGS__)
#define dev_malloc(d, ...) dev_malloc(dev_at(d, DEV_HERE_), __VA_ARGS__)
#define dev_free(d, ...) dev_free(dev_at(d, DEV_HERE_), __VA_ARGS__)
#define dev_free_deferred(d, ...) dev_free_deferred(dev_at(d, DEV_HERE_), __VA_ARGS__)
