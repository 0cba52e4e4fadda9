/* Best-fit heap with an exact budget. Called by dev_alloc.c; must not know streams or memory. */
#include "dev_heap.h"

#include <stdlib.h>
#include <string.h>

#include "eng_assert.h"
#include "fault.h"

int dev_heap_bin(size_t bytes)
{
    return 63 - __builtin_clzll((unsigned long long)bytes);
}

void dev_list_init(struct dev_list *list)
{
    list->head = DEV_NO_BLOCK;
    list->tail = DEV_NO_BLOCK;
}

void dev_list_append(struct dev_heap *heap, struct dev_list *list, int block)
{
    struct dev_block *b = &heap->blocks[block];
    b->list_next = DEV_NO_BLOCK;
    b->list_prev = list->tail;
    if (list->tail >= 0) {
        heap->blocks[list->tail].list_next = block;
    } else {
        list->head = block;
    }
    list->tail = block;
}

void dev_list_prepend(struct dev_heap *heap, struct dev_list *list, int block)
{
    struct dev_block *b = &heap->blocks[block];
    b->list_prev = DEV_NO_BLOCK;
    b->list_next = list->head;
    if (list->head >= 0) {
        heap->blocks[list->head].list_prev = block;
    } else {
        list->tail = block;
    }
    list->head = block;
}

void dev_list_remove(struct dev_heap *heap, struct dev_list *list, int block)
{
    const struct dev_block *b = &heap->blocks[block];
    if (b->list_prev >= 0) {
        heap->blocks[b->list_prev].list_next = b->list_next;
    } else {
        list->head = b->list_next;
    }
    if (b->list_next >= 0) {
        heap->blocks[b->list_next].list_prev = b->list_prev;
    } else {
        list->tail = b->list_prev;
    }
}

static void put_spare(struct dev_heap *heap, int block)
{
    heap->blocks[block].state = DEV_BLOCK_SPARE;
    heap->blocks[block].list_next = heap->spare;
    heap->spare = block;
}

/* Makes sure that an unused entry exists. */
static bool reserve_spare(struct dev_heap *heap)
{
    if (heap->spare >= 0) {
        return true;
    }
    const int capacity = heap->block_capacity == 0 ? 256 : 2 * heap->block_capacity;
    struct dev_block *grown = realloc(heap->blocks, (size_t)capacity * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    heap->blocks = grown;
    for (int i = capacity - 1; i >= heap->block_capacity; i--) {
        put_spare(heap, i);
    }
    heap->block_capacity = capacity;
    return true;
}

static int take_spare(struct dev_heap *heap)
{
    const int block = heap->spare;
    heap->spare = heap->blocks[block].list_next;
    memset(&heap->blocks[block], 0, sizeof heap->blocks[block]);
    return block;
}

static void put_free(struct dev_heap *heap, int block)
{
    struct dev_block *b = &heap->blocks[block];
    b->state = DEV_BLOCK_FREE;
    dev_list_prepend(heap, &heap->bins[dev_heap_bin(b->bytes)], block);
}

static void take_free(struct dev_heap *heap, int block)
{
    dev_list_remove(heap, &heap->bins[dev_heap_bin(heap->blocks[block].bytes)], block);
}

bool dev_heap_init(struct dev_heap *heap, size_t budget_bytes)
{
    memset(heap, 0, sizeof *heap);
    heap->spare = DEV_NO_BLOCK;
    for (int i = 0; i < DEV_HEAP_BINS; i++) {
        dev_list_init(&heap->bins[i]);
    }
    if (!reserve_spare(heap)) {
        return false;
    }
    const int all = take_spare(heap);
    heap->blocks[all].bytes = budget_bytes;
    heap->blocks[all].prev = DEV_NO_BLOCK;
    heap->blocks[all].next = DEV_NO_BLOCK;
    put_free(heap, all);
    heap->budget_bytes = budget_bytes;
    heap->free_bytes = budget_bytes;
    return true;
}

void dev_heap_fini(struct dev_heap *heap)
{
    free(heap->blocks);
    memset(heap, 0, sizeof *heap);
}

static bool better(const struct dev_block *a, const struct dev_block *b)
{
    return a->bytes < b->bytes || (a->bytes == b->bytes && a->offset < b->offset);
}

/* Every block of a bin is smaller than every block of the next one: the first bin with a fit ends
 * the search. */
static int best_fit(const struct dev_heap *heap, size_t bytes)
{
    int best = DEV_NO_BLOCK;
    for (int bin = dev_heap_bin(bytes); bin < DEV_HEAP_BINS && best < 0; bin++) {
        for (int i = heap->bins[bin].head; i >= 0; i = heap->blocks[i].list_next) {
            if (heap->blocks[i].bytes >= bytes &&
                (best < 0 || better(&heap->blocks[i], &heap->blocks[best]))) {
                best = i;
            }
        }
    }
    return best;
}

/* Splits what is behind the first `bytes` bytes off as a free block. */
static void split(struct dev_heap *heap, int block, size_t bytes)
{
    const int rest = take_spare(heap);
    struct dev_block *b = &heap->blocks[block];
    struct dev_block *r = &heap->blocks[rest];
    r->offset = b->offset + FAULT(dev_heap_split, bytes);
    r->bytes = b->bytes - bytes;
    r->prev = block;
    r->next = b->next;
    if (r->next >= 0) {
        heap->blocks[r->next].prev = rest;
    }
    b->next = rest;
    b->bytes = bytes;
    put_free(heap, rest);
}

int dev_heap_take(struct dev_heap *heap, size_t bytes)
{
    eng_assert(bytes > 0 && bytes % DEV_GRANULE == 0);
    const int block = best_fit(heap, bytes);
    if (block < 0) {
        return DEV_NO_BLOCK;
    }
    take_free(heap, block);
    /* Without host memory for another entry the block goes out whole; its size stays the truth. */
    if (heap->blocks[block].bytes > bytes && reserve_spare(heap)) {
        split(heap, block, bytes);
    }
    struct dev_block *b = &heap->blocks[block];
    b->state = DEV_BLOCK_LIVE;
    heap->free_bytes -= b->bytes;
    return block;
}

/* Appends the free block `behind` to `block`. */
static void merge(struct dev_heap *heap, int block, int behind)
{
    struct dev_block *b = &heap->blocks[block];
    const struct dev_block *r = &heap->blocks[behind];
    b->bytes += r->bytes;
    b->next = r->next;
    if (b->next >= 0) {
        heap->blocks[b->next].prev = block;
    }
    put_spare(heap, behind);
}

void dev_heap_give(struct dev_heap *heap, int block)
{
    struct dev_block *b = &heap->blocks[block];
    const int behind = b->next;
    const int before = b->prev;
    heap->free_bytes += b->bytes;
    if (behind >= 0 && heap->blocks[behind].state == DEV_BLOCK_FREE) {
        take_free(heap, behind);
        merge(heap, block, behind);
    }
    if (before >= 0 && heap->blocks[before].state == DEV_BLOCK_FREE) {
        take_free(heap, before);
        merge(heap, before, block);
        block = before;
    }
    put_free(heap, block);
}

size_t dev_heap_largest(const struct dev_heap *heap)
{
    size_t largest = 0;
    for (int bin = DEV_HEAP_BINS - 1; bin >= 0 && largest == 0; bin--) {
        for (int i = heap->bins[bin].head; i >= 0; i = heap->blocks[i].list_next) {
            largest = heap->blocks[i].bytes > largest ? heap->blocks[i].bytes : largest;
        }
    }
    return largest;
}
