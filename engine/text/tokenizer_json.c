/* Reads a tokenizer.json of Hugging Face; what it could not follow it refuses by name.
 * Called by tokenizer; must not know texts to encode. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "growth.h"
#include "text_utf8.h"
#include "tokenizer_parts.h"

enum { MOVED_FIRST = 256, ALPHABET = 0x144, TEXT_BYTES_MAX = UINT16_MAX };

/* What reading needs; messages begin with the path. */
struct reader {
    const char *path;
    struct eng_tokenizer_parts *parts;
    json_t *root, *model, *vocab;
    int16_t byte_of[ALPHABET]; /* GPT-2's alphabet: the byte a character stands for, or -1 */
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

/* Absent, null, false, zero or an empty string: the option is off. */
static bool is_off(const json_t *value)
{
    return is_absent(value) || json_is_false(value) ||
           (json_is_number(value) && !(json_number_value(value) > 0.0)) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

static bool has_type(const json_t *value, const char *type)
{
    const char *const found = json_string_value(json_object_get(value, "type"));
    return found != NULL && strcmp(found, type) == 0;
}

static const char *type_of(const json_t *value)
{
    const char *const found = json_string_value(json_object_get(value, "type"));
    return found == NULL ? "(none)" : found;
}

/* Keys besides the given ones, which blanks part, are refused. */
static enum eng_status check_keys(const struct reader *reader, json_t *object, const char *where,
                                  const char *keys)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        const size_t size = strlen(key);
        const char *at = keys;
        while (at != NULL && (strncmp(at, key, size) != 0 || at[size] != ' ')) {
            at = strchr(at, ' ');
            at = at == NULL ? NULL : at + 1;
        }
        if (at == NULL || size == 0) {
            return READER_FAIL(reader, "%s%.60s is not supported", where, key);
        }
    }
    return ENG_OK;
}

/* Options that would change ids are refused by name rather than ignored. */
static enum eng_status check_model(const struct reader *reader)
{
    static const char *const unwanted[] = {"dropout", "continuing_subword_prefix",
                                           "end_of_word_suffix"};
    if (json_object_get(reader->model, "type") != NULL && !has_type(reader->model, "BPE")) {
        return READER_FAIL(reader, "model.type is '%.40s', only BPE is supported",
                           type_of(reader->model));
    }
    for (size_t i = 0; i < sizeof unwanted / sizeof unwanted[0]; i++) {
        if (!is_off(json_object_get(reader->model, unwanted[i]))) {
            return READER_FAIL(reader, "model.%s is not supported", unwanted[i]);
        }
    }
    reader->parts->characters = json_is_true(json_object_get(reader->model, "byte_fallback"));
    reader->parts->whole_pieces = json_is_true(json_object_get(reader->model, "ignore_merges"));
    return check_keys(reader, reader->model, "model.",
                      "type dropout unk_token continuing_subword_prefix end_of_word_suffix "
                      "fuse_unk byte_fallback ignore_merges vocab merges ");
}

/* Steps after encoding add tokens only when asked, and decoding is the reverse of the vocabulary:
 * both may be there, but must be of a kind that is known. */
static enum eng_status check_rest(const struct reader *reader)
{
    static const char *const post[] = {"ByteLevel", "TemplateProcessing", "Sequence",
                                       "BertProcessing", "RobertaProcessing"};
    static const char *const decoders[] = {"ByteLevel", "Sequence", "Replace", "ByteFallback"};
    const json_t *const parts[] = {json_object_get(reader->root, "post_processor"),
                                   json_object_get(reader->root, "decoder")};
    bool known[2] = {is_absent(parts[0]), is_absent(parts[1])};
    for (size_t i = 0; i < sizeof post / sizeof post[0]; i++) {
        known[0] = known[0] || has_type(parts[0], post[i]);
    }
    for (size_t i = 0; i < sizeof decoders / sizeof decoders[0]; i++) {
        known[1] = known[1] || has_type(parts[1], decoders[i]);
    }
    if (!known[0] || !known[1]) {
        return READER_FAIL(reader, "%s of type '%.40s' is not supported",
                           known[0] ? "decoder" : "post_processor",
                           type_of(parts[known[0] ? 1 : 0]));
    }
    static const char *const cuts[] = {"truncation", "padding"};
    for (size_t i = 0; i < 2; i++) {
        if (!is_absent(json_object_get(reader->root, cuts[i]))) {
            return READER_FAIL(reader, "%s is not supported", cuts[i]);
        }
    }
    return check_keys(reader, reader->root, "",
                      "version truncation padding added_tokens normalizer pre_tokenizer "
                      "post_processor decoder model ");
}

