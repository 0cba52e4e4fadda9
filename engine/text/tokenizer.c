/* Reads tokenizer.json and owns the parts that encode.
 * Called by engine/data; must not know records, masks or rows. */
#include "tokenizer.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "growth.h"
#include "text_utf8.h"

struct eng_tokenizer {
    int size;
    uint16_t *token_bytes; /* by id; 0 = no such id yet */
    struct eng_control_set controls;
    eng_splitter *splitter;
    eng_bpe *bpe;
};

/* What reading needs; messages begin with the path. */
struct reader {
    const char *path;
    eng_tokenizer *tokenizer;
    json_t *root, *model, *vocab;
    struct eng_error *error;
};

#define READER_FAIL(reader, ...) reader_fail((reader), ENG_EINPUT, __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static enum eng_status
reader_fail(const struct reader *reader, enum eng_status status, const char *format, ...)
{
    char cause[300];
    va_list args;
    va_start(args, format);
    vsnprintf(cause, sizeof cause, format, args);
    va_end(args);
    return eng_fail(reader->error, status, "%s: %s", reader->path, cause);
}

static bool is_absent(const json_t *value)
{
    return value == NULL || json_is_null(value);
}

/* Absent, null, false or an empty string: the option is off. */
static bool is_off(const json_t *value)
{
    return is_absent(value) || json_is_false(value) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

/* Options that would change ids are refused by name rather than ignored. */
static enum eng_status check_options(const struct reader *reader)
{
    static const char *const unwanted[] = {"dropout", "continuing_subword_prefix",
                                           "end_of_word_suffix", "byte_fallback", "ignore_merges"};
    const char *const type = json_string_value(json_object_get(reader->model, "type"));
    if (type != NULL && strcmp(type, "BPE") != 0) {
        return READER_FAIL(reader, "model.type is '%s', only BPE is supported", type);
    }
    for (size_t i = 0; i < sizeof unwanted / sizeof unwanted[0]; i++) {
        if (!is_off(json_object_get(reader->model, unwanted[i]))) {
            return READER_FAIL(reader, "model.%s is not supported", unwanted[i]);
        }
    }
    if (!is_absent(json_object_get(reader->root, "normalizer"))) {
        return READER_FAIL(reader, "a normalizer is not supported");
    }
    const json_t *const split = json_object_get(reader->root, "pre_tokenizer");
    if (is_absent(split)) {
        return ENG_OK;
    }
    const char *const split_type = json_string_value(json_object_get(split, "type"));
    if (split_type == NULL || strcmp(split_type, "ByteLevel") != 0) {
        return READER_FAIL(reader, "pre_tokenizer must be ByteLevel");
    }
    if (!is_off(json_object_get(split, "add_prefix_space"))) {
        return READER_FAIL(reader, "pre_tokenizer.add_prefix_space is not supported");
    }
    if (json_is_false(json_object_get(split, "use_regex"))) {
        return READER_FAIL(reader, "pre_tokenizer.use_regex must not be false");
    }
    return ENG_OK;
}

static size_t count_code_points(const char *text, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    return count;
}

static enum eng_status claim_id(const struct reader *reader, const char *text, json_int_t id,
                                size_t bytes)
{
    eng_tokenizer *const t = reader->tokenizer;
    if (id < 0 || id >= t->size) {
        return READER_FAIL(reader, "token '%s' has id %lld, but ids must be 0 to %d", text,
                           (long long)id, t->size - 1);
    }
    if (t->token_bytes[id] != 0) {
        return READER_FAIL(reader, "token '%s' has id %lld, which another token has too", text,
                           (long long)id);
    }
    if (bytes == 0 || bytes > UINT16_MAX) {
        return READER_FAIL(reader, "token %lld is empty or too long", (long long)id);
    }
    t->token_bytes[id] = (uint16_t)bytes;
    return ENG_OK;
}

/* The ids of model.vocab; added tokens may repeat some of them. */
static enum eng_status read_vocab(const struct reader *reader, const json_t *added)
{
    eng_tokenizer *const t = reader->tokenizer;
    size_t size = json_object_size(reader->vocab);
    size_t index;
    json_t *item;
    json_array_foreach(added, index, item)
    {
        const char *const text = json_string_value(json_object_get(item, "content"));
        size += text != NULL && json_object_get(reader->vocab, text) == NULL;
    }
    if (size == 0 || size > INT32_MAX / 4) {
        return READER_FAIL(reader, "model.vocab has %zu tokens", size);
    }
    t->size = (int)size;
    t->token_bytes = calloc(size, sizeof *t->token_bytes);
    if (t->token_bytes == NULL) {
        return reader_fail(reader, ENG_EHOSTMEM, "no memory for %zu tokens", size);
    }
    const char *text;
    json_object_foreach(reader->vocab, text, item)
    {
        if (!json_is_integer(item)) {
            return READER_FAIL(reader, "model.vocab: token '%s' has no whole number", text);
        }
        const enum eng_status status =
            claim_id(reader, text, json_integer_value(item), count_code_points(text, strlen(text)));
        if (status != ENG_OK) {
            return status;
        }
    }
    return ENG_OK;
}

static enum eng_status read_added(const struct reader *reader, const json_t *added)
{
    size_t index;
    json_t *item;
    json_array_foreach(added, index, item)
    {
        const char *const text = json_string_value(json_object_get(item, "content"));
        const json_t *const id = json_object_get(item, "id");
        if (text == NULL || !json_is_integer(id)) {
            return READER_FAIL(reader, "added_tokens: entry %zu has no content or no id", index);
        }
        if (!json_is_true(json_object_get(item, "special"))) {
            return READER_FAIL(reader, "added token '%s' is not special: not supported", text);
        }
        const json_t *const in_vocab = json_object_get(reader->vocab, text);
        if (in_vocab != NULL && json_integer_value(in_vocab) != json_integer_value(id)) {
            return READER_FAIL(reader, "added token '%s' has another id in model.vocab", text);
        }
        enum eng_status status = ENG_OK;
        if (in_vocab == NULL) {
            status = claim_id(reader, text, json_integer_value(id), strlen(text));
        }
        struct eng_error cause = {""};
        if (status == ENG_OK) {
            status = eng_control_add(&reader->tokenizer->controls, text, strlen(text),
                                     (int32_t)json_integer_value(id), &cause);
            if (status != ENG_OK) {
                return reader_fail(reader, status, "%.200s", cause.text);
            }
        }
        if (status != ENG_OK) {
            return status;
        }
    }
    struct eng_error cause = {""};
    const enum eng_status status = eng_control_seal(&reader->tokenizer->controls, &cause);
    return status == ENG_OK ? ENG_OK : reader_fail(reader, status, "%.200s", cause.text);
}

/* GPT-2's alphabet: printable bytes stand for themselves, the others for 256, 257, ... in order. */
static enum eng_status read_bytes(const struct reader *reader, int32_t byte_ids[256])
{
    unsigned moved = 256;
    for (unsigned byte = 0; byte < 256; byte++) {
        const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
        char text[5] = "";
        text[eng_utf8_put(text, printable ? byte : moved)] = '\0';
        moved += printable ? 0 : 1;
        const json_t *const id = json_object_get(reader->vocab, text);
        if (id == NULL) {
            return READER_FAIL(reader, "model.vocab has no token '%s' for byte 0x%02x", text, byte);
        }
        byte_ids[byte] = (int32_t)json_integer_value(id);
    }
    return ENG_OK;
}

/* The two halves of a merge, written "a b" or ["a", "b"]. Halves hold no blank: bytes have none. */
static bool merge_halves(const json_t *item, char *joined, size_t size, char **right)
{
    const char *a = json_string_value(item);
    const char *b = NULL;
    size_t length = 0;
    if (a != NULL) {
        const char *const blank = strchr(a, ' ');
        if (blank == NULL || blank == a || blank[1] == '\0' || strchr(blank + 1, ' ') != NULL) {
            return false;
        }
        length = (size_t)(blank - a);
        b = blank + 1;
    } else if (json_array_size(item) == 2) {
        a = json_string_value(json_array_get(item, 0));
        b = json_string_value(json_array_get(item, 1));
        length = a == NULL ? 0 : strlen(a);
    }
    if (length == 0 || b == NULL || *b == '\0' || length + strlen(b) + 2 > size) {
        return false;
    }
    memcpy(joined, a, length);
    joined[length] = '\0';
    *right = joined + length + 1;
    strcpy(*right, b);
    return true;
}

static bool vocab_id(const struct reader *reader, const char *text, int32_t *id)
{
    const json_t *const value = json_object_get(reader->vocab, text);
    *id = value == NULL ? -1 : (int32_t)json_integer_value(value);
    return value != NULL;
}

static enum eng_status read_merge(const struct reader *reader, size_t index, const json_t *item,
                                  struct eng_bpe_merge *merge)
{
    char halves[2048];
    char *right = NULL;
    if (!merge_halves(item, halves, sizeof halves, &right)) {
        return READER_FAIL(reader, "model.merges: entry %zu is no pair of tokens", index);
    }
    if (!vocab_id(reader, halves, &merge->left) || !vocab_id(reader, right, &merge->right)) {
        return READER_FAIL(reader,
                           "model.merges: entry %zu joins '%.100s' and '%.100s', not both "
                           "in model.vocab",
                           index, halves, right);
    }
    memmove(right - 1, right, strlen(right) + 1);
    if (!vocab_id(reader, halves, &merge->result)) {
        return READER_FAIL(reader, "model.merges: entry %zu makes '%.200s', not in model.vocab",
                           index, halves);
    }
    return ENG_OK;
}

static enum eng_status read_merges(const struct reader *reader)
{
    const json_t *const list = json_object_get(reader->model, "merges");
    struct eng_bpe_merge *merges = NULL;
    int32_t byte_ids[256];
    enum eng_status status = read_bytes(reader, byte_ids);
    if (status != ENG_OK) {
        goto done;
    }
    if (!json_is_array(list)) {
        status = READER_FAIL(reader, "model.merges is missing or no array");
        goto done;
    }
    const size_t count = json_array_size(list);
    merges = calloc(count + 1, sizeof *merges);
    if (merges == NULL) {
        status = reader_fail(reader, ENG_EHOSTMEM, "no memory for %zu merges", count);
        goto done;
    }
    for (size_t i = 0; status == ENG_OK && i < count; i++) {
        status = read_merge(reader, i, json_array_get(list, i), &merges[i]);
    }
    if (status == ENG_OK) {
        struct eng_error cause = {""};
        status = eng_bpe_create(byte_ids, merges, count, &reader->tokenizer->bpe, &cause);
        if (status != ENG_OK) {
            reader_fail(reader, status, "model.merges: %.200s", cause.text);
        }
    }
done:
    free(merges);
    return status;
}

static enum eng_status read_root(struct reader *reader)
{
    json_error_t cause;
    errno = 0;
    reader->root = json_load_file(reader->path, JSON_REJECT_DUPLICATES, &cause);
    if (reader->root == NULL) {
        if (json_error_code(&cause) == json_error_cannot_open_file) {
            return eng_fail(reader->error, ENG_EIO, "%s: %s", reader->path, strerror(errno));
        }
        return eng_fail(reader->error, ENG_EINPUT, "%s:%d: %s", reader->path, cause.line,
                        cause.text);
    }
    reader->model = json_object_get(reader->root, "model");
    reader->vocab = json_object_get(reader->model, "vocab");
    if (!json_is_object(reader->vocab)) {
        return READER_FAIL(reader, "model.vocab is missing or no object");
    }
    return ENG_OK;
}

enum eng_status eng_tokenizer_open(const char *path, eng_tokenizer **out, struct eng_error *error)
{
    struct reader reader = {.path = path, .error = error};
    reader.tokenizer = calloc(1, sizeof *reader.tokenizer);
    if (reader.tokenizer == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for a tokenizer");
    }
    enum eng_status status = read_root(&reader);
    const json_t *const added = json_object_get(reader.root, "added_tokens");
    if (status == ENG_OK) {
        status = check_options(&reader);
    }
    if (status == ENG_OK) {
        status = read_vocab(&reader, added);
    }
    if (status == ENG_OK) {
        status = read_added(&reader, added);
    }
    if (status == ENG_OK) {
        status = read_merges(&reader);
    }
    if (status == ENG_OK) {
        status = eng_splitter_create(&reader.tokenizer->splitter, error);
    }
    json_decref(reader.root);
    if (status == ENG_OK) {
        *out = reader.tokenizer;
    } else {
        eng_tokenizer_close(reader.tokenizer);
    }
    return status;
}

void eng_tokenizer_close(eng_tokenizer *tokenizer)
{
    if (tokenizer != NULL) {
        free(tokenizer->token_bytes);
        eng_control_fini(&tokenizer->controls);
        eng_splitter_destroy(tokenizer->splitter);
        eng_bpe_destroy(tokenizer->bpe);
        free(tokenizer);
    }
}

int eng_tokenizer_size(const eng_tokenizer *tokenizer)
{
    return tokenizer->size;
}

int32_t eng_tokenizer_control_id(const eng_tokenizer *tokenizer, const char *text)
{
    const struct eng_control *const found = eng_control_find(&tokenizer->controls, text);
    return found == NULL ? -1 : found->id;
}

bool eng_tokenizer_sees_control(const eng_tokenizer *tokenizer, struct eng_text text)
{
    size_t at = 0;
    return eng_control_search(&tokenizer->controls, text.bytes, text.size, &at) != NULL;
}

enum eng_status eng_tokenizer_encode(eng_tokenizer *tokenizer, const struct eng_rendered *text,
                                     struct eng_tokens *out, struct eng_error *error)
{
    const struct eng_encoder encoder = {&tokenizer->controls, tokenizer->splitter, tokenizer->bpe,
                                        tokenizer->token_bytes};
    return eng_encode_rendered(&encoder, text, out, error);
}
