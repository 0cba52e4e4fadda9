/* Cuts a rendered chat at control tokens and encodes what lies between.
 * Called by tokenizer; must not know files, layouts' names or masks. */
#include "text_encode.h"

#include <stdbool.h>
#include <stdlib.h>

#include "fault.h"
#include "growth.h"
#include "text_utf8.h"

static enum eng_status begin(struct eng_tokens *out)
{
    out->count = 0;
    return ENG_OK;
}

static enum eng_status push(struct eng_tokens *out, int32_t id, size_t start,
                            struct eng_error *error)
{
    struct eng_token *const items =
        eng_grown(out->items, &out->capacity, out->count + 1, sizeof *items);
    if (items == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for tokens");
    }
    out->items = items;
    items[out->count++] = (struct eng_token){id, (uint32_t)start};
    return ENG_OK;
}

/* A control token at or behind `from` that lies between contents; its place in *at, which is the
 * end of the text when there is none. */
static const struct eng_control *find_control(const struct eng_encoder *encoder,
                                              const struct eng_rendered *text, size_t from,
                                              size_t *at)
{
    const size_t content_count = FAULT(encode_contents, text->content_count);
    for (size_t c = 0; c <= content_count; c++) {
        const size_t end = c < content_count ? text->contents[c].start : text->size;
        size_t offset = 0;
        if (from < end) {
            const struct eng_control *const found =
                eng_control_search(encoder->controls, text->bytes + from, end - from, &offset);
            if (found != NULL) {
                *at = from + offset;
                return found;
            }
        }
        if (c < content_count && from < text->contents[c].end) {
            from = text->contents[c].end;
        }
    }
    *at = text->size;
    return NULL;
}

static enum eng_status encode_piece(const struct eng_encoder *encoder, const char *piece,
                                    size_t size, size_t start, struct eng_tokens *out,
                                    struct eng_error *error)
{
    const int32_t *ids = NULL;
    size_t count = 0;
    enum eng_status status = eng_bpe_encode(encoder->bpe, piece, size, &ids, &count, error);
    for (size_t i = 0; status == ENG_OK && i < count; i++) {
        status = push(out, ids[i], start, error);
        start += encoder->token_bytes[ids[i]];
    }
    return status;
}

static enum eng_status encode_between(const struct eng_encoder *encoder,
                                      const struct eng_rendered *text, size_t from, size_t end,
                                      struct eng_tokens *out, struct eng_error *error)
{
    const char *const bytes = text->bytes + from;
    const size_t size = end - from;
    for (size_t at = 0; at < size;) {
        const size_t piece = eng_splitter_piece(encoder->splitter, bytes, size, at);
        if (piece == 0) {
            return eng_fail(error, ENG_EINTERNAL, "the split pattern failed at byte %zu of a text",
                            from + at);
        }
        const enum eng_status status =
            encode_piece(encoder, bytes + at, piece, from + at, out, error);
        if (status != ENG_OK) {
            return status;
        }
        at += piece;
    }
    return ENG_OK;
}

/* Encodes what a normaliser before the split would leave of the text; right only in a fault. */
__attribute__((unused)) static enum eng_status
encode_composed(const struct eng_encoder *encoder, const struct eng_rendered *text, size_t from,
                size_t end, struct eng_tokens *out, struct eng_error *error)
{
    const size_t before = out->count;
    const struct eng_text composed =
        eng_text_composed((struct eng_text){text->bytes + from, end - from});
    if (composed.bytes == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for a composed text");
    }
    char *const bytes = (char *)(uintptr_t)composed.bytes;
    const struct eng_rendered normal = {.bytes = bytes, .size = composed.size};
    const enum eng_status status = encode_between(encoder, &normal, 0, normal.size, out, error);
    for (size_t i = before; i < out->count; i++) {
        out->items[i].start += (uint32_t)from;
    }
    free(bytes);
    return status;
}

enum eng_status eng_encode_rendered(const struct eng_encoder *encoder,
                                    const struct eng_rendered *text, struct eng_tokens *out,
                                    struct eng_error *error)
{
    if (text->size >= UINT32_MAX) {
        return eng_fail(error, ENG_EINPUT, "a rendered chat of %zu bytes is too long", text->size);
    }
    enum eng_status status = FAULT(encode_begin, begin(out));
    for (size_t at = 0; status == ENG_OK && at < text->size;) {
        size_t control_at = 0;
        const struct eng_control *const control = find_control(encoder, text, at, &control_at);
        if (control != NULL && control_at == at) {
            status = push(out, control->id, at, error);
            at += control->size;
            continue;
        }
        const size_t end = FAULT(encode_border, control_at);
        status = FAULT(encode_text, encode_between(encoder, text, at, end, out, error));
        at = end;
    }
    return status;
}

void eng_tokens_fini(struct eng_tokens *tokens)
{
    free(tokens->items);
    *tokens = (struct eng_tokens){0};
}
