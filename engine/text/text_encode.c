/* Cuts a rendered chat at added tokens and encodes what lies between.
 * Called by tokenizer; must not know files, layouts' names or masks. */
#include "text_encode.h"

#include <stdbool.h>
#include <stdlib.h>

#include "fault.h"
#include "growth.h"
#include "text_beside.h"
#include "text_utf8.h"

static enum eng_status begin(struct eng_tokens *out)
{
    out->count = 0;
    return ENG_OK;
}

static bool reserve(struct eng_tokens *out, size_t count)
{
    if (out->count + count <= out->capacity) {
        return true;
    }
    struct eng_token *const items =
        eng_grown(out->items, &out->capacity, out->count + count, sizeof *items);
    out->items = items == NULL ? out->items : items;
    return items != NULL;
}

static enum eng_status push(struct eng_tokens *out, int32_t id, size_t start,
                            struct eng_error *error)
{
    if (!reserve(out, 1)) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for tokens");
    }
    out->items[out->count++] = (struct eng_token){id, (uint32_t)start};
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

/* An added token that is no control token, likewise, but anywhere. */
static const struct eng_control *find_added(const struct eng_encoder *encoder,
                                            const struct eng_rendered *text, size_t from,
                                            size_t *at)
{
    const struct eng_control *const found =
        encoder->added->count == 0 || from >= text->size
            ? NULL
            : eng_control_search(encoder->added, text->bytes + from, text->size - from, at);
    *at = found == NULL ? text->size : from + *at;
    return found;
}

/* The next control and the next added token, each found anew when it has been passed. */
struct finder {
    const struct eng_control *control, *added;
    size_t control_at, added_at;
    bool started;
};

/* The leftmost of both, at one place the longer; NULL and the text's end when there is none. */
static const struct eng_control *find_next(const struct eng_encoder *encoder,
                                           const struct eng_rendered *text, size_t from,
                                           struct finder *finder, size_t *at)
{
    if (!finder->started || finder->control_at < from) {
        finder->control = find_control(encoder, text, from, &finder->control_at);
    }
    if (!finder->started || finder->added_at < from) {
        finder->added = find_added(encoder, text, from, &finder->added_at);
    }
    finder->started = true;
    const struct eng_control *const control = finder->control;
    const struct eng_control *const added = finder->added;
    const bool same = control != NULL && added != NULL && finder->control_at == finder->added_at;
    const bool second = same ? added->size > control->size : finder->added_at < finder->control_at;
    *at = second ? finder->added_at : finder->control_at;
    return second ? added : control;
}

/* An added token with the white space that it takes. */
struct found {
    const struct eng_control *token; /* NULL: there is none, and both places are the text's end */
    size_t start, end;
};

/* The next added token that may stand where it stands. One that may not hides what overlaps it. */
static struct found find_standing(const struct eng_encoder *encoder,
                                  const struct eng_rendered *text, size_t at, struct finder *finder)
{
    const char *const bytes = text->bytes;
    for (size_t from = at;;) {
        size_t start = 0;
        const struct eng_control *const token = find_next(encoder, text, from, finder, &start);
        if (token == NULL) {
            return (struct found){NULL, text->size, text->size};
        }
        const size_t end = start + token->size;
        const unsigned flags = FAULT(encode_flags, token->flags);
        if ((flags & ENG_CONTROL_ALONE) && !eng_text_stands_alone(bytes, text->size, start, end)) {
            from = end;
            continue;
        }
        const bool left = (flags & ENG_CONTROL_TAKES_LEFT) != 0;
        const bool right = (flags & ENG_CONTROL_TAKES_RIGHT) != 0;
        return (struct found){token, left ? eng_text_space_start(bytes, at, start) : start,
                              right ? eng_text_space_end(bytes, text->size, end) : end};
    }
}

static enum eng_status encode_piece(const struct eng_encoder *encoder, struct eng_text from,
                                    size_t size, size_t start, struct eng_tokens *out,
                                    struct eng_error *error)
{
    const int32_t *ids = NULL;
    size_t count = 0;
    const enum eng_status status =
        eng_bpe_encode_within(encoder->bpe, from.bytes, size, from.size, &ids, &count, error);
    if (status != ENG_OK) {
        return status;
    }
    if (!reserve(out, count)) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for tokens");
    }
    struct eng_token *const items = out->items + out->count;
    items[0] = (struct eng_token){ids[0], (uint32_t)start};
    for (size_t i = 1; i < count; i++) {
        start += encoder->token_bytes[ids[i - 1]];
        items[i] = (struct eng_token){ids[i], (uint32_t)start};
    }
    out->count += count;
    return ENG_OK;
}

/* Pieces and their tokens; starts are counted from the text's first byte. */
static enum eng_status encode_pieces(const struct eng_encoder *encoder, struct eng_text text,
                                     size_t start, struct eng_tokens *out, struct eng_error *error)
{
    for (size_t at = 0; at < text.size;) {
        const size_t piece = eng_splitter_piece(encoder->splitter, text.bytes, text.size, at);
        const struct eng_text from = {text.bytes + at, text.size - at};
        const enum eng_status status = encode_piece(encoder, from, piece, start + at, out, error);
        if (status != ENG_OK) {
            return status;
        }
        at += piece;
    }
    return ENG_OK;
}

/* The contents of a text within its bytes from .. end - 1, as places in what the normalizer made of
 * these; NULL: it left them as they are. */
