/* Operations: argument and span checks, race check, enqueue.
 * Called by the engine through dev.h; must not know how operations run. */
#include <stdlib.h>
#include <string.h>

#include "dev_internal.h"
#include "dev_sched.h"
#include "fault.h"

static bool in_slab(const dev *d, const void *ptr)
{
    return (uintptr_t)ptr - (uintptr_t)d->slab < d->slab_mapped;
}

static bool in_pinned(const dev *d, const void *ptr)
{
    return (uintptr_t)ptr - (uintptr_t)d->pinned < d->pinned_mapped;
}

/* The live block or pinned buffer that holds the whole span. */
static enum dev_status locate(dev *d, const char *what, const struct dev_span *span,
                              const struct dev_place **out)
{
    const struct dev_place *place = dev_places_find(&d->live, span->ptr);
    if (place == NULL) {
        place = dev_places_find(&d->pins, span->ptr);
    }
    if (place == NULL) {
        const bool ours = in_slab(d, span->ptr) || in_pinned(d, span->ptr);
        return dev_fail(d, DEV_ESPAN, "%s: span of %zu bytes at %p is in no live block%s", what,
                        span->bytes, span->ptr,
                        ours ? ": freed or never handed out" : ": not device or pinned memory");
    }
    if (span->bytes > place->hi - (uintptr_t)span->ptr) {
        return dev_fail(d, DEV_ESPAN,
                        "%s: span of %zu bytes starts %zu bytes into block '%s' of %zu bytes", what,
                        span->bytes, (size_t)((uintptr_t)span->ptr - place->lo), place->what,
                        (size_t)(place->hi - place->lo));
    }
    *out = place;
    return DEV_OK;
}

