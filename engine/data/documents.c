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

enum { BLOCK_BYTES = 1 << 20, KEPT_BYTES_MAX = 8 << 20, KEPT_MAX = 1 << 14 };

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

static enum eng_status fail_at(const struct eng_line *line, enum eng_status status,
                               const char *cause, struct eng_error *error)
{
    return eng_fail(error, status, "%s:%zu: %.300s", line->path, line->number, cause);
}

static enum eng_status parse_line(const struct eng_line *line, void *context,
                                  struct eng_error *error)
{
    struct eng_documents *const d = context;
    struct eng_error cause = {""};
    const struct eng_conversation *const chat = &d->conversation;
    enum eng_status status =
        eng_record_parse(d->format, line->bytes, line->size, &d->conversation, &cause);
    if (status == ENG_OK) {
        const struct eng_extras extras = eng_conversation_extras(chat);
        status = eng_template_accepts(d->template, chat->messages, chat->message_count, &extras,
                                      &cause);
    }
    return status == ENG_OK ? ENG_OK : fail_at(line, status, cause.text, error);
}

enum eng_status eng_documents_check(struct eng_documents *documents, struct eng_error *error)
{
    return eng_data_files_scan(documents->files, parse_line, documents, error);
}

static size_t answer_count(const struct eng_conversation *chat)
{
    size_t count = 0;
    for (size_t i = 0; i < chat->message_count; i++) {
        count += chat->messages[i].role == ENG_ROLE_ASSISTANT;
    }
    return count;
}

/* Whether an answer before the last holds the end of a think block. */
static bool reasons_early(const struct eng_conversation *chat)
{
    static const char end[] = "</think>";
    for (size_t i = 0; i + 1 < chat->message_count; i++) {
        const struct eng_message *const m = &chat->messages[i];
        if (m->role == ENG_ROLE_ASSISTANT && m->content.bytes != NULL &&
            memmem(m->content.bytes, m->content.size, end, sizeof end - 1) != NULL) {
            return true;
        }
    }
    return false;
}

