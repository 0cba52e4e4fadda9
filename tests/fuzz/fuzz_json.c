/* One record of each format against jansson and the rules of corpus/RECIPE.md. The first byte of
 * the input chooses the format, the rest is the line. Called by libFuzzer and replay_main.c. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "json_record.h"

enum { DEPTH_MAX = 64, KEYS_MAX = 4096, ID_BYTES_MAX = 127, MESSAGES_MAX = 512 };

/* The messages a record means, made by definition; contents are jansson's or `joined`. */
struct wanted {
    enum eng_role roles[MESSAGES_MAX];
    struct eng_text contents[MESSAGES_MAX];
    size_t count;
    char *joined;
    bool good;
};

static struct eng_text text_of(const json_t *value)
{
    return (struct eng_text){json_string_value(value), json_string_length(value)};
}

static void add(struct wanted *w, enum eng_role role, struct eng_text content)
{
    if (w->count == MESSAGES_MAX) {
        w->good = false;
        return;
    }
    w->roles[w->count] = role;
    w->contents[w->count++] = content;
}

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && json_string_length(value) == strlen(text) &&
           memcmp(json_string_value(value), text, strlen(text)) == 0;
}

/* Role of a name in either of two spellings, -1 when it has none. */
static int role_of(const json_t *name, const char *user, const char *assistant)
{
    const struct {
        const char *text;
        int role;
    } names[] = {{"system", ENG_ROLE_SYSTEM},
                 {"user", ENG_ROLE_USER},
                 {user, ENG_ROLE_USER},
                 {"assistant", ENG_ROLE_ASSISTANT},
                 {assistant, ENG_ROLE_ASSISTANT}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is_text(name, names[i].text)) {
            return names[i].role;
        }
    }
    return -1;
}

static void add_list(struct wanted *w, const json_t *list, bool turns)
{
    size_t index;
    json_t *item;
    w->good = w->good && json_is_array(list);
    json_array_foreach(list, index, item)
    {
        const json_t *const content = json_object_get(item, turns ? "value" : "content");
        const int role = turns ? role_of(json_object_get(item, "from"), "human", "gpt")
                               : role_of(json_object_get(item, "role"), "user", "assistant");
        w->good = w->good && json_is_object(item) && role >= 0 && json_is_string(content);
        if (w->good) {
            add(w, (enum eng_role)role, text_of(content));
        }
    }
}

/* A key that may be left out but must then be a string; empty counts as left out. */
static struct eng_text optional(struct wanted *w, const json_t *root, const char *key)
{
    const json_t *const value = json_object_get(root, key);
    w->good = w->good && (value == NULL || json_is_string(value));
    return json_is_string(value) ? text_of(value) : (struct eng_text){"", 0};
}

static void expect_alpaca(struct wanted *w, const json_t *root)
{
    const json_t *const history = json_object_get(root, "history");
    const json_t *const instruction = json_object_get(root, "instruction");
    const struct eng_text input = optional(w, root, "input");
    const struct eng_text system = optional(w, root, "system");
    size_t index;
    json_t *pair;
    if (system.size > 0) {
        add(w, ENG_ROLE_SYSTEM, system);
    }
    w->good = w->good && (history == NULL || json_is_array(history));
    json_array_foreach(history, index, pair)
    {
        w->good = w->good && json_array_size(pair) == 2 &&
                  json_is_string(json_array_get(pair, 0)) &&
                  json_is_string(json_array_get(pair, 1));
        if (w->good) {
            add(w, ENG_ROLE_USER, text_of(json_array_get(pair, 0)));
            add(w, ENG_ROLE_ASSISTANT, text_of(json_array_get(pair, 1)));
        }
    }
    w->good =
        w->good && json_is_string(instruction) && json_is_string(json_object_get(root, "output"));
    if (!w->good) {
        return;
    }
    struct eng_text question = text_of(instruction);
    if (input.size > 0) {
        w->joined = malloc(question.size + 1 + input.size);
        fuzz_require(w->joined != NULL);
        memcpy(w->joined, question.bytes, question.size);
        w->joined[question.size] = '\n';
        memcpy(w->joined + question.size + 1, input.bytes, input.size);
        question = (struct eng_text){w->joined, question.size + 1 + input.size};
    }
    add(w, ENG_ROLE_USER, question);
    add(w, ENG_ROLE_ASSISTANT, text_of(json_object_get(root, "output")));
}