static enum dev_status check_spans(dev *d, const char *what, const struct dev_span *spans,
                                   size_t count, const char **buffers)
{
    if (count > DEV_SPANS_MAX) {
        return dev_fail(d, DEV_EARG, "%s: %zu spans, at most %d are possible", what, count,
                        DEV_SPANS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const struct dev_place *place = NULL;
        if (spans[i].mode < DEV_READ || spans[i].mode > DEV_READ_WRITE) {
            return dev_fail(d, DEV_EARG, "%s: span %zu neither reads nor writes", what, i);
        }
        if (spans[i].bytes == 0) {
            buffers[i] = "";
            continue;
        }
        const enum dev_status status = locate(d, what, &spans[i], &place);
        if (status != DEV_OK) {
            return status;
        }
        buffers[i] = place->what;
    }
    return DEV_OK;
}

/* What an operation declares. */
struct declared {
    const char *what, *where;
    uint64_t op;
    const struct dev_span *spans;
    size_t count;
    const char *buffers[DEV_SPANS_MAX];
};

/* Tells the race checker. Happens at issue, so what it finds does not depend on the schedule. */
static bool judge(dev *d, int actor, const struct declared *of)
{
    for (size_t i = 0; d->conf.check_races && i < of->count; i++) {
        const struct dev_use use = {
            .actor = actor,
            .ptr = of->spans[i].ptr,
            .bytes = of->spans[i].bytes,
            .mode = of->spans[i].mode,
            .what = of->what,
            .where = of->where,
            .buffer = of->buffers[i],
            .op = of->op,
            .step = d->step,
        };
        if (!dev_checker_access(&d->checker, &use)) {
            return false;
        }
    }
    return true;
}

static void tell(const dev *d, const struct declared *of, const char *stream)
{
    if (d->conf.watch != NULL) {
        const struct dev_moment moment = {.kind = DEV_MOMENT_ISSUE,
                                          .op = of->op,
                                          .what = of->what,
                                          .where = of->where,
                                          .stream = stream,
                                          .step = d->step};
        d->conf.watch(d->conf.watch_context, &moment);
    }
}

/* Checks everything that is common, then takes an operation. *stream is resolved. */
static enum dev_status begin(dev *d, dev_stream *stream, enum dev_op_kind kind,
                             struct declared *use, struct dev_op **out)
{
    enum dev_status status = dev_resolve_stream(d, stream, use->what);
    if (status == DEV_OK) {
        status = check_spans(d, use->what, use->spans, use->count, use->buffers);
    }
    if (status != DEV_OK) {
        return status;
    }
    use->where = d->where;
    use->op = dev_operation(d->number, false);
    *out = dev_op_take(d, kind, use->what);
    if (*out == NULL) {
        return dev_fail(d, DEV_EHOSTMEM, "%s: host memory exhausted", use->what);
    }
    return DEV_OK;
}

static bool keep_spans(struct dev_op *op, const struct declared *use)
{
    op->spans = malloc((use->count + 1) * sizeof *op->spans);
    if (op->spans == NULL) {
        return false;
    }
    memcpy(op->spans, use->spans, use->count * sizeof *op->spans);
    op->span_count = use->count;
    return true;
}

static enum dev_status issue(dev *d, dev_stream stream, const struct declared *use,
                             struct dev_op *op)
{
    dev_tick(d, stream);
    const bool judged = judge(d, stream, use);
    op->where = use->where;
    op->id = use->op;
    if (d->conf.guard && !keep_spans(op, use)) {
        dev_op_put(d, op);
        return dev_fail(d, DEV_EHOSTMEM, "%s: host memory exhausted", use->what);
    }
    tell(d, use, d->queue[stream].name);
    dev_enqueue(d, stream, op);
    return judged ? d->failed
                  : dev_fail(d, DEV_EHOSTMEM, "%s: race checker: host memory exhausted", use->what);
}

static enum dev_status check_launch(dev *d, enum k_id kernel, int rows, const void *args,
                                    const char *what)
{
    if ((unsigned)kernel >= K_ID_COUNT || rows < 0 || args == NULL) {
        return dev_fail(d, DEV_EARG, "%s: kernel %d with %d rows and %s", what, (int)kernel, rows,
                        args == NULL ? "no arguments" : "arguments");
    }
    if (d->rows_fn[kernel] == NULL || d->args_bytes[kernel] > DEV_ARGS_MAX) {
        return dev_fail(d, DEV_EARG, "%s: kernel %d cannot be launched (%zu bytes of arguments)",
                        what, (int)kernel, d->args_bytes[kernel]);
    }
    return DEV_OK;
}

static void set_call(struct dev_call *call, int rows, const void *args, size_t args_bytes)
{
    call->rows = rows;
    memcpy(call->args, args, args_bytes);
}

/* The same arguments for every launch of a kernel: the host writes them at each, the operation
 * reads them when it runs. */
static bool judge_shared_arguments(dev *d, dev_stream stream, const struct declared *use,
                                   const struct dev_op *op)
{
    const struct dev_span span = {op->u.launch.call, sizeof *op->u.launch.call, DEV_WRITE};
    const struct dev_span read = {span.ptr, span.bytes, DEV_READ};
    const struct declared host = {.what = "set launch arguments",
                                  .where = use->where,
                                  .op = dev_operation(d->number, true),
                                  .spans = &span,
                                  .count = 1,
                                  .buffers = {"launch arguments"}};
    struct declared kernel = *use;
    kernel.spans = &read;
    kernel.count = 1;
    kernel.buffers[0] = host.buffers[0];
    d->checker.clock[DEV_HOST].at[DEV_HOST]++;
    const bool judged = judge(d, DEV_HOST, &host);
    dev_aim_ran(d, host.op);
    dev_tick(d, stream);
    return judge(d, stream, &kernel) && judged;
}

enum dev_status dev_launch(dev *d, dev_stream stream, enum k_id kernel, int rows, const void *args,
                           const struct dev_span *spans, size_t span_count, const char *what)
{
    struct declared use = {.what = what, .spans = spans, .count = span_count};
    struct dev_op *op = NULL;
    enum dev_status status = dev_resolve_stream(d, &stream, what);
    if (status == DEV_OK) {
        status = check_launch(d, kernel, rows, args, what);
    }
    status = FAULT(dev_launch_status, status);
    if (status == DEV_OK && rows > 0 && FAULT(dev_launch_enqueue, true)) {
        status = begin(d, &stream, DEV_OP_LAUNCH, &use, &op);
    }
    if (status != DEV_OK || op == NULL) {
        return status;
    }
    for (size_t i = 0; i < span_count; i++) {
        op->work += spans[i].bytes;
    }
    set_call(&op->own_call, rows, args, d->args_bytes[kernel]);
    set_call(&d->last_call[kernel], rows, args, d->args_bytes[kernel]);
    op->u.launch.kernel = kernel;
    op->u.launch.call = FAULT(dev_launch_args, &op->own_call);
    if (op->u.launch.call != &op->own_call && !judge_shared_arguments(d, stream, &use, op)) {
        return dev_fail(d, DEV_EHOSTMEM, "%s: race checker: host memory exhausted", what);
    }
    return issue(d, stream, &use, op);
}

/* Elements from the first to behind the last one of a strided operand of a batch. */
static size_t extent(const struct k_gemm_args *g, int rows, int columns, int stride, size_t outer,
                     size_t inner)
{
    return (size_t)(g->batch_outer - 1) * outer + (size_t)(g->batch_inner - 1) * inner +
           (size_t)(rows - 1) * (size_t)stride + (size_t)columns;
}

static size_t marks_extent(const struct k_gemm_args *g)
{
    return g->mask == K_GEMM_DENSE
               ? 0
               : (size_t)(g->batch_outer - 1) * g->marks_outer + (size_t)k_gemm_marks(g);
}

/* Queries and keys of a masked attention product are equally many. */
static bool mask_fits(const struct k_gemm_args *g)
{
    const bool a = g->mask == K_GEMM_SEEN_A || g->mask == K_GEMM_SEEN_A_TRANSPOSED;
    return (g->mask != K_GEMM_SEEN_C || g->m == g->n) && (!a || g->m == g->k);
}

enum dev_status dev_gemm(dev *d, dev_stream stream, const struct k_gemm_args *g, const char *what)
{
    if (g->m < 1 || g->n < 1 || g->k < 1 || g->batch_outer < 1 || g->batch_inner < 1 ||
        g->lda < (g->trans_a ? g->m : g->k) || g->ldb < (g->trans_b ? g->k : g->n) ||
        g->ldc < g->n || !mask_fits(g)) {
        return dev_fail(
            d, DEV_EARG, "%s: product %d x %d x %d, strides %d %d %d, batch %d x %d makes no sense",
            what, g->m, g->n, g->k, g->lda, g->ldb, g->ldc, g->batch_outer, g->batch_inner);
    }
    const size_t a = g->trans_a ? extent(g, g->k, g->m, g->lda, g->a_outer, g->a_inner)
                                : extent(g, g->m, g->k, g->lda, g->a_outer, g->a_inner);
    const size_t b = g->trans_b ? extent(g, g->n, g->k, g->ldb, g->b_outer, g->b_inner)
                                : extent(g, g->k, g->n, g->ldb, g->b_outer, g->b_inner);
    const size_t c = extent(g, g->m, g->n, g->ldc, g->c_outer, g->c_inner);
    const struct dev_span spans[] = {
        {g->a, a * sizeof *g->a, DEV_READ},
        {g->b, b * sizeof *g->b, DEV_READ},
        {g->c, c * sizeof *g->c, g->accumulate ? DEV_READ_WRITE : DEV_WRITE},
        {g->marks, marks_extent(g) * sizeof *g->marks, DEV_READ},
    };
    struct declared use = {.what = what, .spans = spans, .count = sizeof spans / sizeof *spans};
    struct dev_op *op = NULL;
    const enum dev_status status = begin(d, &stream, DEV_OP_GEMM, &use, &op);
    if (status != DEV_OK) {
        return status;
    }
    enum { PRODUCTS_PER_BYTE = 8 }; /* multiply-adds that take as long as moving a byte */
    op->work = (size_t)g->m * (size_t)g->n * (size_t)g->k * (size_t)g->batch_outer *
               (size_t)g->batch_inner / PRODUCTS_PER_BYTE;
    op->u.gemm = *g;
    return issue(d, stream, &use, op);
}

enum dev_status dev_copy(dev *d, dev_stream stream, void *dst, const void *src, size_t bytes,
                         const char *what)
{
    const void *const ends[] = {dst, src};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (!in_slab(d, ends[i]) && !in_pinned(d, ends[i])) {
            return dev_fail(d, DEV_EARG,
                            "%s: the %s at %p is neither device nor pinned memory: no "
                            "asynchronous copy",
                            what, i == 0 ? "target" : "source", ends[i]);
        }
    }
    const uintptr_t apart = (uintptr_t)dst > (uintptr_t)src ? (uintptr_t)dst - (uintptr_t)src
                                                            : (uintptr_t)src - (uintptr_t)dst;
    if (apart < bytes) {
        return dev_fail(d, DEV_EARG, "%s: source and target of %zu bytes overlap", what, bytes);
    }
    const struct dev_span spans[] = {{src, bytes, DEV_READ}, {dst, bytes, DEV_WRITE}};
    struct declared use = {.what = what, .spans = spans, .count = sizeof spans / sizeof *spans};
    struct dev_op *op = NULL;
    const enum dev_status status = begin(d, &stream, DEV_OP_COPY, &use, &op);
    if (status != DEV_OK) {
        return status;
    }
    op->work = bytes;
    op->u.move.dst = dst;
    op->u.move.src = src;
    op->u.move.bytes = bytes;
    return issue(d, stream, &use, op);
}

