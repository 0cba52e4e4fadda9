/* Kind, normaliser and split pattern of a tokenizer.json. Called by tokenizer_json.c; must not know
 * tokens. */
#include "tokenizer_json.h"

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

/* A member that is true or false, and `absent` where it is not there or null. */
static enum eng_status read_flag(const struct reader *reader, const json_t *object,
                                 const char *where, const char *key, bool absent, bool *out)
{
    const json_t *const value = json_object_get(object, key);
    if (!is_absent(value) && !json_is_boolean(value)) {
        return READER_FAIL(reader, "%s%s is neither true nor false", where, key);
    }
    *out = is_absent(value) ? absent : json_is_true(value);
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
    enum eng_status status = read_flag(reader, reader->model, "model.", "byte_fallback", false,
                                       &reader->parts->characters);
    if (status == ENG_OK) {
        status = read_flag(reader, reader->model, "model.", "ignore_merges", false,
                           &reader->parts->whole_pieces);
    }
    if (status != ENG_OK) {
        return status;
    }
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
        good = json_object_size(pattern) == 1 &&
               take_text(json_object_get(pattern, "String"), made.from) && made.from[0] != '\0' &&
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
    const json_t *const pattern = json_object_get(split, "pattern");
    const char *const regex = json_object_size(pattern) == 1
                                  ? json_string_value(json_object_get(pattern, "Regex"))
                                  : NULL;
    const char *const behavior = json_string_value(json_object_get(split, "behavior"));
    bool inverted = false;
    const enum eng_status status =
        read_flag(reader, split, "pre_tokenizer.", "invert", false, &inverted);
    if (status != ENG_OK) {
        return status;
    }
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
    bool has_prefix = false;
    bool has_regex = true;
    enum eng_status status =
        read_flag(reader, split, "pre_tokenizer.", "add_prefix_space", false, &has_prefix);
    if (status == ENG_OK) {
        status = read_flag(reader, split, "pre_tokenizer.", "use_regex", true, &has_regex);
    }
    if (status != ENG_OK) {
        return status;
    }
    if (has_prefix) {
        return READER_FAIL(reader, "pre_tokenizer.add_prefix_space is not supported");
    }
    if (has_regex != wants_regex) {
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

enum eng_status eng_tokenizer_json_settings(const struct reader *reader)
{
    static enum eng_status (*const steps[])(const struct reader *) = {
        check_model, check_rest, read_normalizer, read_pre_tokenizer};
    enum eng_status status = ENG_OK;
    for (size_t i = 0; status == ENG_OK && i < sizeof steps / sizeof steps[0]; i++) {
        status = steps[i](reader);
    }
    return status;
}
