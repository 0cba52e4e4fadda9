/* Reader of tokenizer.json: whatever it accepts must encode, with places in order, and where
 * nothing rewrites the text, decode to it. The input is a file in which @BYTES@ stands for the 256
 * byte tokens with the ids 0 to 255, @FALLBACK@ for those of tokens of characters. Called by
 * libFuzzer and replay_main.c. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_vocab.h"
#include "tokenizer.h"

/* What the file says of its texts. */
struct kind {
    bool composes; /* NFC is a step */
    bool rewrites; /* another one is */
    bool strips;   /* an added token takes blanks */
};

static void add_step(const json_t *step, struct kind *kind)
{
    const char *const type = json_string_value(json_object_get(step, "type"));
    const bool composes = type != NULL && strcmp(type, "NFC") == 0;
    kind->composes = kind->composes || composes;
    kind->rewrites = kind->rewrites || (step != NULL && !json_is_null(step) && !composes);
}

static struct kind kind_of(const char *bytes, size_t size)
{
    struct kind kind = {false, false, false};
    size_t i;
    json_t *item;
    json_t *const root = json_loadb(bytes, size, 0, NULL);
    const json_t *const normalizer = json_object_get(root, "normalizer");
    const json_t *const steps = json_object_get(normalizer, "normalizers");
    const char *const type = json_string_value(json_object_get(normalizer, "type"));
    if (type != NULL && strcmp(type, "Sequence") == 0) {
        json_array_foreach(steps, i, item)
        {
            add_step(item, &kind);
        }
    } else {
        add_step(normalizer, &kind);
    }
    json_array_foreach(json_object_get(root, "added_tokens"), i, item)
    {
        kind.strips = kind.strips || json_is_true(json_object_get(item, "lstrip")) ||
                      json_is_true(json_object_get(item, "rstrip"));
    }
    json_decref(root);
    return kind;
}

static void check_places(const eng_tokenizer *tokenizer, const struct kind *kind,
                         const struct eng_tokens *tokens, size_t size)
{
    fuzz_require(tokens->count > 0 || kind->rewrites);
    for (size_t i = 0; i < tokens->count; i++) {
        const size_t start = tokens->items[i].start;
        fuzz_require(tokens->items[i].id >= 0);
        fuzz_require(tokens->items[i].id < eng_tokenizer_size(tokenizer));
        fuzz_require(start < size);
        fuzz_require(i == 0 || start >= tokens->items[i - 1].start);
        /* What a step made of one character may be several tokens. */
        fuzz_require(i == 0 || kind->rewrites || kind->composes ||
                     start > tokens->items[i - 1].start);
        fuzz_require(i > 0 || kind->rewrites || start == 0);
    }
}

static void check_decoding(const eng_tokenizer *tokenizer, const struct eng_tokens *tokens,
                           const char *text)
{
    struct eng_decoded decoded = {0};
    struct eng_error error = {""};
    int32_t *const ids = malloc((tokens->count + 1) * sizeof *ids);
    fuzz_require(ids != NULL);
    for (size_t i = 0; i < tokens->count; i++) {
        ids[i] = tokens->items[i].id;
    }
    fuzz_require(eng_tokenizer_decode(tokenizer, ids, tokens->count, &decoded, NULL) == ENG_OK);
    if (text != NULL) {
        fuzz_require(decoded.size == strlen(text));
        fuzz_require(memcmp(decoded.bytes, text, decoded.size) == 0);
    }
    ids[0] = eng_tokenizer_size(tokenizer);
    fuzz_require(eng_tokenizer_decode(tokenizer, ids, 1, &decoded, &error) == ENG_EINPUT);
    fuzz_require(error.text[0] != '\0');
    free(decoded.bytes);
    free(ids);
}

/* Both ways of looking at control tokens. A text of ASCII comes back from decoding; of another one
 * an added token might hold characters that stand for bytes. */
static void check_encoding(eng_tokenizer *tokenizer, const struct kind *kind, const char *text,
                           bool ascii)
{
    static const enum eng_controls ways[] = {ENG_CONTROLS_AS_TEXT, ENG_CONTROLS_SEEN};
    struct eng_tokens tokens = {0};
    struct eng_error error = {""};
    for (size_t i = 0; i < 2; i++) {
        const struct eng_text whole = {text, strlen(text)};
        fuzz_require(eng_tokenizer_encode_text(tokenizer, whole, ways[i], &tokens, NULL) == ENG_OK);
        check_places(tokenizer, kind, &tokens, whole.size);
        check_decoding(tokenizer, &tokens, ascii && !kind->rewrites && !kind->strips ? text : NULL);
    }
    const struct eng_text wrong = {"ab\xC3", 3};
    fuzz_require(eng_tokenizer_encode_text(tokenizer, wrong, ways[0], &tokens, &error) ==
                 ENG_EINPUT);
    fuzz_require(strstr(error.text, "byte 3") != NULL);
    eng_tokens_fini(&tokens);
}

static void check_tokenizer(eng_tokenizer *tokenizer, const struct kind *kind)
{
    static const char control[] = "<|x|>";
    const int32_t id = eng_tokenizer_control_id(tokenizer, control);
    fuzz_require(id < eng_tokenizer_size(tokenizer));
    fuzz_require(id < 0 || eng_tokenizer_sees_control(tokenizer, (struct eng_text){control, 5}));
    fuzz_require(eng_tokenizer_composes(tokenizer) == kind->composes);
    (void)eng_tokenizer_splits_numbers(tokenizer);
    check_encoding(tokenizer, kind, "a", true);
    check_encoding(tokenizer, kind, "ab abab <|x|><|x|>aab  it's 1234\n\n\tz A <y> y", true);
    check_encoding(tokenizer, kind, "\xC3\xA9t\xC3\xA9 \xE6\xBC\xA2\xF0\x9F\x98\x80\x7F\x01",
                   false);
    check_encoding(tokenizer, kind, "e\xCC\x81\xE2\x96\x81\xCC\x81x", false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char absent[] = "/proc/self/no such file";
    size_t whole = 0;
    char *const bytes = fuzz_vocab_expand((const char *)data, size, &whole);
    struct fuzz_file file = fuzz_file_open(bytes, whole);
    const char *const path = size == 0 ? absent : file.path;
    struct eng_error error = {""};
    eng_tokenizer *tokenizer = NULL;
    const enum eng_status status = eng_tokenizer_open(path, &tokenizer, &error);
    if (status == ENG_OK) {
        const struct kind kind = kind_of(bytes, whole);
        check_tokenizer(tokenizer, &kind);
    } else {
        fuzz_require(status == (size == 0 ? ENG_EIO : ENG_EINPUT));
        fuzz_require(tokenizer == NULL);
        fuzz_require(strncmp(error.text, path, strlen(path)) == 0);
        fuzz_require(strlen(error.text) > strlen(path) + 2);
    }
    eng_tokenizer_close(tokenizer);
    fuzz_file_close(&file);
    free(bytes);
    return 0;
}
