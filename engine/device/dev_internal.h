/* The insides of a device, shared by its files. Included by dev_*.c alone. */
#pragma once

#include <stdatomic.h>

#include "dev.h"
#include "dev_clock.h"
#include "dev_heap.h"
#include "dev_pool.h"
#include "dev_race.h"

enum {
    DEV_ARGS_MAX = 256, /* bytes of a kernel's arguments */
    DEV_SPANS_MAX = 32, /* spans of one operation */
    DEV_EVENTS_MAX = 4096,
    DEV_PINNED_MAX = 1024,
    DEV_PINNED_ALIGN = 64,
    DEV_TILES_MAX = 4 /* parts an operation may be interrupted between */
};

/* The device's own files call each other without naming a source line. */
#undef dev_record
#undef dev_wait
#undef dev_sync_event
#undef dev_sync_stream
#undef dev_sync_all
#undef dev_launch
#undef dev_gemm
#undef dev_copy
#undef dev_fill
#undef dev_host
#undef dev_malloc
#undef dev_free
#undef dev_free_deferred

enum dev_op_kind { DEV_OP_LAUNCH, DEV_OP_GEMM, DEV_OP_COPY, DEV_OP_FILL, DEV_OP_WAIT };

/* A place in a stream: its first `sequence` operations. */
struct dev_point {
    dev_stream stream; /* 0 = nowhere, always passed */
    uint64_t sequence;
};

/* What a kernel is called with. */
struct dev_call {
    int rows;
    _Alignas(16) unsigned char args[DEV_ARGS_MAX];
};

struct dev_op {
    enum dev_op_kind kind;
    int step; /* in which it was issued */
    struct dev_op *next;
    const char *what;
    const char *where;      /* source line of the call that issued it */
    uint64_t id;            /* its number, see dev_operation() */
    uint64_t order;         /* place in the order of issue */
    int tiles, tile;        /* parts it is run in, and those already run */
    struct dev_span *spans; /* in guard mode: what it declared; owned */
    size_t span_count;
    size_t work; /* bytes touched or their worth in arithmetic: whether sharing it pays */
    union {
        struct {
            enum k_id kernel;
            const struct dev_call *call;
        } launch;
        struct k_gemm_args gemm;
        struct {
            char *dst;
            const char *src;
            size_t bytes;
            unsigned char byte; /* of a fill */
        } move;
        struct dev_point wait;
    } u;
    struct dev_call own_call;
};

struct dev_op_chunk {
    struct dev_op_chunk *next;
    struct dev_op ops[64];
};

struct dev_queue {
    const char *name;
    struct dev_op *head, *tail;
    uint64_t issued;       /* operations so far */
    _Atomic uint64_t done; /* of those; written by the stream's thread under DEV_SCHED_THREADS */
};

/* What a record captured. */
struct dev_mark {
    struct dev_point point;
    struct dev_clock clock;
};

struct dev_event_state {
    const char *name;
    struct dev_mark last, previous;
};

/* A live block or pinned buffer, sorted by address. */
struct dev_place {
    uintptr_t lo, hi;
    const char *what;
    int block; /* DEV_NO_BLOCK for pinned memory */
};
struct dev_places {
    struct dev_place *items;
    size_t count, capacity;
};

struct dev_cache {
    struct dev_list bins[DEV_HEAP_BINS];
};

/* Pairs to run the wrong way round. */
struct dev_aiming {
    struct dev_aim *aims; /* by held; an aim that is over has until 0 */
    size_t count, left;
    uint64_t touching; /* the host is in the middle of this access, 0 = it is not */
};

struct dev_workers;

struct dev_sites {
    struct dev_site items[DEV_SITES_MAX];
    int count;
};

/* What differs between back ends. Checks of arguments, race checker and allocator are shared. A
 * call that returns nothing reports a failure through dev_break(). */
struct dev_backend {
    const char *name; /* "host" */
    /* Provides d->slab and d->pinned, zeroed, of the sizes in d. */
    enum dev_status (*open)(dev *d);
    void (*close)(dev *d); /* streams are drained; open may have failed half-way */
    enum dev_status (*stream_open)(dev *d, dev_stream stream);
    /* Takes over op, the next one of the stream. The host back end runs it now or later, and others
     * with it. */
    void (*enqueue)(dev *d, dev_stream stream, struct dev_op *op);
    /* passed() and waits will ask for the end of what the stream has been given so far. */
    void (*mark)(dev *d, dev_stream stream);
    bool (*passed)(dev *d, struct dev_point point);
    void (*run_until)(dev *d, struct dev_point point); /* the host waits */
    void (*yield)(dev *d);                             /* the host reached a call */
    void (*synced)(
        dev *d); /* everything is done: what the device recorded may be fetched; or NULL */
};
extern const struct dev_backend dev_host_backend;

struct dev {
    struct dev_conf conf;
    const struct dev_backend *backend;
    uint64_t opened; /* time stamp: tells this device from an earlier one at the same address */
    char error[512];
    enum dev_status failed; /* a back end that broke stays broken: every later call returns this */
    int step;

