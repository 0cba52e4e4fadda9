/* Normalisation against ICU, with the same version of Unicode. The tokenizer has a token for each
 * byte and no merges, so its ids are the bytes of the text it made: with NFC ICU's composed form,
 * without a normalizer the text as it is, and blanks written as U+2581 by definition. The input is
 * a text. Called by libFuzzer and replay_main.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>

#include "fuzz.h"
#include "fuzz_vocab.h"
#include "tokenizer.h"

enum { TEXT_MAX = 2000, ROOM = 24 * TEXT_MAX };
enum form { AS_IT_IS, COMPOSED, MARKED_BLANKS, FORM_COUNT };

#define MARK "\xE2\x96\x81" /* U+2581 */
#define STEPS                                                                                      \
    "{\"type\":\"Prepend\",\"prepend\":\"" MARK "\"},"                                             \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK "\"}"
static const char *const normalizers[FORM_COUNT] = {
    "null", "{\"type\":\"NFC\"}", "{\"type\":\"Sequence\",\"normalizers\":[" STEPS "]}"};

static eng_tokenizer *tokenizer_of(enum form form)
{
    static eng_tokenizer *opened[FORM_COUNT];
    if (opened[form] == NULL) {
        char text[1024];
        size_t size = 0;
        snprintf(text, sizeof text,
                 "{\"normalizer\":%s,\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{"
                 "\"vocab\":{@BYTES@},\"merges\":[]}}",
                 normalizers[form]);
        char *const whole = fuzz_vocab_expand(text, strlen(text), &size);
        struct fuzz_file file = fuzz_file_open(whole, size);
        fuzz_require(eng_tokenizer_open(file.path, &opened[form], NULL) == ENG_OK);
        fuzz_file_close(&file);
        free(whole);
    }
    return opened[form];
}

/* NFC by ICU. */
static size_t compose(const char *text, size_t size, char *out)
{
    static UChar wide[TEXT_MAX];
    static UChar composed[ROOM];
    UErrorCode code = U_ZERO_ERROR;
    int32_t count = 0;
    const UNormalizer2 *const nfc = unorm2_getNFCInstance(&code);
    u_strFromUTF8(wide, TEXT_MAX, &count, text, (int32_t)size, &code);
    count = unorm2_normalize(nfc, wide, count, composed, ROOM, &code);
    u_strToUTF8(out, ROOM, &count, composed, count, &code);
    fuzz_require(U_SUCCESS(code));
    return (size_t)count;
}

static size_t mark_blanks(const char *text, size_t size, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i <= size; i++) {
        const bool blank = i == 0 ? size > 0 : text[i - 1] == ' ';
        if (blank) {
            memcpy(out + used, MARK, sizeof MARK - 1);
            used += sizeof MARK - 1;
        } else if (i > 0) {
            out[used++] = text[i - 1];
        }
    }
    return used;
}

static size_t by_definition(enum form form, const char *text, size_t size, char *out)
{
    if (form == COMPOSED) {
        return compose(text, size, out);
    }
    if (form == MARKED_BLANKS) {
        return mark_blanks(text, size, out);
    }
    memcpy(out, text, size);
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char wanted[ROOM];
    if (size == 0 || size > TEXT_MAX || !fuzz_is_utf8((const char *)data, size)) {
        return 0;
    }
    char *const text = fuzz_exact(data, size);
    for (int form = 0; form < FORM_COUNT; form++) {
        struct eng_tokens tokens = {0};
        struct eng_rendered rendered = {.bytes = text, .size = size};
        const size_t count = by_definition((enum form)form, text, size, wanted);
        fuzz_require(eng_tokenizer_encode(tokenizer_of((enum form)form), &rendered, &tokens,
                                          NULL) == ENG_OK);
        fuzz_require(tokens.count == count);
        for (size_t i = 0; i < count; i++) {
            fuzz_require(tokens.items[i].id == (unsigned char)wanted[i]);
            fuzz_require(tokens.items[i].start < size);
            fuzz_require(i == 0 || tokens.items[i].start >= tokens.items[i - 1].start);
        }
        eng_tokens_fini(&tokens);
    }
    free(text);
    return 0;
}
