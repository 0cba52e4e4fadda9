/* Order of documents, truncation, rows, labels: from documents to micro-batches. Called by the
 * training loop; follows "Data" of corpus/RECIPE.md and knows nothing of models. */
#pragma once

#include "ref_model.h"
#include "ref_text.h"

/* p[0..count) = the permutation of an epoch. */
void orc_ref_order_epoch(uint64_t seed, uint64_t epoch, size_t count, size_t *p);
/* The same by the cipher. */
void orc_ref_order_cipher(uint64_t seed, uint64_t epoch, size_t count, size_t *p);

struct orc_ref_rows_rule {
    size_t context;
    enum orc_ref_packing packing;
    enum orc_ref_truncate truncate;
    enum orc_ref_order order;
    enum orc_ref_unlearned on_unlearned;
    enum orc_ref_prefix on_prefix;
    const char *const *files; /* names of the data files, for errors */
    const size_t *weights;    /* of each; NULL = all 1 */
    size_t file_count;        /* may be 0: then neither is looked at */
    int32_t pad;
    bool shuffle;  /* false: file order, one epoch, no weights (evaluation) */
    uint64_t seed;
};

/* A document as it goes into a row, or a piece of one. */
struct orc_ref_placed {
    const struct orc_ref_document *document;
    uint64_t epoch;
    const int32_t *ids; /* after truncation */
    const uint8_t *supervised;
    size_t count;
    bool cut; /* by truncation */
};

/* Why a document is not placed, and the words for it in a trace. */
enum orc_ref_skip { ORC_REF_TOO_LONG, ORC_REF_UNLEARNED, ORC_REF_NO_PREFIX, ORC_REF_SKIPS };
extern const char *const orc_ref_skip_words[ORC_REF_SKIPS];

struct orc_ref_skipped {
    const struct orc_ref_document *document;
    enum orc_ref_skip reason;
};

/* What rows took from the stream. */
struct orc_ref_row_log {
    struct orc_ref_placed *placed;
    struct orc_ref_skipped *skipped;
    size_t placed_count, placed_capacity, skipped_count, skipped_capacity;
    size_t packed_rows, padded_rows; /* rows with two or more documents, with padding */
    size_t split, refit;             /* second pieces; documents put into an earlier row */
    size_t skips[ORC_REF_SKIPS];     /* how many of skipped, by reason */
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

/* A row that is to be filled. */
struct orc_ref_place {
    struct orc_ref_batch *batch;
    size_t row;
};

/* Fills the rows of a step and adds to the log. *filled is how many of them, from the first on,
 * have a document; less than count only at the end of the stream, which only an unshuffled one
 * has; the others are left as they are. BAD when no document can be trained on. */
enum orc_ref_status orc_ref_stream_step(struct orc_ref_stream *stream,
                                        const struct orc_ref_place *rows, size_t count,
                                        struct orc_ref_row_log *log, size_t *filled,
                                        struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Arrays for rows x context positions; false when there is no memory. */
bool orc_ref_batch_init(struct orc_ref_batch *batch, size_t rows, size_t context);
void orc_ref_batch_fini(struct orc_ref_batch *batch);
