/* The stream of documents and the steps cut from it.
 * Called by engine/train; must not know the device or the model. */
#include "loader.h"

#include <stdlib.h>
#include <string.h>

#include "data_files.h"
#include "documents.h"
#include "eng_features.h"
#include "fault.h"
#include "growth.h"
#include "layout.h"
#include "order.h"
#include "packing.h"
#include "tokenizer.h"

struct skipped_id {
    char text[128];
};

struct eng_loader {
    struct eng_data_files files;
    eng_tokenizer *tokenizer;
    bool borrowed; /* the tokenizer is another loader's */
    struct eng_documents documents;
    bool packing, shuffle;
    uint64_t seed;
    uint32_t *order; /* of order_epoch; NULL without shuffling */
    uint64_t order_epoch;
    struct eng_position position;
    uint64_t standing_features; /* of the options alone */

    struct eng_step_batch batch;
    int32_t pad;
    int32_t *columns;    /* the five arrays of the batch, one behind the other */
    uint8_t *supervised; /* of the row being filled */
    struct eng_record *records;
    size_t record_capacity;
    struct skipped_id *skipped;
    size_t skipped_count, skipped_capacity;
    const char **skipped_ids;
    size_t skipped_id_capacity;
};

static enum eng_status check_options(const struct eng_loader_options *options,
                                     struct eng_error *error)
{
    if (options->context < 2) {
        return eng_fail(error, ENG_EUSAGE, "context %d is too small: at least 2 are needed",
                        options->context);
    }
    if (options->rows < 1 || options->micro_count < 1) {
        return eng_fail(error, ENG_EUSAGE, "%d rows in %d micro-batches make no step",
                        options->rows, options->micro_count);
    }
    const double columns =
        (double)options->rows * (double)options->micro_count * (double)options->context;
    if (columns > (double)INT32_MAX) {
        return eng_fail(error, ENG_EUSAGE, "a step of %.0f tokens is too large", columns);
    }
    return ENG_OK;
}

static enum eng_status open_text(eng_loader *loader, const struct eng_loader_options *options,
                                 struct eng_error *error)
{
    struct eng_documents *const documents = &loader->documents;
    enum eng_status status = eng_layout_find(options->template_name, &documents->layout, error);
    if (status == ENG_OK && options->lender != NULL) {
        loader->borrowed = true;
        loader->tokenizer = options->lender->tokenizer;
    } else if (status == ENG_OK) {
        status = eng_tokenizer_open(options->tokenizer_path, &loader->tokenizer, error);
    }
    if (status != ENG_OK) {
        return status;
    }
    const int size = eng_tokenizer_size(loader->tokenizer);
    if (size != options->vocab) {
        return eng_fail(error, ENG_EUSAGE, "%s has %d tokens, but the model's vocabulary has %d",
                        options->tokenizer_path, size, options->vocab);
    }
    loader->pad = eng_tokenizer_control_id(loader->tokenizer, options->pad_token);
    if (loader->pad < 0) {
        return eng_fail(error, ENG_EUSAGE, "pad token '%s' is no control token of %s",
                        options->pad_token, options->tokenizer_path);
    }
    documents->end_of_turn =
        eng_tokenizer_control_id(loader->tokenizer, eng_layout_end_of_turn(documents->layout));
    if (documents->end_of_turn == loader->pad) {
        loader->standing_features |= ENG_FEATURE_pad_is_eos;
    }
    return ENG_OK;
}

static enum eng_status open_files(eng_loader *loader, const struct eng_loader_options *options,
                                  struct eng_error *error)
{
    struct eng_documents *const documents = &loader->documents;
    enum eng_status status =
        eng_data_files_open(&loader->files, options->files, options->file_count, error);
    if (status != ENG_OK) {
        return status;
    }
    if (loader->files.line_count == 0 || loader->files.line_count > UINT32_MAX) {
        return eng_fail(error, ENG_EINPUT, "%s: %zu records in %zu data files",
                        options->file_count > 0 ? options->files[0] : "no file",
                        loader->files.line_count, options->file_count);
    }
    documents->files = &loader->files;
    documents->tokenizer = loader->tokenizer;
    documents->mask = options->mask;
    documents->truncate = options->truncate;
    documents->context = (size_t)options->context;
    return eng_documents_check(documents, error);
}

