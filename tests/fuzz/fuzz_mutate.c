/* Structure-aware mutation of JSON text: values are replaced, repeated, swapped, removed, or
 * changed within. Called by libFuzzer and replay_main.c; must not know what the text is for. */
#include "fuzz_mutate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SPANS_MAX = 256, DEPTH_MAX = 128 };

/* A value, or a key: bytes start .. end - 1. */
struct span {
    size_t start, end;
};

struct spans {
    struct span list[SPANS_MAX];
    size_t count;
};

static unsigned draw(unsigned *state, size_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return below == 0 ? 0 : (*state >> 8) % (unsigned)below;
}

static void add(struct spans *s, size_t start, size_t end)
{
    if (s->count < SPANS_MAX && end > start) {
        s->list[s->count++] = (struct span){start, end};
    }
}

static size_t string_end(const uint8_t *data, size_t at, size_t size)
{
    for (at++; at < size && data[at] != '"'; at++) {
        at += data[at] == '\\';
    }
    return at < size ? at + 1 : size;
}

static bool is_plain(uint8_t c)
{
    return memchr("{}[],:\" \t\r\n", c, 11) == NULL;
}

/* Spans of all values and keys that can be told; a malformed text gives those it has. */
static void find(const uint8_t *data, size_t size, struct spans *s)
{
    size_t open[DEPTH_MAX];
    size_t depth = 0;
    for (size_t at = 0; at < size;) {
        const size_t start = at;
        if (data[at] == '"') {
            at = string_end(data, at, size);
            add(s, start, at);
        } else if (data[at] == '{' || data[at] == '[') {
            if (depth < DEPTH_MAX) {
                open[depth++] = at;
            }
            at++;
        } else if (data[at] == '}' || data[at] == ']') {
            at++;
            if (depth > 0) {
                add(s, open[--depth], at);
            }
        } else if (is_plain(data[at])) {
            while (at < size && is_plain(data[at])) {
                at++;
            }
            add(s, start, at);
        } else {
            at++;
        }
    }
}

/* Puts `count` bytes in the place of a span, as far as there is room. */
static size_t put(uint8_t *data, size_t size, size_t max_size, struct span span, const void *bytes,
                  size_t count)
{
    const size_t rest = size - span.end;
    if (span.start + count + rest > max_size) {
        return size;
    }
    memmove(data + span.start + count, data + span.end, rest);
    memcpy(data + span.start, bytes, count);
    return span.start + count + rest;
}

/* Values and keys that readers of chats treat in their own way. */
static const char *const words[] = {"null",
                                    "true",
                                    "0",
                                    "-0.5e+3",
                                    "\"\"",
                                    "{}",
                                    "[]",
                                    "\"\\ud800\"",
                                    "\"\\u0000\"",
                                    "\"\\ud83d\\ude00\"",
                                    "\"\xC3\xA9\"",
                                    "\"\xFF\"",
                                    "01",
                                    "1e999",
                                    "\"messages\"",
                                    "\"role\"",
                                    "\"content\"",
                                    "\"conversations\"",
                                    "\"from\"",
                                    "\"value\"",
                                    "\"instruction\"",
                                    "\"input\"",
                                    "\"output\"",
                                    "\"history\"",
                                    "\"system\"",
                                    "\"prompt\"",
                                    "\"completion\"",
                                    "\"id\"",
                                    "\"user\"",
                                    "\"assistant\"",
                                    "\"human\"",
                                    "\"gpt\"",
                                    "[\"a\",\"b\"]",
                                    "{\"role\":\"user\",\"content\":\"a\"}",
                                    "{\"from\":\"human\",\"value\":\"a\"}"};

static size_t repeat(uint8_t *data, size_t size, size_t max_size, struct span span)
{
    const size_t length = span.end - span.start;
    if (size + length + 1 > max_size) {
        return size;
    }
    memmove(data + span.end + length + 1, data + span.end, size - span.end);
    data[span.end] = ',';
    memcpy(data + span.end + 1, data + span.start, length);
    return size + length + 1;
}

/* One value takes the place of another. */
static size_t copy_over(uint8_t *data, size_t size, size_t max_size, struct span from,
                        struct span to)
{
    const size_t length = from.end - from.start;
    uint8_t *const bytes = malloc(length);
    if (bytes == NULL) {
        return size;
    }
    memcpy(bytes, data + from.start, length);
    const size_t result = put(data, size, max_size, to, bytes, length);
    free(bytes);
    return result;
}

/* Bytes within one value, by the plain mutator. */
static size_t change(uint8_t *data, size_t size, size_t max_size, struct span span)
{
    const size_t length = span.end - span.start;
    const size_t room = max_size - size < 64 ? max_size - size : 64;
    uint8_t *const bytes = malloc(length + room);
    if (bytes == NULL) {
        return size;
    }
    memcpy(bytes, data + span.start, length);
    const size_t changed = LLVMFuzzerMutate(bytes, length, length + room);
    const size_t result = put(data, size, max_size, span, bytes, changed);
    free(bytes);
    return result;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct spans s = {.count = 0};
    unsigned state = seed;
    find(data, size, &s);
    const unsigned kind = draw(&state, 8);
    if (s.count == 0 || kind == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    const struct span span = s.list[draw(&state, s.count)];
    const struct span other = s.list[draw(&state, s.count)];
    const char *const word = words[draw(&state, sizeof words / sizeof words[0])];
    switch (kind) {
    case 1:
    case 2:
        return put(data, size, max_size, span, word, strlen(word));
    case 3:
        return repeat(data, size, max_size, span);
    case 4:
        return copy_over(data, size, max_size, other, span);
    case 5:
        return put(data, size, max_size, span, "", 0);
    default:
        return change(data, size, max_size, span);
    }
}
