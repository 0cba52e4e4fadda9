/* Strict JSON reader: vectors over plain text, one byte at a time over the rest.
 * Called by json_record and tokenizer_json_members; must not know what the values are for. */
#include "json_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "eng_assert.h"
#include "growth.h"
#include "text_utf8.h"

enum { DEPTH_MAX = 64, KEYS_MAX = 4096, SHORT_KEY = 8 };

bool eng_json_refuse(struct eng_json *j, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    j->status =
        eng_fail(j->cause, ENG_EINPUT, "%s (byte %zu)", text, (size_t)(j->at - j->start) + 1);
    return false;
}

bool eng_json_refuse_memory(struct eng_json *j)
{
    j->status = eng_fail(j->cause, ENG_EHOSTMEM, "no memory for JSON");
    return false;
}

bool eng_json_begin(struct eng_json *j, const char *text, size_t size,
                    struct eng_json_memory *memory, struct eng_error *cause)
{
    *j = (struct eng_json){
        .start = text, .at = text, .end = text + size, .memory = memory, .cause = cause};
    /* Decoded text is never longer than its JSON form; the other half is for eng_json_take. */
    char *const decoded = eng_grown(memory->decoded, &memory->decoded_capacity, 2 * size + 8, 1);
    if (decoded == NULL) {
        return eng_json_refuse_memory(j);
    }
    memory->decoded = decoded;
    return true;
}

void eng_json_memory_fini(struct eng_json_memory *memory)
{
    free(memory->decoded);
    free(memory->keys);
    *memory = (struct eng_json_memory){0};
}

char *eng_json_take(struct eng_json *j, size_t size)
{
    char *const room = j->memory->decoded + j->decoded_size;
    eng_assert(size <= j->memory->decoded_capacity - j->decoded_size);
    j->decoded_size += size;
    return room;
}

static void skip_space(struct eng_json *j)
{
    while (j->at < j->end &&
           (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r')) {
        j->at++;
    }
}

static bool take(struct eng_json *j, char wanted)
{
    skip_space(j);
    if (j->at < j->end && *j->at == wanted) {
        j->at++;
        return true;
    }
    return false;
}

char eng_json_peek(struct eng_json *j)
{
    skip_space(j);
    return j->at < j->end ? *j->at : '\0';
}

bool eng_json_end(struct eng_json *j)
{
    skip_space(j);
    return j->at == j->end || eng_json_refuse(j, "something follows the object");
}

/* ---- strings ---- */

static bool read_hex4(struct eng_json *j, unsigned *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++) {
        if (j->at == j->end) {
            return eng_json_refuse(j, "string ends within a \\u escape");
        }
        const char c = *j->at;
        unsigned digit = 0;
        if (c >= '0' && c <= '9') {
            digit = (unsigned)(c - '0');
        } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
            digit = (unsigned)((c | 0x20) - 'a') + 10;
        } else {
            return eng_json_refuse(j, "\\u needs four hexadecimal digits");
        }
        *value = *value << 4 | digit;
        j->at++;
    }
    return true;
}

static bool read_unicode_escape(struct eng_json *j, char **out)
{
    unsigned high = 0;
    unsigned low = 0;
    if (!read_hex4(j, &high)) {
        return false;
    }
    if (high < 0xD800 || high > 0xDFFF) {
        *out += eng_utf8_put(*out, high);
        return true;
    }
    if (high > 0xDBFF || j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u') {
        return eng_json_refuse(j, "lone surrogate \\u%04x", high);
    }
    j->at += 2;
    if (!read_hex4(j, &low)) {
        return false;
    }
    if (low < 0xDC00 || low > 0xDFFF) {
        return eng_json_refuse(j, "lone surrogate \\u%04x", high);
    }
    *out += eng_utf8_put(*out, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
    return true;
}

/* j->at is at the backslash. */
static bool read_escape(struct eng_json *j, char **out)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    j->at++;
    if (j->at == j->end) {
        return eng_json_refuse(j, "string ends within an escape");
    }
    const char c = *j->at;
    if (c == 'u') {
        j->at++;
        return read_unicode_escape(j, out);
    }
    const char *const found = c == '\0' ? NULL : strchr(letters, c);
    if (found == NULL) {
        return eng_json_refuse(j, "unknown escape in a string");
    }
    j->at++;
    *(*out)++ = values[found - letters];
    return true;
}

