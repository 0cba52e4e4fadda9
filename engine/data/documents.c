/* From a line to a cut document: JSON, layout, tokens, mask, truncation.
 * Called by loader; must not know order, rows or steps. */
#include "documents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eng_features.h"
#include "fault.h"
#include "growth.h"
#include "labels.h"
#include "packing.h"
#include "text_utf8.h"

enum { BLOCK_BYTES = 1 << 20, KEPT_BYTES_MAX = 256 << 20 };

struct eng_document_block {
    struct eng_document_block *previous;
    size_t used, size;
    _Alignas(8) char bytes[];
};

uint64_t eng_fnv1a(const void *bytes, size_t size)
{
    const unsigned char *const b = bytes;
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ b[i]) * 0x100000001B3u;
    }
    return hash;
}

/* Room among the kept documents, NULL when their share of memory is used up. */
static void *keep_bytes(struct eng_documents *d, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    struct eng_document_block *block = d->blocks;
    if (block == NULL || block->size - block->used < size) {
        const size_t wanted = size < BLOCK_BYTES ? BLOCK_BYTES : size;
        if (d->block_bytes + wanted > KEPT_BYTES_MAX) {
            return NULL;
        }
        block = malloc(sizeof *block + wanted);
        if (block == NULL) {
            return NULL;
        }
        *block = (struct eng_document_block){.previous = d->blocks, .used = 0, .size = wanted};
        d->blocks = block;
        d->block_bytes += wanted;
    }
    void *const room = block->bytes + block->used;
    block->used += size;
    return room;
}

static enum eng_status parse_line(struct eng_documents *d, size_t record, struct eng_error *error)
{
    struct eng_error cause = {""};
    const struct eng_line *const line = &d->files->lines[record];
    const enum eng_status status =
        eng_json_messages_parse(line->bytes, line->size, &d->conversation, &cause);
    if (status != ENG_OK) {
        eng_fail(error, status, "%s:%zu: %.300s", d->files->files[line->file].path,
                 eng_data_files_line_number(d->files, record), cause.text);
    }
    return status;
}

enum eng_status eng_documents_check(struct eng_documents *documents, struct eng_error *error)
{
    enum eng_status status = ENG_OK;
    for (size_t i = 0; status == ENG_OK && i < documents->files->line_count; i++) {
        status = parse_line(documents, i, error);
    }
    return status;
}

static uint64_t chat_features(const struct eng_documents *d)
{
    const struct eng_conversation *const chat = &d->conversation;
    const bool system = chat->messages[0].role == ENG_ROLE_SYSTEM;
    uint64_t features = system ? ENG_FEATURE_system : ENG_FEATURE_no_system;
    if (chat->message_count - (system ? 1 : 0) > 2) {
        features |= ENG_FEATURE_multi_turn;
    }
    for (size_t i = 0; i < chat->message_count; i++) {
        const struct eng_text content = chat->messages[i].content;
        if (eng_text_has_edge_space(content)) {
            features |= ENG_FEATURE_edge_space;
        }
        if (!eng_text_is_ascii(content)) {
            features |= ENG_FEATURE_non_ascii;
        }
        if (!eng_text_is_composed(content)) {
            features |= ENG_FEATURE_decomposed;
        }
        if (eng_tokenizer_sees_control(d->tokenizer, content)) {
            features |= ENG_FEATURE_control_text;
        }
    }
    return features;
}

/* Whether some token begins before an answer and ends in it. */
static bool has_joined_token(const struct eng_rendered *text, const struct eng_tokens *tokens)
{
    size_t i = 0;
    for (size_t a = 0; a < text->answer_count; a++) {
        while (i < tokens->count && tokens->items[i].start < text->answers[a].start) {
            i++;
        }
        if (i < tokens->count && tokens->items[i].start > text->answers[a].start) {
            return true;
        }
    }
    return false;
}

static void set_id(struct eng_documents *d, size_t record)
{
    const struct eng_text id = d->conversation.id;
    if (id.bytes == NULL) {
        snprintf(d->id, sizeof d->id, "line:%zu", record + 1);
    } else {
        memcpy(d->id, id.bytes, id.size); /* the parser checked the size */
        d->id[id.size] = '\0';
    }
}

