/* Byte-pair merging: a linked list of tokens, a heap of pairs, and a small cache of short pieces.
 * Called by text_encode; must not know texts, only pieces. */
#include "bpe.h"

#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "growth.h"
#include "text_utf8.h"

enum {
    CACHE_SLOTS_MIN = 1 << 13, /* direct-mapped: a new piece replaces the old one of its slot */
    CACHE_SLOTS_MAX = 1 << 16,
    CACHE_WORDS = 3, /* longer pieces are rare and not kept */
    CACHE_PIECE_BYTES = 8 * CACHE_WORDS,
    CACHE_IDS = 9,
    NO_RANK = -1,
    NO_NODE = -1
};

struct pair_slot {
    uint64_t pair; /* left << 32 | right */
    int32_t rank;  /* NO_RANK = free slot */
    int32_t result;
};

/* One cache line. */
struct cache_slot {
    uint64_t words[CACHE_WORDS]; /* with size, all of the piece */
    uint8_t size, count;         /* size 0 = free slot */
    int32_t ids[CACHE_IDS];
};

struct node {
    int32_t id;
    int32_t previous, next;
    int32_t rank; /* of the pair (this, next); NO_RANK when there is none or this node is gone */
    int32_t result;
};

struct eng_bpe {
    int32_t byte_ids[256];
    const struct eng_vocab *characters, *whole;
    int32_t rank_end; /* above all ranks */
    struct pair_slot *pairs;
    uint64_t pair_mask;
    unsigned pair_shift; /* 64 - log2 of the slots */
    struct cache_slot *cache;
    unsigned cache_shift; /* 64 - log2 of the slots */
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
    uint64_t at = (pair * 0x9E3779B97F4A7C15u) >> bpe->pair_shift; /* bits that see both halves */
    while (bpe->pairs[at].rank != NO_RANK && bpe->pairs[at].pair != pair) {
        at = (at + 1) & bpe->pair_mask;
    }
    return &bpe->pairs[at];
}

static size_t place_of(const struct eng_bpe_rules *rules, int32_t left, int32_t right)
{
    size_t place = 0;
    while (rules->merges[place].left != left || rules->merges[place].right != right) {
        place++;
    }
    return place;
}

static enum eng_status add_merges(eng_bpe *bpe, const struct eng_bpe_rules *rules,
                                  struct eng_error *error)
{
    const size_t count = rules->merge_count;
    const size_t used = FAULT(bpe_merges_read, count);
    for (size_t i = 0; i < used; i++) {
        const struct eng_bpe_merge *const merge = &rules->merges[i];
        const uint64_t pair = pair_key(merge->left, merge->right);
        struct pair_slot *const slot = pair_find(bpe, pair);
        if (slot->rank != NO_RANK) {
            return eng_fail(error, ENG_EINPUT, "merge %zu repeats merge %zu", i,
                            place_of(rules, merge->left, merge->right));
        }
        *slot = (struct pair_slot){pair, merge->rank, merge->result};
        bpe->rank_end = merge->rank + 1;
    }
    return ENG_OK;
}

static bool reserve_tables(eng_bpe *bpe, size_t merge_count)
{
    size_t slots = 16;
    bpe->pair_shift = 64 - 4;
    while (slots < merge_count * 2) {
        slots *= 2;
        bpe->pair_shift--;
    }
    size_t cache_slots = CACHE_SLOTS_MIN;
    bpe->cache_shift = 64 - 13;
    while (cache_slots < merge_count && cache_slots < CACHE_SLOTS_MAX) {
        cache_slots *= 2;
        bpe->cache_shift--;
    }
    bpe->pair_mask = slots - 1;
    bpe->pairs = malloc(slots * sizeof *bpe->pairs);
    bpe->cache = calloc(cache_slots, sizeof *bpe->cache);
    if (bpe->pairs == NULL || bpe->cache == NULL) {
        return false;
    }
    for (size_t i = 0; i < slots; i++) {
        bpe->pairs[i] = (struct pair_slot){0, NO_RANK, 0};
    }
    return true;
}

enum eng_status eng_bpe_create(const struct eng_bpe_rules *rules, eng_bpe **out,
                               struct eng_error *error)
{
    if (rules->merge_count > INT32_MAX / 4) {
        return eng_fail(error, ENG_EINPUT, "more merges than can be numbered");
    }
    eng_bpe *const bpe = calloc(1, sizeof *bpe);
    if (bpe == NULL || !reserve_tables(bpe, rules->merge_count)) {
        eng_bpe_destroy(bpe);
        return eng_fail(error, ENG_EHOSTMEM, "no memory for the merges");
    }
    memcpy(bpe->byte_ids, rules->byte_ids, sizeof bpe->byte_ids);
    bpe->characters = rules->characters;
    bpe->whole = rules->whole;
    const enum eng_status status = add_merges(bpe, rules, error);
    if (status == ENG_OK) {
        *out = bpe;
    } else {
        eng_bpe_destroy(bpe);
    }
    return status;
}

