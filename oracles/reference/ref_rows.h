/* Order of documents, truncation, rows, labels: from documents to micro-batches. Called by the
 * training loop; follows "Data" of corpus/RECIPE.md and knows nothing of models. */
#pragma once

#include "ref_model.h"
#include "ref_text.h"

/* p[0..count) = the permutation of an epoch. */
void orc_ref_order_epoch(uint64_t seed, uint64_t epoch, size_t count, size_t *p);

struct orc_ref_rows_rule {
    size_t context;
    bool packing;
    enum orc_ref_truncate truncate;
    int32_t pad;
    bool shuffle;  /* false: file order, one epoch (evaluation) */
    uint64_t seed;
};

/* A document as it goes into a row. */
struct orc_ref_placed {
    const struct orc_ref_document *document;
    uint64_t epoch;
    const int32_t *ids; /* after truncation */
    const uint8_t *supervised;
    size_t count;
};

/* What a row took from the stream. */
struct orc_ref_row_log {
    struct orc_ref_placed *placed;
    const struct orc_ref_document **skipped;
    size_t placed_count, placed_capacity, skipped_count, skipped_capacity;
    size_t packed_rows, padded_rows; /* rows with two or more documents, with padding */
};

void orc_ref_row_log_clear(struct orc_ref_row_log *log);
void orc_ref_row_log_fini(struct orc_ref_row_log *log);

struct orc_ref_stream;

/* documents and rule are copied, the texts behind them must outlive the stream. NULL when there is
 * no memory. */
struct orc_ref_stream *orc_ref_stream_create(const struct orc_ref_documents *documents,
                                             const struct orc_ref_rows_rule *rule);

/* Accepts NULL. */
void orc_ref_stream_destroy(struct orc_ref_stream *stream);

/* Fills row `row` of the batch and adds to the log. *filled is false when the stream is at its
 * end, which only an unshuffled one has. BAD when no document can be trained on. */
enum orc_ref_status orc_ref_stream_row(struct orc_ref_stream *stream, struct orc_ref_batch *batch,
                                       size_t row, struct orc_ref_row_log *log, bool *filled,
                                       struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Arrays for rows x context positions; false when there is no memory. */
bool orc_ref_batch_init(struct orc_ref_batch *batch, size_t rows, size_t context);
void orc_ref_batch_fini(struct orc_ref_batch *batch);
