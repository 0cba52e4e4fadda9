/* Opening and closing of a loader: options, text stage, files, arrays.
 * Called by engine/train; must not know the device or the model. */
#include <stdlib.h>

#include "eng_features.h"
#include "layout.h"
#include "loader_state.h"

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
                                 int32_t *pad, struct eng_error *error)
{
    struct eng_documents *const documents = &loader->documents;
    enum eng_status status = eng_template_open(options->template_name, &documents->template, error);
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
    *pad = eng_tokenizer_control_id(loader->tokenizer, options->pad_token);
    if (*pad < 0) {
        return eng_fail(error, ENG_EUSAGE, "pad token '%s' is no control token of %s",
                        options->pad_token, options->tokenizer_path);
    }
    documents->end_of_turn =
        eng_tokenizer_control_id(loader->tokenizer, eng_template_end_of_turn(documents->template));
    loader->standing_features |= eng_template_features(documents->template);
    if (documents->end_of_turn == *pad) {
        loader->standing_features |= ENG_FEATURE_pad_is_eos;
    }
    return ENG_OK;
}

static enum eng_status open_files(eng_loader *loader, const struct eng_loader_options *options,
                                  struct eng_error *error)
{
    struct eng_documents *const documents = &loader->documents;
    documents->files = &loader->files;
    documents->format = options->format;
    documents->tokenizer = loader->tokenizer;
    documents->mask = options->mask;
    documents->truncate = options->truncate;
    documents->whole = options->packing == ENG_PACK_WRAPPED;
    documents->on_unlearned = options->on_unlearned;
    documents->on_prefix = options->on_prefix;
    documents->context = (size_t)options->context;
    enum eng_status status = eng_data_files_open(&loader->files, options->files, options->weights,
                                                 options->file_count, error);
    if (status == ENG_OK) {
        status = eng_documents_check(documents, error);
    }
    if (status == ENG_OK && loader->files.record_count == 0) {
        status =
            eng_fail(error, ENG_EINPUT, "%s: 0 records in %zu data files",
                     options->file_count > 0 ? options->files[0] : "no file", options->file_count);
    }
    if (status == ENG_OK && loader->shuffle) {
        loader->order.rule = options->order;
        loader->order.seed = options->seed;
        loader->order.count = loader->files.item_count;
        status = eng_order_open(&loader->order, error);
    }
    return status;
}

/* Features that hold for every step. */
static uint64_t features_of(const eng_loader *loader, const struct eng_loader_options *options)
{
    static const uint64_t of_format[] = {[ENG_FORMAT_MESSAGES] = 0,
                                         [ENG_FORMAT_SHAREGPT] = ENG_FEATURE_sharegpt,
                                         [ENG_FORMAT_ALPACA] = ENG_FEATURE_alpaca,
                                         [ENG_FORMAT_COMPLETION] = ENG_FEATURE_prompts};
    static const uint64_t of_mask[] = {[ENG_MASK_ASSISTANT] = 0,
                                       [ENG_MASK_LAST] = ENG_FEATURE_masked_last,
                                       [ENG_MASK_COMPLETION] = ENG_FEATURE_masked_completion,
                                       [ENG_MASK_ALL] = 0};
    uint64_t features = of_format[options->format] | of_mask[options->mask];
    features |= options->micro_count > 1 ? ENG_FEATURE_accum : 0;
    features |= options->order == ENG_ORDER_CIPHER ? ENG_FEATURE_cipher : 0;
    features |= loader->files.compressed ? ENG_FEATURE_compressed : 0;
    features |= loader->files.members ? ENG_FEATURE_members : 0;
    features |= loader->files.weighted ? ENG_FEATURE_weighted : 0;
    return features;
}

/* The rows of a step, over the arrays of its batch. */
static void divide_rows(eng_loader *loader, int32_t pad)
{
    const struct eng_step_batch *const batch = &loader->batch;
    for (size_t r = 0; r < loader->row_count; r++) {
        const size_t offset = r * (size_t)batch->context;
        loader->rows[r] = (struct eng_row){.context = batch->context,
                                           .pad = pad,
                                           .ids = batch->ids + offset,
                                           .labels = batch->labels + offset,
                                           .positions = batch->positions + offset,
                                           .segments = batch->segments + offset,
                                           .first = batch->first + offset,
                                           .supervised = loader->supervised + offset};
    }
}

static enum eng_status make_arrays(eng_loader *loader, const struct eng_loader_options *options,
                                   int32_t pad, struct eng_error *error)
{
    struct eng_step_batch *const batch = &loader->batch;
    batch->rows = options->rows;
    batch->context = options->context;
    batch->micro_count = options->micro_count;
    loader->row_count = (size_t)options->rows * (size_t)options->micro_count;
    const size_t columns = loader->row_count * (size_t)options->context;
    loader->columns = calloc(columns, 5 * sizeof *loader->columns);
    loader->supervised = calloc(columns, 1);
    loader->rows = calloc(loader->row_count, sizeof *loader->rows);
    batch->micro_supervised = calloc((size_t)options->micro_count, sizeof *batch->micro_supervised);
    if (loader->columns == NULL || loader->supervised == NULL || loader->rows == NULL ||
        batch->micro_supervised == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for steps of %zu tokens", columns);
    }
    batch->ids = loader->columns;
    batch->labels = batch->ids + columns;
    batch->positions = batch->labels + columns;
    batch->segments = batch->positions + columns;
    batch->first = batch->segments + columns;
    divide_rows(loader, pad);
    return ENG_OK;
}

static enum eng_status open_loader(const struct eng_loader_options *options, eng_loader **out,
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
    int32_t pad = -1;
    loader->memory = loader->documents.memory = options->memory;
    loader->packing = options->packing;
    loader->shuffle = options->shuffle;
    const unsigned before = eng_memory_enter(options->memory, ENG_COMPONENT_text);
    status = open_text(loader, options, &pad, error);
    eng_memory_leave(options->memory, before);
    if (status == ENG_OK) {
        status = open_files(loader, options, error);
    }
    if (status == ENG_OK) {
        status = make_arrays(loader, options, pad, error);
    }
    if (status == ENG_OK) {
        loader->standing_features |= features_of(loader, options);
        *out = loader;
    } else {
        eng_loader_close(loader);
    }
    return status;
}

enum eng_status eng_loader_open(const struct eng_loader_options *options, eng_loader **out,
                                struct eng_error *error)
{
    const unsigned before = eng_memory_enter(options->memory, ENG_COMPONENT_data);
    const enum eng_status status = open_loader(options, out, error);
    eng_memory_leave(options->memory, before);
    return status;
}

void eng_loader_close(eng_loader *loader)
{
    if (loader != NULL) {
        eng_documents_fini(&loader->documents);
        eng_tokenizer_close(loader->borrowed ? NULL : loader->tokenizer);
        eng_data_files_close(&loader->files);
        eng_order_close(&loader->order);
        free(loader->columns);
        free(loader->supervised);
        free(loader->rows);
        free(loader->batch.micro_supervised);
        free(loader->records);
        free(loader->skipped);
        free(loader);
    }
}
