/* Byte-pair merging: a linked list of tokens, a heap of pairs, and a small cache of short pieces.
 * Called by text_encode; must not know texts, only pieces. */
#include "bpe.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "fault.h"
#include "growth.h"

enum {
    CACHE_SLOTS = 8192,     /* direct-mapped: a new piece replaces the old one of its slot */
    CACHE_PIECE_BYTES = 22, /* longer pieces are rare and not kept */
    CACHE_IDS = 10,
    NO_RANK = -1,
    NO_NODE = -1
};

struct pair_slot {
    uint64_t pair; /* left << 32 | right */
    int32_t rank;  /* NO_RANK = free slot */
};

struct cache_slot {
    uint8_t size, count; /* size 0 = free slot */
    char piece[CACHE_PIECE_BYTES];
    int32_t ids[CACHE_IDS];
};

struct node {
    int32_t id;
    int32_t previous, next;
    int32_t rank; /* of the pair (this, next); NO_RANK when there is none or this node is gone */
};

struct eng_bpe {
    int32_t byte_ids[256];
    int32_t *results; /* by rank */
    int32_t merge_count;
    struct pair_slot *pairs;
    uint64_t pair_mask;
    struct cache_slot *cache;
    struct node *nodes;
    size_t node_capacity;
    uint64_t *heap; /* rank << 32 | node, smallest first */
    size_t heap_count, heap_capacity;
    int32_t *ids;
    size_t id_capacity;
};

static uint64_t pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* The slot that holds the pair, or the free one where it belongs. */
static struct pair_slot *pair_find(const eng_bpe *bpe, uint64_t pair)
{
    uint64_t at = (pair * 0x9E3779B97F4A7C15u) >> 20 & bpe->pair_mask;
    while (bpe->pairs[at].rank != NO_RANK && bpe->pairs[at].pair != pair) {
        at = (at + 1) & bpe->pair_mask;
    }
    return &bpe->pairs[at];
}

static enum eng_status add_merges(eng_bpe *bpe, const struct eng_bpe_merge *merges, size_t count,
                                  struct eng_error *error)
{
    bpe->merge_count = (int32_t)FAULT(bpe_merges_read, count);
    for (int32_t rank = 0; rank < bpe->merge_count; rank++) {
        const struct eng_bpe_merge *const merge = &merges[rank];
        const uint64_t pair = pair_key(merge->left, merge->right);
        struct pair_slot *const slot = pair_find(bpe, pair);
        if (slot->rank != NO_RANK) {
            return eng_fail(error, ENG_EINPUT, "merge %d repeats merge %d", (int)rank,
                            (int)slot->rank);
        }
        *slot = (struct pair_slot){pair, rank};
        bpe->results[rank] = merge->result;
    }
    return ENG_OK;
}

enum eng_status eng_bpe_create(const int32_t byte_ids[256], const struct eng_bpe_merge *merges,
                               size_t count, eng_bpe **out, struct eng_error *error)
{
    enum eng_status status = ENG_EHOSTMEM;
    if (count > INT32_MAX / 4) {
        return eng_fail(error, ENG_EINPUT, "more merges than can be numbered");
    }
    eng_bpe *const bpe = calloc(1, sizeof *bpe);
    if (bpe == NULL) {
        return eng_fail(error, status, "no memory for the merges");
    }
    size_t slots = 16;
    while (slots < count * 2) {
        slots *= 2;
    }
    memcpy(bpe->byte_ids, byte_ids, sizeof bpe->byte_ids);
    bpe->pair_mask = slots - 1;
    bpe->pairs = malloc(slots * sizeof *bpe->pairs);
    bpe->results = calloc(count + 1, sizeof *bpe->results);
    bpe->cache = calloc(CACHE_SLOTS, sizeof *bpe->cache);
    if (bpe->pairs == NULL || bpe->results == NULL || bpe->cache == NULL) {
        eng_fail(error, status, "no memory for the merges");
        goto done;
    }
    for (size_t i = 0; i < slots; i++) {
        bpe->pairs[i] = (struct pair_slot){0, NO_RANK};
    }
    status = add_merges(bpe, merges, count, error);
    if (status == ENG_OK) {
        *out = bpe;
        return ENG_OK;
    }
done:
    eng_bpe_destroy(bpe);
    return status;
}

void eng_bpe_destroy(eng_bpe *bpe)
{
    if (bpe != NULL) {
        free(bpe->results);
        free(bpe->pairs);
        free(bpe->cache);
        free(bpe->nodes);
        free(bpe->heap);
        free(bpe->ids);
        free(bpe);
    }
}