/* Truncation and mask of the encoded chat; the result lies in d->ids and d->supervised. */
static enum eng_status cut_document(struct eng_documents *d, struct eng_document *out,
                                    struct eng_error *error)
{
    const size_t total = d->tokens.count;
    uint8_t *const marks = eng_grown(d->supervised, &d->supervised_capacity, total + 1, 1);
    d->supervised = marks == NULL ? d->supervised : marks;
    int32_t *const ids = eng_grown(d->ids, &d->id_capacity, total + 1, sizeof *ids);
    d->ids = ids == NULL ? d->ids : ids;
    if (marks == NULL || ids == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for a document of %zu tokens", total);
    }
    eng_labels_mark(&d->tokens, &d->rendered, d->mask, marks);
    const struct eng_cut cut = eng_packing_cut(total, d->context, d->truncate);
    for (size_t i = 0; i < cut.count; i++) {
        ids[i] = d->tokens.items[cut.first + i].id;
    }
    if (cut.count > 0 && cut.count < total) {
        out->features |= ENG_FEATURE_truncated;
        ids[cut.count - 1] = FAULT(documents_cut_end, ids[cut.count - 1]);
    }
    if (cut.count * 2 > d->context) {
        out->features |= ENG_FEATURE_late_positions;
    }
    if (has_joined_token(&d->rendered, &d->tokens)) {
        out->features |= ENG_FEATURE_joined;
    }
    out->ids = ids;
    out->supervised = marks + cut.first;
    out->count = cut.count;
    out->skipped = !eng_packing_has_label(out->supervised, out->count);
    out->tokens_hash = eng_fnv1a(out->ids, out->count * sizeof *ids);
    return ENG_OK;
}

static enum eng_status build(struct eng_documents *d, size_t record, struct eng_document *out,
                             struct eng_error *error)
{
    struct eng_error cause = {""};
    enum eng_status status = parse_line(d, record, error);
    if (status != ENG_OK) {
        return status;
    }
    const struct eng_conversation *const chat = &d->conversation;
    set_id(d, record);
    *out = (struct eng_document){.id = d->id, .features = chat_features(d)};
    status =
        eng_layout_render(d->layout, chat->messages, chat->message_count, &d->rendered, &cause);
    if (status == ENG_OK) {
        out->text_hash = eng_fnv1a(d->rendered.bytes, d->rendered.size);
        status = eng_tokenizer_encode(d->tokenizer, &d->rendered, &d->tokens, &cause);
    }
    if (status == ENG_OK) {
        status = cut_document(d, out, &cause);
    }
    if (status != ENG_OK) {
        eng_fail(error, status, "%s:%zu: %.300s",
                 d->files->files[d->files->lines[record].file].path,
                 eng_data_files_line_number(d->files, record), cause.text);
    }
    return status;
}

/* Moves a document behind its ids, mask and id into kept memory; false when there is no room. */
static bool keep(struct eng_documents *d, const struct eng_document *built,
                 struct eng_document *slot)
{
    const size_t count = built->skipped ? 0 : built->count;
    const size_t id_bytes = strlen(built->id) + 1;
    int32_t *const ids = keep_bytes(d, count * (sizeof *ids + 1) + id_bytes);
    if (ids == NULL) {
        return false;
    }
    uint8_t *const supervised = (uint8_t *)(ids + count);
    char *const id = (char *)(supervised + count);
    memcpy(ids, built->ids, count * sizeof *ids);
    memcpy(supervised, built->supervised, count);
    memcpy(id, built->id, id_bytes);
    *slot = *built;
    slot->ids = ids;
    slot->supervised = supervised;
    slot->id = id;
    return true;
}

enum eng_status eng_documents_get(struct eng_documents *documents, size_t record,
                                  const struct eng_document **out, struct eng_error *error)
{
    if (documents->kept == NULL) {
        documents->kept = calloc(documents->files->line_count + 1, sizeof *documents->kept);
        if (documents->kept == NULL) {
            return eng_fail(error, ENG_EHOSTMEM, "no memory for the list of documents");
        }
    }
    struct eng_document *const slot = &documents->kept[record];
    if (slot->id != NULL) {
        *out = slot;
        return ENG_OK;
    }
    const enum eng_status status = build(documents, record, &documents->last, error);
    if (status == ENG_OK) {
        *out = keep(documents, &documents->last, slot) ? slot : &documents->last;
    }
    return status;
}

void eng_documents_fini(struct eng_documents *documents)
{
    while (documents->blocks != NULL) {
        struct eng_document_block *const block = documents->blocks;
        documents->blocks = block->previous;
        free(block);
    }
    free(documents->kept);
    eng_conversation_fini(&documents->conversation);
    eng_rendered_fini(&documents->rendered);
    eng_tokens_fini(&documents->tokens);
    free(documents->supervised);
    free(documents->ids);
    *documents = (struct eng_documents){0};
}
