/* The stream of documents and the steps cut from it.
 * Called by engine/train; must not know the device or the model. */
#include "loader.h"

#include <stdlib.h>
#include <string.h>

#include "eng_features.h"
#include "fault.h"
#include "growth.h"
#include "loader_state.h"
#include "packing.h"

const char *const eng_skip_words[ENG_SKIP_COUNT] = {
#define ENG_ROW_(name, word) [ENG_SKIP_##name] = word,
    ENG_SKIPS(ENG_ROW_)
#undef ENG_ROW_
};

/* ---- the stream ---- */

/* Items of a pass; without shuffling every record once. */
static size_t item_count(const eng_loader *loader)
{
    return loader->shuffle ? loader->files.item_count : loader->files.record_count;
}

/* The stream moves on by one document. */
static void advance(eng_loader *loader)
{
    loader->position.index++;
    loader->position.offset = 0;
    const size_t end = FAULT(loader_epoch_end, item_count(loader));
    if (loader->shuffle && loader->position.index >= end) {
        loader->position.epoch++;
        loader->position.index = 0;
    }
}

static size_t current_record(eng_loader *loader)
{
    const struct eng_position *const p = &loader->position;
    return loader->shuffle ? eng_data_files_record(
                                 &loader->files, eng_order_item(&loader->order, p->epoch, p->index))
                           : p->index;
}

static enum eng_status note_skipped(eng_loader *loader, const struct eng_document *document,
                                    struct eng_error *error)
{
    struct eng_step_batch *const batch = &loader->batch;
    struct eng_skipped *const skipped = eng_grown(loader->skipped, &loader->skipped_capacity,
                                                  batch->skipped_count + 1, sizeof *skipped);
    if (skipped == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for the list of skipped records");
    }
    loader->skipped = skipped;
    strcpy(skipped[batch->skipped_count].id, document->id);
    skipped[batch->skipped_count++].reason = document->skip;
    batch->features |= ENG_FEATURE_skipped;
    if (document->skip == ENG_SKIP_PREFIX) {
        batch->features |= ENG_FEATURE_prefix_broken;
    }
    return ENG_OK;
}

/* The document at the position, past those to skip; NULL when an unshuffled pass is over. */
static enum eng_status peek(eng_loader *loader, const struct eng_document **out,
                            struct eng_error *error)
{
    *out = NULL;
    const size_t count = item_count(loader);
    for (size_t skipped = 0; loader->shuffle || loader->position.index < count; skipped++) {
        const struct eng_document *document = NULL;
        /* One that is placed can stand first in an epoch and last in the next. */
        if (loader->shuffle && skipped > 2 * (count - 1)) {
            return eng_fail(error, ENG_EINPUT,
                            "%s: no record has a learned token within a context of %d tokens",
                            loader->files.files[0].path, loader->batch.context);
        }
        enum eng_status status =
            eng_documents_get(&loader->documents, current_record(loader), &document, error);
        if (status == ENG_OK && document->skip == ENG_SKIP_NOT) {
            *out = document;
            return ENG_OK;
        }
        if (status == ENG_OK) {
            status = note_skipped(loader, document, error);
        }
        if (status != ENG_OK) {
            return status;
        }
        advance(loader);
    }
    return ENG_OK;
}

/* ---- rows ---- */

static uint64_t features_placed(const eng_loader *loader, const struct eng_document *document,
                                const struct eng_piece *piece)
{
    uint64_t features = document->features;
    features |= loader->position.epoch > 0 ? ENG_FEATURE_two_epochs : 0;
    features |= piece->count * 2 > (size_t)loader->batch.context ? ENG_FEATURE_late_positions : 0;
    features |= piece->first > 0 ? ENG_FEATURE_split : 0;
    return features;
}

/* Puts what is left of the document at the position, or what of it has room, into a row. */
static enum eng_status place(eng_loader *loader, struct eng_row *row,
                             const struct eng_document *document, struct eng_error *error)
{
    struct eng_step_batch *const batch = &loader->batch;
    struct eng_record *const records = eng_grown(loader->records, &loader->record_capacity,
                                                 batch->record_count + 1, sizeof *records);
    if (records == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for the list of records");
    }
    loader->records = records;
    struct eng_record *const record = &records[batch->record_count++];
    const size_t room = (size_t)(row->context - row->used);
    struct eng_piece piece = {.ids = document->ids,
                              .supervised = document->supervised,
                              .first = loader->position.offset,
                              .total = document->count};
    piece.count = piece.total - piece.first;
    piece.count = piece.count < room ? piece.count : room;
    *record = (struct eng_record){
        .epoch = (uint32_t)loader->position.epoch,
        .text_hash = document->text_hash,
        .tokens_hash = eng_fnv1a(piece.ids + piece.first, piece.count * sizeof *piece.ids),
        .count = (int)piece.count};
    strcpy(record->id, document->id);
    batch->features |= features_placed(loader, document, &piece);
    eng_packing_place(row, &piece);
    loader->position.offset += FAULT(loader_rest, piece.count);
    if (loader->position.offset >= piece.total) {
        advance(loader);
    }
    return ENG_OK;
}

/* One document after another while the next one fits whole; without packing one. */
static enum eng_status fill_next(eng_loader *loader, struct eng_row *row, struct eng_error *error)
{
    while (loader->packing != ENG_PACK_NONE || row->documents == 0) {
        const struct eng_document *document = NULL;
        enum eng_status status = peek(loader, &document, error);
        if (status != ENG_OK) {
            return status;
        }
        if (document == NULL || !eng_packing_fits(row, document->count)) {
            FAULT(loader_wait, (void)0);
            break;
        }
        status = place(loader, row, document, error);
        if (status != ENG_OK) {
            return status;
        }
    }
    return ENG_OK;
}

