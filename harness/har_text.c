/* Growing text, argument vectors, escaping.
 * Called by every harness module; must not know what the text means. */
#include "har_text.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void har_text_fini(struct har_text *text)
{
    free(text->data);
    memset(text, 0, sizeof *text);
}

static bool text_reserve(struct har_text *text, size_t more)
{
    if (text->failed || more > SIZE_MAX / 4 || text->size > SIZE_MAX / 4) {
        text->failed = true;
        return false;
    }
    if (text->size + more + 1 > text->capacity) {
        const size_t capacity = (text->size + more + 1) * 2;
        char *const data = realloc(text->data, capacity);
        if (data == NULL) {
            text->failed = true;
            return false;
        }
        text->data = data;
        text->capacity = capacity;
    }
    return true;
}

void har_text_add_bytes(struct har_text *text, const char *bytes, size_t count)
{
    if (text_reserve(text, count)) {
        memcpy(text->data + text->size, bytes, count);
        text->size += count;
        text->data[text->size] = '\0';
    }
}

void har_text_add(struct har_text *text, const char *string)
{
    har_text_add_bytes(text, string, strlen(string));
}

void har_text_addf(struct har_text *text, const char *format, ...)
{
    va_list args;
    va_list again;
    va_start(args, format);
    va_copy(again, args);
    const int count = vsnprintf(NULL, 0, format, args);
    if (count >= 0 && text_reserve(text, (size_t)count)) {
        vsnprintf(text->data + text->size, (size_t)count + 1, format, again);
        text->size += (size_t)count;
    } else {
        text->failed = true;
    }
    va_end(again);
    va_end(args);
}

const char *har_text_get(const struct har_text *text)
{
    return text->data != NULL ? text->data : "";
}

/* Length of the UTF-8 sequence at p and its code point; 0 when it is not a valid one. */
static size_t utf8_next(const unsigned char *p, uint32_t *code)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t length = p[0] < 0x80       ? 1
                          : p[0] >> 5 == 6  ? 2
                          : p[0] >> 4 == 14 ? 3
                          : p[0] >> 3 == 30 ? 4
                                            : 0;
    if (length == 0) {
        return 0;
    }
    *code = length == 1 ? p[0] : p[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (p[i] >> 6 != 2) {
            return 0;
        }
        *code = *code << 6 | (p[i] & 0x3Fu);
    }
    const bool surrogate = *code >= 0xD800 && *code <= 0xDFFF;
    return *code >= smallest[length] && *code <= 0x10FFFF && !surrogate ? length : 0;
}

static bool xml_allows(uint32_t code)
{
    return code == 0x9 || code == 0xA || code == 0xD || (code >= 0x20 && code <= 0xFFFD) ||
           code >= 0x10000;
}

static const char *xml_entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&apos;";
    default:
        return NULL;
    }
}

void har_text_add_xml(struct har_text *text, const char *string)
{
    const unsigned char *p = (const unsigned char *)string;
    while (*p != '\0') {
        uint32_t code = 0;
        const size_t length = utf8_next(p, &code);
        const char *const entity = xml_entity((char)*p);
        if (entity != NULL) {
            har_text_add(text, entity);
        } else if (length == 0 || !xml_allows(code)) {
            har_text_add(text, "\xEF\xBF\xBD");
        } else {
            har_text_add_bytes(text, (const char *)p, length);
        }
        p += length == 0 ? 1 : length;
    }
}

void har_text_add_csv(struct har_text *text, const char *string)
{
    if (strpbrk(string, ",\"\r\n") == NULL) {
        har_text_add(text, string);
        return;
    }
    har_text_add(text, "\"");
    for (const char *p = string; *p != '\0'; p++) {
        har_text_add_bytes(text, p, 1);
        if (*p == '"') {
            har_text_add(text, "\"");
        }
    }
    har_text_add(text, "\"");
}

void har_text_add_markdown(struct har_text *text, const char *string)
{
    for (const char *p = string; *p != '\0'; p++) {
        if (*p == '|') {
            har_text_add(text, "\\|");
        } else if (*p == '\n' || *p == '\r') {
            har_text_add(text, " ");
        } else if (*p == '<') {
            har_text_add(text, "&lt;");
        } else {
            har_text_add_bytes(text, p, 1);
        }
    }
}

