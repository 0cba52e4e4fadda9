/* Opens a tokenizer file of either kind and owns the parts that encode and decode.
 * Called by engine/data; must not know records, masks or rows. */
#include "tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "growth.h"
#include "text_utf8.h"
#include "tokenizer_parts.h"

struct eng_tokenizer {
    struct eng_tokenizer_parts parts;
    uint16_t *token_bytes; /* by id */
    struct eng_encode_work work;
    eng_splitter *splitter;
    eng_bpe *bpe;
};

void eng_tokenizer_parts_fini(struct eng_tokenizer_parts *parts)
{
    eng_vocab_fini(&parts->vocab);
    eng_control_fini(&parts->names);
    eng_control_fini(&parts->early.controls);
    eng_control_fini(&parts->early.others);
    eng_control_fini(&parts->late.controls);
    eng_control_fini(&parts->late.others);
    free(parts->merges);
    parts->merges = NULL;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t size = strlen(text);
    return size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0;
}

/* How many bytes of text each token stands for. */
static bool count_bytes(eng_tokenizer *t)
{
    const struct eng_vocab *const vocab = &t->parts.vocab;
    t->token_bytes = calloc((size_t)vocab->size, sizeof *t->token_bytes);
    if (t->token_bytes == NULL) {
        return false;
    }
    for (int32_t id = 0; id < vocab->size; id++) {
        t->token_bytes[id] = (uint16_t)eng_vocab_text(vocab, id).size;
    }
    for (int byte = 0; byte < 256; byte++) {
        t->token_bytes[t->parts.byte_ids[byte]] = 1;
    }
    return true;
}

static enum eng_status make_parts(const char *path, eng_tokenizer *t, struct eng_error *error)
{
    struct eng_tokenizer_parts *const parts = &t->parts;
    const struct eng_bpe_rules rules = {
        .byte_ids = parts->byte_ids,
        .merges = parts->merges,
        .merge_count = parts->merge_count,
        .characters = parts->characters ? &parts->vocab : NULL,
        .whole = parts->whole_pieces ? &parts->vocab : NULL,
    };
    struct eng_error cause = {""};
    if (!count_bytes(t)) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for %d tokens", (int)parts->vocab.size);
    }
    const enum eng_status status = eng_bpe_create(&rules, &t->bpe, &cause);
    if (status != ENG_OK) {
        return eng_fail(error, status, "%s: model.merges: %.200s", path, cause.text);
    }
    free(parts->merges);
    parts->merges = NULL;
    return eng_splitter_create(parts->split, &t->splitter, error);
}

enum eng_status eng_tokenizer_open(const char *path, eng_tokenizer **out, struct eng_error *error)
{
    eng_tokenizer *const t = calloc(1, sizeof *t);
    if (t == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for a tokenizer");
    }
    enum eng_status status = ends_with(path, ".tiktoken")
                                 ? eng_tokenizer_read_ranks(path, &t->parts, error)
                                 : eng_tokenizer_read_json(path, &t->parts, error);
    if (status == ENG_OK) {
        status = make_parts(path, t, error);
    }
    if (status == ENG_OK) {
        *out = t;
    } else {
        eng_tokenizer_close(t);
    }
    return status;
}

void eng_tokenizer_close(eng_tokenizer *tokenizer)
{
    if (tokenizer != NULL) {
        free(tokenizer->token_bytes);
        eng_encode_work_fini(&tokenizer->work);
        eng_splitter_destroy(tokenizer->splitter);
        eng_bpe_destroy(tokenizer->bpe);
        eng_tokenizer_parts_fini(&tokenizer->parts);
        free(tokenizer);
    }
}

int eng_tokenizer_size(const eng_tokenizer *tokenizer)
{
    return tokenizer->parts.vocab.size;
}

int32_t eng_tokenizer_control_id(const eng_tokenizer *tokenizer, const char *text)
{
    const struct eng_control *const found =
        eng_control_find(&tokenizer->parts.names, (struct eng_text){text, strlen(text)});
    return found == NULL ? -1 : found->id;
}

bool eng_tokenizer_sees_control(const eng_tokenizer *tokenizer, struct eng_text text)
{
    size_t at = 0;
    return eng_control_search(&tokenizer->parts.names, text.bytes, text.size, &at) != NULL;
}

bool eng_tokenizer_composes(const eng_tokenizer *tokenizer)
{
    const struct eng_normalizer *const normalizer = &tokenizer->parts.normalizer;
    for (size_t i = 0; i < normalizer->count; i++) {
        if (normalizer->steps[i].kind == ENG_NORMAL_COMPOSE) {
            return true;
        }
    }
    return false;
}

