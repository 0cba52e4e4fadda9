/* Strict JSON reader for chat records; keeps only what a record needs.
 * Called by documents; must not know files, layouts or tokens. */
#include "json_messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "growth.h"
#include "text_utf8.h"

enum { DEPTH_MAX = 64, KEYS_MAX = 4096, ID_BYTES_MAX = 127 };

struct parser {
    const char *start, *at, *end;
    struct eng_conversation *out;
    size_t decoded_size;
    size_t key_count;
    bool has_messages;
    struct eng_error *cause;
    enum eng_status status;
};

typedef bool member_fn(struct parser *p, struct eng_text key, int depth);

__attribute__((format(printf, 2, 3))) static bool refuse(struct parser *p, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    p->status =
        eng_fail(p->cause, ENG_EINPUT, "%s (byte %zu)", text, (size_t)(p->at - p->start) + 1);
    return false;
}

static bool refuse_memory(struct parser *p)
{
    p->status = eng_fail(p->cause, ENG_EHOSTMEM, "no memory for a record");
    return false;
}

static bool text_is(struct eng_text text, const char *literal)
{
    return text.size == strlen(literal) && memcmp(text.bytes, literal, text.size) == 0;
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end &&
           (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')) {
        p->at++;
    }
}

static bool take(struct parser *p, char wanted)
{
    skip_space(p);
    if (p->at < p->end && *p->at == wanted) {
        p->at++;
        return true;
    }
    return false;
}

static bool read_hex4(struct parser *p, unsigned *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++) {
        if (p->at == p->end) {
            return refuse(p, "string ends within a \\u escape");
        }
        const char c = *p->at;
        unsigned digit = 0;
        if (c >= '0' && c <= '9') {
            digit = (unsigned)(c - '0');
        } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
            digit = (unsigned)((c | 0x20) - 'a') + 10;
        } else {
            return refuse(p, "\\u needs four hexadecimal digits");
        }
        *value = *value << 4 | digit;
        p->at++;
    }
    return true;
}

static bool read_unicode_escape(struct parser *p, char **out)
{
    unsigned high = 0;
    unsigned low = 0;
    if (!read_hex4(p, &high)) {
        return false;
    }
    if (high < 0xD800 || high > 0xDFFF) {
        *out += eng_utf8_put(*out, high);
        return true;
    }
    if (high > 0xDBFF || p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u') {
        return refuse(p, "lone surrogate \\u%04x", high);
    }
    p->at += 2;
    if (!read_hex4(p, &low)) {
        return false;
    }
    if (low < 0xDC00 || low > 0xDFFF) {
        return refuse(p, "lone surrogate \\u%04x", high);
    }
    *out += eng_utf8_put(*out, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
    return true;
}

/* p->at is behind the backslash. */
static bool read_escape(struct parser *p, char **out)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    if (p->at == p->end) {
        return refuse(p, "string ends within an escape");
    }
    const char c = *p->at;
    if (c == 'u') {
        p->at++;
        return read_unicode_escape(p, out);
    }
    const char *const found = c == '\0' ? NULL : strchr(letters, c);
    if (found == NULL) {
        return refuse(p, "unknown escape in a string");
    }
    p->at++;
    *(*out)++ = values[found - letters];
    return true;
}

/* How many bytes stand for themselves: eight at a time while none is a quote, a backslash, a
 * control character or outside ASCII. */
static size_t plain_run(const char *bytes, size_t size)
{
    const uint64_t ones = 0x0101010101010101u;
    const uint64_t tops = 0x8080808080808080u;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        const uint64_t quote = word ^ ones * '"';
        const uint64_t slash = word ^ ones * '\\';
        const uint64_t found = word | (word - ones * 0x20) | (quote - ones) | (slash - ones);
        if ((found & tops) != 0) {
            break;
        }
    }
    for (; i < size; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') {
            break;
        }
    }
    return i;
}

/* One step within a string that is no plain run; *done at the closing quote. */
static bool read_special(struct parser *p, char **out, bool *done)
{
    const unsigned char c = (unsigned char)*p->at;
    if (c == '"') {
        p->at++;
        *done = true;
        return true;
    }
    if (c == '\\') {
        p->at++;
        return read_escape(p, out);
    }
    if (c < 0x20) {
        return refuse(p, "raw control character 0x%02x in a string", c);
    }
    const size_t length = eng_utf8_length(p->at, (size_t)(p->end - p->at));
    if (length == 0) {
        return refuse(p, "invalid UTF-8");
    }
    memcpy(*out, p->at, length);
    *out += length;
    p->at += length;
    return true;
}

/* Decoded text is never longer than its JSON form, so the room reserved for the line is enough. */
static bool read_string(struct parser *p, struct eng_text *text)
{
    char *const start = p->out->decoded + p->decoded_size;
    char *out = start;
    if (!take(p, '"')) {
        return refuse(p, "a string is expected");
    }
    for (bool done = false; !done;) {
        const size_t run = plain_run(p->at, (size_t)(p->end - p->at));
        memcpy(out, p->at, run);
        out += run;
        p->at += run;
        if (p->at == p->end) {
            return refuse(p, "string without an end");
        }
        if (!read_special(p, &out, &done)) {
            return false;
        }
    }
    *text = (struct eng_text){start, (size_t)(out - start)};
    p->decoded_size += text->size;
    return true;
}

