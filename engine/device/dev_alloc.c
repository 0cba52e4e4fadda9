/* Stream-ordered memory: heap, caches, pending blocks, the finalizer queue, the ladder, the ledger.
 * Called by the engine through dev.h; must not know what the memory is for.
 *
 * A block freed on its home stream may be used there again at once: later operations of that stream
 * come after earlier ones. Other streams that touched it must be seen to have finished first; that
 * observation is an edge of the race checker for this block alone. A block that leaves its stream
 * must also have been finished with by that stream. */
#include <stdlib.h>

#include "dev_fibers.h"
#include "dev_guard.h"
#include "dev_host_memory.h"
#include "dev_internal.h"
#include "eng_assert.h"
#include "fault.h"

enum {
    PRESSURE_SHARE = 4, /* the device is under pressure when less than one part in four is free */
    HOST_WATERMARK_BYTES = 1 << 30 /* what a collector that looks at host memory alone waits for */
};

enum dev_status dev_memory_open(dev *d)
{
    dev_list_init(&d->pending);
    dev_list_init(&d->deferred);
    for (int s = 0; s < DEV_ACTORS; s++) {
        for (int bin = 0; bin < DEV_HEAP_BINS; bin++) {
            dev_list_init(&d->cache[s].bins[bin]);
        }
    }
    const bool opened =
        dev_heap_init(&d->heap, d->slab_bytes) &&
        dev_checker_watch(&d->checker, d->slab, d->slab_mapped) &&
        dev_checker_watch(&d->checker, d->last_call, sizeof d->last_call) &&
        (d->pinned_mapped == 0 || dev_checker_watch(&d->checker, d->pinned, d->pinned_mapped));
    return opened ? DEV_OK : DEV_EHOSTMEM;
}

void dev_memory_close(dev *d)
{
    dev_heap_fini(&d->heap);
    free(d->live.items);
    free(d->pins.items);
}

static void check_conservation(const dev *d)
{
    eng_assert(d->live_bytes + d->cached_bytes + d->pending_bytes + d->deferred_bytes +
                   d->heap.free_bytes ==
               d->heap.budget_bytes);
}

static char *address(const dev *d, int block)
{
    const struct dev_block *b = &d->heap.blocks[block];
    return d->slab + (d->conf.guard ? dev_guard_offset(b->offset, b->bytes) : b->offset);
}

static struct dev_list *cache_bin(dev *d, const struct dev_block *b)
{
    return &d->cache[b->home].bins[dev_heap_bin(b->bytes)];
}

/* The race detectors' edges: this block's accesses by a stream that has finished with it. */
static bool forget(dev *d, int block, dev_stream stream)
{
    const struct dev_block *b = &d->heap.blocks[block];
    const struct dev_point freed = {stream, b->need[stream]};
    if (!dev_passed(d, freed)) {
        return true;
    }
    dev_fibers_forget(address(d, block), b->bytes);
    return !d->conf.check_races ||
           dev_checker_forget(&d->checker, address(d, block), b->bytes, stream, b->clock[stream]);
}

static void mark_need(dev *d, struct dev_block *b, dev_stream stream)
{
    b->need[stream] = d->queue[stream].issued;
    b->clock[stream] = d->checker.clock[stream].at[stream];
}

/* Puts a block in no list into its home stream's cache. Its bytes are already taken from where they
 * were. */
static enum dev_status put_cached(dev *d, int block)
{
    struct dev_block *b = &d->heap.blocks[block];
    enum dev_status status = DEV_OK;
    for (dev_stream s = 1; s <= d->stream_count; s++) {
        if ((b->others >> s & 1u) != 0 && !forget(d, block, s)) {
            status = dev_fail(d, DEV_EHOSTMEM, "free of '%s': host memory exhausted", b->what);
        }
    }
    b->state = DEV_BLOCK_CACHED;
    d->cached_bytes += b->bytes;
    dev_list_prepend(&d->heap, cache_bin(d, b), block);
    if (d->conf.poison && status == DEV_OK) {
        status = dev_poison(d, b->home, address(d, block), b->bytes, b->what, b->freed);
        b->poisoned = status == DEV_OK;
        mark_need(d, b, b->home);
    }
    return status;
}

/* Whether the other streams' work up to the free is done. */
static bool is_finished(dev *d, const struct dev_block *b)
{
    bool finished = true;
    for (dev_stream s = 1; s <= d->stream_count; s++) {
        if ((b->others >> s & 1u) != 0) {
            finished &= dev_passed(d, (struct dev_point){s, b->need[s]});
        }
    }
    return FAULT(dev_block_finished, finished);
}

/* Takes a live or deferred block, whose bytes are no longer counted there, to pending or the cache.
 */