static bool contents_within(const struct eng_rendered *text, size_t from, size_t end,
                            const struct eng_normal_text *made, struct eng_encode_work *work,
                            struct eng_rendered *out)
{
    const size_t count = text->content_count;
    struct eng_span *const spans =
        eng_grown(work->contents, &work->content_capacity, count + 1, sizeof *spans);
    if (spans == NULL) {
        return false;
    }
    work->contents = out->contents = spans;
    out->content_count = 0;
    size_t at = 0;
    for (size_t c = 0; c < count && text->contents[c].start < end; c++) {
        size_t edges[2] = {text->contents[c].start, text->contents[c].end};
        for (size_t i = 0; i < 2; i++) {
            edges[i] = edges[i] < from ? 0 : (edges[i] < end ? edges[i] : end) - from;
            while (made != NULL && at < made->size && made->origins[at] < edges[i]) {
                at++;
            }
            edges[i] = made == NULL ? edges[i] : at;
        }
        if (edges[0] < edges[1]) {
            spans[out->content_count++] = (struct eng_span){edges[0], edges[1]};
        }
    }
    return true;
}

/* Late added tokens and pieces of a normalised text; starts are counted from its first byte. */
static enum eng_status encode_late(const struct eng_encoder *encoder,
                                   const struct eng_rendered *text, size_t start,
                                   struct eng_tokens *out, struct eng_error *error)
{
    struct eng_encoder late = *encoder;
    late.controls = &encoder->late->controls;
    late.added = &encoder->late->others;
    struct finder finder = {0};
    enum eng_status status = ENG_OK;
    for (size_t at = 0; status == ENG_OK && at < text->size;) {
        const struct found found = find_standing(&late, text, at, &finder);
        const struct eng_text before = {text->bytes + at, found.start - at};
        status = encode_pieces(encoder, before, start + at, out, error);
        if (status == ENG_OK && found.token != NULL) {
            status = push(out, found.token->id, start + found.start, error);
        }
        at = found.end;
    }
    return status;
}

/* Bytes from .. end - 1 of a text, of which the normalizer has made `made`; NULL: left as it is. */
static enum eng_status encode_made(const struct eng_encoder *encoder,
                                   const struct eng_rendered *text, size_t from, size_t end,
                                   const struct eng_normal_text *made, struct eng_tokens *out,
                                   struct eng_error *error)
{
    struct eng_rendered part = {.bytes = made == NULL ? text->bytes + from : made->bytes,
                                .size = made == NULL ? end - from : made->size};
    const size_t start = made == NULL ? from : 0;
    if (encoder->late == NULL) {
        return encode_pieces(encoder, (struct eng_text){part.bytes, part.size}, start, out, error);
    }
    if (!contents_within(text, from, end, made, encoder->work, &part)) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for the contents of a text");
    }
    return encode_late(encoder, &part, start, out, error);
}

static enum eng_status encode_normal(const struct eng_encoder *encoder,
                                     const struct eng_normalizer *normalizer,
                                     const struct eng_rendered *text, size_t from, size_t end,
                                     struct eng_tokens *out, struct eng_error *error)
{
    const struct eng_text between = {text->bytes + from, end - from};
    if (between.size == 0) {
        return ENG_OK;
    }
    if (eng_normal_is_idle(normalizer, between)) {
        return encode_made(encoder, text, from, end, NULL, out, error);
    }
    const size_t before = out->count;
    struct eng_normal_work *const work = &encoder->work->normal;
    enum eng_status status = eng_normal_run(normalizer, between, work, error);
    if (status == ENG_OK) {
        status = encode_made(encoder, text, from, end, &work->text, out, error);
    }
    for (size_t i = before; i < out->count; i++) {
        out->items[i].start = (uint32_t)from + work->text.origins[out->items[i].start];
    }
    return status;
}

static enum eng_status encode_between(const struct eng_encoder *encoder,
                                      const struct eng_rendered *text, size_t from, size_t end,
                                      struct eng_tokens *out, struct eng_error *error)
{
    const struct eng_normalizer *const normalizer = FAULT(encode_normalizer, encoder->normalizer);
    return encode_normal(encoder, normalizer, text, from, end, out, error);
}

/* Encodes what other steps would leave of the text; right only in a fault. */
__attribute__((unused)) static enum eng_status
encode_otherwise(const struct eng_encoder *encoder, enum eng_normal_kind kind,
                 const struct eng_rendered *text, size_t from, size_t end, struct eng_tokens *out,
                 struct eng_error *error)
{
    const struct eng_normalizer other = {.steps = {{.kind = kind}}, .count = 1};
    return encode_normal(encoder, &other, text, from, end, out, error);
}

enum eng_status eng_encode_rendered(const struct eng_encoder *encoder,
                                    const struct eng_rendered *text, struct eng_tokens *out,
                                    struct eng_error *error)
{
    if (text->size >= UINT32_MAX / 8) {
        return eng_fail(error, ENG_EINPUT, "a rendered chat of %zu bytes is too long", text->size);
    }
    struct finder finder = {0};
    enum eng_status status = FAULT(encode_begin, begin(out));
    for (size_t at = 0; status == ENG_OK && at < text->size;) {
        const struct found found = find_standing(encoder, text, at, &finder);
        const size_t control_at = found.start;
        if (found.token != NULL && control_at == at) {
            const struct eng_control *const control = found.token;
            status = push(out, FAULT(encode_control, control->id), at, error);
            at = found.end;
            continue;
        }
        const size_t end = FAULT(encode_border, control_at);
        status = FAULT(encode_text, encode_between(encoder, text, at, end, out, error));
        at = end;
    }
    return status;
}

void eng_encode_work_fini(struct eng_encode_work *work)
{
    eng_normal_work_fini(&work->normal);
    free(work->contents);
    *work = (struct eng_encode_work){0};
}

void eng_tokens_fini(struct eng_tokens *tokens)
{
    free(tokens->items);
    *tokens = (struct eng_tokens){0};
}
