/* Order, truncation, packing, labels. See ref_rows.h. */
#include "ref_rows.h"

#include <stdlib.h>
#include <string.h>

struct orc_ref_stream {
    struct orc_ref_documents documents;
    struct orc_ref_rows_rule rule;
    uint64_t epoch;
    size_t *order, at; /* next document to read: order[at] of the epoch */
    bool held;         /* next was read but did not fit yet */
    struct orc_ref_placed next;
};

/* ---- order ---- */

static uint64_t split_mix(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

void orc_ref_order_epoch(uint64_t seed, uint64_t epoch, size_t count, size_t *p)
{
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + epoch * UINT64_C(0xD1B54A32D192ED03);
    for (size_t i = 0; i < count; i++)
        p[i] = i;
    for (size_t i = count; i-- > 1;) {
        const size_t j = (size_t)(split_mix(&state) % (i + 1));
        const size_t kept = p[i];
        p[i] = p[j];
        p[j] = kept;
    }
}

/* ---- log ---- */

void orc_ref_row_log_clear(struct orc_ref_row_log *log)
{
    log->placed_count = log->skipped_count = log->packed_rows = log->padded_rows = 0;
}

void orc_ref_row_log_fini(struct orc_ref_row_log *log)
{
    free(log->placed);
    free(log->skipped);
    *log = (struct orc_ref_row_log){0};
}

/* Makes room for one more element of `size` bytes. */
static bool make_room(void **list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    const size_t larger = *capacity * 2 + 16;
    void *const memory = realloc(*list, larger * size);
    if (memory == NULL)
        return false;
    *list = memory;
    *capacity = larger;
    return true;
}

static bool log_placed(struct orc_ref_row_log *log, const struct orc_ref_placed *placed)
{
    void *list = log->placed;
    const bool room = make_room(&list, log->placed_count, &log->placed_capacity, sizeof *placed);
    log->placed = list;
    if (room)
        log->placed[log->placed_count++] = *placed;
    return room;
}

static bool log_skipped(struct orc_ref_row_log *log, const struct orc_ref_document *document)
{
    void *list = log->skipped;
    const bool room = make_room(&list, log->skipped_count, &log->skipped_capacity,
                                sizeof *log->skipped);
    log->skipped = list;
    if (room)
        log->skipped[log->skipped_count++] = document;
    return room;
}

/* ---- stream ---- */

struct orc_ref_stream *orc_ref_stream_create(const struct orc_ref_documents *documents,
                                             const struct orc_ref_rows_rule *rule)
{
    struct orc_ref_stream *const stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->documents = *documents;
    stream->rule = *rule;
    stream->order = calloc(documents->count + 1, sizeof *stream->order);
    if (stream->order == NULL) {
        free(stream);
        return NULL;
    }
    for (size_t i = 0; i < documents->count; i++)
        stream->order[i] = i;
    if (rule->shuffle)
        orc_ref_order_epoch(rule->seed, 0, documents->count, stream->order);
    return stream;
}

void orc_ref_stream_destroy(struct orc_ref_stream *stream)
{
    if (stream == NULL)
        return;
    free(stream->order);
    free(stream);
}

/* Applies the truncation rule; false when the document is to be skipped. */
static bool truncate(const struct orc_ref_rows_rule *rule, struct orc_ref_placed *placed)
{
    if (placed->count > rule->context) {
        if (rule->truncate == ORC_REF_DROP)
            return false;
        const size_t cut = placed->count - rule->context;
        if (rule->truncate == ORC_REF_KEEP_END) {
            placed->ids += cut;
            placed->supervised += cut;
        }
        placed->count = rule->context;
    }
    for (size_t i = 1; i < placed->count; i++)
        if (placed->supervised[i])
            return true;
    return false;
}

/* Reads on until stream->next holds a document that can be placed. *found is false at the end. */
static enum orc_ref_status read_next(struct orc_ref_stream *stream, struct orc_ref_row_log *log,
                                     bool *found, struct orc_ref_error *error)
{
    *found = stream->held;
    for (size_t refused = 0; !stream->held; refused++) {
        if (stream->at == stream->documents.count) {
            if (!stream->rule.shuffle)
                return ORC_REF_OK;
            if (refused >= stream->documents.count)
                return orc_ref_fail(error, ORC_REF_BAD,
                                    "no document of the training files can be trained on");
            stream->at = 0;
            orc_ref_order_epoch(stream->rule.seed, ++stream->epoch, stream->documents.count,
                                stream->order);
        }
        const struct orc_ref_document *const document =
            &stream->documents.list[stream->order[stream->at++]];
        stream->next = (struct orc_ref_placed){document, stream->epoch, document->ids,
                                               document->supervised, document->count};
        stream->held = truncate(&stream->rule, &stream->next);
        if (!stream->held && !log_skipped(log, document))
            return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory");
    }
    *found = true;
    return ORC_REF_OK;
}

/* Writes the positions of a document from `at` on. */
static void place(struct orc_ref_batch *batch, size_t at, const struct orc_ref_placed *placed,
                  int32_t segment)
{
    for (size_t i = 0; i < placed->count; i++) {
        const bool learn = i + 1 < placed->count && placed->supervised[i + 1];
        batch->ids[at + i] = placed->ids[i];
        batch->labels[at + i] = learn ? placed->ids[i + 1] : ORC_REF_IGNORED;
        batch->positions[at + i] = (int32_t)i;
        batch->segments[at + i] = segment;
    }
}

static void pad(struct orc_ref_batch *batch, size_t at, size_t count, int32_t id, int32_t segment)
{
    for (size_t i = 0; i < count; i++) {
        batch->ids[at + i] = id;
        batch->labels[at + i] = ORC_REF_IGNORED;
        batch->positions[at + i] = (int32_t)i;
        batch->segments[at + i] = segment;
    }
}

enum orc_ref_status orc_ref_stream_row(struct orc_ref_stream *stream, struct orc_ref_batch *batch,
                                       size_t row, struct orc_ref_row_log *log, bool *filled,
                                       struct orc_ref_error *error)
{
    const size_t context = stream->rule.context, start = row * context;
    size_t used = 0;
    int32_t documents = 0;
    while (documents == 0 || stream->rule.packing) {
        bool found;
        const enum orc_ref_status status = read_next(stream, log, &found, error);
        if (status != ORC_REF_OK)
            return status;
        if (!found || stream->next.count > context - used)
            break;
        place(batch, start + used, &stream->next, documents);
        if (!log_placed(log, &stream->next))
            return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory");
        used += stream->next.count;
        documents++;
        stream->held = false;
    }
    *filled = documents > 0;
    if (!*filled)
        return ORC_REF_OK;
    pad(batch, start + used, context - used, stream->rule.pad, documents);
    log->packed_rows += documents > 1;
    log->padded_rows += used < context;
    return ORC_REF_OK;
}

bool orc_ref_batch_init(struct orc_ref_batch *batch, size_t rows, size_t context)
{
    const size_t count = rows * context;
    *batch = (struct orc_ref_batch){.rows = rows, .context = context};
    batch->ids = calloc(4 * count + 1, sizeof *batch->ids);
    if (batch->ids == NULL)
        return false;
    batch->labels = batch->ids + count;
    batch->positions = batch->labels + count;
    batch->segments = batch->positions + count;
    return true;
}

void orc_ref_batch_fini(struct orc_ref_batch *batch)
{
    free(batch->ids);
    *batch = (struct orc_ref_batch){0};
}
