/* Reads a tokenizer.json of Hugging Face; what it could not follow it refuses by name.
 * Called by tokenizer; must not know texts to encode. */
#include "tokenizer_json.h"

#include <stdlib.h>

enum { MOVED_FIRST = 256, TEXT_BYTES_MAX = UINT16_MAX };

enum eng_status eng_tokenizer_json_fail(const struct reader *reader, enum eng_status status,
                                        const char *format, ...)
{
    char cause[300];
    va_list args;
    va_start(args, format);
    vsnprintf(cause, sizeof cause, format, args);
    va_end(args);
    return eng_fail(reader->error, status, "%s: %s", reader->path, cause);
}

/* Printable bytes stand for themselves, the others for 256, 257, ... in order. */
static void make_alphabet(int16_t byte_of[TOKENIZER_ALPHABET])
{
    int moved = MOVED_FIRST;
    memset(byte_of, 0xFF, TOKENIZER_ALPHABET * sizeof *byte_of);
    for (int byte = 0; byte < 256; byte++) {
        const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
        byte_of[printable ? byte : moved++] = (int16_t)byte;
    }
}

/* The bytes a token's text stands for, into out; false when it has a character that is no byte. */
static bool text_bytes(const struct reader *reader, const char *text, size_t size, char *out,
                       size_t *out_size)
{
    if (reader->parts->characters) {
        memcpy(out, text, size);
        *out_size = size;
        return true;
    }
    *out_size = 0;
    for (size_t at = 0; at < size;) {
        const unsigned char *const b = (const unsigned char *)text + at;
        const unsigned character = b[0] < 0x80   ? b[0]
                                   : b[0] < 0xE0 ? (b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu)
                                                 : TOKENIZER_ALPHABET;
        if (character >= TOKENIZER_ALPHABET || reader->byte_of[character] < 0) {
            return false;
        }
        out[(*out_size)++] = (char)reader->byte_of[character];
        at += b[0] < 0x80 ? 1 : 2;
    }
    return true;
}

static enum eng_status put(const struct reader *reader, const char *where, int64_t id,
                           struct eng_text text, bool found)
{
    struct eng_error cause = {""};
    const enum eng_status status = eng_vocab_put(&reader->parts->vocab, id, text, found, &cause);
    return status == ENG_OK
               ? ENG_OK
               : eng_tokenizer_json_fail(reader, status, "%s: %.200s", where, cause.text);
}

/* How many ids there are, one above the largest, which is refused where it is too large. */
static enum eng_status count_ids(const struct reader *reader, const json_t *added, size_t *count)
{
    enum { SHOWN = 60 };
    struct file_token last = {{"", 0}, -1};
    size_t index;
    json_t *item;
    for (size_t i = 0; i < reader->token_count; i++) {
        last = reader->tokens[i].id > last.id ? reader->tokens[i] : last;
    }
    json_array_foreach(added, index, item)
    {
        const json_t *const text = json_object_get(item, "content");
        const json_int_t id = json_integer_value(json_object_get(item, "id")); /* 0: no number */
        if (id > last.id) {
            last = (struct file_token){{json_string_value(text), json_string_length(text)}, id};
        }
    }
    if (last.id >= ENG_VOCAB_IDS_MAX) {
        const size_t shown = last.text.size < SHOWN ? last.text.size : SHOWN;
        return READER_FAIL(reader, "token '%.*s' has id %lld, above the largest, %d", (int)shown,
                           last.text.bytes, (long long)last.id, ENG_VOCAB_IDS_MAX - 1);
    }
    *count = (size_t)(last.id + 1);
    return ENG_OK;
}

/* The ids of model.vocab; added tokens may repeat some of them. */
static enum eng_status read_vocab(struct reader *reader, const json_t *added)
{
    char bytes[TEXT_BYTES_MAX];
    struct eng_error cause = {""};
    size_t size = 0;
    enum eng_status status = count_ids(reader, added, &size);
    if (status != ENG_OK) {
        return status;
    }
    status = eng_vocab_init(&reader->parts->vocab, size, &cause);
    status = status == ENG_OK ? eng_vocab_init(&reader->names, size, &cause) : status;
    for (size_t i = 0; status == ENG_OK && i < reader->token_count; i++) {
        const struct file_token token = reader->tokens[i];
        struct eng_text text = {bytes, 0};
        const bool found = token.text.size < sizeof bytes &&
                           text_bytes(reader, token.text.bytes, token.text.size, bytes, &text.size);
        text = found ? text : token.text;
        status = eng_vocab_put(&reader->names, token.id, token.text, true, &cause);
        if (status == ENG_OK) {
            status = eng_vocab_put(&reader->parts->vocab, token.id, text, found, &cause);
        }
    }
    return status == ENG_OK
               ? ENG_OK
               : eng_tokenizer_json_fail(reader, status, "model.vocab: %.200s", cause.text);
}