static enum eng_status make_arrays(eng_loader *loader, const struct eng_loader_options *options,
                                   struct eng_error *error)
{
    struct eng_step_batch *const batch = &loader->batch;
    batch->rows = options->rows;
    batch->context = options->context;
    batch->micro_count = options->micro_count;
    const size_t columns =
        (size_t)options->rows * (size_t)options->micro_count * (size_t)options->context;
    loader->columns = calloc(columns, 5 * sizeof *loader->columns);
    loader->supervised = calloc((size_t)options->context, 1);
    batch->micro_supervised = calloc((size_t)options->micro_count, sizeof *batch->micro_supervised);
    if (loader->shuffle) {
        loader->order = calloc(loader->files.line_count, sizeof *loader->order);
    }
    if (loader->columns == NULL || loader->supervised == NULL || batch->micro_supervised == NULL ||
        (loader->shuffle && loader->order == NULL)) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for steps of %zu tokens", columns);
    }
    batch->ids = loader->columns;
    batch->labels = batch->ids + columns;
    batch->positions = batch->labels + columns;
    batch->segments = batch->positions + columns;
    batch->first = batch->segments + columns;
    if (loader->shuffle) {
        eng_order_fill(loader->order, loader->files.line_count, loader->seed, 0);
    }
    return ENG_OK;
}

enum eng_status eng_loader_open(const struct eng_loader_options *options, eng_loader **out,
                                struct eng_error *error)
{
    enum eng_status status = check_options(options, error);
    if (status != ENG_OK) {
        return status;
    }
    eng_loader *const loader = calloc(1, sizeof *loader);
    if (loader == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for a loader");
    }
    loader->packing = options->packing;
    loader->shuffle = options->shuffle;
    loader->seed = options->seed;
    loader->standing_features = options->micro_count > 1 ? ENG_FEATURE_accum : 0;
    status = open_text(loader, options, error);
    if (status == ENG_OK) {
        status = open_files(loader, options, error);
    }
    if (status == ENG_OK) {
        status = make_arrays(loader, options, error);
    }
    if (status == ENG_OK) {
        *out = loader;
    } else {
        eng_loader_close(loader);
    }
    return status;
}

void eng_loader_close(eng_loader *loader)
{
    if (loader != NULL) {
        eng_documents_fini(&loader->documents);
        eng_tokenizer_close(loader->borrowed ? NULL : loader->tokenizer);
        eng_data_files_close(&loader->files);
        free(loader->order);
        free(loader->columns);
        free(loader->supervised);
        free(loader->batch.micro_supervised);
        free(loader->records);
        free(loader->skipped);
        free(loader->skipped_ids);
        free(loader);
    }
}

/* The stream moves on by one record. */
static void advance(eng_loader *loader)
{
    loader->position.index++;
    const size_t end = FAULT(loader_epoch_end, loader->files.line_count);
    if (loader->shuffle && loader->position.index >= end) {
        loader->position.epoch++;
        loader->position.index = 0;
    }
}

static size_t current_record(eng_loader *loader)
{
    if (!loader->shuffle) {
        return loader->position.index;
    }
    if (loader->order_epoch != loader->position.epoch) {
        loader->order_epoch = loader->position.epoch;
        eng_order_fill(loader->order, loader->files.line_count, loader->seed, loader->order_epoch);
    }
    return loader->order[loader->position.index];
}

static enum eng_status note_skipped(eng_loader *loader, const struct eng_document *document,
                                    struct eng_error *error)
{
    struct skipped_id *const skipped = eng_grown(loader->skipped, &loader->skipped_capacity,
                                                 loader->skipped_count + 1, sizeof *skipped);
    if (skipped == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for the list of skipped records");
    }
    loader->skipped = skipped;
    strcpy(skipped[loader->skipped_count++].text, document->id);
    loader->batch.features |= ENG_FEATURE_skipped;
    return ENG_OK;
}