void har_text_add_shell(struct har_text *text, const char *string)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:@=,+-";
    if (*string != '\0' && strspn(string, plain) == strlen(string)) {
        har_text_add(text, string);
        return;
    }
    har_text_add(text, "'");
    for (const char *p = string; *p != '\0'; p++) {
        if (*p == '\'') {
            har_text_add(text, "'\\''");
        } else {
            har_text_add_bytes(text, p, 1);
        }
    }
    har_text_add(text, "'");
}

enum har_status har_text_write(const struct har_text *text, const char *path,
                               struct har_error *error)
{
    char fresh[4096];
    if (text->failed) {
        return har_fail(error, HAR_EMEMORY, "%s: no memory for its text", path);
    }
    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh) {
        return har_fail(error, HAR_EIO, "%s: name is too long", path);
    }
    FILE *const file = fopen(fresh, "wbe");
    if (file == NULL) {
        return har_fail(error, HAR_EIO, "%s: %s", fresh, strerror(errno));
    }
    const bool written = fwrite(har_text_get(text), 1, text->size, file) == text->size;
    const int write_error = errno;
    const bool closed = fclose(file) == 0;
    if (!written || !closed) {
        const int cause = written ? errno : write_error;
        unlink(fresh);
        return har_fail(error, HAR_EIO, "%s: %s", path, strerror(cause));
    }
    if (rename(fresh, path) != 0) {
        return har_fail(error, HAR_EIO, "%s: %s", path, strerror(errno));
    }
    return HAR_OK;
}

void har_text_clean(char *string)
{
    unsigned char *p = (unsigned char *)string;
    while (*p != '\0') {
        uint32_t code = 0;
        const size_t length = utf8_next(p, &code);
        if (*p == '\n' || *p == '\t' || *p == '\r') {
            *p = ' ';
        } else if (length == 0 || code < 0x20 || code == 0x7F) {
            *p = '?';
        }
        p += length == 0 ? 1 : length;
    }
}

void har_args_fini(struct har_args *args)
{
    for (size_t i = 0; i < args->count; i++) {
        free(args->items[i]);
    }
    free(args->items);
    memset(args, 0, sizeof *args);
}

void har_args_add(struct har_args *args, const char *string)
{
    if (args->failed) {
        return;
    }
    if (args->count + 2 > args->capacity) {
        const size_t capacity = args->capacity * 2 + 16;
        char **const items = realloc(args->items, capacity * sizeof *items);
        if (items == NULL) {
            args->failed = true;
            return;
        }
        args->items = items;
        args->capacity = capacity;
    }
    char *const copy = strdup(string);
    if (copy == NULL) {
        args->failed = true;
        return;
    }
    args->items[args->count++] = copy;
    args->items[args->count] = NULL;
}

void har_args_addf(struct har_args *args, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *string = NULL;
    if (vasprintf(&string, format, list) < 0) {
        args->failed = true;
        string = NULL;
    }
    va_end(list);
    if (string != NULL) {
        har_args_add(args, string);
        free(string);
    }
}

/* Reads one word at *at; false when it does not end. */
static bool read_word(const char **at, struct har_text *word)
{
    char quote = '\0';
    for (; **at != '\0' && (quote != '\0' || strchr(" \t\n", **at) == NULL); (*at)++) {
        if (**at == quote) {
            quote = '\0';
        } else if (quote == '\0' && (**at == '\'' || **at == '"')) {
            quote = **at;
        } else if (**at == '\\' && quote != '\'') {
            (*at)++;
            if (**at == '\0') {
                return false;
            }
            har_text_add_bytes(word, *at, 1);
        } else {
            har_text_add_bytes(word, *at, 1);
        }
    }
    return quote == '\0' && !word->failed;
}

bool har_args_split(const char *line, struct har_args *out)
{
    const char *at = line + strspn(line, " \t\n");
    while (*at != '\0') {
        struct har_text word = {0};
        const bool ok = read_word(&at, &word);
        if (ok) {
            har_args_add(out, har_text_get(&word));
        }
        har_text_fini(&word);
        if (!ok) {
            return false;
        }
        at += strspn(at, " \t\n");
    }
    return out->count > 0 && !out->failed;
}

bool har_text_matches(const char *pattern, const char *string)
{
    return fnmatch(pattern, string, 0) == 0;
}
