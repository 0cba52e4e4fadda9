/* The splitter of each pattern against that pattern under PCRE2. First byte: the pattern; the rest
 * is a text. Called by libFuzzer and replay_main.c. */
#include <stdlib.h>

#include "fuzz.h"
#include "split_twin.h"
#include "text_split.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static eng_splitter *splitters[TWIN_PATTERNS];
    if (size < 2) {
        return 0;
    }
    const int pattern = data[0] % TWIN_PATTERNS;
    const size_t length = size - 1;
    if (splitters[pattern] == NULL) {
        fuzz_require(eng_splitter_create((enum eng_split)pattern, &splitters[pattern], NULL) ==
                     ENG_OK);
    }
    char *const text = fuzz_exact(data + 1, length);
    if (fuzz_is_utf8(text, length) && twin_agrees(text, length)) {
        for (size_t at = 0; at < length;) {
            const size_t piece = eng_splitter_piece(splitters[pattern], text, length, at);
            fuzz_require(piece > 0);
            fuzz_require(piece == twin_piece(pattern, text, length, at));
            at += piece;
        }
    }
    free(text);
    return 0;
}