static const struct {
    const char *key;
    unsigned flag;
} added_flags[] = {{"lstrip", ENG_CONTROL_TAKES_LEFT},
                   {"rstrip", ENG_CONTROL_TAKES_RIGHT},
                   {"single_word", ENG_CONTROL_ALONE},
                   {"special", 0},
                   {"normalized", 0}};

static unsigned flags_of(const json_t *item)
{
    unsigned flags = 0;
    for (size_t i = 0; i < sizeof added_flags / sizeof added_flags[0]; i++) {
        flags |= json_is_true(json_object_get(item, added_flags[i].key)) ? added_flags[i].flag : 0;
    }
    return flags;
}

static enum eng_status check_added(const struct reader *reader, const json_t *item, size_t index)
{
    const char *const text = json_string_value(json_object_get(item, "content"));
    if (text == NULL || !json_is_integer(json_object_get(item, "id"))) {
        return READER_FAIL(reader, "added_tokens: entry %zu has no content or no id", index);
    }
    for (size_t i = 0; i < sizeof added_flags / sizeof added_flags[0]; i++) {
        const json_t *const flag = json_object_get(item, added_flags[i].key);
        if (!is_absent(flag) && !json_is_boolean(flag)) {
            return READER_FAIL(reader, "added token '%.60s': %s is neither true nor false", text,
                               added_flags[i].key);
        }
    }
    const int32_t in_vocab = eng_vocab_find(&reader->names, text, strlen(text));
    if (in_vocab >= 0 && in_vocab != json_integer_value(json_object_get(item, "id"))) {
        return READER_FAIL(reader, "added token '%.60s' has another id in model.vocab", text);
    }
    return ENG_OK;
}

/* Puts an added token among those of its kind, one to be normalised with what the normalizer makes
 * of its text. */
static enum eng_status add_token(const struct reader *reader, const json_t *item, int32_t id,
                                 struct eng_normal_work *work, struct eng_error *cause)
{
    struct eng_tokenizer_parts *const parts = reader->parts;
    const char *const content = json_string_value(json_object_get(item, "content"));
    const bool late = json_is_true(json_object_get(item, "normalized"));
    const bool special = json_is_true(json_object_get(item, "special"));
    struct eng_added_tokens *const tokens = late ? &parts->late : &parts->early;
    struct eng_text text = {content, strlen(content)};
    enum eng_status status =
        special ? eng_control_add(&parts->names, text.bytes, text.size, id, 0, cause) : ENG_OK;
    if (status == ENG_OK && late) {
        status = eng_normal_run(&parts->normalizer, text, work, cause);
        text = (struct eng_text){work->text.bytes, work->text.size};
    }
    if (status == ENG_OK) {
        status = eng_control_add(special ? &tokens->controls : &tokens->others, text.bytes,
                                 text.size, id, flags_of(item), cause);
    }
    return status;
}

static enum eng_status read_added_token(const struct reader *reader, const json_t *item,
                                        size_t index, struct eng_control_set *all,
                                        struct eng_normal_work *work)
{
    enum eng_status status = check_added(reader, item, index);
    if (status != ENG_OK) {
        return status;
    }
    struct eng_error cause = {""};
    const char *const text = json_string_value(json_object_get(item, "content"));
    const json_int_t id = json_integer_value(json_object_get(item, "id"));
    if (eng_vocab_find(&reader->names, text, strlen(text)) < 0) {
        status = put(reader, "added_tokens", id, (struct eng_text){text, strlen(text)}, false);
        if (status != ENG_OK) {
            return status;
        }
    }
    status = eng_control_add(all, text, strlen(text), (int32_t)id, 0, &cause);
    if (status == ENG_OK) {
        status = add_token(reader, item, (int32_t)id, work, &cause);
    }
    return status == ENG_OK ? ENG_OK
                            : eng_tokenizer_json_fail(reader, status, "%.200s", cause.text);
}

static enum eng_status read_added(const struct reader *reader, const json_t *added)
{
    struct eng_tokenizer_parts *const parts = reader->parts;
    struct eng_control_set all = {0}; /* only to find what stands twice */
    struct eng_normal_work work = {0};
    struct eng_control_set *const sets[] = {&all,
                                            &parts->names,
                                            &parts->early.controls,
                                            &parts->early.others,
                                            &parts->late.controls,
                                            &parts->late.others};
    struct eng_error cause = {""};
    enum eng_status status = ENG_OK;
    size_t index;
    json_t *item;
    if (!is_absent(added) && !json_is_array(added)) {
        return READER_FAIL(reader, "added_tokens is no array");
    }
    json_array_foreach(added, index, item)
    {
        status = status == ENG_OK ? read_added_token(reader, item, index, &all, &work) : status;
    }
    for (size_t i = 0; status == ENG_OK && i < sizeof sets / sizeof sets[0]; i++) {
        status = eng_control_seal(sets[i], &cause);
        status = status == ENG_OK ? ENG_OK
                                  : eng_tokenizer_json_fail(reader, status, "%.200s", cause.text);
    }
    eng_control_fini(&all);
    eng_normal_work_fini(&work);
    return status;
}

