/* The heap under the allocator: best fit over one budget of bytes, metadata out of band.
 * Used by dev_alloc.c; knows offsets only, neither addresses nor streams. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev_clock.h"

enum {
    DEV_GRANULE = 256, /* sizes are rounded up to it, offsets are multiples of it */
    DEV_HEAP_BINS = 64,
    DEV_NO_BLOCK = -1
};

enum dev_block_state {
    DEV_BLOCK_FREE,     /* in the heap */
    DEV_BLOCK_LIVE,     /* handed out */
    DEV_BLOCK_CACHED,   /* free, kept for its home stream */
    DEV_BLOCK_PENDING,  /* freed, other streams may still read it */
    DEV_BLOCK_DEFERRED, /* in the finalizer queue */
    DEV_BLOCK_SPARE     /* no block: an unused entry of the table */
};

/* The API call that something goes back to. */
struct dev_origin {
    uint64_t call;
    const char *where; /* source line */
};

/* A stretch of the budget. prev and next are neighbours by address; list_prev and list_next belong
 * to the list of the block's state. */
struct dev_block {
    size_t offset, bytes;
    int prev, next;
    int list_prev, list_next;
    enum dev_block_state state;
    int home;                   /* stream it was handed out on */
    unsigned others;            /* bit s: stream s was named by dev_used_on */
    uint64_t need[DEV_ACTORS];  /* operations of each stream that precede the free ... */
    uint64_t clock[DEV_ACTORS]; /* ... and the race checker's clock of that moment */
    const char *what;
    struct dev_origin freed; /* by which call */
    int step;                /* in which it was deferred */
    bool poisoned;           /* holds nothing but poison */
};

/* Heads and tails of a list of blocks. */
struct dev_list {
    int head, tail;
};

struct dev_heap {
    struct dev_block *blocks;
    int block_capacity;
    int spare; /* head of the unused entries */
    struct dev_list bins[DEV_HEAP_BINS];
    size_t budget_bytes; /* multiple of DEV_GRANULE */
    size_t free_bytes;
};

/* Returns false when host memory is exhausted. fini accepts a zeroed heap. */
bool dev_heap_init(struct dev_heap *heap, size_t budget_bytes);
void dev_heap_fini(struct dev_heap *heap);

/* Best fit, lowest address among equals. Returns the index of a block of exactly `bytes` (a
 * multiple of DEV_GRANULE) in state LIVE, or DEV_NO_BLOCK. Moves the table: keep indices, not
 * pointers. */
int dev_heap_take(struct dev_heap *heap, size_t bytes);
/* Gives a block back, whatever its state; it merges with free neighbours. */
void dev_heap_give(struct dev_heap *heap, int block);
size_t dev_heap_largest(const struct dev_heap *heap);

/* Doubly linked lists through list_prev and list_next. */
void dev_list_init(struct dev_list *list);
void dev_list_append(struct dev_heap *heap, struct dev_list *list, int block);
void dev_list_prepend(struct dev_heap *heap, struct dev_list *list, int block);
void dev_list_remove(struct dev_heap *heap, struct dev_list *list, int block);
int dev_heap_bin(size_t bytes); /* floor(log2(bytes)) */