/* Remembers a key of the innermost open object, whose keys begin at `first`. */
static bool add_key(struct parser *p, size_t first, struct eng_text key)
{
    const uint64_t hash = XXH3_64bits(key.bytes, key.size);
    struct eng_json_key *keys = p->out->keys;
    for (size_t i = first; i < p->key_count; i++) {
        if (keys[i].hash == hash && keys[i].text.size == key.size &&
            memcmp(keys[i].text.bytes, key.bytes, key.size) == 0) {
            return refuse(p, "duplicate key '%.*s'", (int)(key.size < 80 ? key.size : 80),
                          key.bytes);
        }
    }
    if (p->key_count - first == KEYS_MAX) {
        return refuse(p, "more than %d keys in an object", KEYS_MAX);
    }
    keys = eng_grown(keys, &p->out->key_capacity, p->key_count + 1, sizeof *keys);
    if (keys == NULL) {
        return refuse_memory(p);
    }
    p->out->keys = keys;
    keys[p->key_count++] = (struct eng_json_key){hash, key};
    return true;
}

static bool read_object(struct parser *p, int depth, member_fn *member)
{
    const size_t first = p->key_count;
    if (!take(p, '{')) {
        return refuse(p, "an object is expected");
    }
    if (depth > DEPTH_MAX) {
        return refuse(p, "nested deeper than %d levels", DEPTH_MAX);
    }
    bool more = !take(p, '}');
    while (more) {
        struct eng_text key;
        if (!read_string(p, &key) || !add_key(p, first, key)) {
            return false;
        }
        if (!take(p, ':')) {
            return refuse(p, "':' is expected behind a key");
        }
        if (!member(p, key, depth)) {
            return false;
        }
        more = take(p, ',');
        if (!more && !take(p, '}')) {
            return refuse(p, "',' or '}' is expected in an object");
        }
    }
    p->key_count = first;
    return true;
}

static size_t digits(struct parser *p)
{
    size_t count = 0;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') {
        p->at++;
        count++;
    }
    return count;
}

static bool skip_number(struct parser *p)
{
    p->at += *p->at == '-';
    const bool leading_zero = p->at < p->end && *p->at == '0';
    const size_t whole = digits(p);
    if (whole == 0 || (leading_zero && whole > 1)) {
        return refuse(p, "malformed value");
    }
    if (p->at < p->end && *p->at == '.') {
        p->at++;
        if (digits(p) == 0) {
            return refuse(p, "malformed number");
        }
    }
    if (p->at < p->end && (*p->at == 'e' || *p->at == 'E')) {
        p->at++;
        p->at += p->at < p->end && (*p->at == '+' || *p->at == '-');
        if (digits(p) == 0) {
            return refuse(p, "malformed number");
        }
    }
    return true;
}

static bool skip_value(struct parser *p, int depth);

static bool skip_member(struct parser *p, struct eng_text key, int depth)
{
    (void)key;
    return skip_value(p, depth + 1);
}

static bool skip_array(struct parser *p, int depth)
{
    p->at++;
    if (depth > DEPTH_MAX) {
        return refuse(p, "nested deeper than %d levels", DEPTH_MAX);
    }
    bool more = !take(p, ']');
    while (more) {
        if (!skip_value(p, depth + 1)) {
            return false;
        }
        more = take(p, ',');
        if (!more && !take(p, ']')) {
            return refuse(p, "',' or ']' is expected in an array");
        }
    }
    return true;
}

static bool skip_literal(struct parser *p)
{
    static const char *const literals[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof literals / sizeof literals[0]; i++) {
        const size_t length = strlen(literals[i]);
        if ((size_t)(p->end - p->at) >= length && memcmp(p->at, literals[i], length) == 0) {
            p->at += length;
            return true;
        }
    }
    return skip_number(p);
}

/* Checks a value nobody asks for as strictly as the others. */
static bool skip_value(struct parser *p, int depth)
{
    struct eng_text ignored;
    skip_space(p);
    if (p->at == p->end) {
        return refuse(p, "a value is expected");
    }
    switch (*p->at) {
    case '{':
        return read_object(p, depth, skip_member);
    case '[':
        return skip_array(p, depth);
    case '"':
        return read_string(p, &ignored);
    default:
        return skip_literal(p);
    }
}

static bool read_role(struct parser *p, struct eng_message *message)
{
    static const char *const names[] = {
        [ENG_ROLE_SYSTEM] = "system", [ENG_ROLE_USER] = "user", [ENG_ROLE_ASSISTANT] = "assistant"};
    struct eng_text text;
    if (!read_string(p, &text)) {
        return false;
    }
    for (int i = ENG_ROLE_SYSTEM; i <= ENG_ROLE_ASSISTANT; i++) {
        if (text_is(text, names[i])) {
            message->role = (enum eng_role)i;
            return true;
        }
    }
    return refuse(p, "role '%.*s' is none of system, user, assistant",
                  (int)(text.size < 80 ? text.size : 80), text.bytes);
}

