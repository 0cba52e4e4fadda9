/* Files of ranks, added tokens that are not special, tokens of characters, decoding. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eng_text_fixture.h"
#include "tokenizer.h"

static size_t put_line(char *out, const char *bytes, size_t size, int rank)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *at = out;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t word = 0;
        for (size_t k = 0; k < 3; k++) {
            word = word << 8 | (i + k < size ? (unsigned char)bytes[i + k] : 0);
        }
        for (size_t k = 0; k < 4; k++) {
            *at++ = i + k > size ? '=' : digits[word >> (18 - 6 * k) & 63];
        }
    }
    return (size_t)(at - out) + (size_t)sprintf(at, " %d\n", rank);
}

/* The bytes, then the given tokens, then lines as they are; its path ends in `name`. */
static char *ranks_file(const char *name, const char *const *tokens, const char *lines)
{
    static char text[16384];
    size_t size = 0;
    int rank = 0;
    for (; rank < 256; rank++) {
        const char byte = (char)rank;
        size += put_line(text + size, &byte, 1, rank);
    }
    for (size_t i = 0; tokens != NULL && tokens[i] != NULL; i++) {
        size += put_line(text + size, tokens[i], strlen(tokens[i]), rank++);
    }
    strcpy(text + size, lines);
    return fixture_named_file(text, name);
}

static void expect_ids(eng_tokenizer *t, const char *text, enum eng_controls controls,
                       const int32_t *wanted, size_t count)
{
    struct eng_tokens tokens = {0};
    struct eng_decoded decoded = {0};
    cr_assert_eq(eng_tokenizer_encode_text(t, fixture_text(text), controls, &tokens, NULL), ENG_OK);
    cr_assert_eq(tokens.count, count, "%s: %zu tokens", text, tokens.count);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(tokens.items[i].id, wanted[i], "%s: token %zu is %d", text, i,
                     (int)tokens.items[i].id);
    }
    cr_assert_eq(eng_tokenizer_decode(t, wanted, count, &decoded, NULL), ENG_OK);
    cr_assert_eq(decoded.size, strlen(text));
    cr_assert_eq(memcmp(decoded.bytes, text, decoded.size), 0, "%s", text);
    free(decoded.bytes);
    eng_tokens_fini(&tokens);
}

