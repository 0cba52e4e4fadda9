/* Records as token ids with a mask: parsed, rendered, encoded and cut when first asked for, and
 * kept. Used by loader; must not know order, rows or steps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data_files.h"
#include "json_record.h"
#include "layout.h"
#include "template.h"
#include "loader.h"
#include "text_encode.h"
#include "tokenizer.h"

struct eng_document {
    const char *id;
    const int32_t *ids;        /* count of them, after truncation */
    const uint8_t *supervised; /* count of them */
    size_t count;
    enum eng_skip skip;
    uint64_t text_hash;
    uint64_t features; /* ENG_FEATURE_* that this document brings */
};

/* Everything up to `end_of_turn` is set by the loader before the first call. */
struct eng_documents {
    const struct eng_memory *memory;
    struct eng_data_files *files;
    enum eng_format format;
    eng_tokenizer *tokenizer;
    eng_template *template;
    enum eng_mask mask;
    enum eng_truncate truncate;
    bool whole; /* rows split documents, so none is cut */
    enum eng_breach on_unlearned, on_prefix;
    size_t context;
    int32_t end_of_turn; /* -1 when it is no control token */

    struct eng_kept {
        size_t record; /* from 1, 0 = none yet */
        struct eng_document document;
    } * kept; /* one place for every record, shared when there are many */
    size_t kept_count;
    struct eng_document_block *blocks;
    size_t block_bytes;
    struct eng_document last; /* of a record that found no room among the kept ones */
    size_t last_record;       /* from 1 */
    struct eng_conversation conversation;
    struct eng_rendered rendered, part; /* the chat, and a beginning of it */
    struct eng_tokens tokens, part_tokens;
    uint8_t *supervised;
    size_t supervised_capacity;
    int32_t *ids;
    size_t id_capacity;
    char id[128];
};

/* Purpose: reads every file and parses every line once, so that a bad one is found before the first
 * step. */
ENG_CHECKED enum eng_status eng_documents_check(struct eng_documents *documents,
                                                struct eng_error *error);
/* Purpose: the document of a record. Valid until the next call; most are kept for good, up to a
 * fixed amount of memory. Errors name file, line and cause. */
ENG_CHECKED enum eng_status eng_documents_get(struct eng_documents *documents, size_t record,
                                              const struct eng_document **out,
                                              struct eng_error *error);
void eng_documents_fini(struct eng_documents *documents); /* frees what the calls made */