static enum dev_status release(dev *d, int block)
{
    struct dev_block *b = &d->heap.blocks[block];
    for (dev_stream s = 1; s <= d->stream_count; s++) {
        mark_need(d, b, s);
    }
    if (is_finished(d, b) && d->conf.quarantine_bytes == 0) {
        return put_cached(d, block);
    }
    b->state = DEV_BLOCK_PENDING;
    d->pending_bytes += b->bytes;
    dev_list_append(&d->heap, &d->pending, block);
    return d->failed;
}

static enum dev_status pending_to_cache(dev *d, int block)
{
    d->pending_bytes -= d->heap.blocks[block].bytes;
    dev_list_remove(&d->heap, &d->pending, block);
    return put_cached(d, block);
}

/* Moves pending blocks whose readers have finished to their caches, but for those in quarantine. */
static enum dev_status poll_pending(dev *d)
{
    enum dev_status status = DEV_OK;
    for (int block = d->pending.head;
         block >= 0 && status == DEV_OK && d->pending_bytes > d->conf.quarantine_bytes;) {
        const int next = d->heap.blocks[block].list_next;
        if (is_finished(d, &d->heap.blocks[block])) {
            status = pending_to_cache(d, block);
        }
        block = next;
    }
    return status;
}

/* Performs queued frees: all of them, or those that are due at the end of a step. */
static enum dev_status drain_deferred(dev *d, bool all)
{
    const bool pressed =
        d->heap.free_bytes + d->cached_bytes < d->heap.budget_bytes / PRESSURE_SHARE;
    enum dev_status status = DEV_OK;
    for (int block = d->deferred.head; block >= 0 && status == DEV_OK;) {
        const struct dev_block *b = &d->heap.blocks[block];
        const int next = b->list_next;
        const bool due = all || pressed || b->step < d->step;
        if (FAULT(dev_deferred_due, due)) {
            d->deferred_bytes -= b->bytes;
            dev_list_remove(&d->heap, &d->deferred, block);
            status = release(d, block);
        }
        block = next;
    }
    return status;
}

/* Gives a cached block back to the heap. Its home stream must have finished with it. */
static bool uncache(dev *d, int block)
{
    struct dev_block *b = &d->heap.blocks[block];
    const bool ok = forget(d, block, b->home);
    d->cached_bytes -= b->bytes;
    dev_list_remove(&d->heap, cache_bin(d, b), block);
    dev_heap_give(&d->heap, block);
    return ok;
}

/* Blocks of exactly this size in a stream's cache, then the heap. */
static int search(dev *d, dev_stream stream, size_t bytes)
{
    const struct dev_list *bin = &d->cache[stream].bins[dev_heap_bin(bytes)];
    for (int block = bin->head; block >= 0; block = d->heap.blocks[block].list_next) {
        struct dev_block *b = &d->heap.blocks[block];
        if (b->bytes == bytes) {
            d->cached_bytes -= bytes;
            dev_list_remove(&d->heap, cache_bin(d, b), block);
            b->state = DEV_BLOCK_LIVE;
            return block;
        }
    }
    const int block = dev_heap_take(&d->heap, bytes);
    if (block >= 0) {
        d->heap.blocks[block].poisoned = false;
    }
    return block;
}

static int search_again(dev *d, dev_stream stream, size_t bytes)
{
    return FAULT(dev_search_again, search(d, stream, bytes));
}

/* Releases cached blocks until the request fits: with `wait`, the host waits for their streams. */
static int search_caches(dev *d, dev_stream stream, size_t bytes, bool wait)
{
    int found = DEV_NO_BLOCK;
    for (int i = 0; i < d->heap.block_capacity && found < 0; i++) {
        const struct dev_block *b = &d->heap.blocks[i];
        if (b->state != DEV_BLOCK_CACHED) {
            continue;
        }
        const struct dev_point freed = {b->home, b->need[b->home]};
        if (wait) {
            dev_run_until(d, freed);
        }
        if (dev_passed(d, freed) && uncache(d, i)) {
            found = search_again(d, stream, bytes);
        }
    }
    return found;
}

/* Waits for pending blocks, oldest first, until the request fits. */
static int search_pending(dev *d, dev_stream stream, size_t bytes)
{
    int found = DEV_NO_BLOCK;
    while (d->pending.head >= 0 && found < 0) {
        const int block = d->pending.head;
        for (dev_stream s = 1; s <= d->stream_count; s++) {
            if ((d->heap.blocks[block].others >> s & 1u) != 0) {
                dev_run_until(d, (struct dev_point){s, d->heap.blocks[block].need[s]});
            }
        }
        if (pending_to_cache(d, block) != DEV_OK) {
            break;
        }
        found = search_again(d, stream, bytes);
    }
    return found;
}

