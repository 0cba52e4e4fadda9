/* tokenizer.json: what is read, what is refused, and where control tokens are seen. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eng_text_fixture.h"
#include "tokenizer.h"

static const char *const merges[] = {"t h", "th e", "a a", "aa a", "aa aa", NULL};
static const char *const controls[] = {"<|im_start|>", "<|im_end|>", "<|im_end|>>", "<|im", NULL};
enum { TH = 256, THE, AA, AAA, AAAA, IM_START, IM_END, IM_END_LONGER, IM, SIZE };

static eng_tokenizer *open_fixture(bool pairs_as_arrays)
{
    struct eng_error error = {""};
    eng_tokenizer *tokenizer = NULL;
    char *const path = fixture_tokenizer(merges, controls, pairs_as_arrays);
    cr_assert_eq(eng_tokenizer_open(path, &tokenizer, &error), ENG_OK, "%s", error.text);
    fixture_remove(path);
    return tokenizer;
}

/* Encodes text whose contents stand in braces, which are taken away. */
static void expect_ids(eng_tokenizer *tokenizer, const char *marked, const int32_t *wanted,
                       size_t wanted_count)
{
    char bytes[256];
    struct eng_span contents[8];
    struct eng_rendered text = {.bytes = bytes, .contents = contents};
    struct eng_tokens tokens = {0};
    for (const char *p = marked; *p != '\0'; p++) {
        if (*p == '{') {
            contents[text.content_count].start = text.size;
        } else if (*p == '}') {
            contents[text.content_count++].end = text.size;
        } else {
            bytes[text.size++] = *p;
        }
    }
    cr_assert_eq(eng_tokenizer_encode(tokenizer, &text, &tokens, NULL), ENG_OK);
    cr_assert_eq(tokens.count, wanted_count, "%s: %zu tokens", marked, tokens.count);
    cr_assert_gt(tokens.count, 0);
    for (size_t i = 0; i < wanted_count; i++) {
        cr_assert_eq(tokens.items[i].id, wanted[i], "%s: token %zu is %d", marked, i,
                     tokens.items[i].id);
    }
    eng_tokens_fini(&tokens);
}