static void expect_completion(struct wanted *w, const json_t *root)
{
    const json_t *const prompt = json_object_get(root, "prompt");
    const json_t *const completion = json_object_get(root, "completion");
    if (json_is_string(prompt)) {
        add(w, ENG_ROLE_USER, text_of(prompt));
    } else {
        add_list(w, prompt, false);
    }
    if (json_is_string(completion)) {
        add(w, ENG_ROLE_ASSISTANT, text_of(completion));
        return;
    }
    const size_t before = w->count;
    add_list(w, completion, false);
    w->good = w->good && w->count == before + 1 && w->roles[before] == ENG_ROLE_ASSISTANT;
}

/* Nesting of arrays and objects, and whether an object has too many keys. */
static int depth_of(json_t *value, bool *crowded)
{
    int deepest = 0;
    size_t index;
    const char *key;
    json_t *item;
    *crowded = *crowded || json_object_size(value) > KEYS_MAX;
    json_object_foreach(value, key, item)
    {
        const int depth = depth_of(item, crowded);
        deepest = depth > deepest ? depth : deepest;
    }
    json_array_foreach(value, index, item)
    {
        const int depth = depth_of(item, crowded);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + (json_is_object(value) || json_is_array(value));
}

static void expect(struct wanted *w, enum eng_format format, json_t *root)
{
    bool crowded = false;
    const json_t *const id = json_object_get(root, "id");
    w->good = json_is_object(root) && depth_of(root, &crowded) <= DEPTH_MAX && !crowded &&
              (id == NULL || (json_is_string(id) && json_string_length(id) <= ID_BYTES_MAX &&
                              memchr(json_string_value(id), '\0', json_string_length(id)) == NULL));
    if (format == ENG_FORMAT_ALPACA) {
        expect_alpaca(w, root);
    } else if (format == ENG_FORMAT_COMPLETION) {
        expect_completion(w, root);
    } else if (format == ENG_FORMAT_SHAREGPT) {
        const struct eng_text system = optional(w, root, "system");
        if (system.size > 0) {
            add(w, ENG_ROLE_SYSTEM, system);
        }
        add_list(w, json_object_get(root, "conversations"), true);
    } else {
        add_list(w, json_object_get(root, "messages"), false);
    }
    const size_t first = w->count > 0 && w->roles[0] == ENG_ROLE_SYSTEM ? 1 : 0;
    w->good = w->good && w->count > first && (w->count - first) % 2 == 0;
    for (size_t i = first; w->good && i < w->count; i++) {
        w->good = w->roles[i] == ((i - first) % 2 == 0 ? ENG_ROLE_USER : ENG_ROLE_ASSISTANT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct eng_conversation chat;
    static struct wanted w;
    if (size < 2) {
        return 0;
    }
    const enum eng_format format = (enum eng_format)(data[0] % 4);
    char *const line = fuzz_exact(data + 1, size - 1);
    struct eng_error cause = {""};
    json_error_t error;
    json_t *const root =
        json_loadb(line, size - 1, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    /* jansson refuses two things that are JSON. */
    const bool told = root != NULL || (json_error_code(&error) != json_error_numeric_overflow &&
                                       json_error_code(&error) != json_error_null_byte_in_key);
    w.count = 0;
    w.good = false;
    if (root != NULL) {
        expect(&w, format, root);
    }
    const enum eng_status status = eng_record_parse(format, line, size - 1, &chat, &cause);
    fuzz_require(status == ENG_OK || status == ENG_EINPUT);
    fuzz_require((status == ENG_OK) == (cause.text[0] == '\0'));
    fuzz_require(!told || w.count == MESSAGES_MAX || (status == ENG_OK) == w.good);
    if (status == ENG_OK && told && w.good) {
        fuzz_require(chat.message_count == w.count);
        for (size_t i = 0; i < w.count; i++) {
            const struct eng_text content = chat.messages[i].content;
            fuzz_require(chat.messages[i].role == w.roles[i]);
            fuzz_require(content.size == w.contents[i].size &&
                         memcmp(content.bytes, w.contents[i].bytes, content.size) == 0);
        }
    }
    free(w.joined);
    w.joined = NULL;
    json_decref(root);
    free(line);
    return 0;
}
