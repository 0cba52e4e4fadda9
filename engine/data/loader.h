/* From files to batches: reading, rendering, tokens, labels, order, packing. The rules are those of
 * corpus/RECIPE.md. Called by engine/train; must not know the device or the model.
 *
 * A loader yields whole optimizer steps, because the loss is normalised by the supervised tokens of
 * all micro-batches of a step. It tokenises lazily: only documents that are looked at. Its memory
 * does not grow with the files, but for 4 bytes an item with ENG_ORDER_PERMUTATION. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_memory.h"
#include "eng_status.h"

enum eng_format {
    ENG_FORMAT_MESSAGES,
    ENG_FORMAT_SHAREGPT,
    ENG_FORMAT_ALPACA,
    ENG_FORMAT_COMPLETION
};
enum eng_mask { ENG_MASK_ASSISTANT, ENG_MASK_LAST, ENG_MASK_COMPLETION, ENG_MASK_ALL };
enum eng_truncate { ENG_KEEP_START, ENG_KEEP_END, ENG_DROP };
enum eng_packing { ENG_PACK_NONE, ENG_PACK_NEXT, ENG_PACK_FIRST_FIT, ENG_PACK_WRAPPED };
enum eng_order { ENG_ORDER_PERMUTATION, ENG_ORDER_CIPHER };
/* What becomes of a document that breaks a rule. */
enum eng_breach { ENG_BREACH_IGNORE, ENG_BREACH_SKIP, ENG_BREACH_ERROR };

/* Why a document is not placed. The words stand in the trace. */
#define ENG_SKIPS(X) X(TOO_LONG, "too_long") X(UNLEARNED, "unlearned") X(PREFIX, "prefix")
enum eng_skip {
    ENG_SKIP_NOT,
#define ENG_ROW_(name, word) ENG_SKIP_##name,
    ENG_SKIPS(ENG_ROW_)
#undef ENG_ROW_
        ENG_SKIP_COUNT
};
extern const char *const eng_skip_words[ENG_SKIP_COUNT]; /* of NOT: NULL */

struct eng_loader_options {
    const char *const *files; /* JSON Lines, plain, gzip or zstd; concatenated */
    const unsigned *weights;  /* as many; NULL = all 1 */
    size_t file_count;
    enum eng_format format;
    const char *tokenizer_path;
    const char *template_name; /* chatml llama2 llama3 gemma plain, or a file: see template.h */
    enum eng_mask mask;
    enum eng_truncate truncate; /* of no meaning with ENG_PACK_WRAPPED */
    enum eng_packing packing;
    bool shuffle; /* false: file order, one pass (evaluation) */
    enum eng_order order;
    enum eng_breach on_unlearned; /* nothing to learn; SKIP or ERROR */
    enum eng_breach on_prefix;    /* the prompt is no prefix */
    const char *pad_token;
    uint64_t seed;
    int context;
    int rows;        /* rows of a micro-batch */
    int micro_count; /* micro-batches of a step (grad_accum) */
    int vocab;       /* what the model expects; EUSAGE when the tokenizer differs */
    /* A loader of the same tokenizer that outlives this one and lends it; NULL = read the file. */
    const struct eng_loader *lender;
    const struct eng_memory *memory; /* where its memory is booked, outlives it; NULL = nowhere */
};

/* A document placed in a row, or a piece of one. */
struct eng_record {
    char id[128];
    uint32_t epoch;
    uint64_t text_hash;   /* FNV-1a 64 of the rendered bytes */
    uint64_t tokens_hash; /* FNV-1a 64 of the ids placed */
    int count;            /* tokens placed */
};

/* A record that was read and not placed. */
struct eng_skipped {
    char id[128];
    enum eng_skip reason;
};

/* The place in the stream of documents: next document not yet placed, or not to its end. */
struct eng_position {
    uint64_t epoch;
    uint64_t index;  /* within the order of the epoch */
    uint64_t offset; /* tokens of it that were placed */
};

/* One optimizer step. Owned by the loader, valid until its next call. Arrays hold micro_count
 * blocks of rows * context, row-major. */
struct eng_step_batch {
    int micro_count, rows, context;
    int32_t *ids;
    int32_t *labels;       /* -100 = ignored */
    int32_t *positions;    /* within the document */
    int32_t *segments;     /* document number within the row */
    int32_t *first;        /* index within the row of the first token of the document */
    int *micro_supervised; /* per micro-batch */
    int supervised;        /* sum of them */
    int rows_filled;       /* < micro_count * rows only at the end of an unshuffled pass */
    const struct eng_record *records; /* in the order of the stream */
    size_t record_count;
    const struct eng_skipped *skipped;
    size_t skipped_count;
    uint64_t features; /* ENG_FEATURE_* seen in this step */
};

typedef struct eng_loader eng_loader;

ENG_CHECKED enum eng_status eng_loader_open(const struct eng_loader_options *options,
                                            eng_loader **out, struct eng_error *error);
void eng_loader_close(eng_loader *loader); /* accepts NULL */

/* Builds the next step. When shuffle is false and the files are used up, rows_filled is 0. */
ENG_CHECKED enum eng_status eng_loader_next(eng_loader *loader, const struct eng_step_batch **out,
                                            struct eng_error *error);

/* Where the next step starts, and how to start there (resume). */
struct eng_position eng_loader_position(const eng_loader *loader);
ENG_CHECKED enum eng_status eng_loader_seek(eng_loader *loader, struct eng_position position,
                                            struct eng_error *error);
size_t eng_loader_record_count(const eng_loader *loader);
uint64_t eng_fnv1a(const void *bytes, size_t size); /* the hash of oracles/TRACE.md */