bool eng_tokenizer_splits_numbers(const eng_tokenizer *tokenizer)
{
    return tokenizer->parts.split == ENG_SPLIT_CL100K ||
           tokenizer->parts.split == ENG_SPLIT_QWEN2 || tokenizer->parts.split == ENG_SPLIT_O200K;
}

bool eng_tokenizer_takes_space(const eng_tokenizer *tokenizer)
{
    const struct eng_control_set *const controls = &tokenizer->parts.early.controls;
    for (size_t i = 0; i < controls->count; i++) {
        if (controls->items[i].flags & (ENG_CONTROL_TAKES_LEFT | ENG_CONTROL_TAKES_RIGHT)) {
            return true;
        }
    }
    return false;
}

enum eng_status eng_tokenizer_encode(eng_tokenizer *tokenizer, const struct eng_rendered *text,
                                     struct eng_tokens *out, struct eng_error *error)
{
    const struct eng_added_tokens *const late = &tokenizer->parts.late;
    const struct eng_encoder encoder = {
        .controls = &tokenizer->parts.early.controls,
        .added = &tokenizer->parts.early.others,
        .late = late->controls.count + late->others.count > 0 ? late : NULL,
        .normalizer = &tokenizer->parts.normalizer,
        .work = &tokenizer->work,
        .splitter = tokenizer->splitter,
        .bpe = tokenizer->bpe,
        .token_bytes = tokenizer->token_bytes,
    };
    return eng_encode_rendered(&encoder, text, out, error);
}

enum eng_status eng_tokenizer_encode_text(eng_tokenizer *tokenizer, struct eng_text text,
                                          enum eng_controls controls, struct eng_tokens *out,
                                          struct eng_error *error)
{
    const size_t good = eng_utf8_good_size(text);
    if (good < text.size) {
        return eng_fail(error, ENG_EINPUT, "not UTF-8 at byte %zu", good + 1);
    }
    struct eng_span whole = {0, text.size};
    const struct eng_rendered rendered = {
        .bytes = (char *)(uintptr_t)text.bytes, /* only read */
        .size = text.size,
        .contents = &whole,
        .content_count = controls == ENG_CONTROLS_AS_TEXT ? 1 : 0,
    };
    return eng_tokenizer_encode(tokenizer, &rendered, out, error);
}

static bool append(struct eng_decoded *out, const char *bytes, size_t size)
{
    char *const grown = eng_grown(out->bytes, &out->capacity, out->size + size, 1);
    if (grown == NULL) {
        return false;
    }
    out->bytes = grown;
    memcpy(grown + out->size, bytes, size);
    out->size += size;
    return true;
}

/* A token's text; for tokens of characters, bytes and marks of blanks are turned back. */
static bool append_token(const eng_tokenizer *t, int32_t id, struct eng_decoded *out)
{
    static const char mark[] = "\xE2\x96\x81";
    const struct eng_text text = eng_vocab_text(&t->parts.vocab, id);
    unsigned byte = 0;
    if (!t->parts.characters) {
        return append(out, text.bytes, text.size);
    }
    while (byte < 256 && t->parts.byte_ids[byte] != id) {
        byte++;
    }
    if (byte < 256) {
        const char one = (char)byte;
        return append(out, &one, 1);
    }
    bool good = true;
    for (size_t at = 0; good && at < text.size;) {
        const char *const found = memmem(text.bytes + at, text.size - at, mark, sizeof mark - 1);
        const size_t end = found == NULL ? text.size : (size_t)(found - text.bytes);
        good = append(out, text.bytes + at, end - at) && (found == NULL || append(out, " ", 1));
        at = found == NULL ? end : end + sizeof mark - 1;
    }
    return good;
}

enum eng_status eng_tokenizer_decode(const eng_tokenizer *tokenizer, const int32_t *ids,
                                     size_t count, struct eng_decoded *out, struct eng_error *error)
{
    out->size = 0;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 0 || ids[i] >= tokenizer->parts.vocab.size ||
            eng_vocab_text(&tokenizer->parts.vocab, ids[i]).size == 0) {
            return eng_fail(error, ENG_EINPUT, "id %d at place %zu is no token", (int)ids[i], i);
        }
        if (!append_token(tokenizer, ids[i], out)) {
            return eng_fail(error, ENG_EHOSTMEM, "no memory for a decoded text");
        }
    }
    const struct eng_normalizer *const normalizer = &tokenizer->parts.normalizer;
    if (normalizer->count > 0 && normalizer->steps[0].kind == ENG_NORMAL_PREPEND && out->size > 0 &&
        out->bytes[0] == ' ') {
        memmove(out->bytes, out->bytes + 1, --out->size);
    }
    return ENG_OK;
}