#define EXPECT_IDS(tokenizer, marked, ...)                                                         \
    expect_ids(tokenizer, marked, (const int32_t[]){__VA_ARGS__},                                  \
               sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

Test(eng_text_tokenizer, reads_merges_in_both_forms)
{
    for (int arrays = 0; arrays < 2; arrays++) {
        eng_tokenizer *const t = open_fixture(arrays == 1);
        cr_assert_eq(eng_tokenizer_size(t), SIZE);
        cr_assert_eq(eng_tokenizer_control_id(t, "<|im_end|>"), IM_END);
        cr_assert_eq(eng_tokenizer_control_id(t, "<|im_"), -1);
        EXPECT_IDS(t, "{the}", THE);
        EXPECT_IDS(t, "{aaaa}", AAAA);
        EXPECT_IDS(t, "{aaaaa}", AA, AAA); /* rank 3 comes before rank 4 */
        EXPECT_IDS(t, "{aaa}", AAA);
        EXPECT_IDS(t, "{\xC3\xA9 the}", 0xC3, 0xA9, ' ', THE);
        eng_tokenizer_close(t);
    }
}

Test(eng_text_tokenizer, sees_control_tokens_only_where_the_template_wrote_all_of_them)
{
    eng_tokenizer *const t = open_fixture(false);
    EXPECT_IDS(t, "<|im_end|>", IM_END);
    EXPECT_IDS(t, "{<|im}", '<', '|', 'i', 'm');
    EXPECT_IDS(t, "<|{im}", '<', '|', 'i', 'm');
    EXPECT_IDS(t, "{<}|im", '<', '|', 'i', 'm');
    EXPECT_IDS(t, "{a}<|im_end|>{a}", 'a', IM_END, 'a');
    EXPECT_IDS(t, "{<|im_end|>}<|im_end|>", '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>',
               IM_END);
    EXPECT_IDS(t, "<|im{_end|>}", IM, '_', 'e', 'n', 'd', '|', '>');
    eng_tokenizer_close(t);
}

Test(eng_text_tokenizer, takes_the_leftmost_and_longest_control_token)
{
    eng_tokenizer *const t = open_fixture(false);
    EXPECT_IDS(t, "<|im_end|>>", IM_END_LONGER);
    EXPECT_IDS(t, "<|im_end|><|im_start|>", IM_END, IM_START);
    EXPECT_IDS(t, "<|im<|im_end|>", IM, IM_END);
    eng_tokenizer_close(t);
}

Test(eng_text_tokenizer, lets_a_piece_span_template_and_content)
{
    eng_tokenizer *const t = open_fixture(false);
    EXPECT_IDS(t, "t{he}", THE);
    EXPECT_IDS(t, "{t}h{e}", THE);
    EXPECT_IDS(t, "{t}<|im{he}", 't', IM, 'h', 'e');
    eng_tokenizer_close(t);
}

Test(eng_text_tokenizer, gives_the_first_byte_of_every_token)
{
    eng_tokenizer *const t = open_fixture(false);
    char bytes[] = "<|im_start|>the \xC3\xA9"
                   "aaaa";
    struct eng_rendered text = {.bytes = bytes, .size = strlen(bytes)};
    struct eng_tokens tokens = {0};
    static const uint32_t starts[] = {0, 12, 15, 16, 17, 18};
    cr_assert_eq(eng_tokenizer_encode(t, &text, &tokens, NULL), ENG_OK);
    cr_assert_eq(tokens.count, 6);
    for (size_t i = 0; i < tokens.count; i++) {
        cr_assert_eq(tokens.items[i].start, starts[i]);
    }
    eng_tokens_fini(&tokens);
    eng_tokenizer_close(t);
}

Test(eng_text_tokenizer, takes_an_empty_text)
{
    eng_tokenizer *const t = open_fixture(false);
    struct eng_rendered text = {0};
    struct eng_tokens tokens = {0};
    cr_assert_eq(eng_tokenizer_encode(t, &text, &tokens, NULL), ENG_OK);
    cr_assert_eq(tokens.count, 0);
    eng_tokenizer_close(t);
}

enum { LATE = 256, LATE_DECOMPOSED, EARLY, LATE_CONTROL };

/* Composes; added tokens with and without `normalized`. */
static eng_tokenizer *open_composing(void)
{
    static const struct {
        const char *content;
        bool special, normalized;
    } tokens[] = {{"\xC3\xA9x", false, true},
                  {"e\xCC\x81y", false, true},
                  {"xz", false, false},
                  {"<e\xCC\x81>", true, true}};
    struct eng_error error = {""};
    eng_tokenizer *tokenizer = NULL;
    char *const plain = fixture_tokenizer(NULL, NULL, false);
    json_t *const root = json_load_file(plain, 0, NULL);
    json_object_set_new(root, "normalizer", json_pack("{s:s}", "type", "NFC"));
    for (int i = 0; i < 4; i++) {
        json_array_append_new(json_object_get(root, "added_tokens"),
                              json_pack("{s:i, s:s, s:b, s:b}", "id", LATE + i, "content",
                                        tokens[i].content, "special", tokens[i].special,
                                        "normalized", tokens[i].normalized));
    }
    char *const text = json_dumps(root, JSON_COMPACT);
    char *const path = fixture_file(text);
    cr_assert_eq(eng_tokenizer_open(path, &tokenizer, &error), ENG_OK, "%s", error.text);
    fixture_remove(path);
    fixture_remove(plain);
    free(text);
    json_decref(root);
    return tokenizer;
}

Test(eng_text_tokenizer, seeks_normalized_tokens_in_the_normalised_text)
{
    eng_tokenizer *const t = open_composing();
    EXPECT_IDS(t, "e\xCC\x81x", LATE);
    EXPECT_IDS(t, "a\xC3\xA9xb", 'a', LATE, 'b');
    EXPECT_IDS(t, "\xC3\xA9y", LATE_DECOMPOSED);
    EXPECT_IDS(t, "{e\xCC\x81}x", LATE);
    EXPECT_IDS(t, "\xC3\xA9xz", 0xC3, 0xA9, EARLY); /* the first pass cuts before the second */
    EXPECT_IDS(t, "\xC3\xA9xxz", LATE, EARLY);
    EXPECT_IDS(t, "<\xC3\xA9>", LATE_CONTROL);
    EXPECT_IDS(t, "xz<e\xCC\x81>{<\xC3\xA9>}<\xC3\xA9>", EARLY, LATE_CONTROL, '<', 0xC3, 0xA9, '>',
               LATE_CONTROL);
    EXPECT_IDS(t, "{e\xCC\x81<}e\xCC\x81>", 0xC3, 0xA9, '<', 0xC3, 0xA9, '>');
    EXPECT_IDS(t, "<\xC3\xA9{>}", '<', 0xC3, 0xA9, '>');
    cr_assert_eq(eng_tokenizer_control_id(t, "<e\xCC\x81>"), LATE_CONTROL);
    cr_assert_eq(eng_tokenizer_control_id(t, "xz"), -1);
    eng_tokenizer_close(t);
}

Test(eng_text_tokenizer, leads_normalized_tokens_back_to_the_source)
{
    eng_tokenizer *const t = open_composing();
    char bytes[] = "xze\xCC\x81\xCC\x82<e\xCC\x81>ae\xCC\x81x!";
    struct eng_rendered text = {.bytes = bytes, .size = strlen(bytes)};
    struct eng_tokens tokens = {0};
    static const uint32_t starts[] = {0, 2, 2, 2, 2, 7, 12, 13, 17};
    cr_assert_eq(eng_tokenizer_encode(t, &text, &tokens, NULL), ENG_OK);
    cr_assert_eq(tokens.count, sizeof starts / sizeof starts[0]);
    for (size_t i = 0; i < tokens.count; i++) {
        cr_assert_eq(tokens.items[i].start, starts[i], "token %zu starts at %u", i,
                     tokens.items[i].start);
    }
    eng_tokens_fini(&tokens);
    eng_tokenizer_close(t);
}

static void expect_refused(const char *json, const char *cause)
{
    struct eng_error error = {""};
    eng_tokenizer *tokenizer = NULL;
    char *const path = fixture_file(json);
    cr_assert_eq(eng_tokenizer_open(path, &tokenizer, &error), ENG_EINPUT, "%s", json);
    cr_assert_eq(strncmp(error.text, path, strlen(path)), 0, "%s", error.text);
    cr_assert_neq(strstr(error.text, cause), NULL, "'%s' is not in '%s'", cause, error.text);
    cr_assert_eq(tokenizer, NULL);
    fixture_remove(path);
}

/* A tokenizer.json of one token with these members before it. */
static void expect_members_refused(const char *members, const char *cause)
{
    char json[1024];
    snprintf(json, sizeof json, "{%s, \"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}}",
             members);
    expect_refused(json, cause);
}

#define BYTE_LEVEL "\"pre_tokenizer\": {\"type\": \"ByteLevel\"}"

Test(eng_text_tokenizer, names_file_and_cause_of_what_it_refuses)
{
    expect_refused("{}", "model.vocab is missing");
    expect_refused("{\"model\": 5}", "model.vocab is missing");
    expect_refused("{\"model\": {\"vocab\": []}}", "model.vocab is missing");
    expect_refused("{" BYTE_LEVEL ", \"model\": {\"vocab\": {\"a\": 0, \"a\": 1}}}",
                   "token 'a' stands twice");
    expect_refused("{" BYTE_LEVEL ", \"model\": {\"vocab\": {\"\xE2\x96\x81\": 0, "
                   "\"\\u2581\": 1}}}",
                   "token '\xE2\x96\x81' stands twice");
    expect_refused("{" BYTE_LEVEL ", \"model\": {\"vocab\": {}}}", "a vocabulary of 0 ids");
    expect_refused("{" BYTE_LEVEL ", \"model\": {\"vocab\": {\"a\": 0, \"b\": 0}}}",
                   "another token has too");
    expect_refused("{" BYTE_LEVEL ", \"model\": {\"vocab\": {\"b\": 1, \"a\": 4194304, "
                   "\"c\": 2}}}",
                   "token 'a' has id 4194304, above the largest, 4194303");
    expect_members_refused(BYTE_LEVEL ", \"added_tokens\": [{\"id\": 9223372036854775807, "
                                      "\"content\": \"<x>\"}]",
                           "token '<x>' has id 9223372036854775807, above the largest");
    expect_refused("{" BYTE_LEVEL ", \"model\": {\"vocab\": {\"a\": -1, \"b\": 3}}}",
                   "'a' has id -1, which is out of range");
    expect_refused("{" BYTE_LEVEL ", \"model\": {\"vocab\": {\"b\": 1, \"a\": \"0\"}}}",
                   "no whole number");
    expect_refused("{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}}", "only BPE");
    expect_refused("{\"model\": {\"dropout\": 0.1, \"vocab\": {\"a\": 0}}}", "dropout");
    expect_refused("{\"model\": {\"new_key\": 1, \"vocab\": {\"a\": 0}}}", "model.new_key");
    expect_refused("{" BYTE_LEVEL ", \"model\": {\"vocab\": {\"a\": 0}}}",
                   "no token for byte 0x00");
    expect_members_refused("\"pre_tokens\": 1", "pre_tokens is not supported");
    expect_members_refused("\"truncation\": {\"max_length\": 1}", "truncation is not supported");
    expect_members_refused("\"decoder\": {\"type\": \"CTC\"}", "decoder of type 'CTC'");
    expect_members_refused("\"post_processor\": {\"type\": \"Own\"}",
                           "post_processor of type 'Own'");
    expect_members_refused("\"normalizer\": {\"type\": \"Lowercase\"}", "'Lowercase'");
    expect_members_refused("\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": "
                           "[{\"type\": \"NFC\"}, {\"type\": \"NFKC\"}]}",
                           "'NFKC'");
    expect_members_refused("\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": "
                           "\"a\"}, \"content\": \"b\"}",
                           "'Replace'");
    expect_members_refused("\"version\": \"1.0\"", "pre_tokenizer of type '(none)'");
    expect_members_refused("\"pre_tokenizer\": {\"type\": \"Metaspace\"}", "ByteLevel");
    expect_members_refused("\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"use_regex\": false}",
                           "use_regex must not be false");
    expect_members_refused("\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": "
                           "true}",
                           "add_prefix_space");
    expect_members_refused("\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": "
                           "[{\"type\": \"Digits\"}, {\"type\": \"ByteLevel\"}]}",
                           "a Sequence must be Split and ByteLevel");
    expect_members_refused("\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": "
                           "[{\"type\": \"Split\", \"pattern\": {\"Regex\": \"x+\"}, "
                           "\"behavior\": \"Isolated\"}, {\"type\": \"ByteLevel\", "
                           "\"use_regex\": false}]}",
                           "the pattern 'x+'");
    expect_members_refused(BYTE_LEVEL ", \"added_tokens\": [{\"id\": 1, \"content\": \"<x>\", "
                                      "\"rstrip\": 1}]",
                           "rstrip");
    expect_members_refused(BYTE_LEVEL ", \"added_tokens\": [{\"id\": 1, \"content\": \"<x>\", "
                                      "\"special\": \"true\"}]",
                           "'<x>': special is neither true nor false");
    expect_refused("{" BYTE_LEVEL ", \"model\": {\"byte_fallback\": 1, \"vocab\": {\"a\": 0}}}",
                   "model.byte_fallback is neither true nor false");
    expect_refused("{" BYTE_LEVEL ", \"model\": {\"ignore_merges\": \"\", \"vocab\": {\"a\": 0}}}",
                   "model.ignore_merges is neither true nor false");
    expect_members_refused("\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"use_regex\": 1}",
                           "pre_tokenizer.use_regex is neither true nor false");
    expect_members_refused("\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": "
                           "\"a\", \"Regex\": \"b\"}, \"content\": \"c\"}",
                           "'Replace'");
    expect_refused("{" BYTE_LEVEL ", \"model\": {\"dropout\": -1, \"vocab\": {\"a\": 0}}}",
                   "dropout");
    expect_members_refused(BYTE_LEVEL
                           ", \"normalizer\": {\"type\": \"NFC\"}, \"added_tokens\": ["
                           "{\"id\": 1, \"content\": \"\xC3\xA9\", \"normalized\": true}, "
                           "{\"id\": 2, \"content\": \"e\xCC\x81\", \"normalized\": true}]",
                           "'\xC3\xA9' stands twice");
    expect_members_refused(
        BYTE_LEVEL ", \"added_tokens\": [{\"id\": 1, \"content\": \"b\", \"special\": true}, "
                   "{\"id\": 2, \"content\": \"b\", \"normalized\": true}]",
        "'b' stands twice");
    expect_members_refused(BYTE_LEVEL ", \"added_tokens\": [{\"id\": 1, \"content\": \"a\"}]",
                           "another id in model.vocab");
    expect_members_refused(BYTE_LEVEL ", \"added_tokens\": [{\"id\": 1, \"content\": \"b\"}, "
                                      "{\"id\": 2, \"content\": \"b\"}]",
                           "stands twice");
}

Test(eng_text_tokenizer, names_the_line_of_what_is_no_json)
{
    expect_refused("", ":1: an object is expected (byte 1)");
    expect_refused("{", ":1: a string is expected (byte 2)");
    expect_refused("{}\n\n5", ":3: something follows the object (byte 5)");
    expect_refused("{\n\"version\": tru}", ":2: malformed value");
    expect_refused("{\"version\":\n1e999}", ":2: real number overflow");
    expect_refused("{\"version\":\n\n\"1\\u0000\"}", ":3: \\u0000 is not allowed");
    expect_refused("{\n\"decoder\": {\"type\": 1, \"type\": 2}}", ":2: duplicate key 'type'");
    expect_refused("{\"model\": 1,\n\"model\": {}}", ":2: duplicate key 'model'");
    expect_refused("{\"model\": {\"vocab\": {},\n\"vocab\": {}}}", ":2: duplicate key 'vocab'");
    expect_refused("{\"\\u0000\": 1}", ":1: a key holds a NUL");
    expect_refused("{\"model\": {\"vocab\": {\"a\\u0000\": 0}}}",
                   ":1: model.vocab: token 'a' holds");
    expect_refused("{\"model\": {\"vocab\": {\n\"a\": 0,\n\"b\": 1.0}}}",
                   ":3: model.vocab: token 'b' has no whole number");
    expect_refused("{\"model\": {\"vocab\": {\"a\": 9223372036854775808}}}", "no whole number");
    expect_refused("{\"model\": {\"vocab\": {\"a\": 0} \"merges\": []}}",
                   "',' or '}' is expected in an object");
    expect_refused("{\"model\": {\"merges\": [\n\"a b\",\n\"a\\q\"]}}", ":3: unknown escape");
}

/* Members may stand in any order: merges and added tokens are understood behind the vocabulary. */
Test(eng_text_tokenizer, takes_members_in_any_order)
{
    static const char *const order[] = {"model", "added_tokens", "pre_tokenizer"};
    struct eng_error error = {""};
    eng_tokenizer *t = NULL;
    char *const plain = fixture_tokenizer(merges, controls, false);
    json_t *const root = json_load_file(plain, 0, NULL);
    json_t *const turned = json_object();
    json_t *const model = json_object();
    json_object_set(model, "merges", json_object_get(json_object_get(root, "model"), "merges"));
    json_object_update_missing(model, json_object_get(root, "model"));
    json_object_set_new(root, "model", model);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        json_object_set(turned, order[i], json_object_get(root, order[i]));
    }
    json_object_update_missing(turned, root);
    char *const text = json_dumps(turned, JSON_ENSURE_ASCII); /* escapes for all but ASCII */
    char *const path = fixture_file(text);
    cr_assert_lt(strstr(text, "\"merges\""), strstr(text, "\"vocab\""));
    cr_assert_lt(strstr(text, "\"vocab\""), strstr(text, "\"added_tokens\""));
    cr_assert_eq(eng_tokenizer_open(path, &t, &error), ENG_OK, "%s", error.text);
    EXPECT_IDS(t, "the\xC3\xA9<|im_end|>", THE, 0xC3, 0xA9, IM_END);
    eng_tokenizer_close(t);
    fixture_remove(path);
    fixture_remove(plain);
    free(text);
    json_decref(turned);
    json_decref(root);
}