void eng_bpe_destroy(eng_bpe *bpe)
{
    if (bpe != NULL) {
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
        const struct pair_slot *const pair =
            pair_find(bpe, pair_key(node->id, bpe->nodes[node->next].id));
        node->rank = pair->rank;
        node->result = pair->result;
    }
    if (node->rank != NO_RANK) {
        heap_push(bpe, merge_key(bpe, at));
    }
}

static void merge_at(eng_bpe *bpe, int32_t at)
{
    struct node *const node = &bpe->nodes[at];
    struct node *const gone = &bpe->nodes[node->next];
    node->id = node->result;
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

/* The tokens to begin with, into ids; returns how many. */
static size_t first_tokens(eng_bpe *bpe, const char *piece, size_t size)
{
    size_t count = 0;
    for (size_t at = 0; at < size;) {
        const size_t length = bpe->characters == NULL ? 0 : eng_utf8_length(piece + at, size - at);
        const int32_t id = length == 0 ? -1 : eng_vocab_find(bpe->characters, piece + at, length);
        if (id >= 0) {
            bpe->ids[count++] = id;
            at += length;
            continue;
        }
        for (const size_t end = at + (length == 0 ? 1 : length); at < end; at++) {
            bpe->ids[count++] = bpe->byte_ids[(unsigned char)piece[at]];
        }
    }
    return count;
}

static size_t merge_piece(eng_bpe *bpe, const char *piece, size_t size)
{
    size_t count = first_tokens(bpe, piece, size);
    bpe->heap_count = 0;
    for (size_t i = 0; i < count; i++) {
        bpe->nodes[i] = (struct node){bpe->ids[i], (int32_t)i - 1,
                                      i + 1 == count ? NO_NODE : (int32_t)i + 1, NO_RANK, 0};
    }
    for (size_t i = 0; i < count; i++) {
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
    count = 0;
    for (int32_t at = 0; at != NO_NODE; at = bpe->nodes[at].next) {
        bpe->ids[count++] = bpe->nodes[at].id;
    }
    return count;
}

static uint64_t load(const char *bytes, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, bytes, size);
    return word;
}

/* All bytes of a piece in words, some of them twice; with its size it has no other reading. Eight
 * bytes are read at once where `room`, how many may be read, allows it. */
static inline void piece_words(const char *piece, size_t size, size_t room,
                               uint64_t words[CACHE_WORDS])
{
    words[1] = words[2] = 0;
    if (size > 8) {
        words[0] = load(piece, 8);
        words[1] = load(piece + size - 8, 8);
        words[2] = size > 16 ? load(piece + 8, 8) : 0;
    } else if (room >= 8) {
        words[0] = load(piece, 8) & UINT64_MAX >> (64 - 8 * size);
    } else {
        words[0] = load(piece, size);
    }
}

static inline struct cache_slot *cache_slot_of(const eng_bpe *bpe, size_t size,
                                               const uint64_t words[CACHE_WORDS])
{
    uint64_t hash = words[0] * 0x9E3779B97F4A7C15u;
    hash ^= (words[1] + words[2] * 31 + size) * 0xD1B54A32D192ED03u;
    hash ^= hash >> 32;
    return &bpe->cache[(hash * 0x94D049BB133111EBu) >> bpe->cache_shift];
}

static enum eng_status encode_new(eng_bpe *bpe, const char *piece, size_t size, size_t *count,
                                  struct eng_error *error)
{
    if (size > INT32_MAX / 4 || !reserve(bpe, size)) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for a piece of %zu bytes", size);
    }
    const int32_t whole = bpe->whole == NULL ? -1 : eng_vocab_find(bpe->whole, piece, size);
    if (whole >= 0) {
        bpe->ids[0] = whole;
        *count = 1;
    } else {
        *count = merge_piece(bpe, piece, size);
    }
    return ENG_OK;
}

enum eng_status eng_bpe_encode_within(eng_bpe *bpe, const char *piece, size_t size, size_t room,
                                      const int32_t **ids, size_t *count, struct eng_error *error)
{
    uint64_t words[CACHE_WORDS];
    struct cache_slot *slot = NULL;
    if (size - 1 < CACHE_PIECE_BYTES) {
        piece_words(piece, size, room, words);
        slot = cache_slot_of(bpe, size, words);
        if (slot->size == size && slot->words[0] == words[0] && slot->words[1] == words[1] &&
            slot->words[2] == words[2]) {
            *ids = slot->ids;
            *count = slot->count;
            return ENG_OK;
        }
    }
    const enum eng_status status = encode_new(bpe, piece, size, count, error);
    *ids = bpe->ids;
    if (status == ENG_OK && slot != NULL && *count <= CACHE_IDS) {
        memcpy(slot->words, words, sizeof words);
        slot->size = (uint8_t)size;
        slot->count = (uint8_t)*count;
        memcpy(slot->ids, bpe->ids, *count * sizeof *bpe->ids);
    }
    return status;
}

enum eng_status eng_bpe_encode(eng_bpe *bpe, const char *piece, size_t size, const int32_t **ids,
                               size_t *count, struct eng_error *error)
{
    return eng_bpe_encode_within(bpe, piece, size, size, ids, count, error);
}
