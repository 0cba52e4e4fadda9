/* Records as token ids with a mask: parsed, rendered, encoded and cut when first asked for, and
 * kept. Used by loader; must not know order, rows or steps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data_files.h"
#include "json_messages.h"
#include "layout.h"
#include "loader.h"
#include "text_encode.h"
#include "tokenizer.h"

struct eng_document {
    const char *id;
    const int32_t *ids;        /* count of them, after truncation */
    const uint8_t *supervised; /* count of them */
    size_t count;
    bool skipped; /* dropped, or nothing in it is learned */
    uint64_t text_hash, tokens_hash;
    uint64_t features; /* ENG_FEATURE_* that this document brings */
};

/* Everything but `kept` is set by the loader before the first call. */
struct eng_documents {
    const struct eng_data_files *files;
    eng_tokenizer *tokenizer;
    enum eng_layout layout;
    enum eng_mask mask;
    enum eng_truncate truncate;
    size_t context;
    int32_t end_of_turn; /* -1 when it is no control token */

    struct eng_document *kept; /* by record; id is NULL until the record was asked for */
    struct eng_document_block *blocks;
    size_t block_bytes;
    struct eng_document last; /* of a record that found no room among the kept ones */
    struct eng_conversation conversation;
    struct eng_rendered rendered;
    struct eng_tokens tokens;
    uint8_t *supervised;
    size_t supervised_capacity;
    int32_t *ids;
    size_t id_capacity;
    char id[128];
};

/* Purpose: parses every line once, so that a bad one is found before the first step. */
ENG_CHECKED enum eng_status eng_documents_check(struct eng_documents *documents,
                                                struct eng_error *error);
/* Purpose: the document of a record. Valid until the next call; most are kept for good, up to a
 * fixed amount of memory. Errors name file, line and cause. */
ENG_CHECKED enum eng_status eng_documents_get(struct eng_documents *documents, size_t record,
                                              const struct eng_document **out,
                                              struct eng_error *error);
void eng_documents_fini(struct eng_documents *documents); /* frees what the calls made */