/* A text of a step, short and without NUL. */
static bool take_text(const json_t *value, char out[ENG_NORMAL_TEXT_MAX])
{
    const char *const text = json_string_value(value);
    if (text == NULL || strlen(text) >= ENG_NORMAL_TEXT_MAX) {
        return false;
    }
    strcpy(out, text);
    return true;
}

static enum eng_status read_normal_step(const struct reader *reader, const json_t *step)
{
    struct eng_normalizer *const normalizer = &reader->parts->normalizer;
    struct eng_normal_step made = {.kind = ENG_NORMAL_COMPOSE};
    bool good = has_type(step, "NFC");
    if (has_type(step, "Prepend")) {
        made.kind = ENG_NORMAL_PREPEND;
        good = take_text(json_object_get(step, "prepend"), made.with);
    } else if (has_type(step, "Replace")) {
        const json_t *const pattern = json_object_get(step, "pattern");
        made.kind = ENG_NORMAL_REPLACE;
        good = take_text(json_object_get(pattern, "String"), made.from) && made.from[0] != '\0' &&
               take_text(json_object_get(step, "content"), made.with);
    }
    if (!good) {
        return READER_FAIL(reader, "this normalizer of type '%.40s' is not supported",
                           type_of(step));
    }
    if (normalizer->count == ENG_NORMAL_STEPS_MAX) {
        return READER_FAIL(reader, "more than %d normalizers", ENG_NORMAL_STEPS_MAX);
    }
    normalizer->steps[normalizer->count++] = made;
    return ENG_OK;
}

static enum eng_status read_normalizer(const struct reader *reader)
{
    const json_t *const normalizer = json_object_get(reader->root, "normalizer");
    if (is_absent(normalizer)) {
        return ENG_OK;
    }
    if (!has_type(normalizer, "Sequence")) {
        return read_normal_step(reader, normalizer);
    }
    const json_t *const steps = json_object_get(normalizer, "normalizers");
    if (!json_is_array(steps)) {
        return READER_FAIL(reader, "normalizer.normalizers is no array");
    }
    enum eng_status status = ENG_OK;
    for (size_t i = 0; status == ENG_OK && i < json_array_size(steps); i++) {
        status = read_normal_step(reader, json_array_get(steps, i));
    }
    return status;
}

#define FORMS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define REST_SLASH "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPERS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWERS "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

/* The patterns that are known, letter by letter. */
static bool find_pattern(const char *regex, enum eng_split *out)
{
    static const char *const patterns[] = {
        [ENG_SPLIT_GPT2] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                           "\\s+(?!\\S)|\\s+",
        [ENG_SPLIT_CL100K] = FORMS "|" BEFORE "\\p{L}+|\\p{N}{1,3}" REST,
        [ENG_SPLIT_QWEN2] = FORMS "|" BEFORE "\\p{L}+|\\p{N}" REST,
        [ENG_SPLIT_O200K] = BEFORE UPPERS "*" LOWERS "+" FORMS "?|" BEFORE UPPERS "+" LOWERS
                                          "*" FORMS "?|\\p{N}{1,3}" REST_SLASH,
    };
    for (size_t i = 0; regex != NULL && i < sizeof patterns / sizeof patterns[0]; i++) {
        if (strcmp(regex, patterns[i]) == 0) {
            *out = (enum eng_split)i;
            return true;
        }
    }
    return false;
}

static enum eng_status read_split(const struct reader *reader, const json_t *split)
{
    const char *const regex =
        json_string_value(json_object_get(json_object_get(split, "pattern"), "Regex"));
    const char *const behavior = json_string_value(json_object_get(split, "behavior"));
    const bool inverted = json_is_true(json_object_get(split, "invert"));
    if (behavior == NULL || strcmp(behavior, inverted ? "Removed" : "Isolated") != 0) {
        return READER_FAIL(reader, "pre_tokenizer: Split must be Isolated, or inverted Removed");
    }
    if (!find_pattern(regex, &reader->parts->split)) {
        return READER_FAIL(reader, "pre_tokenizer: the pattern '%.200s' is not supported",
                           regex == NULL ? "(none)" : regex);
    }
    return ENG_OK;
}

