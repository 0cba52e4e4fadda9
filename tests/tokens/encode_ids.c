/* The trainer's tokens of many texts. Texts come as a 32-bit size and bytes, ids leave as a 32-bit
 * count and ids; every text is also decoded and compared with itself unless it was normalised.
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

int main(int argc, char **argv)
{
    struct eng_error error = {""};
    eng_tokenizer *tokenizer = NULL;
    struct eng_tokens tokens = {0};
    struct eng_decoded decoded = {0};
    char *text = NULL;
    int32_t *ids = NULL;
    uint32_t size = 0;
    size_t texts = 0, same = 0, total = 0;
    double spent = 0.0;
    need(argc >= 2, "usage: encode_ids TOKENIZER [seen] [starts] < texts > ids");
    const double start = seconds();
    need(eng_tokenizer_open(argv[1], &tokenizer, &error) == ENG_OK, error.text);
    const double opened = seconds() - start;
    const enum eng_controls controls =
        has_word(argc, argv, "seen") ? ENG_CONTROLS_SEEN : ENG_CONTROLS_AS_TEXT;
    while (fread(&size, sizeof size, 1, stdin) == 1) {
        text = realloc(text, size + 1u);
        need(text != NULL, "no memory");
        need(fread(text, 1, size, stdin) == size, "texts are cut off");
        const double before = seconds();
        const enum eng_status status = eng_tokenizer_encode_text(
            tokenizer, (struct eng_text){text, size}, controls, &tokens, &error);
        spent += seconds() - before;
        need(status == ENG_OK, error.text);
        ids = realloc(ids, (tokens.count + 1) * sizeof *ids);
        need(ids != NULL, "no memory");
        for (size_t i = 0; i < tokens.count; i++) {
            ids[i] = tokens.items[i].id;
        }
        write_ids(&tokens, ids, has_word(argc, argv, "starts"));
        need(eng_tokenizer_decode(tokenizer, ids, tokens.count, &decoded, &error) == ENG_OK,
             error.text);
        same += decoded.size == size && (size == 0 || memcmp(decoded.bytes, text, size) == 0);
        total += size;
        texts++;
    }
    fprintf(stderr,
            "trainer: %zu texts, %zu bytes, %zu decode to themselves; opened in %.0f ms, "
            "encoded at %.1f MB/s\n",
            texts, total, same, opened * 1e3, (double)total / 1e6 / spent);
    eng_tokens_fini(&tokens);
    eng_tokenizer_close(tokenizer);
    free(decoded.bytes);
    free(text);
    free(ids);
    return 0;
}
