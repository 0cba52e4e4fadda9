/* The inside of a loader, shared by the two files that make it. */
#pragma once

#include "data_files.h"
#include "documents.h"
#include "labels.h"
#include "loader.h"
#include "order.h"
#include "tokenizer.h"

struct eng_loader {
    const struct eng_memory *memory;
    struct eng_data_files files;
    eng_tokenizer *tokenizer;
    bool borrowed; /* the tokenizer is another loader's */
    struct eng_documents documents;
    enum eng_packing packing;
    bool shuffle;
    struct eng_order_of_epoch order;
    struct eng_position position;
    uint64_t standing_features; /* of the options alone */

    struct eng_step_batch batch;
    int32_t *columns;     /* the five arrays of the batch, one behind the other */
    uint8_t *supervised;  /* of all columns */
    struct eng_row *rows; /* of the step, over those arrays */
    size_t row_count;
    struct eng_record *records;
    size_t record_capacity;
    struct eng_skipped *skipped;
    size_t skipped_capacity;
};