/* The ladder: what can be had without waiting first, then what the host must wait for. */
static int climb(dev *d, dev_stream stream, size_t bytes)
{
    int found = DEV_NO_BLOCK;
    d->reclaims++;
    if (drain_deferred(d, true) == DEV_OK && poll_pending(d) == DEV_OK) {
        found = search_again(d, stream, bytes);
    }
    if (found < 0) {
        found = search_caches(d, stream, bytes, false);
    }
    if (found < 0) {
        found = search_pending(d, stream, bytes);
    }
    if (found < 0) {
        found = search_caches(d, stream, bytes, true);
    }
    return found;
}

/* The bytes were there, and not everything was tried: a hole is large enough, or freed memory is
 * still held. Such memory need not lie where the request would fit, for what is live lies where it
 * does because it was held. Where all is live or free, holes that are too small are an honest end.
 */
static bool is_spurious(const dev *d, size_t bytes)
{
    const size_t held = d->cached_bytes + d->pending_bytes + d->deferred_bytes;
    return dev_heap_largest(&d->heap) >= bytes || (held > 0 && held + d->heap.free_bytes >= bytes);
}

static enum dev_status refuse(dev *d, dev_stream stream, size_t bytes, const char *what)
{
    d->ooms++;
    d->spurious_ooms += is_spurious(d, bytes);
    d->refused_on = stream;
    return dev_fail(d, DEV_EOOM,
                    "allocation '%s' of %zu bytes in step %d does not fit into %zu: live %zu, "
                    "cached %zu, pending %zu, deferred %zu, free %zu (largest hole %zu)",
                    what, bytes, d->step, d->heap.budget_bytes, d->live_bytes, d->cached_bytes,
                    d->pending_bytes, d->deferred_bytes, d->heap.free_bytes,
                    dev_heap_largest(&d->heap));
}

static enum dev_status refuse_by_hook(dev *d, dev_stream stream, size_t bytes, const char *what)
{
    d->oom_hook_fired = true;
    d->ooms++;
    d->refused_on = stream;
    return dev_fail(d, DEV_EOOM,
                    "allocation '%s' of %zu bytes in step %d refused: the memory is taken by "
                    "another process at this moment (budget %zu, live %zu, free %zu)",
                    what, bytes, d->step, d->heap.budget_bytes, d->live_bytes, d->heap.free_bytes);
}

/* Makes a block found live. */
static enum dev_status hand_out(dev *d, dev_stream stream, int block, const char *what, void **out)
{
    struct dev_block *b = &d->heap.blocks[block];
    const uintptr_t lo = (uintptr_t)address(d, block);
    enum dev_status status = DEV_OK;
    if (!dev_places_add(&d->live, (struct dev_place){lo, lo + b->bytes, what, block})) {
        dev_heap_give(&d->heap, block);
        return dev_fail(d, DEV_EHOSTMEM, "allocation '%s': host memory exhausted", what);
    }
    b->home = stream;
    b->others = 0;
    b->what = what;
    dev_guard_handed_out(d, block);
    d->live_bytes += b->bytes;
    d->mallocs++;
    if (d->refused_on == stream) {
        d->answered_on = stream;
        d->refused_on = 0;
    }
    const size_t used = d->live_bytes + d->pending_bytes + d->deferred_bytes;
    d->peak_bytes = used > d->peak_bytes ? used : d->peak_bytes;
    if (d->conf.poison && !b->poisoned) {
        status = dev_poison(d, stream, (void *)lo, b->bytes, what,
                            (struct dev_origin){d->number, d->where});
    }
    b->poisoned = false;
    *out = (void *)lo;
    return status;
}

enum dev_status dev_malloc(dev *d, dev_stream stream, size_t bytes, const char *what, void **out)
{
    enum dev_status status = dev_resolve_stream(d, &stream, what);
    if (status != DEV_OK) {
        return status;
    }
    if (bytes == 0) {
        return dev_fail(d, DEV_EARG, "allocation '%s' of 0 bytes", what);
    }
    if (d->conf.oom_step > 0 && d->step == d->conf.oom_step && !d->oom_hook_fired) {
        return refuse_by_hook(d, stream, bytes, what);
    }
    if (bytes > d->heap.budget_bytes) {
        return refuse(d, stream, bytes, what);
    }
    const size_t rounded = (bytes + DEV_GRANULE - 1) / DEV_GRANULE * DEV_GRANULE;
    const size_t size = FAULT(dev_malloc_size, rounded);
    status = poll_pending(d);
    if (status != DEV_OK) {
        return status;
    }
    int block = search(d, stream, size);
    if (block < 0 && FAULT(dev_malloc_ladder, true)) {
        block = climb(d, stream, size);
    }
    if (block < 0) {
        return refuse(d, stream, size, what);
    }
    status = hand_out(d, stream, block, what, out);
    check_conservation(d);
    return status;
}