/* Pieces of documents until the row is full. */
static enum eng_status fill_wrapped(eng_loader *loader, struct eng_row *row,
                                    struct eng_error *error)
{
    while (row->used < row->context) {
        const struct eng_document *document = NULL;
        enum eng_status status = peek(loader, &document, error);
        if (status != ENG_OK || document == NULL) {
            return status;
        }
        status = place(loader, row, document, error);
        if (status != ENG_OK) {
            return status;
        }
    }
    return ENG_OK;
}

/* Each document into the first row of the step that takes it, until one finds none. */
static enum eng_status fill_first_fit(eng_loader *loader, struct eng_error *error)
{
    for (;;) {
        const struct eng_document *document = NULL;
        enum eng_status status = peek(loader, &document, error);
        if (status != ENG_OK || document == NULL) {
            return status;
        }
        const size_t chosen =
            eng_packing_first_fit(loader->rows, loader->row_count, document->count);
        if (chosen == loader->row_count) {
            return ENG_OK;
        }
        if (chosen + 1 < loader->row_count && loader->rows[chosen + 1].documents > 0) {
            loader->batch.features |= ENG_FEATURE_refit;
        }
        status = place(loader, &loader->rows[chosen], document, error);
        if (status != ENG_OK) {
            return status;
        }
    }
}

static enum eng_status fill_rows(eng_loader *loader, struct eng_error *error)
{
    enum eng_status status = ENG_OK;
    for (size_t r = 0; r < loader->row_count; r++) {
        eng_packing_begin(&loader->rows[r]);
    }
    if (loader->packing == ENG_PACK_FIRST_FIT) {
        return fill_first_fit(loader, error);
    }
    for (size_t r = 0; status == ENG_OK && r < loader->row_count; r++) {
        status = loader->packing == ENG_PACK_WRAPPED ? fill_wrapped(loader, &loader->rows[r], error)
                                                     : fill_next(loader, &loader->rows[r], error);
    }
    return status;
}

/* ---- steps ---- */

static void finish_step(eng_loader *loader)
{
    struct eng_step_batch *const batch = &loader->batch;
    for (int m = 1; m < batch->micro_count; m++) {
        if (batch->micro_supervised[m] != batch->micro_supervised[0]) {
            batch->features |= ENG_FEATURE_accum_unequal;
        }
    }
    batch->skipped = loader->skipped;
    batch->records = loader->records;
}

/* Padding and labels of a filled row. */
static void finish_row(eng_loader *loader, struct eng_row *row, int micro)
{
    struct eng_step_batch *const batch = &loader->batch;
    if (row->documents > 0) {
        batch->rows_filled++;
        batch->features |= row->used < row->context ? ENG_FEATURE_padded : 0;
        batch->features |= row->documents > 1 ? ENG_FEATURE_packed : 0;
    }
    const int supervised = eng_packing_finish(row);
    batch->micro_supervised[micro] += supervised;
    batch->supervised += supervised;
}

static enum eng_status make_step(eng_loader *loader, struct eng_error *error)
{
    struct eng_step_batch *const batch = &loader->batch;
    batch->supervised = batch->rows_filled = 0;
    batch->record_count = batch->skipped_count = 0;
    batch->features = loader->standing_features;
    enum eng_status status = fill_rows(loader, error);
    for (int m = 0; status == ENG_OK && m < batch->micro_count; m++) {
        batch->micro_supervised[m] = 0;
        for (int r = 0; r < batch->rows; r++) {
            finish_row(loader, &loader->rows[m * batch->rows + r], m);
        }
    }
    FAULT(loader_step_end, (void)0);
    if (status == ENG_OK) {
        finish_step(loader);
    }
    return status;
}

enum eng_status eng_loader_next(eng_loader *loader, const struct eng_step_batch **out,
                                struct eng_error *error)
{
    const unsigned before = eng_memory_enter(loader->memory, ENG_COMPONENT_data);
    const enum eng_status status = make_step(loader, error);
    eng_memory_leave(loader->memory, before);
    if (status == ENG_OK) {
        *out = &loader->batch;
    }
    return status;
}

struct eng_position eng_loader_position(const eng_loader *loader)
{
    return loader->position;
}

/* Only a document that is being split can be entered behind its beginning. */
static enum eng_status check_offset(eng_loader *loader, struct eng_error *error)
{
    const struct eng_document *document = NULL;
    const enum eng_status status =
        eng_documents_get(&loader->documents, current_record(loader), &document, error);
    if (status != ENG_OK) {
        return status;
    }
    if (loader->packing != ENG_PACK_WRAPPED || document->skip != ENG_SKIP_NOT ||
        loader->position.offset >= document->count) {
        const unsigned long long offset = loader->position.offset;
        loader->position.offset = 0;
        return eng_fail(error, ENG_EINPUT, "no row ends behind token %llu of document %.128s",
                        offset, document->id);
    }
    return ENG_OK;
}

enum eng_status eng_loader_seek(eng_loader *loader, struct eng_position position,
                                struct eng_error *error)
{
    const size_t count = item_count(loader);
    const size_t end = loader->shuffle ? count : count + 1;
    if (position.index >= end || (!loader->shuffle && position.epoch > 0) ||
        (position.index == count && position.offset > 0)) {
        return eng_fail(
            error, ENG_EINPUT, "no document %llu of epoch %llu: an epoch of the data files has %zu",
            (unsigned long long)position.index, (unsigned long long)position.epoch, count);
    }
    loader->position = position;
    return position.offset == 0 ? ENG_OK : check_offset(loader, error);
}

size_t eng_loader_record_count(const eng_loader *loader)
{
    return loader->files.record_count;
}
