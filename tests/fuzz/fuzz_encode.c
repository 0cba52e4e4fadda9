/* Text to tokens against the definition in corpus/RECIPE.md: control tokens and other added tokens
 * with the blanks they take, the GPT-2 split, merges. The input is a rendered text; 0xFF changes
 * between what the template wrote and what a content wrote. Called by libFuzzer and replay_main.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "fuzz.h"
#include "fuzz_vocab.h"
#include "tokenizer.h"

enum { TEXT_MAX = 2000 };

/* Merges over letters, blanks and the bytes of U+00E9, which GPT-2 writes as U+00C3 U+00A9. */
static const char *const merges[][3] = {{"a", "a", "aa"},
                                        {"aa", "a", "aaa"},
                                        {"a", "b", "ab"},
                                        {"b", "c", "bc"},
                                        {"aa", "aa", "aaaa"},
                                        {"ab", "c", "abc"},
                                        {"\xC4\xA0", "a",
                                         "\xC4\xA0"
                                         "a"},
                                        {"\xC3\x83", "\xC2\xA9", "\xC3\x83\xC2\xA9"},
                                        {"\xC4\xA0", "\xC4\xA0", "\xC4\xA0\xC4\xA0"},
                                        {"1", "1", "11"},
                                        {"'", "s", "'s"},
                                        {"<", "|", "<|"}};
/* Added tokens; the special ones are control tokens. */
static const struct added {
    const char *text;
    bool special, left, right, alone;
    bool normalized; /* sought in what the others leave; here no normaliser changes it */
} added[] = {
    {"<|x|>", true, false, false, false, false},   {"<|x|><|y|>", true, false, false, false, false},
    {"<|y|>", true, false, false, false, false},   {"<s>", true, false, false, false, false},
    {"a<|z|>", true, false, false, false, false},  {"<t>", false, false, false, false, false},
    {"<t>a", true, false, false, false, false},    {"<l>", true, true, false, false, false},
    {"<r>", false, false, true, false, false},     {"<b>", true, true, true, false, false},
    {"on", false, false, false, true, false},      {"<w>", true, true, true, true, false},
    {"<n>", true, true, false, false, true},       {"<m>", false, false, true, false, true},
    {"<n><|x|>", true, false, false, false, true}, {"non", false, false, false, true, true}};
enum {
    MERGES = sizeof merges / sizeof merges[0],
    ADDED = sizeof added / sizeof added[0],
    FIRST_ADDED = 256 + MERGES
};

/* The bytes a merge's text stands for. */
static const char *const merge_bytes[MERGES] = {"aa", "aaa",      "ab", "bc", "aaaa", "abc",
                                                " a", "\xC3\xA9", "  ", "11", "'s",   "<|"};

static const char *word_of(bool flag)
{
    return flag ? "true" : "false";
}

static eng_tokenizer *open_tokenizer(void)
{
    char text[8192] = "{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{\"vocab\":{@BYTES@";
    char *at = text + strlen(text);
    for (int i = 0; i < MERGES; i++) {
        at += sprintf(at, ",\"%s\":%d", merges[i][2], 256 + i);
    }
    at += sprintf(at, "},\"merges\":[");
    for (int i = 0; i < MERGES; i++) {
        at += sprintf(at, "%s[\"%s\",\"%s\"]", i > 0 ? "," : "", merges[i][0], merges[i][1]);
    }
    at += sprintf(at, "]},\"added_tokens\":[");
    for (int i = 0; i < ADDED; i++) {
        at += sprintf(at,
                      "%s{\"content\":\"%s\",\"id\":%d,\"special\":%s,\"lstrip\":%s,"
                      "\"rstrip\":%s,\"single_word\":%s,\"normalized\":%s}",
                      i > 0 ? "," : "", added[i].text, FIRST_ADDED + i, word_of(added[i].special),
                      word_of(added[i].left), word_of(added[i].right), word_of(added[i].alone),
                      word_of(added[i].normalized));
    }
    at += sprintf(at, "]}");
    size_t size = 0;
    char *const whole = fuzz_vocab_expand(text, strlen(text), &size);
    struct fuzz_file file = fuzz_file_open(whole, size);
    struct eng_error error = {""};
    eng_tokenizer *tokenizer = NULL;
    fuzz_require(eng_tokenizer_open(file.path, &tokenizer, &error) == ENG_OK);
    fuzz_file_close(&file);
    free(whole);
    return tokenizer;
}

struct text {
    char bytes[TEXT_MAX];
    bool content[TEXT_MAX]; /* by byte */
    size_t size;
};

struct tokens {
    int32_t ids[TEXT_MAX];
    size_t starts[TEXT_MAX];
    size_t count;
};

static void push(struct tokens *out, int32_t id, size_t start)
{
    out->ids[out->count] = id;
    out->starts[out->count++] = start;
}

enum kind { LETTER, NUMBER, BLANK, OTHER };