enum { NO_ROLE = -1 };

static bool message_member(struct parser *p, struct eng_text key, int depth)
{
    struct eng_message *const message = &p->out->messages[p->out->message_count];
    if (text_is(key, "role")) {
        return read_role(p, message);
    }
    if (text_is(key, "content")) {
        return read_string(p, &message->content);
    }
    return skip_value(p, depth + 1);
}

static bool read_message(struct parser *p, int depth)
{
    struct eng_conversation *const out = p->out;
    struct eng_message *const messages =
        eng_grown(out->messages, &out->message_capacity, out->message_count + 1, sizeof *messages);
    if (messages == NULL) {
        return refuse_memory(p);
    }
    out->messages = messages;
    struct eng_message *const message = &messages[out->message_count];
    *message = (struct eng_message){(enum eng_role)NO_ROLE, {NULL, 0}};
    if (!read_object(p, depth, message_member)) {
        return false;
    }
    out->message_count++;
    if ((int)message->role == NO_ROLE || message->content.bytes == NULL) {
        return refuse(p, "message %zu has no %s", out->message_count,
                      (int)message->role == NO_ROLE ? "role" : "content");
    }
    return true;
}

static bool read_messages(struct parser *p, int depth)
{
    if (!take(p, '[')) {
        return refuse(p, "messages must be an array");
    }
    p->has_messages = true;
    bool more = !take(p, ']');
    while (more) {
        if (!read_message(p, depth + 1)) {
            return false;
        }
        more = take(p, ',');
        if (!more && !take(p, ']')) {
            return refuse(p, "',' or ']' is expected behind a message");
        }
    }
    return true;
}

static bool read_id(struct parser *p)
{
    struct eng_text id;
    if (!read_string(p, &id)) {
        return false;
    }
    if (id.size > ID_BYTES_MAX) {
        return refuse(p, "id is longer than %d bytes", ID_BYTES_MAX);
    }
    if (memchr(id.bytes, '\0', id.size) != NULL) {
        return refuse(p, "id holds a NUL character");
    }
    p->out->id = id;
    return true;
}

static bool record_member(struct parser *p, struct eng_text key, int depth)
{
    if (text_is(key, "messages")) {
        return read_messages(p, depth + 1);
    }
    if (text_is(key, "id")) {
        return read_id(p);
    }
    return skip_value(p, depth + 1);
}

/* system only first; user and assistant in turn, from user on; an assistant last. */
static bool check_roles(struct parser *p)
{
    const struct eng_conversation *const out = p->out;
    if (!p->has_messages) {
        return refuse(p, "no key 'messages'");
    }
    if (out->message_count == 0) {
        return refuse(p, "messages is empty");
    }
    const size_t first = out->messages[0].role == ENG_ROLE_SYSTEM ? 1 : 0;
    for (size_t i = first; i < out->message_count; i++) {
        const enum eng_role wanted = (i - first) % 2 == 0 ? ENG_ROLE_USER : ENG_ROLE_ASSISTANT;
        if (out->messages[i].role == ENG_ROLE_SYSTEM) {
            return refuse(p, "message %zu: system may only come first", i + 1);
        }
        if (out->messages[i].role != wanted) {
            return refuse(p, "message %zu: %s is expected", i + 1,
                          wanted == ENG_ROLE_USER ? "user" : "assistant");
        }
    }
    if (out->messages[out->message_count - 1].role != ENG_ROLE_ASSISTANT) {
        return refuse(p, "the last message is not the assistant's");
    }
    return true;
}

enum eng_status eng_json_messages_parse(const char *line, size_t size, struct eng_conversation *out,
                                        struct eng_error *cause)
{
    struct parser p = {.start = line, .at = line, .end = line + size, .out = out, .cause = cause};
    out->message_count = 0;
    out->id = (struct eng_text){NULL, 0};
    char *const decoded = eng_grown(out->decoded, &out->decoded_capacity, size + 4, 1);
    if (decoded == NULL) {
        return eng_fail(cause, ENG_EHOSTMEM, "no memory for a record");
    }
    out->decoded = decoded;
    if (size == 0) {
        return eng_fail(cause, ENG_EINPUT, "empty line");
    }
    if (!read_object(&p, 1, record_member)) {
        return p.status;
    }
    skip_space(&p);
    if (p.at != p.end) {
        refuse(&p, "something follows the record");
        return p.status;
    }
    return check_roles(&p) ? ENG_OK : p.status;
}

void eng_conversation_fini(struct eng_conversation *conversation)
{
    free(conversation->messages);
    free(conversation->decoded);
    free(conversation->keys);
    *conversation = (struct eng_conversation){0};
}
