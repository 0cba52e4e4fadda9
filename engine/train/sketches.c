/* The ring of sketches. Called by the loop and the optimizer; must not know the trace's format. */
#include "sketches.h"

#include <stdlib.h>
#include <string.h>

#include "devstatus.h"

enum { GRANULE = 256, HASH_WORDS = 2, SIZES = 4 };

static size_t rounded(size_t bytes)
{
    return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

/* Counts that follow from the model alone. */
struct counts {
    size_t tensors, taps, kinds, chunks, slot_bytes;
    size_t sizes[SIZES]; /* distinct element counts of taps */
    size_t size_count;
};

static size_t chunks_of(size_t elements)
{
    return (elements + K_CHUNK - 1) / K_CHUNK;
}

static void add_size(struct counts *n, size_t elements)
{
    for (size_t i = 0; i < n->size_count; i++) {
        if (n->sizes[i] == elements) {
            return;
        }
    }
    n->sizes[n->size_count++] = elements;
}

static struct counts count_all(const struct eng_model_config *c, enum eng_level level,
                               int micro_count)
{
    const size_t tokens = (size_t)c->rows * (size_t)c->context;
    const size_t head_dim = (size_t)c->width / (size_t)c->heads;
    const size_t width = (size_t)c->width;
    const size_t kv_width = (size_t)c->kv_heads * head_dim;
    const size_t ffn = (size_t)c->ffn;
    struct counts n = {.tensors = 2 + 9 * (size_t)c->layers + (c->tied ? 0 : 1)};
    const bool full = level == ENG_LEVEL_FULL;
    n.taps = full ? 3 + 4 * (size_t)c->layers : 0;
    n.kinds = full ? ENG_SKETCHED_COUNT : ENG_SKETCHED_COUNT - 1;
    add_size(&n, tokens * width);
    add_size(&n, tokens * (width + 2 * kv_width));
    add_size(&n, tokens);
    const size_t layer = 2 * chunks_of(width) + 2 * chunks_of(width * width) +
                         2 * chunks_of(kv_width * width) + 3 * chunks_of(ffn * width);
    n.chunks = chunks_of((size_t)c->vocab * width) * (c->tied ? 1 : 2) + chunks_of(width) +
               layer * (size_t)c->layers;
    for (size_t i = 0; full && i < n.size_count; i++) {
        n.chunks = n.chunks > chunks_of(n.sizes[i]) ? n.chunks : chunks_of(n.sizes[i]);
    }
    n.slot_bytes = (n.kinds * n.tensors + n.taps) * sizeof(struct k_sketch) +
                   (size_t)micro_count * HASH_WORDS * sizeof(uint32_t);
    return n;
}

size_t eng_sketches_bytes(const struct eng_model_config *c, enum eng_level level, int micro_count)
{
    if (level == ENG_LEVEL_NONE) {
        return 0;
    }
    const struct counts n = count_all(c, level, micro_count);
    size_t bytes =
        rounded(n.chunks * sizeof(struct k_sketch)) + ENG_RING_SLOTS * rounded(n.slot_bytes);
    for (size_t i = 0; level == ENG_LEVEL_FULL && i < n.size_count; i++) {
        bytes +=
            rounded(chunks_of(n.sizes[i]) * sizeof(struct k_chunk)) + rounded(2 * sizeof(int32_t));
    }
    return bytes;
}

size_t eng_sketches_pinned_bytes(const struct eng_model_config *c, enum eng_level level,
                                 int micro_count)
{
    if (level == ENG_LEVEL_NONE) {
        return 0;
    }
    const struct counts n = count_all(c, level, micro_count);
    size_t bytes = ENG_RING_SLOTS * rounded(n.slot_bytes);
    for (size_t i = 0; level == ENG_LEVEL_FULL && i < n.size_count; i++) {
        bytes +=
            rounded(chunks_of(n.sizes[i]) * sizeof(struct k_chunk)) + rounded(2 * sizeof(int32_t));
    }
    return bytes;
}

/* Puts `bytes` of pinned memory, filled by the caller, into fresh device memory. */
static enum dev_status upload(dev *d, dev_stream stream, const void *pinned, size_t bytes,
                              const void **out)
{
    void *block = NULL;
    enum dev_status status = dev_malloc(d, stream, bytes, "tap chunks", &block);
    if (status == DEV_OK) {
        status = dev_copy(d, stream, block, pinned, bytes, "tap chunks");
    }
    *out = block;
    return status;
}

static enum dev_status open_tap_table(struct eng_sketches *s, dev_stream stream, size_t elements)
{
    struct eng_tap_table *table = &s->tap[s->tap_sizes];
    const size_t count = chunks_of(elements);
    struct k_chunk *chunks = NULL;
    int32_t *first = NULL;
    const void *on_device = NULL;
    enum dev_status status =
        dev_pinned(s->device, count * sizeof *chunks, "tap chunks", (void **)&chunks);
    if (status == DEV_OK) {
        status = dev_pinned(s->device, 2 * sizeof *first, "tap chunks", (void **)&first);
    }
    if (status != DEV_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t left = elements - i * K_CHUNK;
        chunks[i] = (struct k_chunk){.offset = (int64_t)(i * K_CHUNK),
                                     .index = (int64_t)(i * K_CHUNK),
                                     .count = (int32_t)(left < K_CHUNK ? left : K_CHUNK)};
    }
    first[0] = 0;
    first[1] = (int32_t)count;
    *table = (struct eng_tap_table){.elements = elements, .chunk_count = (int)count};
    status = upload(s->device, stream, chunks, count * sizeof *chunks, &on_device);
    table->chunks = on_device;
    if (status == DEV_OK) {
        status = upload(s->device, stream, first, 2 * sizeof *first, &on_device);
        table->first_chunk = on_device;
    }
    s->tap_sizes++;
    return status;
}

enum eng_status eng_sketches_open(struct eng_sketches *s, dev *d, dev_stream stream,
                                  const eng_model *model, const struct eng_model_config *config,
                                  enum eng_level level, int micro_count, struct eng_error *error)
{
    *s = (struct eng_sketches){.device = d, .level = level, .params = eng_model_params(model)};
    if (level == ENG_LEVEL_NONE) {
        return ENG_OK;
    }
    const struct counts n = count_all(config, level, micro_count);
    s->tensor_count = (size_t)s->params->tensor_count;
    s->tap_count = n.taps;
    s->micro_count = (size_t)micro_count;
    s->slot_bytes = n.slot_bytes;
    s->part_count = n.chunks;
    if (n.tensors != s->tensor_count || n.chunks < (size_t)s->params->chunk_count ||
        (level == ENG_LEVEL_FULL && n.taps != eng_model_tap_count(model))) {
        return eng_fail(error, ENG_EINTERNAL, "sketches: the model has other tensors or taps");
    }
    enum dev_status status =
        dev_malloc(d, stream, n.chunks * sizeof *s->part, "sketch parts", (void **)&s->part);
    for (size_t i = 0; status == DEV_OK && i < ENG_RING_SLOTS; i++) {
        status = dev_malloc(d, stream, n.slot_bytes, "sketch ring", (void **)&s->ring[i]);
        if (status == DEV_OK) {
            status = dev_fill(d, stream, s->ring[i], 0, n.slot_bytes, "sketch ring");
        }
        if (status == DEV_OK) {
            status = dev_pinned(d, n.slot_bytes, "sketches on host", (void **)&s->host[i]);
        }
    }
    for (size_t i = 0; status == DEV_OK && level == ENG_LEVEL_FULL && i < n.size_count; i++) {
        status = open_tap_table(s, stream, n.sizes[i]);
    }
    return eng_train_device(d, status, error);
}

static size_t tensor_offset(const struct eng_sketches *s, enum eng_sketched which)
{
    return (size_t)which * s->tensor_count * sizeof(struct k_sketch);
}

static size_t tap_offset(const struct eng_sketches *s, size_t tap)
{
    const size_t kinds = s->level == ENG_LEVEL_FULL ? ENG_SKETCHED_COUNT : ENG_SKETCHED_COUNT - 1;
    return (kinds * s->tensor_count + tap) * sizeof(struct k_sketch);
}

static size_t input_offset(const struct eng_sketches *s, int micro)
{
    return tap_offset(s, s->tap_count) + (size_t)micro * HASH_WORDS * sizeof(uint32_t);
}

/* A tensor table and the data it describes. */
struct sketched {
    const float *x;
    size_t elements;
    const struct k_chunk *chunks;
    int chunk_count;
    const int32_t *first_chunk;
    size_t tensors;
    const char *what;
};

static enum dev_status enqueue(struct eng_sketches *s, dev_stream stream, const struct sketched *of,
                               struct k_sketch *out)
{
    const size_t chunks = (size_t)of->chunk_count;
    const struct k_sketch_part_args part = {
        .x = of->x, .chunks = of->chunks, .part = s->part, .hash_only = s->level != ENG_LEVEL_FULL};
    const struct dev_span part_spans[] = {{of->x, of->elements * sizeof *of->x, DEV_READ},
                                          {of->chunks, chunks * sizeof *of->chunks, DEV_READ},
                                          {s->part, chunks * sizeof *s->part, DEV_WRITE}};
    const struct k_sketch_fold_args fold = {
        .part = s->part, .first_chunk = of->first_chunk, .out = out};
    const struct dev_span fold_spans[] = {
        {s->part, chunks * sizeof *s->part, DEV_READ},
        {of->first_chunk, (of->tensors + 1) * sizeof *of->first_chunk, DEV_READ},
        {out, of->tensors * sizeof *out, DEV_WRITE}};
    const enum dev_status status = dev_launch(s->device, stream, K_ID_sketch_part, of->chunk_count,
                                              &part, part_spans, 3, of->what);
    return status != DEV_OK ? status
                            : dev_launch(s->device, stream, K_ID_sketch_fold, (int)of->tensors,
                                         &fold, fold_spans, 3, of->what);
}

enum eng_status eng_sketches_tensors(struct eng_sketches *s, dev_stream stream, int slot,
                                     enum eng_sketched which, const float *flat,
                                     struct eng_error *error)
{
    static const char *const names[ENG_SKETCHED_COUNT] = {
        "sketch gradients", "sketch parameters", "sketch first moments", "sketch second moments",
        "sketch updates"};
    if (s->level == ENG_LEVEL_NONE || flat == NULL) {
        return ENG_OK;
    }
    const struct sketched of = {.x = flat,
                                .elements = (size_t)s->params->elements,
                                .chunks = s->params->chunks,
                                .chunk_count = s->params->chunk_count,
                                .first_chunk = s->params->first_chunk,
                                .tensors = s->tensor_count,
                                .what = names[which]};
    void *out = s->ring[slot] + tensor_offset(s, which);
    return eng_train_device(s->device, enqueue(s, stream, &of, out), error);
}

enum eng_status eng_sketches_tap(struct eng_sketches *s, dev_stream stream, int slot, size_t tap,
                                 const float *x, size_t elements, struct eng_error *error)
{
    if (s->level != ENG_LEVEL_FULL) {
        return ENG_OK;
    }
    for (size_t i = 0; tap < s->tap_count && i < s->tap_sizes; i++) {
        const struct eng_tap_table *table = &s->tap[i];
        if (table->elements == elements) {
            const struct sketched of = {.x = x,
                                        .elements = elements,
                                        .chunks = table->chunks,
                                        .chunk_count = table->chunk_count,
                                        .first_chunk = table->first_chunk,
                                        .tensors = 1,
                                        .what = "sketch activation"};
            void *out = s->ring[slot] + tap_offset(s, tap);
            return eng_train_device(s->device, enqueue(s, stream, &of, out), error);
        }
    }
    return eng_fail(error, ENG_EINTERNAL, "sketches: tap %zu has %zu elements, no table", tap,
                    elements);
}

enum eng_status eng_sketches_input(struct eng_sketches *s, dev_stream stream, int slot, int micro,
                                   const int32_t *block, size_t words, struct eng_error *error)
{
    if (s->level == ENG_LEVEL_NONE) {
        return ENG_OK;
    }
    void *out = s->ring[slot] + input_offset(s, micro);
    const struct k_hash_words_args args = {
        .words = (const uint32_t *)block, .out = out, .count = (int64_t)words};
    const struct dev_span spans[] = {{block, words * sizeof *block, DEV_READ},
                                     {out, HASH_WORDS * sizeof(uint32_t), DEV_WRITE}};
    return eng_train_device(
        s->device, dev_launch(s->device, stream, K_ID_hash_words, 1, &args, spans, 2, "hash input"),
        error);
}

enum eng_status eng_sketches_copy(struct eng_sketches *s, dev_stream stream, int slot,
                                  struct eng_error *error)
{
    if (s->level == ENG_LEVEL_NONE) {
        return ENG_OK;
    }
    return eng_train_device(s->device,
                            dev_copy(s->device, stream, s->host[slot], s->ring[slot], s->slot_bytes,
                                     "sketches to host"),
                            error);
}

enum eng_status eng_sketches_host(struct eng_sketches *s, int slot, struct eng_error *error)
{
    if (s->level == ENG_LEVEL_NONE) {
        return ENG_OK;
    }
    return eng_train_device(
        s->device, dev_host(s->device, s->host[slot], s->slot_bytes, DEV_READ, "read sketches"),
        error);
}

const struct k_sketch *eng_sketches_tensor_at(const struct eng_sketches *s, int slot,
                                              enum eng_sketched which, size_t tensor)
{
    const void *at = s->host[slot] + tensor_offset(s, which);
    return (const struct k_sketch *)at + tensor;
}

const struct k_sketch *eng_sketches_tap_at(const struct eng_sketches *s, int slot, size_t tap)
{
    const void *at = s->host[slot] + tap_offset(s, tap);
    return at;
}

const uint32_t *eng_sketches_input_at(const struct eng_sketches *s, int slot, int micro)
{
    const void *at = s->host[slot] + input_offset(s, micro);
    return at;
}
