/* The trainer's tokens of many texts. Texts come as a 32-bit size and bytes, ids leave as a 32-bit
 * count and ids; every text is also decoded and compared with itself. All texts are read first and
 * encoded twice: at one go for the time, and once more for the ids.
 *   encode_ids TOKENIZER [seen] [starts] < texts > ids
 * With "seen" control tokens are looked for; with "starts" each id is followed by its first byte.
 * Called by tests/tokens/tokens.sh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tokenizer.h"

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void need(bool condition, const char *cause)
{
    if (!condition) {
        fprintf(stderr, "encode_ids: %s\n", cause);
        exit(1);
    }
}

static void write_ids(const struct eng_tokens *tokens, const int32_t *ids, bool starts)
{
    const uint32_t count = (uint32_t)tokens->count * (starts ? 2 : 1);
    const void *const items = starts ? (const void *)tokens->items : (const void *)ids;
    need(fwrite(&count, sizeof count, 1, stdout) == 1 &&
             fwrite(items, sizeof *ids, count, stdout) == count,
         "cannot write");
}

static bool has_word(int argc, char **argv, const char *word)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], word) == 0) {
            return true;
        }
    }
    return false;
}

/* All texts, end to end as they came. */
static char *read_all(size_t *size)
{
    char *bytes = NULL;
    size_t capacity = 0;
    size_t got = 0;
    *size = 0;
    do {
        if (*size == capacity) {
            capacity = 2 * capacity + (1 << 20);
            bytes = realloc(bytes, capacity);
            need(bytes != NULL, "no memory");
        }
        got = fread(bytes + *size, 1, capacity - *size, stdin);
        *size += got;
    } while (got > 0);
    need(ferror(stdin) == 0, "cannot read");
    return bytes;
}

/* The text at *at; false at the end. */
static bool next_text(const char *bytes, size_t size, size_t *at, struct eng_text *out)
{
    uint32_t length = 0;
    if (*at == size) {
        return false;
    }
    need(size - *at >= sizeof length, "texts are cut off");
    memcpy(&length, bytes + *at, sizeof length);
    *at += sizeof length;
    need(size - *at >= length, "texts are cut off");
    *out = (struct eng_text){bytes + *at, length};
    *at += length;
    return true;
}

/* Writes the ids of a text; true when they decode to it. */
static bool write_and_decode(const eng_tokenizer *tokenizer, struct eng_text text,
                             const struct eng_tokens *tokens, bool starts)
{
    static struct eng_decoded decoded;
    struct eng_error error = {""};
    int32_t *const ids = malloc((tokens->count + 1) * sizeof *ids);
    need(ids != NULL, "no memory");
    for (size_t i = 0; i < tokens->count; i++) {
        ids[i] = tokens->items[i].id;
    }
    write_ids(tokens, ids, starts);
    need(eng_tokenizer_decode(tokenizer, ids, tokens->count, &decoded, &error) == ENG_OK,
         error.text);
    free(ids);
    return decoded.size == text.size &&
           (text.size == 0 || memcmp(decoded.bytes, text.bytes, text.size) == 0);
}

int main(int argc, char **argv)
{
    struct eng_error error = {""};
    eng_tokenizer *tokenizer = NULL;
    struct eng_tokens tokens = {0};
    struct eng_text text = {0};
    size_t size = 0, texts = 0, same = 0, total = 0;
    need(argc >= 2, "usage: encode_ids TOKENIZER [seen] [starts] < texts > ids");
    const enum eng_controls controls =
        has_word(argc, argv, "seen") ? ENG_CONTROLS_SEEN : ENG_CONTROLS_AS_TEXT;
    char *const bytes = read_all(&size);
    const double start = seconds();
    need(eng_tokenizer_open(argv[1], &tokenizer, &error) == ENG_OK, error.text);
    const double opened = seconds();
    for (size_t at = 0; next_text(bytes, size, &at, &text); texts++) {
        need(eng_tokenizer_encode_text(tokenizer, text, controls, &tokens, &error) == ENG_OK,
             error.text);
        total += text.size;
    }
    const double encoded = seconds();
    for (size_t at = 0; next_text(bytes, size, &at, &text);) {
        need(eng_tokenizer_encode_text(tokenizer, text, controls, &tokens, &error) == ENG_OK,
             error.text);
        same += write_and_decode(tokenizer, text, &tokens, has_word(argc, argv, "starts"));
    }
    fprintf(stderr,
            "trainer: %zu texts, %zu bytes, %zu decode to themselves; opened in %.0f ms, "
            "encoded at %.1f MB/s\n",
            texts, total, same, (opened - start) * 1e3, (double)total / 1e6 / (encoded - opened));
    eng_tokens_fini(&tokens);
    eng_tokenizer_close(tokenizer);
    free(bytes);
    return 0;
}