#define EXPECT_IDS(tokenizer, text, controls, ...)                                                 \
    expect_ids(tokenizer, text, controls, (const int32_t[]){__VA_ARGS__},                          \
               sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

Test(eng_text_ranks, merges_the_pair_whose_bytes_rank_lowest)
{
    /* "abc" cannot be merged from two tokens, but a piece of its own it is. */
    static const char *const tokens[] = {"bc", "ab", "xyz", "aabc", "aa", NULL};
    enum { BC = 256, AB, XYZ, AABC, AA };
    struct eng_error error = {""};
    eng_tokenizer *t = NULL;
    char *const path = ranks_file(".gpt2.tiktoken", tokens, "");
    char beside[200];
    snprintf(beside, sizeof beside, "%s.special", path);
    FILE *const special = fopen(beside, "wb");
    fputs("PHw+ 300\n", special);
    fclose(special);
    cr_assert_eq(eng_tokenizer_open(path, &t, &error), ENG_OK, "%s", error.text);
    cr_assert_eq(eng_tokenizer_size(t), 301);
    cr_assert_eq(eng_tokenizer_control_id(t, "<|>"), 300);
    EXPECT_IDS(t, "abc", ENG_CONTROLS_AS_TEXT, 'a', BC);
    EXPECT_IDS(t, "aab", ENG_CONTROLS_AS_TEXT, 'a', AB);
    EXPECT_IDS(t, "xyz", ENG_CONTROLS_AS_TEXT, XYZ);
    EXPECT_IDS(t, "xyzz", ENG_CONTROLS_AS_TEXT, 'x', 'y', 'z', 'z');
    EXPECT_IDS(t, "aabc", ENG_CONTROLS_AS_TEXT, AABC);
    EXPECT_IDS(t, "<|>", ENG_CONTROLS_AS_TEXT, '<', '|', '>');
    EXPECT_IDS(t, "<|>aa", ENG_CONTROLS_SEEN, 300, AA);
    eng_tokenizer_close(t);
    unlink(beside);
    fixture_remove(path);
}

static void expect_refused(const char *name, const char *lines, const char *cause)
{
    struct eng_error error = {""};
    eng_tokenizer *t = NULL;
    char *const path = ranks_file(name, NULL, lines);
    cr_assert_eq(eng_tokenizer_open(path, &t, &error), ENG_EINPUT, "%s", lines);
    cr_assert_eq(strncmp(error.text, path, strlen(path)), 0, "%s", error.text);
    cr_assert_neq(strstr(error.text, cause), NULL, "'%s' is not in '%s'", cause, error.text);
    fixture_remove(path);
}

Test(eng_text_ranks, names_the_line_it_refuses)
{
    const char *const name = ".cl100k.tiktoken";
    expect_refused(".tiktoken", "", "the name gives no split pattern");
    expect_refused(".cl99k.tiktoken", "", "the name gives no split pattern");
    expect_refused(name, "YWI=\n", ":257: expected a token in base64");
    expect_refused(name, "YWI= 256\n\nYWM= 257\n", ":258: expected a token in base64");
    expect_refused(name, "YWI 256\n", ":257: 'YWI 256' is no base64");
    expect_refused(name, "YWJ= 256\n", ":257: 'YWJ= 256' is no base64"); /* bits left over */
    expect_refused(name, "Y=I= 256\n", "is no base64");
    expect_refused(name, "==== 256\n", "is no base64");
    expect_refused(name, " 256\n", "is no base64");
    expect_refused(name, "YWI= x\n", ":257: 'x' is no rank");
    expect_refused(name, "YWI= 0256\n", "is no rank");
    expect_refused(name, "YWI= -1\n", "is no rank");
    expect_refused(name, "YWI= 256\r\n", "is no rank");
    expect_refused(name, "YWI= 4194304\n", "is no rank");
    expect_refused(name, "YWI= 99999999999\n", "is no rank");
    expect_refused(name, "YWI= 255\n", ":257: token 'ab' has id 255, which another token has too");
    expect_refused(name, "YQ== 256\n", ":257: token 'a' stands twice");
    char *const path = fixture_named_file("YQ== 0\n", name);
    struct eng_error error = {""};
    eng_tokenizer *t = NULL;
    cr_assert_eq(eng_tokenizer_open(path, &t, &error), ENG_EINPUT);
    cr_assert_neq(strstr(error.text, "no token for byte 0x00"), NULL, "%s", error.text);
    cr_assert_eq(eng_tokenizer_open("/nowhere/a.gpt2.tiktoken", &t, &error), ENG_EIO);
    fixture_remove(path);
}

/* Replaces the first occurrence in the text of a file; the caller removes the new file. */
static char *changed_file(char *path, const char *old, const char *new)
{
    static char text[32768], changed[32768];
    FILE *const file = fopen(path, "rb");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    char *const at = strstr(text, old);
    cr_assert_neq(at, NULL);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    fixture_remove(path);
    return fixture_file(changed);
}

Test(eng_text_ranks, sees_added_tokens_that_are_not_special_everywhere)
{
    static const char *const merges[] = {"a b", NULL};
    static const char *const controls[] = {"<x>", "<x>>", NULL};
    enum { AB = 256, X, XX };
    struct eng_error error = {""};
    eng_tokenizer *t = NULL;
    char *path = fixture_tokenizer(merges, controls, false);
    path = changed_file(path, "\"content\":\"<x>\",\"special\":true",
                        "\"content\":\"<x>\",\"special\":false");
    cr_assert_eq(eng_tokenizer_open(path, &t, &error), ENG_OK, "%s", error.text);
    EXPECT_IDS(t, "ab<x>>a", ENG_CONTROLS_AS_TEXT, AB, X, '>', 'a');
    EXPECT_IDS(t, "ab<x>>a", ENG_CONTROLS_SEEN, AB, XX, 'a');
    cr_assert_not(eng_tokenizer_sees_control(t, fixture_text("<x>")));
    eng_tokenizer_close(t);
    fixture_remove(path);
}

Test(eng_text_ranks, composes_text_for_a_tokenizer_that_does)
{
    static const char *const merges[] = {"a b", NULL};
    struct eng_error error = {""};
    struct eng_tokens tokens = {0};
    eng_tokenizer *t = NULL;
    char *path = fixture_tokenizer(merges, NULL, false);
    path = changed_file(path, "\"pre_tokenizer\"",
                        "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\"");
    cr_assert_eq(eng_tokenizer_open(path, &t, &error), ENG_OK, "%s", error.text);
    cr_assert(eng_tokenizer_composes(t));
    cr_assert_eq(eng_tokenizer_encode_text(t, fixture_text("abe\xCC\x81g"), ENG_CONTROLS_AS_TEXT,
                                           &tokens, NULL),
                 ENG_OK);
    static const struct eng_token wanted[] = {{256, 0}, {0xC3, 2}, {0xA9, 2}, {'g', 5}};
    cr_assert_eq(tokens.count, 4);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(tokens.items[i].id, wanted[i].id);
        cr_assert_eq(tokens.items[i].start, wanted[i].start);
    }
    eng_tokens_fini(&tokens);
    eng_tokenizer_close(t);
    fixture_remove(path);
}