static bool is_white_space(unsigned c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

static enum kind kind_of(const char *bytes, size_t *length)
{
    const unsigned code = fuzz_code_point(bytes, length);
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    if (is_white_space(code)) {
        return BLANK;
    }
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) {
        return LETTER;
    }
    return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO ? NUMBER : OTHER;
}

/* How many bytes from `at` on are of one kind. */
static size_t run_of(const char *bytes, size_t size, size_t at, enum kind kind)
{
    const size_t from = at;
    size_t length = 0;
    while (at < size && kind_of(bytes + at, &length) == kind) {
        at += length;
    }
    return at - from;
}

/* Bytes of the last code point of the run that ends at `end`. */
static size_t last_length(const char *bytes, size_t end)
{
    size_t length = 1;
    while (((unsigned char)bytes[end - length] & 0xC0) == 0x80) {
        length++;
    }
    return length;
}

/* The alternatives of the pattern, in their order. */
static size_t piece_at(const char *bytes, size_t size, size_t at)
{
    static const char *const short_forms[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < sizeof short_forms / sizeof short_forms[0]; i++) {
        const size_t length = strlen(short_forms[i]);
        if (length <= size - at && memcmp(bytes + at, short_forms[i], length) == 0) {
            return length;
        }
    }
    const size_t blank = bytes[at] == ' ' ? 1 : 0;
    static const enum kind kinds[] = {LETTER, NUMBER, OTHER};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t run = run_of(bytes, size, at + blank, kinds[i]);
        if (run > 0) {
            return blank + run;
        }
    }
    const size_t run = run_of(bytes, size, at, BLANK);
    const size_t last = last_length(bytes, at + run);
    /* \s+(?!\S): all of it at the end of the text, else one less if that leaves something. */
    return at + run == size || run == last ? run : run - last;
}

/* Whether the libraries' versions of Unicode agree on the kinds: blocks that have been full for
 * long. */
static bool is_settled(unsigned c)
{
    return c < 0x530 || (c >= 0x2000 && c < 0x2070) || (c >= 0x3040 && c < 0x3097) ||
           (c >= 0x4E00 && c < 0x9FD0) || (c >= 0xAC00 && c < 0xD7A4) || c == 0x1680 ||
           c == 0x180E || c == 0x3000 || (c >= 0x1F600 && c < 0x1F640) || c == 0x10FFFF;
}

static void encode_piece(const char *bytes, size_t size, size_t start, struct tokens *out)
{
    int32_t ids[TEXT_MAX];
    size_t count = size;
    for (size_t i = 0; i < size; i++) {
        ids[i] = (unsigned char)bytes[i];
    }
    /* A lower rank that an earlier merge made possible comes first again: start over each time. */
    for (int rank = 0; rank < MERGES;) {
        size_t at = 0;
        bool merged = false;
        for (; at + 1 < count && !merged; at++) {
            char joined[16] = "";
            char left[8] = "";
            size_t length = 0;
            for (size_t half = 0; half < 2; half++) {
                const int32_t id = ids[at + half];
                const char byte[2] = {(char)id, '\0'};
                const char *const text = id < 256 ? byte : merge_bytes[id - 256];
                length += id == 0 ? 9 : strlen(text); /* no merge holds a NUL */
                strcat(joined, text);
                if (half == 0) {
                    strcpy(left, text);
                }
            }
            static const size_t left_bytes[MERGES] = {1, 2, 1, 1, 2, 2, 1, 1, 1, 1, 1, 1};
            merged = length == strlen(merge_bytes[rank]) &&
                     strcmp(joined, merge_bytes[rank]) == 0 && strlen(left) == left_bytes[rank];
            if (merged) {
                ids[at] = 256 + rank;
                memmove(&ids[at + 1], &ids[at + 2], (count - at - 2) * sizeof *ids);
                count--;
            }
        }
        rank = merged ? 0 : rank + 1;
    }
    for (size_t i = 0; i < count; i++) {
        push(out, ids[i], start);
        start += ids[i] < 256 ? 1 : strlen(merge_bytes[ids[i] - 256]);
    }
}

static void encode_between(const struct text *text, size_t from, size_t end, struct tokens *out)
{
    for (size_t at = from; at < end;) {
        const size_t size = piece_at(text->bytes + from, end - from, at - from);
        fuzz_require(size > 0);
        encode_piece(text->bytes + at, size, at, out);
        at += size;
    }
}

/* The longest added token of this pass whose whole text stands at `at` and before `end`, of a
 * control token written by the template; -1 when there is none. */
static int added_at(const struct text *text, size_t at, size_t end, bool normalized)
{
    int found = -1;
    for (int i = 0; i < ADDED; i++) {
        const size_t length = strlen(added[i].text);
        bool here = added[i].normalized == normalized && length <= end - at &&
                    memcmp(text->bytes + at, added[i].text, length) == 0;
        for (size_t b = 0; here && added[i].special && b < length; b++) {
            here = !text->content[at + b];
        }
        if (here && (found < 0 || length > strlen(added[found].text))) {
            found = i;
        }
    }
    return found;
}