    /* streams and schedule */
    struct dev_queue queue[DEV_ACTORS]; /* [0] is unused: the host */
    int stream_count;
    struct dev_event_state *events;
    int event_count, event_capacity;
    struct dev_op *spare_ops;
    struct dev_op_chunk *chunks;
    uint64_t random;
    int priority[DEV_ACTORS];
    int redraw_period; /* steps between draws, 0 = one draw a run */
    int steps_since_draw;
    int depth; /* changes of priority inside operations between draws: 0 or 1 */
    uint64_t tiles_run, tiles_before; /* since the last draw, and between the two before */
    uint64_t change_at; /* tile at which the running stream becomes the least urgent */
    uint64_t schedule_hash;
    uint64_t calls; /* points at which the scheduler was asked: place of the host in the schedule */
    uint64_t issues; /* operations issued on all streams */
    uint64_t number; /* of the API call at hand */
    const char *where;
    struct dev_aiming aiming;
    const struct dev_op *running; /* in guard mode */
    struct dev_sites sites;
    struct dev_workers *workers; /* DEV_SCHED_THREADS only */
    struct dev_fibers *fibers;   /* with ThreadSanitizer only */

    struct dev_cuda *cuda; /* NULL on the host */

    /* execution on the host */
    dev_pool *pool;
    void **workspace; /* one per thread */
    int workspaces;
    k_rows_fn *rows_fn[K_ID_COUNT];
    size_t args_bytes[K_ID_COUNT];
    struct dev_call last_call[K_ID_COUNT]; /* of each kernel's latest launch */

    struct dev_checker checker;

    /* memory */
    char *slab; /* an address of the device: the host back end alone may look into it */
    char *pinned;
    size_t slab_mapped; /* addresses of device memory: slab_bytes, or more in guard mode */
    size_t slab_bytes, pinned_mapped, pinned_used, pinned_at;
    struct dev_places live, pins;
    struct dev_heap heap;
    struct dev_cache cache[DEV_ACTORS];
    struct dev_list pending, deferred;
    size_t live_bytes, cached_bytes, pending_bytes, deferred_bytes, peak_bytes;
    uint64_t mallocs, frees, ooms, spurious_ooms, reclaims, deferrals;
    bool oom_hook_fired;
    /* Streams of the last refusal, and of the last one answered by a granted request. CUDA's last
     * error would still hold it then; nothing looks at these. */
    dev_stream refused_on, answered_on;
};

/* dev.c */
enum dev_status dev_fail(dev *d, enum dev_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Breaks the device, the first time only. */
void dev_break(dev *d, enum dev_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Replaces stream 0 by the current one and checks that it exists and that the device works. */
enum dev_status dev_resolve_stream(dev *d, dev_stream *stream, const char *what);

/* Number of the operation that the API call at hand issues: the same in every schedule. Poison is
 * an operation of its own, numbered by the call that took or freed the block. */
static inline uint64_t dev_operation(uint64_t call, bool poison)
{
    return 2 * call + poison;
}

/* To the back end. */
static inline void dev_enqueue(dev *d, dev_stream stream, struct dev_op *op)
{
    d->backend->enqueue(d, stream, op);
}
static inline void dev_mark(dev *d, dev_stream stream)
{
    d->backend->mark(d, stream);
}
static inline bool dev_passed(dev *d, struct dev_point point)
{
    return point.stream == 0 || d->backend->passed(d, point);
}
static inline void dev_run_until(dev *d, struct dev_point point)
{
    d->backend->run_until(d, point);
}
static inline void dev_yield(dev *d)
{
    d->backend->yield(d);
}

/* dev_events.c: advances the race checker's clock of a stream: the operation being issued. */
void dev_tick(dev *d, dev_stream stream);

/* dev_sched.c: operations, taken and given back. */
struct dev_op *dev_op_take(dev *d, enum dev_op_kind kind, const char *what); /* NULL: no memory */
void dev_op_put(dev *d, struct dev_op *op);
void dev_sched_close(dev *d); /* drops queues */

/* dev_sites.c: notes an ordering call; true: it is to be left out. */
bool dev_site_omitted(dev *d, const char *verb);

/* dev_ops.c: a fill of a block that is not, or not yet, live. */
enum dev_status dev_poison(dev *d, dev_stream stream, void *ptr, size_t bytes, const char *what,
                           struct dev_origin origin);

/* dev_alloc.c */
enum dev_status dev_memory_open(dev *d);
void dev_memory_close(dev *d);

/* dev_places.c: what lies where. find: the place that holds ptr, NULL when none does; add returns
 * false when host memory is exhausted. */
const struct dev_place *dev_places_find(const struct dev_places *places, const void *ptr);
bool dev_places_add(struct dev_places *places, struct dev_place place);
void dev_places_remove(struct dev_places *places, const struct dev_place *place);