static void expect_merge_refused(const char *merge, const char *cause)
{
    const char *const one[] = {"t h", NULL};
    struct eng_error error = {""};
    eng_tokenizer *tokenizer = NULL;
    char *const good = fixture_tokenizer(one, NULL, false);
    char text[16384];
    FILE *const f = fopen(good, "rb");
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    char *const at = strstr(text, "\"t h\"");
    cr_assert_neq(at, NULL);
    char changed[sizeof text + 64];
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, merge, at + 5);
    char *const path = fixture_file(changed);
    cr_assert_eq(eng_tokenizer_open(path, &tokenizer, &error), ENG_EINPUT, "%s", merge);
    cr_assert_neq(strstr(error.text, cause), NULL, "'%s' is not in '%s'", cause, error.text);
    fixture_remove(path);
    fixture_remove(good);
}

Test(eng_text_tokenizer, names_the_merge_it_refuses)
{
    expect_merge_refused("\"th\"", "entry 0 is no pair");
    expect_merge_refused("\"t h e\"", "entry 0 is no pair");
    expect_merge_refused("[\"t\"]", "entry 0 is no pair");
    expect_merge_refused("[\"t\", \"h\", \"e\"]", "entry 0 is no pair");
    expect_merge_refused("[\"t\", 5]", "entry 0 is no pair");
    expect_merge_refused("[\"t\", [\"h\"]]", "entry 0 is no pair");
    expect_merge_refused("\" h\"", "entry 0 is no pair");
    expect_merge_refused("\"t \\u0000h\"", "entry 0 joins 't' and");
    expect_merge_refused("5", "entry 0 is no pair");
    expect_merge_refused("\"t h\", \"xx h\"", "entry 1 joins 'xx' and 'h'");
    expect_merge_refused("\"t h\", \"h t\"", "entry 1 makes 'ht'");
    expect_merge_refused("\"t h\", \"t h\"", "merge 1 repeats merge 0");
}

Test(eng_text_tokenizer, says_why_a_file_cannot_be_read)
{
    struct eng_error error = {""};
    eng_tokenizer *tokenizer = NULL;
    cr_assert_eq(eng_tokenizer_open("/nowhere/t.json", &tokenizer, &error), ENG_EIO);
    cr_assert_str_eq(error.text, "/nowhere/t.json: No such file or directory");
    cr_assert_eq(eng_tokenizer_open("/", &tokenizer, &error), ENG_EIO);
    cr_assert_str_eq(error.text, "/: Is a directory");
}
