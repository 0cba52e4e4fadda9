/* Reads records by definition from jansson's values and compares what the engine made of them.
 * Called by the targets json and dataset; must not know files. */
#include "record_check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { DEPTH_MAX = 64, KEYS_MAX = 4096, ID_BYTES_MAX = 127, MESSAGES_MAX = 512 };

/* The messages a record means; contents are jansson's or `joined`. */
struct wanted {
    enum eng_role roles[MESSAGES_MAX];
    struct eng_text contents[MESSAGES_MAX]; /* bytes is NULL: none */
    const json_t *items[MESSAGES_MAX];      /* what says more of a message, or NULL */
    size_t count;
    const json_t *root, *tools, *documents; /* NULL: none */
    char *joined;
    bool good;
};

static struct eng_text text_of(const json_t *value)
{
    return json_is_string(value)
               ? (struct eng_text){json_string_value(value), json_string_length(value)}
               : (struct eng_text){NULL, 0};
}

static void add(struct wanted *w, enum eng_role role, struct eng_text content, const json_t *item)
{
    if (w->count == MESSAGES_MAX) {
        w->good = false;
        return;
    }
    w->roles[w->count] = role;
    w->items[w->count] = item;
    w->contents[w->count++] = content;
}

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && json_string_length(value) == strlen(text) &&
           memcmp(json_string_value(value), text, strlen(text)) == 0;
}

/* Where null is as if absent. */
static const json_t *given(const json_t *object, const char *key)
{
    const json_t *const value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

/* ---- lists of messages */

static bool is_list_of_objects(const json_t *list)
{
    size_t index;
    json_t *item;
    bool good = json_is_array(list);
    json_array_foreach(list, index, item)
    {
        good = good && json_is_object(item);
    }
    return good;
}

static bool calls_tools(const json_t *message)
{
    return json_array_size(given(message, "tool_calls")) > 0;
}

/* Role of a name; -1 when it has none. */
static int role_of(const json_t *name, bool turns)
{
    const struct {
        const char *text;
        int role;
    } names[] = {{"system", ENG_ROLE_SYSTEM},
                 {"user", ENG_ROLE_USER},
                 {"assistant", ENG_ROLE_ASSISTANT},
                 {turns ? "human" : "tool", turns ? ENG_ROLE_USER : ENG_ROLE_TOOL},
                 {turns ? "gpt" : "assistant", ENG_ROLE_ASSISTANT}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is_text(name, names[i].text)) {
            return names[i].role;
        }
    }
    return -1;
}

static void add_turn(struct wanted *w, const json_t *item)
{
    const int role = role_of(json_object_get(item, "from"), true);
    const json_t *const value = json_object_get(item, "value");
    w->good = w->good && role >= 0 && json_is_string(value);
    if (w->good) {
        add(w, (enum eng_role)role, text_of(value), NULL);
    }
}

static void add_message(struct wanted *w, const json_t *item)
{
    const int role = role_of(json_object_get(item, "role"), false);
    const json_t *const content = given(item, "content");
    const json_t *const calls = given(item, "tool_calls");
    const json_t *const reasoning = given(item, "reasoning_content");
    const json_t *const id = given(item, "tool_call_id");
    const json_t *const name = given(item, "name");
    w->good = w->good && role >= 0 &&
              (content == NULL ? calls_tools(item) : json_is_string(content)) &&
              (calls == NULL || (role == ENG_ROLE_ASSISTANT && is_list_of_objects(calls))) &&
              (reasoning == NULL || (role == ENG_ROLE_ASSISTANT && json_is_string(reasoning))) &&
              (id == NULL || (role == ENG_ROLE_TOOL && json_is_string(id))) &&
              (name == NULL || json_is_string(name));
    if (w->good) {
        add(w, (enum eng_role)role, text_of(content), item);
    }
}

static void add_list(struct wanted *w, const json_t *list,
                     void (*add_item)(struct wanted *, const json_t *))
{
    size_t index;
    json_t *item;
    w->good = w->good && is_list_of_objects(list);
    json_array_foreach(list, index, item)
    {
        add_item(w, item);
    }
}

