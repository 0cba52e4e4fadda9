/* Size of the tokenizer's vocabulary and the pad token's id, a control token's, from either kind of
 * file. See ref_text.h. Ids may have holes, which count as tokens. */
#include "ref_text.h"

#include "ref_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BASE64_MAX = 1024 };

/* What is looked for, and what has been found so far. */
struct search {
    const char *pad;
    int32_t largest, found;
};

static void see(struct search *search, bool is_pad, int32_t id)
{
    search->largest = id > search->largest ? id : search->largest;
    search->found = is_pad ? id : search->found;
}

static bool see_json(struct search *search, const cJSON *id, bool is_pad)
{
    if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0.0 && id->valuedouble < 0x1p31) ||
        floor(id->valuedouble) != id->valuedouble)
        return false;
    see(search, is_pad, (int32_t)id->valuedouble);
    return true;
}

static enum orc_ref_status search_json(const char *path, struct search *search,
                                       struct orc_ref_error *error)
{
    char *file = NULL;
    size_t bytes = 0;
    bool good = true;
    enum orc_ref_status status = orc_ref_file_read(path, &file, &bytes, error);
    if (status != ORC_REF_OK)
        return status;
    cJSON *const root = cJSON_ParseWithLength(file, bytes);
    const cJSON *const model = cJSON_GetObjectItemCaseSensitive(root, "model");
    const cJSON *const words = cJSON_GetObjectItemCaseSensitive(model, "vocab");
    const cJSON *item;
    cJSON_ArrayForEach(item, words) good = good && see_json(search, item, false);
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "added_tokens"))
    {
        const cJSON *const name = cJSON_GetObjectItemCaseSensitive(item, "content");
        const bool control = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "special"));
        good = good && cJSON_IsString(name) &&
               see_json(search, cJSON_GetObjectItemCaseSensitive(item, "id"),
                        control && strcmp(name->valuestring, search->pad) == 0);
    }
    if (!good || !cJSON_IsObject(words))
        status = orc_ref_fail(error, ORC_REF_BAD, "%s: not a tokenizer with model.vocab", path);
    cJSON_Delete(root);
    free(file);
    return status;
}

static void to_base64(const char *text, char out[BASE64_MAX])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t size = strlen(text);
    size_t at = 0;
    for (size_t i = 0; i < size && at + 5 < BASE64_MAX; i += 3) {
        unsigned word = 0;
        for (size_t k = 0; k < 3; k++)
            word = word << 8 | (i + k < size ? (unsigned char)text[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            out[at++] = i + k > size ? '=' : digits[word >> (18 - 6 * k) & 63];
    }
    out[at] = '\0';
}

/* Lines "base64 rank"; the pad token is looked for only among control tokens. */
static enum orc_ref_status search_lines(const char *path, bool controls, struct search *search,
                                        struct orc_ref_error *error)
{
    char *file = NULL;
    char wanted[BASE64_MAX];
    size_t bytes = 0, number = 0;
    to_base64(search->pad, wanted);
    enum orc_ref_status status = orc_ref_file_read(path, &file, &bytes, error);
    for (char *line = file; status == ORC_REF_OK && line != NULL && *line != '\0';) {
        char *const end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        number++;
        char *const blank = strchr(line, ' ');
        char *rest = blank;
        const unsigned long id = blank == NULL ? 0 : strtoul(blank + 1, &rest, 10);
        if (blank == NULL || rest == blank + 1 || *rest != '\0' || id > INT32_MAX - 1)
            status =
                orc_ref_fail(error, ORC_REF_BAD, "%s:%zu: not a token and its rank", path, number);
        else {
            *blank = '\0';
            see(search, controls && strcmp(line, wanted) == 0, (int32_t)id);
        }
        line = end == NULL ? NULL : end + 1;
    }
    free(file);
    return status;
}

static enum orc_ref_status search_ranks(const char *path, struct search *search,
                                        struct orc_ref_error *error)
{
    static const struct {
        const char *file, *text;
        int32_t id;
    } known[] = {{"r50k_base.tiktoken", "<|endoftext|>", 50256},
                 {"p50k_base.tiktoken", "<|endoftext|>", 50256},
                 {"cl100k_base.tiktoken", "<|endoftext|>", 100257},
                 {"cl100k_base.tiktoken", "<|fim_prefix|>", 100258},
                 {"cl100k_base.tiktoken", "<|fim_middle|>", 100259},
                 {"cl100k_base.tiktoken", "<|fim_suffix|>", 100260},
                 {"cl100k_base.tiktoken", "<|endofprompt|>", 100276},
                 {"o200k_base.tiktoken", "<|endoftext|>", 199999},
                 {"o200k_base.tiktoken", "<|endofprompt|>", 200018}};
    const char *const slash = strrchr(path, '/');
    const char *const name = slash == NULL ? path : slash + 1;
    char beside[4096];
    const int length = snprintf(beside, sizeof beside, "%s.special", path);
    enum orc_ref_status status = search_lines(path, false, search, error);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].file) == 0)
            see(search, strcmp(search->pad, known[i].text) == 0, known[i].id);
    if (status == ORC_REF_OK && length < (int)sizeof beside && access(beside, F_OK) == 0)
        status = search_lines(beside, true, search, error);
    return status;
}

bool orc_ref_tokenizer_is_ranks(const char *path)
{
    static const char end[] = ".tiktoken";
    const size_t size = strlen(path);
    return size >= sizeof end - 1 && strcmp(path + size - (sizeof end - 1), end) == 0;
}

enum orc_ref_status orc_ref_tokenizer_pad(const char *path, size_t vocab, const char *pad,
                                          int32_t *pad_id, struct orc_ref_error *error)
{
    struct search search = {pad, -1, -1};
    const enum orc_ref_status status = orc_ref_tokenizer_is_ranks(path)
                                           ? search_ranks(path, &search, error)
                                           : search_json(path, &search, error);
    if (status != ORC_REF_OK)
        return status;
    if ((size_t)search.largest + 1 != vocab)
        return orc_ref_fail(error, ORC_REF_BAD, "%s: %d tokens; the recipe's vocab is %zu", path,
                            (int)search.largest + 1, vocab);
    if (search.found < 0)
        return orc_ref_fail(error, ORC_REF_BAD, "%s: no control token %s to pad with", path, pad);
    *pad_id = search.found;
    return ORC_REF_OK;
}
