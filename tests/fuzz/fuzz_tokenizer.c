/* Reader of tokenizer.json: whatever it accepts must encode. The input is a file in which @BYTES@
 * stands for the 256 byte tokens with the ids 0 to 255. Called by libFuzzer and replay_main.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_vocab.h"
#include "tokenizer.h"

static void check_encoding(eng_tokenizer *tokenizer, const char *text)
{
    struct eng_rendered rendered = {.bytes = (char *)(uintptr_t)text, .size = strlen(text)};
    struct eng_tokens tokens = {0};
    fuzz_require(eng_tokenizer_encode(tokenizer, &rendered, &tokens, NULL) == ENG_OK);
    fuzz_require(tokens.count > 0);
    fuzz_require(tokens.items[0].start == 0);
    for (size_t i = 0; i < tokens.count; i++) {
        fuzz_require(tokens.items[i].id >= 0);
        fuzz_require(tokens.items[i].id < eng_tokenizer_size(tokenizer));
        fuzz_require(i == 0 || tokens.items[i].start > tokens.items[i - 1].start);
        fuzz_require(tokens.items[i].start < rendered.size);
    }
    eng_tokens_fini(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t whole = 0;
    char *const bytes = fuzz_vocab_expand((const char *)data, size, &whole);
    struct fuzz_file file = fuzz_file_open(bytes, whole);
    struct eng_error error = {""};
    eng_tokenizer *tokenizer = NULL;
    const enum eng_status status = eng_tokenizer_open(file.path, &tokenizer, &error);
    if (status == ENG_OK) {
        check_encoding(tokenizer, "a");
        check_encoding(tokenizer, "ab abab <|x|><|x|>aab  it's 12\n\n\tz");
        check_encoding(tokenizer, "\xC3\xA9t\xC3\xA9 \xE6\xBC\xA2\xF0\x9F\x98\x80\x7F\x01");
        (void)eng_tokenizer_control_id(tokenizer, "<|x|>");
    } else {
        fuzz_require(status == ENG_EINPUT);
        fuzz_require(tokenizer == NULL);
        fuzz_require(strncmp(error.text, file.path, strlen(file.path)) == 0);
        fuzz_require(strlen(error.text) > strlen(file.path) + 2);
    }
    eng_tokenizer_close(tokenizer);
    fuzz_file_close(&file);
    free(bytes);
    return 0;
}