static enum eng_status read_bytes(const struct reader *reader)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[8] = {(char)byte, '\0'};
        size_t size = 1;
        if (reader->parts->characters) {
            size = (size_t)snprintf(text, sizeof text, "<0x%02X>", byte);
        }
        reader->parts->byte_ids[byte] = eng_vocab_find(&reader->parts->vocab, text, size);
        if (reader->parts->byte_ids[byte] < 0) {
            return READER_FAIL(reader, "model.vocab has no token for byte 0x%02x", byte);
        }
    }
    return ENG_OK;
}

static enum eng_status read_merge(const struct reader *reader, size_t index,
                                  struct eng_bpe_merge *merge)
{
    enum { HALF_MAX = 1024, SHOWN = 60 };
    const struct eng_vocab *const vocab = &reader->parts->vocab;
    const struct eng_text *const half = reader->merges[index].half;
    char bytes[2 * HALF_MAX];
    size_t left = 0;
    size_t right = 0;
    if (half[0].size - 1 >= HALF_MAX || half[1].size - 1 >= HALF_MAX) { /* also empty ones */
        return READER_FAIL(reader, "model.merges: entry %zu is no pair of tokens", index);
    }
    const bool good = text_bytes(reader, half[0].bytes, half[0].size, bytes, &left) &&
                      text_bytes(reader, half[1].bytes, half[1].size, bytes + left, &right);
    merge->left = good ? eng_vocab_find(vocab, bytes, left) : -1;
    merge->right = good ? eng_vocab_find(vocab, bytes + left, right) : -1;
    if (merge->left < 0 || merge->right < 0) {
        return READER_FAIL(
            reader, "model.merges: entry %zu joins '%.*s' and '%.*s', not both in model.vocab",
            index, half[0].size < SHOWN ? (int)half[0].size : SHOWN, half[0].bytes,
            half[1].size < SHOWN ? (int)half[1].size : SHOWN, half[1].bytes);
    }
    merge->result = eng_vocab_find(vocab, bytes, left + right);
    if (merge->result < 0) {
        return READER_FAIL(reader, "model.merges: entry %zu makes '%.*s%.*s', not in model.vocab",
                           index, half[0].size < SHOWN ? (int)half[0].size : SHOWN, half[0].bytes,
                           half[1].size < SHOWN ? (int)half[1].size : SHOWN, half[1].bytes);
    }
    merge->rank = (int32_t)index;
    return ENG_OK;
}

static enum eng_status read_merges(const struct reader *reader)
{
    struct eng_tokenizer_parts *const parts = reader->parts;
    const size_t count = reader->merge_count;
    if (!reader->has_merges) {
        return READER_FAIL(reader, "model.merges is missing or no array");
    }
    if (count > INT32_MAX / 4) {
        return READER_FAIL(reader, "more merges than can be numbered");
    }
    parts->merges = calloc(count + 1, sizeof *parts->merges);
    if (parts->merges == NULL) {
        return eng_tokenizer_json_fail(reader, ENG_EHOSTMEM, "no memory for %zu merges", count);
    }
    parts->merge_count = count;
    enum eng_status status = ENG_OK;
    for (size_t i = 0; status == ENG_OK && i < count; i++) {
        status = read_merge(reader, i, &parts->merges[i]);
    }
    return status;
}

enum eng_status eng_tokenizer_read_json(const char *path, struct eng_tokenizer_parts *parts,
                                        struct eng_error *error)
{
    struct reader reader = {.path = path, .parts = parts, .error = error};
    make_alphabet(reader.byte_of);
    enum eng_status status = eng_tokenizer_json_members(&reader);
    if (status == ENG_OK && !reader.has_vocab) {
        status = READER_FAIL(&reader, "model.vocab is missing or no object");
    }
    const json_t *const added = json_object_get(reader.root, "added_tokens");
    if (status == ENG_OK) {
        status = eng_tokenizer_json_settings(&reader);
    }
    if (status == ENG_OK) {
        status = read_vocab(&reader, added);
    }
    if (status == ENG_OK) {
        status = read_added(&reader, added);
    }
    if (status == ENG_OK) {
        status = read_bytes(&reader);
    }
    if (status == ENG_OK) {
        status = read_merges(&reader);
    }
    eng_vocab_fini(&reader.names);
    eng_tokenizer_json_members_fini(&reader);
    return status;
}