/* As SentencePiece makes them: characters, bytes for the others, a mark for blanks. */
Test(eng_text_ranks, starts_from_characters_and_falls_back_to_bytes)
{
    static char json[8192];
    struct eng_error error = {""};
    struct eng_tokens tokens = {0};
    eng_tokenizer *t = NULL;
    char *at = json;
    at += sprintf(at, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":"
                      "\"Prepend\",\"prepend\":\"\xE2\x96\x81\"},{\"type\":\"Replace\",\"pattern\":"
                      "{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}]},\"pre_tokenizer\":null,"
                      "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"unk_token\":\"<unk>\","
                      "\"vocab\":{");
    for (int byte = 0; byte < 256; byte++) {
        at += sprintf(at, "\"<0x%02X>\":%d,", byte, byte);
    }
    sprintf(at, "\"a\":256,\"\xE2\x96\x81\":257,\"\xE2\x96\x81"
                "a\":258,\"\xC3\xA9\":259},\"merges\":[\"\xE2\x96\x81 a\"]}}");
    char *const path = fixture_file(json);
    cr_assert_eq(eng_tokenizer_open(path, &t, &error), ENG_OK, "%s", error.text);
    EXPECT_IDS(t, "a a", ENG_CONTROLS_AS_TEXT, 258, 258);
    EXPECT_IDS(t, "\xC3\xA9z  a", ENG_CONTROLS_AS_TEXT, 257, 259, 'z', 257, 258);
    EXPECT_IDS(t, "\xC3\xA8", ENG_CONTROLS_AS_TEXT, 257, 0xC3, 0xA8);
    cr_assert_eq(eng_tokenizer_encode_text(t, fixture_text("z\xC3\xA8 a"), ENG_CONTROLS_AS_TEXT,
                                           &tokens, NULL),
                 ENG_OK);
    static const uint32_t starts[] = {0, 0, 1, 2, 3};
    cr_assert_eq(tokens.count, 5);
    for (size_t i = 0; i < 5; i++) {
        cr_assert_eq(tokens.items[i].start, starts[i], "token %zu", i);
    }
    eng_tokens_fini(&tokens);
    eng_tokenizer_close(t);
    fixture_remove(path);
}

Test(eng_text_ranks, refuses_what_is_no_text_or_no_token)
{
    struct eng_error error = {""};
    struct eng_tokens tokens = {0};
    struct eng_decoded decoded = {0};
    eng_tokenizer *t = NULL;
    char *const path = fixture_tokenizer(NULL, NULL, false);
    cr_assert_eq(eng_tokenizer_open(path, &t, &error), ENG_OK, "%s", error.text);
    cr_assert_eq(
        eng_tokenizer_encode_text(t, fixture_text("ab\xC3"), ENG_CONTROLS_AS_TEXT, &tokens, &error),
        ENG_EINPUT);
    cr_assert_str_eq(error.text, "not UTF-8 at byte 3");
    static const int32_t ids[] = {'a', 256, -1};
    cr_assert_eq(eng_tokenizer_decode(t, ids, 2, &decoded, &error), ENG_EINPUT);
    cr_assert_str_eq(error.text, "id 256 at place 1 is no token");
    cr_assert_eq(eng_tokenizer_decode(t, ids + 2, 1, &decoded, &error), ENG_EINPUT);
    free(decoded.bytes);
    eng_tokens_fini(&tokens);
    eng_tokenizer_close(t);
    fixture_remove(path);
}