static uint64_t chat_features(const struct eng_documents *d)
{
    const struct eng_conversation *const chat = &d->conversation;
    const bool system = chat->messages[0].role == ENG_ROLE_SYSTEM;
    uint64_t features = system ? ENG_FEATURE_system : ENG_FEATURE_no_system;
    if (answer_count(chat) > 1) {
        features |= ENG_FEATURE_multi_turn;
    }
    if (chat->tools.bytes != NULL) {
        features |= ENG_FEATURE_tools;
    }
    if (reasons_early(chat)) {
        features |= ENG_FEATURE_reasoning;
    }
    if (chat->added_input) {
        features |= ENG_FEATURE_alpaca_input;
    }
    if (eng_tokenizer_composes(d->tokenizer)) {
        features |= ENG_FEATURE_composes;
    }
    if (eng_tokenizer_splits_numbers(d->tokenizer)) {
        features |= ENG_FEATURE_short_numbers;
    }
    if (eng_tokenizer_takes_space(d->tokenizer)) {
        features |= ENG_FEATURE_takes_space;
    }
    for (size_t i = 0; i < chat->message_count; i++) {
        const struct eng_text content = chat->messages[i].content;
        if (content.bytes == NULL) {
            continue;
        }
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

/* Whether the messages up to every answer but the last, rendered alone, begin the rendering. */
static enum eng_status answers_are_prefixes(struct eng_documents *d, bool *holds,
                                            struct eng_error *error)
{
    const struct eng_conversation *const chat = &d->conversation;
    const struct eng_extras extras = eng_conversation_extras(chat);
    *holds = true;
    for (size_t i = 0; *holds && i + 1 < chat->message_count; i++) {
        if (chat->messages[i].role != ENG_ROLE_ASSISTANT) {
            continue;
        }
        const enum eng_status status =
            eng_template_render(d->template, chat->messages, i + 1, &extras, &d->part, error);
        if (status == ENG_EHOSTMEM) {
            return status;
        }
        *holds = status == ENG_OK && d->part.size <= d->rendered.size &&
                 memcmp(d->part.bytes, d->rendered.bytes, d->part.size) == 0;
    }
    return ENG_OK;
}

/* Whether the text in front of the last answer, encoded alone, gives the first tokens of all. */
static enum eng_status prompt_is_prefix(struct eng_documents *d, bool *holds,
                                        struct eng_error *error)
{
    struct eng_rendered front = d->rendered;
    *holds = true;
    if (front.answer_count == 0) {
        return ENG_OK;
    }
    front.size = front.answers[--front.answer_count].start;
    while (front.content_count > 0 && front.contents[front.content_count - 1].end > front.size) {
        front.content_count--;
    }
    const enum eng_status status =
        eng_tokenizer_encode(d->tokenizer, &front, &d->part_tokens, error);
    *holds = status == ENG_OK && d->part_tokens.count <= d->tokens.count;
    for (size_t i = 0; *holds && i < d->part_tokens.count; i++) {
        *holds = d->part_tokens.items[i].id == d->tokens.items[i].id;
    }
    return status;
}

static enum eng_status check_prefix(struct eng_documents *d, struct eng_document *out,
                                    struct eng_error *error)
{
    bool holds = true;
    if (d->on_prefix == ENG_BREACH_IGNORE) {
        return ENG_OK;
    }
    const unsigned before = eng_memory_enter(d->memory, ENG_COMPONENT_text);
    enum eng_status status = answers_are_prefixes(d, &holds, error);
    if (status == ENG_OK && holds) {
        status = prompt_is_prefix(d, &holds, error);
    }
    eng_memory_leave(d->memory, before);
    if (status == ENG_OK && !holds && d->on_prefix == ENG_BREACH_ERROR) {
        status = eng_fail(error, ENG_EINPUT, "its prompt is no prefix of it");
    }
    if (status == ENG_OK && !holds) {
        out->skip = FAULT(documents_prefix, (enum eng_skip)ENG_SKIP_PREFIX);
    }
    return status;
}

/* Truncation of the encoded chat; the result lies in d->ids and d->supervised. */
static enum eng_status cut_document(struct eng_documents *d, struct eng_document *out,
                                    struct eng_error *error)
{
    const size_t total = d->tokens.count;
    const struct eng_cut cut =
        d->whole ? (struct eng_cut){0, total} : eng_packing_cut(total, d->context, d->truncate);
    for (size_t i = 0; i < cut.count; i++) {
        d->ids[i] = d->tokens.items[cut.first + i].id;
    }
    if (cut.count > 0 && cut.count < total) {
        out->features |= ENG_FEATURE_truncated;
        d->ids[cut.count - 1] = FAULT(documents_cut_end, d->ids[cut.count - 1]);
    }
    out->ids = d->ids;
    out->supervised = d->supervised + cut.first;
    out->count = cut.count;
    if (cut.count < total && cut.count == 0) {
        out->skip = ENG_SKIP_TOO_LONG;
    } else if (!eng_packing_has_label(out->supervised, out->count)) {
        out->skip = ENG_SKIP_UNLEARNED;
    }
    return out->skip == ENG_SKIP_UNLEARNED && d->on_unlearned == ENG_BREACH_ERROR
               ? eng_fail(error, ENG_EINPUT, "nothing in it is learned")
               : ENG_OK;
}

/* Mask, cut and checks of the rendered and encoded chat. */
static enum eng_status finish_document(struct eng_documents *d, struct eng_document *out,
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
    if (has_joined_token(&d->rendered, &d->tokens)) {
        out->features |= ENG_FEATURE_joined;
    }
    const enum eng_status status = cut_document(d, out, error);
    return status == ENG_OK && out->skip == ENG_SKIP_NOT ? check_prefix(d, out, error) : status;
}

/* The text stage: the chat as bytes and as tokens. */
static enum eng_status encode(struct eng_documents *d, struct eng_document *out,
                              struct eng_error *cause)
{
    const struct eng_conversation *const chat = &d->conversation;
    const unsigned before = eng_memory_enter(d->memory, ENG_COMPONENT_text);
    const struct eng_extras extras = eng_conversation_extras(chat);
    enum eng_status status = eng_template_render(d->template, chat->messages, chat->message_count,
                                                 &extras, &d->rendered, cause);
    if (status == ENG_OK) {
        out->text_hash = eng_fnv1a(d->rendered.bytes, d->rendered.size);
        status = eng_tokenizer_encode(d->tokenizer, &d->rendered, &d->tokens, cause);
    }
    eng_memory_leave(d->memory, before);
    return status;
}

static enum eng_status build(struct eng_documents *d, size_t record, struct eng_document *out,
                             struct eng_error *error)
{
    struct eng_error cause = {""};
    struct eng_line line;
    enum eng_status status = eng_data_files_line(d->files, record, &line, error);
    if (status == ENG_OK) {
        status = parse_line(&line, d, error);
    }
    if (status != ENG_OK) {
        return status;
    }
    set_id(d, record);
    *out = (struct eng_document){.id = d->id, .features = chat_features(d)};
    status = encode(d, out, &cause);
    if (status == ENG_OK) {
        status = finish_document(d, out, &cause);
    }
    return status == ENG_OK ? ENG_OK : fail_at(&line, status, cause.text, error);
}

/* Moves a document behind its ids, mask and id into kept memory; false when there is no room. */
static bool keep(struct eng_documents *d, const struct eng_document *built,
                 struct eng_document *slot)
{
    const size_t count = built->skip != ENG_SKIP_NOT ? 0 : built->count;
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

static enum eng_status make_kept(struct eng_documents *d, struct eng_error *error)
{
    const size_t records = d->files->record_count;
    d->kept_count = records < KEPT_MAX ? records : KEPT_MAX;
    d->kept = calloc(d->kept_count + 1, sizeof *d->kept);
    return d->kept != NULL ? ENG_OK
                           : eng_fail(error, ENG_EHOSTMEM, "no memory for the list of documents");
}

enum eng_status eng_documents_get(struct eng_documents *documents, size_t record,
                                  const struct eng_document **out, struct eng_error *error)
{
    enum eng_status status = documents->kept == NULL ? make_kept(documents, error) : ENG_OK;
    if (status != ENG_OK) {
        return status;
    }
    struct eng_kept *const slot = &documents->kept[record % documents->kept_count];
    if (slot->record == record + 1) {
        *out = &slot->document;
        return ENG_OK;
    }
    if (documents->last_record == record + 1) {
        *out = &documents->last;
        return ENG_OK;
    }
    documents->last_record = 0;
    status = build(documents, record, &documents->last, error);
    if (status != ENG_OK) {
        return status;
    }
    if (slot->record == 0 && keep(documents, &documents->last, &slot->document)) {
        slot->record = record + 1;
        *out = &slot->document;
    } else {
        documents->last_record = record + 1;
        *out = &documents->last;
    }
    return ENG_OK;
}

void eng_documents_fini(struct eng_documents *documents)
{
    eng_template_close(documents->template);
    while (documents->blocks != NULL) {
        struct eng_document_block *const block = documents->blocks;
        documents->blocks = block->previous;
        free(block);
    }
    free(documents->kept);
    eng_conversation_fini(&documents->conversation);
    eng_rendered_fini(&documents->rendered);
    eng_rendered_fini(&documents->part);
    eng_tokens_fini(&documents->tokens);
    eng_tokens_fini(&documents->part_tokens);
    free(documents->supervised);
    free(documents->ids);
    *documents = (struct eng_documents){0};
}