static enum eng_status check_byte_level(const struct reader *reader, const json_t *split,
                                        bool wants_regex)
{
    if (!has_type(split, "ByteLevel")) {
        return READER_FAIL(reader,
                           "pre_tokenizer of type '%.40s': must be ByteLevel, or Split and "
                           "ByteLevel",
                           type_of(split));
    }
    if (!is_off(json_object_get(split, "add_prefix_space"))) {
        return READER_FAIL(reader, "pre_tokenizer.add_prefix_space is not supported");
    }
    const json_t *const regex = json_object_get(split, "use_regex");
    if ((regex == NULL || json_is_true(regex)) != wants_regex) {
        return READER_FAIL(reader, "pre_tokenizer.use_regex must %sbe false",
                           wants_regex ? "not " : "");
    }
    return ENG_OK;
}

/* Splitting at a text of which the normalizer's last step leaves none. */
static bool never_splits(const struct reader *reader, const json_t *split)
{
    const struct eng_normalizer *const normalizer = &reader->parts->normalizer;
    const char *const text =
        json_string_value(json_object_get(json_object_get(split, "pattern"), "String"));
    if (!has_type(split, "Split") || text == NULL || normalizer->count == 0) {
        return false;
    }
    const struct eng_normal_step *const last = &normalizer->steps[normalizer->count - 1];
    return last->kind == ENG_NORMAL_REPLACE && strcmp(last->from, text) == 0 &&
           strstr(last->with, text) == NULL;
}

static enum eng_status read_pre_tokenizer(const struct reader *reader)
{
    const json_t *const split = json_object_get(reader->root, "pre_tokenizer");
    if (reader->parts->characters) {
        reader->parts->split = ENG_SPLIT_NONE;
        return is_absent(split) || never_splits(reader, split)
                   ? ENG_OK
                   : READER_FAIL(reader, "this pre_tokenizer with byte_fallback is not supported");
    }
    if (!has_type(split, "Sequence")) {
        reader->parts->split = ENG_SPLIT_GPT2;
        return check_byte_level(reader, split, true);
    }
    const json_t *const steps = json_object_get(split, "pretokenizers");
    if (json_array_size(steps) != 2 || !has_type(json_array_get(steps, 0), "Split")) {
        return READER_FAIL(reader, "pre_tokenizer: a Sequence must be Split and ByteLevel");
    }
    const enum eng_status status = read_split(reader, json_array_get(steps, 0));
    return status == ENG_OK ? check_byte_level(reader, json_array_get(steps, 1), false) : status;
}

/* Printable bytes stand for themselves, the others for 256, 257, ... in order. */
static void make_alphabet(int16_t byte_of[ALPHABET])
{
    int moved = MOVED_FIRST;
    memset(byte_of, 0xFF, ALPHABET * sizeof *byte_of);
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
                                                 : ALPHABET;
        if (character >= ALPHABET || reader->byte_of[character] < 0) {
            return false;
        }
        out[(*out_size)++] = (char)reader->byte_of[character];
        at += b[0] < 0x80 ? 1 : 2;
    }
    return true;
}

static enum eng_status put(const struct reader *reader, const char *where, json_int_t id,
                           struct eng_text text, bool found)
{
    struct eng_error cause = {""};
    const enum eng_status status = eng_vocab_put(&reader->parts->vocab, id, text, found, &cause);
    return status == ENG_OK ? ENG_OK : reader_fail(reader, status, "%s: %.200s", where, cause.text);
}

static json_int_t largest_id(json_int_t last, const json_t *id)
{
    return json_is_integer(id) && json_integer_value(id) > last ? json_integer_value(id) : last;
}

/* The ids of model.vocab; added tokens may repeat some of them. */
static enum eng_status read_vocab(const struct reader *reader, const json_t *added)
{
    json_int_t last = -1;
    size_t index;
    json_t *item;
    const char *text;
    char bytes[TEXT_BYTES_MAX];
    json_object_foreach(reader->vocab, text, item)
    {
        last = largest_id(last, item);
    }
    json_array_foreach(added, index, item)
    {
        last = largest_id(last, json_object_get(item, "id"));
    }
    struct eng_error cause = {""};
    const size_t size = last < 0 ? 0 : last > INT32_MAX ? INT32_MAX : (size_t)last + 1;
    enum eng_status status = eng_vocab_init(&reader->parts->vocab, size, &cause);
    if (status != ENG_OK) {
        return reader_fail(reader, status, "model.vocab: %.200s", cause.text);
    }
    json_object_foreach(reader->vocab, text, item)
    {
        size_t length = strlen(text);
        if (!json_is_integer(item)) {
            return READER_FAIL(reader, "model.vocab: token '%.60s' has no whole number", text);
        }
        const bool fits = length < sizeof bytes;
        const bool found = fits && text_bytes(reader, text, length, bytes, &length);
        const struct eng_text put_text = {found ? bytes : text, found ? length : strlen(text)};
        status = put(reader, "model.vocab", json_integer_value(item), put_text, found);
        if (status != ENG_OK) {
            return status;
        }
    }
    return ENG_OK;
}