/* The document at the position, past those to skip; NULL when an unshuffled pass is over. */
static enum eng_status peek(eng_loader *loader, const struct eng_document **out,
                            struct eng_error *error)
{
    *out = NULL;
    const size_t count = loader->files.line_count;
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
        if (status == ENG_OK && !document->skipped) {
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
    *record = (struct eng_record){.epoch = (uint32_t)loader->position.epoch,
                                  .text_hash = document->text_hash,
                                  .tokens_hash = document->tokens_hash,
                                  .count = (int)document->count};
    strcpy(record->id, document->id);
    batch->features |= document->features;
    if (loader->position.epoch > 0) {
        batch->features |= ENG_FEATURE_two_epochs;
    }
    eng_packing_place(row, document->ids, document->supervised, document->count);
    return ENG_OK;
}

static enum eng_status fill_row(eng_loader *loader, struct eng_row *row, struct eng_error *error)
{
    eng_packing_begin(row);
    while (loader->packing || row->documents == 0) {
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
        advance(loader);
    }
    if (row->documents > 0) {
        loader->batch.rows_filled++;
        loader->batch.features |= row->used < row->context ? ENG_FEATURE_padded : 0;
        loader->batch.features |= row->documents > 1 ? ENG_FEATURE_packed : 0;
    }
    return ENG_OK;
}

static struct eng_row row_at(eng_loader *loader, int index)
{
    const struct eng_step_batch *const batch = &loader->batch;
    const size_t offset = (size_t)index * (size_t)batch->context;
    return (struct eng_row){.context = batch->context,
                            .pad = loader->pad,
                            .ids = batch->ids + offset,
                            .labels = batch->labels + offset,
                            .positions = batch->positions + offset,
                            .segments = batch->segments + offset,
                            .first = batch->first + offset,
                            .supervised = loader->supervised};
}

static enum eng_status finish_step(eng_loader *loader, struct eng_error *error)
{
    struct eng_step_batch *const batch = &loader->batch;
    const char **const ids = eng_grown(loader->skipped_ids, &loader->skipped_id_capacity,
                                       loader->skipped_count + 1, sizeof *ids);
    if (ids == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for the list of skipped records");
    }
    loader->skipped_ids = ids;
    for (size_t i = 0; i < loader->skipped_count; i++) {
        ids[i] = loader->skipped[i].text;
    }
    for (int m = 1; m < batch->micro_count; m++) {
        if (batch->micro_supervised[m] != batch->micro_supervised[0]) {
            batch->features |= ENG_FEATURE_accum_unequal;
        }
    }
    batch->skipped = ids;
    batch->skipped_count = loader->skipped_count;
    batch->records = loader->records;
    return ENG_OK;
}

enum eng_status eng_loader_next(eng_loader *loader, const struct eng_step_batch **out,
                                struct eng_error *error)
{
    struct eng_step_batch *const batch = &loader->batch;
    batch->supervised = batch->rows_filled = 0;
    batch->record_count = loader->skipped_count = 0;
    batch->features = loader->standing_features;
    for (int m = 0; m < batch->micro_count; m++) {
        batch->micro_supervised[m] = 0;
        for (int r = 0; r < batch->rows; r++) {
            struct eng_row row = row_at(loader, m * batch->rows + r);
            const enum eng_status status = fill_row(loader, &row, error);
            if (status != ENG_OK) {
                return status;
            }
            batch->micro_supervised[m] += eng_packing_finish(&row);
        }
        batch->supervised += batch->micro_supervised[m];
    }
    const enum eng_status status = finish_step(loader, error);
    if (status == ENG_OK) {
        *out = batch;
    }
    return status;
}

struct eng_position eng_loader_position(const eng_loader *loader)
{
    return loader->position;
}

enum eng_status eng_loader_seek(eng_loader *loader, struct eng_position position,
                                struct eng_error *error)
{
    const size_t count = loader->files.line_count;
    const size_t end = loader->shuffle ? count : count + 1;
    if (position.index >= end || (!loader->shuffle && position.epoch > 0)) {
        return eng_fail(
            error, ENG_EINPUT, "no document %llu of epoch %llu: the data files have %zu records",
            (unsigned long long)position.index, (unsigned long long)position.epoch, count);
    }
    loader->position = position;
    return ENG_OK;
}

size_t eng_loader_record_count(const eng_loader *loader)
{
    return loader->files.line_count;
}