static void set_fill(struct dev_op *op, void *dst, unsigned char byte, size_t bytes)
{
    op->work = bytes;
    op->u.move.dst = dst;
    op->u.move.src = NULL;
    op->u.move.bytes = bytes;
    op->u.move.byte = byte;
}

enum dev_status dev_fill(dev *d, dev_stream stream, void *dst, unsigned char byte, size_t bytes,
                         const char *what)
{
    const struct dev_span span = {dst, bytes, DEV_WRITE};
    struct declared use = {.what = what, .spans = &span, .count = 1};
    struct dev_op *op = NULL;
    const enum dev_status status = begin(d, &stream, DEV_OP_FILL, &use, &op);
    if (status != DEV_OK) {
        return status;
    }
    set_fill(op, dst, byte, bytes);
    return issue(d, stream, &use, op);
}

enum dev_status dev_poison(dev *d, dev_stream stream, void *ptr, size_t bytes, const char *buffer,
                           struct dev_origin origin)
{
    enum { POISON = 0xFF }; /* a NaN in fp32 and bf16 */
    const struct dev_span span = {ptr, bytes, DEV_WRITE};
    const struct declared use = {.what = "poison",
                                 .where = origin.where,
                                 .op = dev_operation(origin.call, true),
                                 .spans = &span,
                                 .count = 1,
                                 .buffers = {buffer}};
    struct dev_op *op = dev_op_take(d, DEV_OP_FILL, use.what);
    if (op == NULL) {
        return dev_fail(d, DEV_EHOSTMEM, "poison of '%s': host memory exhausted", buffer);
    }
    set_fill(op, ptr, POISON, bytes);
    return issue(d, stream, &use, op);
}

enum dev_status dev_host(dev *d, const void *ptr, size_t bytes, enum dev_mode mode,
                         const char *what)
{
    const struct dev_span span = {ptr, bytes, mode};
    struct declared use = {.what = what,
                           .where = d->where,
                           .op = dev_operation(d->number, false),
                           .spans = &span,
                           .count = 1};
    const enum dev_status status = check_spans(d, what, &span, 1, use.buffers);
    if (status != DEV_OK) {
        return status;
    }
    if (bytes > 0 && !in_pinned(d, ptr)) {
        return dev_fail(d, DEV_EARG, "%s: '%s' is device memory, out of the host's reach", what,
                        use.buffers[0]);
    }
    d->checker.clock[DEV_HOST].at[DEV_HOST]++;
    const bool judged = judge(d, DEV_HOST, &use);
    dev_yield(d);
    tell(d, &use, "host");
    d->aiming.touching = use.op;
    return judged ? DEV_OK
                  : dev_fail(d, DEV_EHOSTMEM, "%s: race checker: host memory exhausted", what);
}