/* The live block that starts at ptr. */
static enum dev_status find_live(dev *d, const void *ptr, const char *verb,
                                 const struct dev_place **out)
{
    const struct dev_place *place = dev_places_find(&d->live, ptr);
    if (place == NULL || place->lo != (uintptr_t)ptr) {
        return dev_fail(d, DEV_ESPAN, "%s: no live block starts at %p", verb, ptr);
    }
    *out = place;
    return DEV_OK;
}

enum dev_status dev_used_on(dev *d, const void *ptr, dev_stream stream)
{
    const struct dev_place *place = NULL;
    enum dev_status status = dev_resolve_stream(d, &stream, "used on");
    if (status == DEV_OK) {
        status = find_live(d, ptr, "used on", &place);
    }
    if (status != DEV_OK) {
        return status;
    }
    struct dev_block *b = &d->heap.blocks[place->block];
    if (stream != b->home) {
        b->others |= FAULT(dev_used_on_bit, 1u << stream);
    }
    return DEV_OK;
}

enum dev_status dev_free(dev *d, void *ptr)
{
    const struct dev_place *place = NULL;
    enum dev_status status = find_live(d, ptr, "free", &place);
    if (status != DEV_OK) {
        return status;
    }
    d->frees++;
    if (FAULT(dev_free_return, true)) {
        const int block = place->block;
        dev_places_remove(&d->live, place);
        d->heap.blocks[block].freed = (struct dev_origin){d->number, d->where};
        d->live_bytes -= d->heap.blocks[block].bytes;
        status = release(d, block);
    }
    check_conservation(d);
    dev_yield(d);
    return status;
}

enum dev_status dev_free_deferred(dev *d, void *ptr)
{
    const struct dev_place *place = NULL;
    const enum dev_status status = find_live(d, ptr, "deferred free", &place);
    if (status != DEV_OK) {
        return status;
    }
    const int block = place->block;
    struct dev_block *b = &d->heap.blocks[block];
    dev_places_remove(&d->live, place);
    d->frees++;
    d->live_bytes -= b->bytes;
    d->deferred_bytes += b->bytes;
    b->state = DEV_BLOCK_DEFERRED;
    b->freed = (struct dev_origin){d->number, d->where};
    b->step = d->step;
    dev_list_append(&d->heap, &d->deferred, block);
    check_conservation(d);
    return DEV_OK;
}

enum dev_status dev_sweep(dev *d)
{
    const enum dev_status status = drain_deferred(d, false);
    check_conservation(d);
    return status;
}

enum dev_status dev_pinned(dev *d, size_t bytes, const char *what, void **out)
{
    if (bytes == 0) {
        return dev_fail(d, DEV_EARG, "pinned buffer '%s' of 0 bytes", what);
    }
    if (bytes > d->conf.pinned_bytes - d->pinned_used || d->pins.count == DEV_PINNED_MAX) {
        return dev_fail(d, DEV_EOOM,
                        "pinned buffer '%s' of %zu bytes does not fit: budget %zu, used %zu by %zu "
                        "buffers",
                        what, bytes, d->conf.pinned_bytes, d->pinned_used, d->pins.count);
    }
    const uintptr_t lo = (uintptr_t)d->pinned + d->pinned_at;
    if (!dev_places_add(&d->pins, (struct dev_place){lo, lo + bytes, what, DEV_NO_BLOCK})) {
        return dev_fail(d, DEV_EHOSTMEM, "pinned buffer '%s': host memory exhausted", what);
    }
    d->pinned_used += bytes;
    d->pinned_at += (bytes + DEV_PINNED_ALIGN - 1) / DEV_PINNED_ALIGN * DEV_PINNED_ALIGN;
    *out = (void *)lo;
    return DEV_OK;
}

void dev_ledger(const dev *d, struct dev_ledger *out)
{
    check_conservation(d);
    *out = (struct dev_ledger){
        .budget_bytes = d->heap.budget_bytes,
        .live_bytes = d->live_bytes,
        .cached_bytes = d->cached_bytes,
        .pending_bytes = FAULT(dev_ledger_pending, d->pending_bytes),
        .deferred_bytes = d->deferred_bytes,
        .free_bytes = d->heap.free_bytes,
        .peak_bytes = d->peak_bytes,
        .mallocs = d->mallocs,
        .frees = d->frees,
        .ooms = d->ooms,
        .spurious_ooms = d->spurious_ooms,
        .reclaims = d->reclaims,
        .host_bytes = dev_host_memory_bytes(),
    };
}