/* The character that ends at `end`, and where it starts. */
static unsigned character_before(const struct text *text, size_t end, size_t *start)
{
    size_t length = 0;
    *start = end - 1;
    while (*start > 0 && ((unsigned char)text->bytes[*start] & 0xC0) == 0x80) {
        --*start;
    }
    return fuzz_code_point(text->bytes + *start, &length);
}

/* [\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}] among the settled characters. */
static bool is_word(unsigned c)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
           (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ND) ||
           category == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D;
}

static bool touches_word(const struct text *text, const size_t part[2], size_t start, size_t end)
{
    size_t other = 0;
    return (start > part[0] && is_word(character_before(text, start, &other))) ||
           (end < part[1] && is_word(fuzz_code_point(text->bytes + end, &other)));
}

static void encode_part(const struct text *text, size_t from, size_t stop, bool normalized,
                        struct tokens *out);

/* What a pass leaves between added tokens. */
static void encode_rest(const struct text *text, size_t from, size_t end, bool normalized,
                        struct tokens *out)
{
    if (normalized) {
        encode_between(text, from, end, out);
    } else {
        encode_part(text, from, end, true, out);
    }
}

/* A part of the text, beside which there is nothing: added tokens of a pass, and the rest. */
static void encode_part(const struct text *text, size_t from, size_t stop, bool normalized,
                        struct tokens *out)
{
    const size_t part[2] = {from, stop};
    size_t border = from;
    for (size_t at = from; at < stop;) {
        const int found = added_at(text, at, stop, normalized);
        if (found < 0) {
            at++;
            continue;
        }
        size_t start = at;
        size_t end = at + strlen(added[found].text);
        at = end;
        if (added[found].alone && touches_word(text, part, start, end)) {
            continue; /* it is none, and nothing that overlaps it is one */
        }
        for (size_t before = 0; added[found].left && start > border &&
                                is_white_space(character_before(text, start, &before));) {
            start = before;
        }
        for (size_t length = 0; added[found].right && end < stop &&
                                is_white_space(fuzz_code_point(text->bytes + end, &length));) {
            end += length;
        }
        encode_rest(text, border, start, normalized, out);
        push(out, FIRST_ADDED + found, start);
        at = border = end;
    }
    encode_rest(text, border, stop, normalized, out);
}

/* False for what no layout could have rendered, and for characters that are not settled. */
static bool read_text(struct fuzz_input *in, struct text *text, struct eng_rendered *rendered)
{
    const char *bytes = NULL;
    size_t size = 0;
    for (bool content = false; fuzz_segment(in, &bytes, &size); content = !content) {
        if (size > TEXT_MAX - text->size || !fuzz_is_utf8(bytes, size)) {
            return false;
        }
        if (content && size > 0) {
            const struct eng_span span = {text->size, text->size + size};
            rendered->contents[rendered->content_count++] = span;
            rendered->answers[rendered->answer_count++] = span; /* must not matter */
        }
        for (size_t i = 0, length = 0; i < size; i += length) {
            if (!is_settled(fuzz_code_point(bytes + i, &length))) {
                return false;
            }
        }
        for (size_t i = 0; i < size; i++) {
            text->content[text->size] = content;
            text->bytes[text->size++] = bytes[i];
        }
    }
    return true;
}

/* Control tokens are found by their text, other added tokens are none; the file can be read again.
 */
static void check_controls(void)
{
    eng_tokenizer *const tokenizer = open_tokenizer();
    for (int i = 0; i < ADDED; i++) {
        const int32_t id = added[i].special ? FIRST_ADDED + i : -1;
        fuzz_require(eng_tokenizer_control_id(tokenizer, added[i].text) == id);
    }
    fuzz_require(eng_tokenizer_control_id(tokenizer, "<|x") == -1);
    fuzz_require(eng_tokenizer_control_id(tokenizer, "") == -1);
    eng_tokenizer_close(tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static eng_tokenizer *tokenizer;
    static struct text text;
    static struct tokens wanted;
    static struct eng_span contents[TEXT_MAX];
    static struct eng_span answers[TEXT_MAX];
    if (tokenizer == NULL) {
        check_controls();
        tokenizer = open_tokenizer();
    }
    text.size = wanted.count = 0;
    struct fuzz_input in = {data, data + size};
    struct eng_rendered rendered = {.contents = contents, .answers = answers};
    struct eng_tokens tokens = {0};
    if (!read_text(&in, &text, &rendered)) {
        return 0;
    }
    encode_part(&text, 0, text.size, false, &wanted);
    rendered.bytes = fuzz_exact(text.bytes, text.size);
    rendered.size = text.size;
    fuzz_require(eng_tokenizer_encode(tokenizer, &rendered, &tokens, NULL) == ENG_OK);
    fuzz_require(tokens.count == wanted.count);
    for (size_t i = 0; i < wanted.count; i++) {
        fuzz_require(tokens.items[i].id == wanted.ids[i]);
        fuzz_require(tokens.items[i].start == wanted.starts[i]);
    }
    eng_tokens_fini(&tokens);
    free(rendered.bytes);
    return 0;
}
