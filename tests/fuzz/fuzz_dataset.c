/* Training files: lines by definition, and each line against jansson plus the rules of
 * corpus/RECIPE.md. The input is a file. Called by libFuzzer and replay_main.c. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"
#include "fuzz.h"
#include "json_messages.h"

enum { DEPTH_MAX = 64, KEYS_MAX = 4096, ID_BYTES_MAX = 127 };
enum expectation { REFUSED, ACCEPTED, UNKNOWN };

/* Nesting of arrays and objects, and whether an object has too many keys. */
static int depth_of(json_t *value, bool *crowded)
{
    int deepest = 0;
    size_t index;
    const char *key;
    json_t *item;
    if (json_is_object(value)) {
        *crowded = *crowded || json_object_size(value) > KEYS_MAX;
        json_object_foreach(value, key, item)
        {
            const int depth = depth_of(item, crowded);
            deepest = depth > deepest ? depth : deepest;
        }
        return deepest + 1;
    }
    if (json_is_array(value)) {
        json_array_foreach(value, index, item)
        {
            const int depth = depth_of(item, crowded);
            deepest = depth > deepest ? depth : deepest;
        }
        return deepest + 1;
    }
    return 0;
}

static bool messages_are_right(const json_t *messages)
{
    const size_t count = json_array_size(messages);
    bool system = false;
    for (size_t i = 0; i < count; i++) {
        const json_t *const message = json_array_get(messages, i);
        const json_t *const role = json_object_get(message, "role");
        if (!json_is_string(role) || !json_is_string(json_object_get(message, "content"))) {
            return false;
        }
        const char *wanted = (i - system) % 2 == 0 ? "user" : "assistant";
        if (i == 0 && strcmp(json_string_value(role), "system") == 0) {
            system = true;
            wanted = "system";
        }
        if (json_string_length(role) != strlen(wanted) ||
            strcmp(json_string_value(role), wanted) != 0) {
            return false;
        }
    }
    return count > system && (count - system) % 2 == 0;
}

static enum expectation expect(json_t *root, const json_error_t *error)
{
    if (root == NULL) {
        const enum json_error_code code = json_error_code(error);
        return code == json_error_numeric_overflow || code == json_error_null_byte_in_key ? UNKNOWN
                                                                                          : REFUSED;
    }
    bool crowded = false;
    const json_t *const id = json_object_get(root, "id");
    if (!json_is_object(root) || depth_of(root, &crowded) > DEPTH_MAX || crowded ||
        (id != NULL && (!json_is_string(id) || json_string_length(id) > ID_BYTES_MAX ||
                        memchr(json_string_value(id), '\0', json_string_length(id)) != NULL))) {
        return REFUSED;
    }
    return messages_are_right(json_object_get(root, "messages")) ? ACCEPTED : REFUSED;
}

static void same_text(struct eng_text text, const json_t *wanted)
{
    fuzz_require(text.size == json_string_length(wanted));
    fuzz_require(memcmp(text.bytes, json_string_value(wanted), text.size) == 0);
}

static void check_content(const struct eng_conversation *chat, const json_t *root)
{
    const json_t *const messages = json_object_get(root, "messages");
    const json_t *const id = json_object_get(root, "id");
    static const char *const roles[] = {"system", "user", "assistant"};
    fuzz_require(chat->message_count == json_array_size(messages));
    for (size_t i = 0; i < chat->message_count; i++) {
        const json_t *const message = json_array_get(messages, i);
        const char *const role = json_string_value(json_object_get(message, "role"));
        fuzz_require(strcmp(roles[chat->messages[i].role], role) == 0);
        same_text(chat->messages[i].content, json_object_get(message, "content"));
    }
    fuzz_require((chat->id.bytes == NULL) == (id == NULL));
    if (id != NULL) {
        same_text(chat->id, id);
    }
}

static void check_line(struct eng_conversation *chat, const char *bytes, size_t size)
{
    char *const line = fuzz_exact(bytes, size);
    struct eng_error cause = {""};
    json_error_t error;
    json_t *const root =
        size == 0 ? NULL : json_loadb(line, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    const enum expectation wanted = size == 0 ? REFUSED : expect(root, &error);
    const enum eng_status status = eng_json_messages_parse(line, size, chat, &cause);
    fuzz_require(status == ENG_OK || status == ENG_EINPUT);
    fuzz_require((status == ENG_OK) == (cause.text[0] == '\0'));
    fuzz_require(wanted == UNKNOWN || (status == ENG_OK) == (wanted == ACCEPTED));
    if (status == ENG_OK && wanted == ACCEPTED) {
        check_content(chat, root);
    }
    for (size_t i = 0; status == ENG_OK && i < chat->message_count; i++) {
        const struct eng_text content = chat->messages[i].content;
        fuzz_require(fuzz_is_utf8(content.bytes, content.size));
    }
    json_decref(root);
    free(line);
}

/* Line index by definition; returns the bytes it took, its end of line included. */
static size_t next_line(const char *bytes, size_t size, size_t *length)
{
    size_t end = 0;
    while (end < size && bytes[end] != '\n') {
        end++;
    }
    *length = end > 0 && end < size && bytes[end - 1] == '\r' ? end - 1 : end;
    return end < size ? end + 1 : end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_file file = fuzz_file_open(data, size);
    const char *const path = file.path;
    struct eng_data_files files = {0};
    struct eng_error error = {""};
    struct eng_conversation chat = {0};
    const enum eng_status status = eng_data_files_open(&files, &path, 1, &error);
    const bool marked = size >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0;
    fuzz_require(status == (marked ? ENG_EINPUT : ENG_OK));
    size_t at = 0;
    size_t count = 0;
    for (; status == ENG_OK && at < size; count++) {
        size_t length = 0;
        const size_t taken = next_line((const char *)data + at, size - at, &length);
        fuzz_require(count < files.line_count);
        fuzz_require(files.lines[count].size == length);
        fuzz_require(memcmp(files.lines[count].bytes, data + at, length) == 0);
        fuzz_require(eng_data_files_line_number(&files, count) == count + 1);
        check_line(&chat, files.lines[count].bytes, length);
        at += taken;
    }
    fuzz_require(status != ENG_OK || count == files.line_count);
    eng_conversation_fini(&chat);
    eng_data_files_close(&files);
    fuzz_file_close(&file);
    return 0;
}