static void heap_push(eng_bpe *bpe, uint64_t key)
{
    size_t at = bpe->heap_count++;
    while (at > 0 && bpe->heap[(at - 1) / 2] > key) {
        bpe->heap[at] = bpe->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    bpe->heap[at] = key;
}

static uint64_t heap_pop(eng_bpe *bpe)
{
    const uint64_t top = bpe->heap[0];
    const uint64_t last = bpe->heap[--bpe->heap_count];
    size_t at = 0;
    for (size_t child = 1; child < bpe->heap_count; child = 2 * at + 1) {
        if (child + 1 < bpe->heap_count && bpe->heap[child + 1] < bpe->heap[child]) {
            child++;
        }
        if (bpe->heap[child] >= last) {
            break;
        }
        bpe->heap[at] = bpe->heap[child];
        at = child;
    }
    bpe->heap[at] = last;
    return top;
}

/* Pairs of a smaller key are merged first. */
static uint64_t merge_key(const eng_bpe *bpe, int32_t at)
{
    const int32_t rank = bpe->nodes[at].rank;
    return (uint64_t)(uint32_t)FAULT(bpe_merge_order, rank) << 32 | (uint32_t)at;
}

/* Looks up the pair that begins at a node and offers it for merging. */
static void offer_pair(eng_bpe *bpe, int32_t at)
{
    struct node *const node = &bpe->nodes[at];
    node->rank = NO_RANK;
    if (node->next != NO_NODE) {
        node->rank = pair_find(bpe, pair_key(node->id, bpe->nodes[node->next].id))->rank;
    }
    if (node->rank != NO_RANK) {
        heap_push(bpe, merge_key(bpe, at));
    }
}

static void merge_at(eng_bpe *bpe, int32_t at)
{
    struct node *const node = &bpe->nodes[at];
    struct node *const gone = &bpe->nodes[node->next];
    node->id = bpe->results[node->rank];
    node->next = gone->next;
    gone->rank = NO_RANK;
    if (node->next != NO_NODE) {
        bpe->nodes[node->next].previous = at;
    }
    offer_pair(bpe, at);
    if (node->previous != NO_NODE) {
        offer_pair(bpe, node->previous);
    }
}

/* Nodes and ids hold one entry a byte; a byte offers at most one pair and a merge at most two. */
static bool reserve(eng_bpe *bpe, size_t size)
{
    struct node *const nodes = eng_grown(bpe->nodes, &bpe->node_capacity, size, sizeof *nodes);
    if (nodes == NULL) {
        return false;
    }
    bpe->nodes = nodes;
    int32_t *const ids = eng_grown(bpe->ids, &bpe->id_capacity, size, sizeof *ids);
    if (ids == NULL) {
        return false;
    }
    bpe->ids = ids;
    uint64_t *const heap = eng_grown(bpe->heap, &bpe->heap_capacity, 3 * size, sizeof *heap);
    if (heap == NULL) {
        return false;
    }
    bpe->heap = heap;
    return true;
}

static size_t merge_piece(eng_bpe *bpe, const char *piece, size_t size)
{
    bpe->heap_count = 0;
    for (size_t i = 0; i < size; i++) {
        const bool last = i + 1 == size;
        bpe->nodes[i] = (struct node){bpe->byte_ids[(unsigned char)piece[i]], (int32_t)i - 1,
                                      last ? NO_NODE : (int32_t)i + 1, NO_RANK};
    }
    for (size_t i = 0; i < size; i++) {
        offer_pair(bpe, (int32_t)i);
    }
    while (bpe->heap_count > 0) {
        const uint64_t top = heap_pop(bpe);
        const int32_t at = (int32_t)(uint32_t)top;
        /* An entry is stale when its node vanished or its pair has changed since. */
        if (bpe->nodes[at].rank != NO_RANK && merge_key(bpe, at) == top) {
            merge_at(bpe, at);
        }
    }
    size_t count = 0;
    for (int32_t at = 0; at != NO_NODE; at = bpe->nodes[at].next) {
        bpe->ids[count++] = bpe->nodes[at].id;
    }
    return count;
}

enum eng_status eng_bpe_encode(eng_bpe *bpe, const char *piece, size_t size, const int32_t **ids,
                               size_t *count, struct eng_error *error)
{
    struct cache_slot *const slot =
        size <= CACHE_PIECE_BYTES ? &bpe->cache[XXH3_64bits(piece, size) % CACHE_SLOTS] : NULL;
    if (slot != NULL && slot->size == size && memcmp(slot->piece, piece, size) == 0) {
        *ids = slot->ids;
        *count = slot->count;
        return ENG_OK;
    }
    if (size > INT32_MAX / 4 || !reserve(bpe, size)) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for a piece of %zu bytes", size);
    }
    *count = merge_piece(bpe, piece, size);
    *ids = bpe->ids;
    if (slot != NULL && *count <= CACHE_IDS) {
        slot->size = (uint8_t)size;
        slot->count = (uint8_t)*count;
        memcpy(slot->piece, piece, size);
        memcpy(slot->ids, bpe->ids, *count * sizeof *bpe->ids);
    }
    return ENG_OK;
}