typedef int8_t vector __attribute__((vector_size(32)));

/* Behind the bytes that stand for themselves: no quote, backslash or control character, and
 * ASCII. A whole vector is looked at while it fits, then single bytes. */
static const char *plain_end(const char *at, const char *end)
{
    for (; end - at >= (ptrdiff_t)sizeof(vector); at += sizeof(vector)) {
        vector bytes;
        uint64_t words[sizeof(vector) / sizeof(uint64_t)];
        memcpy(&bytes, at, sizeof bytes);
        const vector found = (vector)(bytes < 0x20) | (vector)(bytes == '"') |
                             (vector)(bytes == '\\'); /* bytes outside ASCII are negative */
        memcpy(words, &found, sizeof words);
        if ((words[0] | words[1] | words[2] | words[3]) != 0) {
            break;
        }
    }
    for (; at < end; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') {
            break;
        }
    }
    return at;
}

/* Behind the bytes up to the next quote or backslash; NULL when they are refused. */
static const char *literal_end(struct eng_json *j)
{
    for (;;) {
        j->at = plain_end(j->at, j->end);
        if (j->at == j->end) {
            eng_json_refuse(j, "string without an end");
            return NULL;
        }
        const unsigned char c = (unsigned char)*j->at;
        if (c == '"' || c == '\\') {
            return j->at;
        }
        const size_t length = c < 0x20 ? 0 : eng_utf8_length(j->at, (size_t)(j->end - j->at));
        if (length == 0) {
            eng_json_refuse(
                j, c < 0x20 ? "raw control character 0x%02x in a string" : "invalid UTF-8", c);
            return NULL;
        }
        j->at += length;
    }
}

bool eng_json_string(struct eng_json *j, struct eng_text *out)
{
    char *const start = j->memory->decoded + j->decoded_size;
    char *to = start;
    if (!take(j, '"')) {
        return eng_json_refuse(j, "a string is expected");
    }
    for (bool escaped = false;; escaped = true) {
        const char *const from = j->at;
        const char *const end = literal_end(j);
        if (end == NULL) {
            return false;
        }
        const size_t size = (size_t)(end - from);
        if (*end == '"' && !escaped) {
            j->at++;
            *out = (struct eng_text){from, size};
            return true;
        }
        memcpy(to, from, size);
        to += size;
        if (*end == '"') {
            break;
        }
        if (!read_escape(j, &to)) {
            return false;
        }
    }
    j->at++;
    *out = (struct eng_text){start, (size_t)(to - start)};
    j->decoded_size += out->size;
    return true;
}

/* ---- structure ---- */

/* Equal keys have equal hashes. */
static uint64_t hash_of(struct eng_text key)
{
    uint64_t word = 0;
    if (key.size > SHORT_KEY) {
        return XXH3_64bits(key.bytes, key.size);
    }
    memcpy(&word, key.bytes, key.size);
    return word;
}

/* Remembers a key of the innermost open object, whose keys begin at `first`. */
static bool add_key(struct eng_json *j, size_t first, struct eng_text key)
{
    const uint64_t hash = hash_of(key);
    struct eng_json_key *keys = j->memory->keys;
    for (size_t i = first; i < j->key_count; i++) {
        if (keys[i].hash == hash && keys[i].text.size == key.size &&
            memcmp(keys[i].text.bytes, key.bytes, key.size) == 0) {
            return eng_json_refuse(j, "duplicate key '%.*s'", (int)(key.size < 80 ? key.size : 80),
                                   key.bytes);
        }
    }
    if (j->key_count - first == KEYS_MAX) {
        return eng_json_refuse(j, "more than %d keys in an object", KEYS_MAX);
    }
    keys = eng_grown(keys, &j->memory->key_capacity, j->key_count + 1, sizeof *keys);
    if (keys == NULL) {
        return eng_json_refuse_memory(j);
    }
    j->memory->keys = keys;
    keys[j->key_count++] = (struct eng_json_key){hash, key};
    return true;
}

static bool open_level(struct eng_json *j, int depth)
{
    return depth <= DEPTH_MAX || eng_json_refuse(j, "nested deeper than %d levels", DEPTH_MAX);
}

