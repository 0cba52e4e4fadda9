/* Order, truncation, packing, labels. See ref_rows.h. */
#include "ref_rows.h"

#include <stdlib.h>
#include <string.h>

struct orc_ref_stream {
    struct orc_ref_documents documents;
    struct orc_ref_rows_rule rule;
    uint64_t epoch;
    size_t *items, item_count; /* the documents of an epoch, in the order of the files */
    size_t *order, at;         /* next one to read: items[order[at]] */
    bool held;                 /* next was read and is not placed to its end */
    struct orc_ref_placed next;
    size_t used; /* tokens of next that are placed */
};

/* ---- order ---- */

static uint64_t mixed(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static uint64_t split_mix(uint64_t *state)
{
    return mixed(*state += UINT64_C(0x9E3779B97F4A7C15));
}

static uint64_t start_of_epoch(uint64_t seed, uint64_t epoch)
{
    return seed * UINT64_C(0x9E3779B97F4A7C15) + epoch * UINT64_C(0xD1B54A32D192ED03);
}

void orc_ref_order_epoch(uint64_t seed, uint64_t epoch, size_t count, size_t *p)
{
    uint64_t state = start_of_epoch(seed, epoch);
    for (size_t i = 0; i < count; i++)
        p[i] = i;
    for (size_t i = count; i-- > 1;) {
        const size_t j = (size_t)(split_mix(&state) % (i + 1));
        const size_t kept = p[i];
        p[i] = p[j];
        p[j] = kept;
    }
}

/* E of the recipes' page, for numbers below side * side. */
static uint64_t enciphered(uint64_t x, uint64_t side, const uint64_t keys[6])
{
    uint64_t left = x / side, right = x % side;
    for (int round = 0; round < 6; round++) {
        const uint64_t next = left ^ mixed(right + keys[round]) % side;
        left = right;
        right = next;
    }
    return left * side + right;
}

void orc_ref_order_cipher(uint64_t seed, uint64_t epoch, size_t count, size_t *p)
{
    uint64_t keys[6], side = 2, state = start_of_epoch(seed, epoch);
    while (side * side < count)
        side *= 2;
    for (int round = 0; round < 6; round++)
        keys[round] = split_mix(&state);
    for (size_t n = 0; n < count; n++) {
        uint64_t x = n;
        do
            x = enciphered(x, side, keys);
        while (x >= count);
        p[n] = (size_t)x;
    }
}

/* ---- log ---- */

void orc_ref_row_log_clear(struct orc_ref_row_log *log)
{
    log->placed_count = log->skipped_count = log->packed_rows = log->padded_rows = 0;
    log->split = log->refit = 0;
    memset(log->skips, 0, sizeof log->skips);
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

const char *const orc_ref_skip_words[ORC_REF_SKIPS] = {"too_long", "unlearned", "prefix"};

static bool log_skipped(struct orc_ref_row_log *log, const struct orc_ref_document *document,
                        enum orc_ref_skip reason)
{
    void *list = log->skipped;
    const bool room = make_room(&list, log->skipped_count, &log->skipped_capacity,
                                sizeof *log->skipped);
    log->skipped = list;
    if (room) {
        log->skipped[log->skipped_count++] = (struct orc_ref_skipped){document, reason};
        log->skips[reason]++;
    }
    return room;
}

/* ---- stream ---- */

static void start_epoch(struct orc_ref_stream *stream, uint64_t epoch)
{
    const struct orc_ref_rows_rule *const rule = &stream->rule;
    stream->epoch = epoch;
    stream->at = 0;
    if (!rule->shuffle)
        for (size_t i = 0; i < stream->item_count; i++)
            stream->order[i] = i;
    else if (rule->order == ORC_REF_CIPHER)
        orc_ref_order_cipher(rule->seed, epoch, stream->item_count, stream->order);
    else
        orc_ref_order_epoch(rule->seed, epoch, stream->item_count, stream->order);
}

static size_t weight_of(const struct orc_ref_rows_rule *rule, size_t file)
{
    const bool known = file < rule->file_count && rule->weights != NULL;
    return known && rule->shuffle ? rule->weights[file] : 1;
}

/* Writes the items, or only counts them when list is NULL. */
static size_t list_items(const struct orc_ref_documents *documents,
                         const struct orc_ref_rows_rule *rule, size_t *list)
{
    size_t count = 0;
    for (size_t first = 0, end; first < documents->count; first = end) {
        const size_t file = documents->list[first].file;
        for (end = first; end < documents->count && documents->list[end].file == file;)
            end++;
        for (size_t copy = 0; copy < weight_of(rule, file); copy++)
            for (size_t i = first; i < end; i++, count++)
                if (list != NULL)
                    list[count] = i;
    }
    return count;
}

struct orc_ref_stream *orc_ref_stream_create(const struct orc_ref_documents *documents,
                                             const struct orc_ref_rows_rule *rule)
{
    struct orc_ref_stream *const stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->documents = *documents;
    stream->rule = *rule;
    stream->item_count = list_items(documents, rule, NULL);
    stream->items = calloc(stream->item_count + 1, sizeof *stream->items);
    stream->order = calloc(stream->item_count + 1, sizeof *stream->order);
    if (stream->items == NULL || stream->order == NULL) {
        orc_ref_stream_destroy(stream);
        return NULL;
    }
    (void)list_items(documents, rule, stream->items);
    start_epoch(stream, 0);
    return stream;
}

void orc_ref_stream_destroy(struct orc_ref_stream *stream)
{
    if (stream == NULL)
        return;
    free(stream->items);
    free(stream->order);
    free(stream);
}

/* Applies the truncation rule; false when the document is dropped. */
static bool truncate(const struct orc_ref_rows_rule *rule, struct orc_ref_placed *placed)
{
    if (placed->count <= rule->context || rule->packing == ORC_REF_WRAPPED)
        return true;
    if (rule->truncate == ORC_REF_DROP)
        return false;
    const size_t cut = placed->count - rule->context;
    if (rule->truncate == ORC_REF_KEEP_END) {
        placed->ids += cut;
        placed->supervised += cut;
    }
    placed->count = rule->context;
    placed->cut = true;
    return true;
}

static bool can_be_learned(const struct orc_ref_placed *placed)
{
    for (size_t i = 1; i < placed->count; i++)
        if (placed->supervised[i])
            return true;
    return false;
}

static enum orc_ref_status refuse(const struct orc_ref_stream *stream,
                                  const struct orc_ref_document *document, const char *cause,
                                  struct orc_ref_error *error)
{
    const char *const file =
        document->file < stream->rule.file_count ? stream->rule.files[document->file] : "data";
    return orc_ref_fail(error, ORC_REF_BAD, "%s:%zu: %s", file, document->line, cause);
}

/* Whether stream->next may be placed; else it is logged as skipped, or refused. */
static enum orc_ref_status admit(struct orc_ref_stream *stream, struct orc_ref_row_log *log,
                                 struct orc_ref_error *error)
{
    const struct orc_ref_rows_rule *const rule = &stream->rule;
    const struct orc_ref_document *const document = stream->next.document;
    enum orc_ref_skip reason = ORC_REF_SKIPS; /* none */
    if (!truncate(rule, &stream->next)) {
        reason = ORC_REF_TOO_LONG;
    } else if (!can_be_learned(&stream->next)) {
        reason = ORC_REF_UNLEARNED;
        if (rule->on_unlearned == ORC_REF_REFUSE_UNLEARNED)
            return refuse(stream, document, "no token of it can be learned", error);
    } else if (document->no_prefix && rule->on_prefix != ORC_REF_ANY_PREFIX) {
        reason = ORC_REF_NO_PREFIX;
        if (rule->on_prefix == ORC_REF_REFUSE_PREFIX)
            return refuse(stream, document, "its prompt is not a prefix", error);
    }
    const bool skip = reason != ORC_REF_SKIPS;
    if (skip && !log_skipped(log, document, reason))
        return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory");
    stream->held = !skip;
    return ORC_REF_OK;
}

/* Reads on until stream->next holds a document that can be placed. *found is false at the end. */
static enum orc_ref_status read_next(struct orc_ref_stream *stream, struct orc_ref_row_log *log,
                                     bool *found, struct orc_ref_error *error)
{
    *found = stream->held;
    for (size_t refused = 0; !stream->held; refused++) {
        if (stream->at == stream->item_count) {
            if (!stream->rule.shuffle)
                return ORC_REF_OK;
            if (refused >= stream->item_count)
                return orc_ref_fail(error, ORC_REF_BAD,
                                    "%s: no document can be trained on",
                                    stream->rule.file_count > 0 ? stream->rule.files[0]
                                                                : "training files");
            start_epoch(stream, stream->epoch + 1);
        }
        const struct orc_ref_document *const document =
            &stream->documents.list[stream->items[stream->order[stream->at++]]];
        stream->used = 0;
        stream->next = (struct orc_ref_placed){document, stream->epoch, document->ids,
                                               document->supervised, document->count, false};
        const enum orc_ref_status status = admit(stream, log, error);
        if (status != ORC_REF_OK)
            return status;
    }
    *found = true;
    return ORC_REF_OK;
}

/* ---- rows ---- */

/* A row on its way. */
struct open_row {
    struct orc_ref_place place;
    size_t used; /* positions */
    int32_t documents;
};

/* Writes one position. */
static void write_position(const struct open_row *row, size_t context, size_t column, int32_t id,
                           int32_t label, size_t position)
{
    struct orc_ref_batch *const batch = row->place.batch;
    const size_t at = row->place.row * context + column;
    batch->ids[at] = id;
    batch->labels[at] = label;
    batch->positions[at] = (int32_t)position;
    batch->segments[at] = row->documents;
}

/* Puts what is left of stream->next into a row, or as much of it as there is room for. */
static enum orc_ref_status place(struct orc_ref_stream *stream, struct open_row *row,
                                 struct orc_ref_row_log *log, struct orc_ref_error *error)
{
    const struct orc_ref_placed *const whole = &stream->next;
    const size_t context = stream->rule.context, first = stream->used;
    size_t end = whole->count;
    if (end - first > context - row->used)
        end = first + context - row->used;
    for (size_t i = first; i < end; i++) {
        const bool learn = i + 1 < whole->count && whole->supervised[i + 1];
        write_position(row, context, row->used + i - first, whole->ids[i],
                       learn ? whole->ids[i + 1] : ORC_REF_IGNORED, i - first);
    }
    struct orc_ref_placed piece = *whole;
    piece.ids += first;
    piece.supervised += first;
    piece.count = end - first;
    if (!log_placed(log, &piece))
        return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory");
    log->split += first > 0;
    row->used += end - first;
    row->documents++;
    stream->used = end;
    stream->held = end < whole->count;
    return ORC_REF_OK;
}

static bool has_room(const struct orc_ref_stream *stream, const struct open_row *row)
{
    return stream->next.count <= stream->rule.context - row->used;
}

/* Fills one row by the rules that look at one row at a time. */
static enum orc_ref_status fill_row(struct orc_ref_stream *stream, struct open_row *row,
                                    struct orc_ref_row_log *log, struct orc_ref_error *error)
{
    const bool wrapped = stream->rule.packing == ORC_REF_WRAPPED;
    for (;;) {
        bool found;
        if (stream->rule.packing == ORC_REF_ONE_A_ROW && row->documents > 0)
            return ORC_REF_OK;
        if (wrapped && row->used == stream->rule.context)
            return ORC_REF_OK;
        enum orc_ref_status status = read_next(stream, log, &found, error);
        if (status != ORC_REF_OK || !found || (!wrapped && !has_room(stream, row)))
            return status;
        status = place(stream, row, log, error);
        if (status != ORC_REF_OK)
            return status;
    }
}

/* Fills all rows at once, each document going into the first that has room. */
static enum orc_ref_status fill_first_fit(struct orc_ref_stream *stream, struct open_row *rows,
                                          size_t count, struct orc_ref_row_log *log,
                                          struct orc_ref_error *error)
{
    for (;;) {
        bool found;
        size_t r = 0;
        enum orc_ref_status status = read_next(stream, log, &found, error);
        if (status != ORC_REF_OK || !found)
            return status;
        while (r < count && !has_room(stream, &rows[r]))
            r++;
        if (r == count)
            return ORC_REF_OK;
        log->refit += r + 1 < count && rows[r + 1].documents > 0;
        status = place(stream, &rows[r], log, error);
        if (status != ORC_REF_OK)
            return status;
    }
}

static void finish_row(const struct orc_ref_stream *stream, struct open_row *row,
                       struct orc_ref_row_log *log)
{
    const size_t context = stream->rule.context;
    for (size_t column = row->used; column < context; column++)
        write_position(row, context, column, stream->rule.pad, ORC_REF_IGNORED,
                       column - row->used);
    log->packed_rows += row->documents > 1;
    log->padded_rows += row->used < context;
}

enum orc_ref_status orc_ref_stream_step(struct orc_ref_stream *stream,
                                        const struct orc_ref_place *rows, size_t count,
                                        struct orc_ref_row_log *log, size_t *filled,
                                        struct orc_ref_error *error)
{
    enum orc_ref_status status = ORC_REF_OK;
    struct open_row *const open = calloc(count + 1, sizeof *open);
    if (open == NULL)
        return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory");
    for (size_t r = 0; r < count; r++)
        open[r].place = rows[r];
    if (stream->rule.packing == ORC_REF_FIRST_FIT)
        status = fill_first_fit(stream, open, count, log, error);
    else
        for (size_t r = 0; status == ORC_REF_OK && r < count; r++)
            status = fill_row(stream, &open[r], log, error);
    *filled = 0;
    while (status == ORC_REF_OK && *filled < count && open[*filled].documents > 0)
        finish_row(stream, &open[(*filled)++], log);
    free(open);
    return status;
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
