/* The GPT-2 pattern, compiled once a tokenizer.
 * Called by text_encode; must not know vocabularies or control tokens. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text_split.h"

#include <pcre2.h>
#include <stdlib.h>

#include "fault.h"

/* White_Space written out: \s of PCRE2's UCP mode also matches U+180E. */
#define SPLIT_SPACES                                                                               \
    "\\x{09}-\\x{0D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}"           \
    "\\x{202F}\\x{205F}\\x{3000}"
#define SPLIT_CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define SPLIT_LETTERS "| ?\\p{L}+"
#define SPLIT_NUMBERS "| ?\\p{N}+"
#define SPLIT_OTHERS "| ?[^" SPLIT_SPACES "\\p{L}\\p{N}]+"
#define SPLIT_BLANKS "|[" SPLIT_SPACES "]+(?![^" SPLIT_SPACES "])|[" SPLIT_SPACES "]+"

struct eng_splitter {
    pcre2_code *code;
    pcre2_match_data *match;
};

static const char *gpt2_pattern(void)
{
    return SPLIT_CONTRACTIONS SPLIT_LETTERS SPLIT_NUMBERS SPLIT_OTHERS SPLIT_BLANKS;
}

enum eng_status eng_splitter_create(eng_splitter **out, struct eng_error *error)
{
    enum eng_status status = ENG_EHOSTMEM;
    eng_splitter *const splitter = calloc(1, sizeof *splitter);
    if (splitter == NULL) {
        return eng_fail(error, status, "no memory for the splitter");
    }
    const char *const pattern = FAULT(split_pattern, gpt2_pattern());
    int code = 0;
    PCRE2_SIZE offset = 0;
    splitter->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code, &offset, NULL);
    if (splitter->code == NULL) {
        status = eng_fail(error, ENG_EINTERNAL, "PCRE2 refuses the split pattern at %zu (error %d)",
                          offset, code);
        goto done;
    }
    /* Without JIT support the interpreter gives the same matches. */
    (void)pcre2_jit_compile(splitter->code, PCRE2_JIT_COMPLETE);
    splitter->match = pcre2_match_data_create(1, NULL);
    if (splitter->match == NULL) {
        status = eng_fail(error, ENG_EHOSTMEM, "no memory for the splitter");
        goto done;
    }
    *out = splitter;
    return ENG_OK;
done:
    eng_splitter_destroy(splitter);
    return status;
}

void eng_splitter_destroy(eng_splitter *splitter)
{
    if (splitter != NULL) {
        pcre2_match_data_free(splitter->match);
        pcre2_code_free(splitter->code);
        free(splitter);
    }
}

size_t eng_splitter_piece(const eng_splitter *splitter, const char *bytes, size_t size, size_t at)
{
    const int found = pcre2_match(splitter->code, (PCRE2_SPTR)bytes, size, at, PCRE2_NO_UTF_CHECK,
                                  splitter->match, NULL);
    if (found < 0) {
        return 0;
    }
    const PCRE2_SIZE *const edges = pcre2_get_ovector_pointer(splitter->match);
    return edges[1] - edges[0];
}