/* ---- formats */

/* A key that may be left out but must then be a string; empty counts as left out. */
static struct eng_text optional(struct wanted *w, const char *key)
{
    const json_t *const value = json_object_get(w->root, key);
    w->good = w->good && (value == NULL || json_is_string(value));
    return text_of(value);
}

static void expect_alpaca(struct wanted *w)
{
    const json_t *const history = json_object_get(w->root, "history");
    const json_t *const instruction = json_object_get(w->root, "instruction");
    const json_t *const output = json_object_get(w->root, "output");
    const struct eng_text input = optional(w, "input");
    const struct eng_text system = optional(w, "system");
    size_t index;
    json_t *pair;
    if (system.size > 0) {
        add(w, ENG_ROLE_SYSTEM, system, NULL);
    }
    w->good = w->good && (history == NULL || json_is_array(history));
    json_array_foreach(history, index, pair)
    {
        w->good = w->good && json_array_size(pair) == 2 &&
                  json_is_string(json_array_get(pair, 0)) &&
                  json_is_string(json_array_get(pair, 1));
        if (w->good) {
            add(w, ENG_ROLE_USER, text_of(json_array_get(pair, 0)), NULL);
            add(w, ENG_ROLE_ASSISTANT, text_of(json_array_get(pair, 1)), NULL);
        }
    }
    w->good = w->good && json_is_string(instruction) && json_is_string(output);
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
    add(w, ENG_ROLE_USER, question, NULL);
    add(w, ENG_ROLE_ASSISTANT, text_of(output), NULL);
}

static void expect_completion(struct wanted *w)
{
    const json_t *const prompt = json_object_get(w->root, "prompt");
    const json_t *const completion = json_object_get(w->root, "completion");
    if (json_is_string(prompt)) {
        add(w, ENG_ROLE_USER, text_of(prompt), NULL);
    } else {
        add_list(w, prompt, add_message);
    }
    if (json_is_string(completion)) {
        add(w, ENG_ROLE_ASSISTANT, text_of(completion), NULL);
        return;
    }
    const size_t before = w->count;
    add_list(w, completion, add_message);
    w->good = w->good && w->count == before + 1 && w->roles[before] == ENG_ROLE_ASSISTANT;
}

static void expect_sharegpt(struct wanted *w)
{
    const struct eng_text system = optional(w, "system");
    if (system.size > 0) {
        add(w, ENG_ROLE_SYSTEM, system, NULL);
    }
    add_list(w, json_object_get(w->root, "conversations"), add_turn);
}

/* ---- the whole record */

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

/* Whether `role` may stand behind message i - 1, or first. */
static bool may_follow(const struct wanted *w, size_t first, size_t i)
{
    const enum eng_role role = w->roles[i];
    if (i == first) {
        return role == ENG_ROLE_USER;
    }
    switch (w->roles[i - 1]) {
    case ENG_ROLE_USER:
        return role == ENG_ROLE_ASSISTANT;
    case ENG_ROLE_TOOL:
        return role == ENG_ROLE_TOOL || role == ENG_ROLE_ASSISTANT;
    case ENG_ROLE_ASSISTANT:
        return role == ENG_ROLE_TOOL || (role == ENG_ROLE_USER && !calls_tools(w->items[i - 1]));
    case ENG_ROLE_SYSTEM:
        break;
    }
    return false;
}

static void expect_lists(struct wanted *w)
{
    w->tools = given(w->root, "tools");
    w->documents = given(w->root, "documents");
    w->good = w->good && (w->tools == NULL || is_list_of_objects(w->tools)) &&
              (w->documents == NULL || is_list_of_objects(w->documents));
}