static bool read_members(struct eng_json *j, int depth, bool remember, eng_json_visit *member,
                         void *context)
{
    const size_t first = j->key_count;
    if (!take(j, '{')) {
        return eng_json_refuse(j, "an object is expected");
    }
    if (!open_level(j, depth)) {
        return false;
    }
    bool more = !take(j, '}');
    while (more) {
        struct eng_text key;
        if (!eng_json_string(j, &key) || (remember && !add_key(j, first, key))) {
            return false;
        }
        if (!take(j, ':')) {
            return eng_json_refuse(j, "':' is expected behind a key");
        }
        if (!member(j, key, depth, context)) {
            return false;
        }
        more = take(j, ',');
        if (!more && !take(j, '}')) {
            return eng_json_refuse(j, "',' or '}' is expected in an object");
        }
    }
    j->key_count = first;
    return true;
}

bool eng_json_object(struct eng_json *j, int depth, eng_json_visit *member, void *context)
{
    return read_members(j, depth, true, member, context);
}

bool eng_json_table(struct eng_json *j, int depth, eng_json_visit *member, void *context)
{
    return read_members(j, depth, false, member, context);
}

bool eng_json_array(struct eng_json *j, const char *name, int depth, eng_json_visit *element,
                    void *context)
{
    static const struct eng_text no_key = {NULL, 0};
    if (!take(j, '[')) {
        return eng_json_refuse(j, "%s must be an array", name);
    }
    if (!open_level(j, depth)) {
        return false;
    }
    bool more = !take(j, ']');
    while (more) {
        if (!element(j, no_key, depth, context)) {
            return false;
        }
        more = take(j, ',');
        if (!more && !take(j, ']')) {
            return eng_json_refuse(j, "',' or ']' is expected in an array");
        }
    }
    return true;
}

static size_t digits(struct eng_json *j)
{
    size_t count = 0;
    while (j->at < j->end && *j->at >= '0' && *j->at <= '9') {
        j->at++;
        count++;
    }
    return count;
}

static bool skip_number(struct eng_json *j)
{
    j->at += *j->at == '-';
    const bool leading_zero = j->at < j->end && *j->at == '0';
    const size_t whole = digits(j);
    if (whole == 0 || (leading_zero && whole > 1)) {
        return eng_json_refuse(j, "malformed value");
    }
    if (j->at < j->end && *j->at == '.') {
        j->at++;
        if (digits(j) == 0) {
            return eng_json_refuse(j, "malformed number");
        }
    }
    if (j->at < j->end && (*j->at == 'e' || *j->at == 'E')) {
        j->at++;
        j->at += j->at < j->end && (*j->at == '+' || *j->at == '-');
        if (digits(j) == 0) {
            return eng_json_refuse(j, "malformed number");
        }
    }
    return true;
}

bool eng_json_whole(struct eng_json *j, int64_t *out)
{
    const char first = eng_json_peek(j);
    const char *const start = j->at;
    const int sign = first == '-' ? -1 : 1;
    bool whole = first == '-' || (first >= '0' && first <= '9');
    if (whole && !skip_number(j)) {
        return false;
    }
    *out = 0;
    for (const char *at = start + (first == '-'); whole && at < j->at; at++) {
        whole = *at >= '0' && *at <= '9' && !__builtin_mul_overflow(*out, 10, out) &&
                !__builtin_add_overflow(*out, sign * (*at - '0'), out);
    }
    return whole || eng_json_refuse(j, "a whole number of 64 bits is expected");
}

static bool skip_literal(struct eng_json *j)
{
    static const char *const literals[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof literals / sizeof literals[0]; i++) {
        const size_t length = strlen(literals[i]);
        if ((size_t)(j->end - j->at) >= length && memcmp(j->at, literals[i], length) == 0) {
            j->at += length;
            return true;
        }
    }
    return skip_number(j);
}

static bool skip_visit(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    (void)key;
    (void)context;
    return eng_json_skip(j, depth + 1);
}

bool eng_json_skip(struct eng_json *j, int depth)
{
    struct eng_text ignored;
    switch (eng_json_peek(j)) {
    case '{':
        return eng_json_object(j, depth, skip_visit, NULL);
    case '[':
        return eng_json_array(j, "it", depth, skip_visit, NULL);
    case '"':
        return eng_json_string(j, &ignored);
    default:
        return j->at < j->end ? skip_literal(j) : eng_json_refuse(j, "a value is expected");
    }
}