static const struct {
    const char *key;
    unsigned flag;
} added_flags[] = {{"lstrip", ENG_CONTROL_TAKES_LEFT},
                   {"rstrip", ENG_CONTROL_TAKES_RIGHT},
                   {"single_word", ENG_CONTROL_ALONE}};

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
        if (!is_off(flag) && !json_is_true(flag)) {
            return READER_FAIL(reader, "added token '%.60s': %s is neither true nor false", text,
                               added_flags[i].key);
        }
    }
    const json_t *const in_vocab = json_object_get(reader->vocab, text);
    if (in_vocab != NULL &&
        json_integer_value(in_vocab) != json_integer_value(json_object_get(item, "id"))) {
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
    if (json_object_get(reader->vocab, text) == NULL) {
        status = put(reader, "added_tokens", id, (struct eng_text){text, strlen(text)}, false);
        if (status != ENG_OK) {
            return status;
        }
    }
    status = eng_control_add(all, text, strlen(text), (int32_t)id, 0, &cause);
    if (status == ENG_OK) {
        status = add_token(reader, item, (int32_t)id, work, &cause);
    }
    return status == ENG_OK ? ENG_OK : reader_fail(reader, status, "%.200s", cause.text);
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
        status = status == ENG_OK ? ENG_OK : reader_fail(reader, status, "%.200s", cause.text);
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

/* The two halves of a merge, written "a b" or ["a", "b"]. Halves hold no blank in the former. */
static bool merge_halves(const json_t *item, struct eng_text half[2])
{
    const char *const text = json_string_value(item);
    if (text != NULL) {
        const char *const blank = strchr(text, ' ');
        if (blank == NULL || strchr(blank + 1, ' ') != NULL) {
            return false;
        }
        half[0] = (struct eng_text){text, (size_t)(blank - text)};
        half[1] = (struct eng_text){blank + 1, strlen(blank + 1)};
    } else if (json_array_size(item) == 2) {
        for (size_t i = 0; i < 2; i++) {
            const char *const part = json_string_value(json_array_get(item, i));
            half[i] = (struct eng_text){part, part == NULL ? 0 : strlen(part)};
        }
    } else {
        return false;
    }
    return half[0].size > 0 && half[1].size > 0;
}

static enum eng_status read_merge(const struct reader *reader, size_t index, const json_t *item,
                                  struct eng_bpe_merge *merge)
{
    enum { HALF_MAX = 1024, SHOWN = 60 };
    const struct eng_vocab *const vocab = &reader->parts->vocab;
    struct eng_text half[2] = {{0}};
    char bytes[2 * HALF_MAX];
    size_t left = 0;
    size_t right = 0;
    if (!merge_halves(item, half) || half[0].size > HALF_MAX || half[1].size > HALF_MAX) {
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
    const json_t *const list = json_object_get(reader->model, "merges");
    if (!json_is_array(list)) {
        return READER_FAIL(reader, "model.merges is missing or no array");
    }
    const size_t count = json_array_size(list);
    if (count > INT32_MAX / 4) {
        return READER_FAIL(reader, "more merges than can be numbered");
    }
    parts->merges = calloc(count + 1, sizeof *parts->merges);
    if (parts->merges == NULL) {
        return reader_fail(reader, ENG_EHOSTMEM, "no memory for %zu merges", count);
    }
    parts->merge_count = count;
    enum eng_status status = ENG_OK;
    for (size_t i = 0; status == ENG_OK && i < count; i++) {
        status = read_merge(reader, i, json_array_get(list, i), &parts->merges[i]);
    }
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

enum eng_status eng_tokenizer_read_json(const char *path, struct eng_tokenizer_parts *parts,
                                        struct eng_error *error)
{
    static enum eng_status (*const steps[])(const struct reader *) = {
        check_model, check_rest, read_normalizer, read_pre_tokenizer};
    struct reader reader = {.path = path, .parts = parts, .error = error};
    make_alphabet(reader.byte_of);
    enum eng_status status = read_root(&reader);
    const json_t *const added = json_object_get(reader.root, "added_tokens");
    for (size_t i = 0; status == ENG_OK && i < sizeof steps / sizeof steps[0]; i++) {
        status = steps[i](&reader);
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
    json_decref(reader.root);
    return status;
}