static void expect(struct wanted *w, enum eng_format format, json_t *root)
{
    bool crowded = false;
    const json_t *const id = json_object_get(root, "id");
    w->root = root;
    w->good = json_is_object(root) && depth_of(root, &crowded) <= DEPTH_MAX && !crowded &&
              (id == NULL || (json_is_string(id) && json_string_length(id) <= ID_BYTES_MAX &&
                              memchr(json_string_value(id), '\0', json_string_length(id)) == NULL));
    switch (format) {
    case ENG_FORMAT_ALPACA:
        expect_alpaca(w);
        break;
    case ENG_FORMAT_COMPLETION:
        expect_completion(w);
        expect_lists(w);
        break;
    case ENG_FORMAT_SHAREGPT:
        expect_sharegpt(w);
        break;
    case ENG_FORMAT_MESSAGES:
        add_list(w, json_object_get(root, "messages"), add_message);
        expect_lists(w);
        break;
    }
    const size_t first = w->count > 0 && w->roles[0] == ENG_ROLE_SYSTEM ? 1 : 0;
    w->good = w->good && w->count > first && w->roles[w->count - 1] == ENG_ROLE_ASSISTANT;
    for (size_t i = first; w->good && i < w->count; i++) {
        w->good = may_follow(w, first, i);
    }
}

/* ---- comparison */

static void same_text(struct eng_text made, struct eng_text wanted)
{
    fuzz_require((made.bytes == NULL) == (wanted.bytes == NULL));
    fuzz_require(made.size == wanted.size);
    fuzz_require(made.size == 0 || memcmp(made.bytes, wanted.bytes, made.size) == 0);
    fuzz_require(fuzz_is_utf8(made.bytes, made.size));
}

/* The engine keeps the text of such a list. */
static void same_list(struct eng_text made, const json_t *wanted)
{
    fuzz_require((made.bytes == NULL) == (wanted == NULL));
    if (wanted != NULL) {
        json_t *const value = json_loadb(made.bytes, made.size, JSON_ALLOW_NUL, NULL);
        fuzz_require(value != NULL && json_equal(value, wanted));
        json_decref(value);
    }
}

static void same_record(const struct eng_conversation *chat, const struct wanted *w)
{
    const struct eng_extras extras = eng_conversation_extras(chat);
    fuzz_require(chat->message_count == w->count);
    for (size_t i = 0; i < w->count; i++) {
        static const struct eng_message_extra none;
        const struct eng_message_extra *const extra =
            extras.messages == NULL ? &none : &extras.messages[i];
        const json_t *const item = w->items[i];
        fuzz_require(chat->messages[i].role == w->roles[i]);
        same_text(chat->messages[i].content, w->contents[i]);
        same_text(extra->reasoning_content, text_of(given(item, "reasoning_content")));
        same_text(extra->tool_call_id, text_of(given(item, "tool_call_id")));
        same_text(extra->name, text_of(given(item, "name")));
        same_list(extra->tool_calls, given(item, "tool_calls"));
    }
    same_text(chat->id, text_of(json_object_get(w->root, "id")));
    same_list(extras.tools, w->tools);
    same_list(extras.documents, w->documents);
}

void record_check(enum eng_format format, const char *bytes, size_t size,
                  struct eng_conversation *chat)
{
    static struct wanted w;
    char *const line = fuzz_exact(bytes, size);
    struct eng_error cause = {""};
    json_error_t error;
    json_t *const root =
        size == 0 ? NULL : json_loadb(line, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    /* jansson refuses two things that are JSON, and reads over a NUL behind a number or word. */
    const bool told = root != NULL || size == 0 ||
                      (json_error_code(&error) != json_error_numeric_overflow &&
                       json_error_code(&error) != json_error_null_byte_in_key);
    w = (struct wanted){.good = false};
    if (root != NULL) {
        expect(&w, format, root);
        w.good = w.good && memchr(line, '\0', size) == NULL;
    }
    const enum eng_status status = eng_record_parse(format, line, size, chat, &cause);
    fuzz_require(status == ENG_OK || status == ENG_EINPUT);
    fuzz_require((status == ENG_OK) == (cause.text[0] == '\0'));
    fuzz_require(!told || w.count == MESSAGES_MAX || (status == ENG_OK) == w.good);
    if (status == ENG_OK && told && w.good) {
        same_record(chat, &w);
    }
    free(w.joined);
    json_decref(root);
    free(line);
}
