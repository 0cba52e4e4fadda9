/* Training files: lines by definition, and each line against jansson plus the rules of
 * corpus/RECIPE.md. The input is a file. Called by libFuzzer and replay_main.c. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"
#include "fuzz.h"
#include "json_record.h"

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
    const enum eng_status status = eng_record_parse(ENG_FORMAT_MESSAGES, line, size, chat, &cause);
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

/* What the scan shows is compared with the bytes of the input. */
struct scan {
    const char *bytes;
    size_t size, at, count;
    struct eng_conversation chat;
};

static enum eng_status check_scanned(const struct eng_line *line, void *context,
                                     struct eng_error *error)
{
    struct scan *const s = context;
    size_t length = 0;
    (void)error;
    fuzz_require(s->at < s->size);
    const size_t taken = next_line(s->bytes + s->at, s->size - s->at, &length);
    fuzz_require(line->size == length && line->number == ++s->count);
    fuzz_require(memcmp(line->bytes, s->bytes + s->at, length) == 0);
    check_line(&s->chat, line->bytes, length);
    s->at += taken;
    return ENG_OK;
}

/* Asked for one by one, from the last to the first, the lines are the same. */
static void check_records(struct eng_data_files *files, const char *bytes, size_t size)
{
    for (size_t record = files->record_count; record-- > 0;) {
        struct eng_line line;
        size_t length = 0;
        size_t at = 0;
        for (size_t i = 0; i < record; i++) {
            at += next_line(bytes + at, size - at, &length);
        }
        (void)next_line(bytes + at, size - at, &length);
        fuzz_require(eng_data_files_line(files, record, &line, NULL) == ENG_OK);
        fuzz_require(line.size == length && line.number == record + 1);
        fuzz_require(memcmp(line.bytes, bytes + at, length) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_file file = fuzz_file_open(data, size);
    const char *const path = file.path;
    struct eng_data_files files = {0};
    struct eng_error error = {""};
    struct scan scan = {.bytes = (const char *)data, .size = size};
    enum eng_status status = eng_data_files_open(&files, &path, NULL, 1, &error);
    const bool gzip = size >= 2 && memcmp(data, "\x1F\x8B", 2) == 0;
    const bool zstd = size >= 4 && memcmp(data, "\x28\xB5\x2F\xFD", 4) == 0;
    if (gzip || zstd) { /* what it holds is the business of the target unpack */
        fuzz_require(status == ENG_OK || error.text[0] != '\0');
        scan.size = 0;
    } else {
        const bool marked = size >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0;
        fuzz_require(status == ENG_OK);
        status = eng_data_files_scan(&files, check_scanned, &scan, &error);
        fuzz_require(status == (marked ? ENG_EINPUT : ENG_OK));
        fuzz_require(marked || (scan.at == size && scan.count == files.record_count));
    }
    if (status == ENG_OK && scan.size > 0 && files.record_count < 200) {
        check_records(&files, scan.bytes, scan.size);
    }
    eng_conversation_fini(&scan.chat);
    eng_data_files_close(&files);
    fuzz_file_close(&file);
    return 0;
}
