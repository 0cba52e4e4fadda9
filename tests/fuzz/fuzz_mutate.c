/* Mutates a text by its parts, with the words of a dictionary in libFuzzer's form. FUZZ_PARTS and
 * FUZZ_DICTIONARY come from fuzz.cmake. Called by libFuzzer and replay_main.c; must not know what
 * the text is for. */
#include "fuzz_mutate.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { SPANS_MAX = 1024, DEPTH_MAX = 128, WORDS_MAX = 512, WORD_BYTES_MAX = 128, LENGTH_BYTES = 8 };

/* ---- words ---- */

struct word {
    char bytes[WORD_BYTES_MAX];
    size_t size;
};

/* A line of a dictionary: "word" with \\, \" and \xNN; false for any other. */
static bool read_word(const char *line, struct word *out)
{
    const char *at = line;
    out->size = 0;
    if (*at++ != '"') {
        return false;
    }
    while (*at != '"' && *at != '\0' && out->size < WORD_BYTES_MAX) {
        unsigned code = (unsigned char)*at++;
        int used = 0;
        if (code == '\\' && sscanf(at, "x%2x%n", &code, &used) == 1) {
            at += used;
        } else if (code == '\\') {
            code = (unsigned char)*at++;
        }
        out->bytes[out->size++] = (char)code;
    }
    return *at == '"' && out->size > 0;
}

static const struct word *draw_word(size_t number)
{
    static struct word words[WORDS_MAX];
    static size_t count;
    if (count == 0) {
        char line[4 * WORD_BYTES_MAX];
        FILE *const file = fopen(FUZZ_DICTIONARY, "r");
        fuzz_require(file != NULL);
        while (count < WORDS_MAX && fgets(line, sizeof line, file) != NULL) {
            count += read_word(line, &words[count]);
        }
        fclose(file);
        fuzz_require(count > 0);
    }
    return &words[number % count];
}

/* ---- parts ---- */

/* Bytes start .. end - 1. */
struct span {
    size_t start, end;
};

struct spans {
    struct span list[SPANS_MAX];
    size_t count;
};

static void add(struct spans *s, size_t start, size_t end)
{
    if (s->count < SPANS_MAX && end > start) {
        s->list[s->count++] = (struct span){start, end};
    }
}

/* Behind a text in quotes. */
static size_t quoted_end(const uint8_t *data, size_t at, size_t size)
{
    const uint8_t quote = data[at];
    for (at++; at < size && data[at] != quote; at++) {
        at += data[at] == '\\';
    }
    return at < size ? at + 1 : size;
}

/* Behind a run of bytes that are none of these. */
static size_t run_end(const uint8_t *data, size_t at, size_t size, const char *others)
{
    while (at < size && (data[at] == '\0' || strchr(others, data[at]) == NULL)) {
        at++;
    }
    return at;
}

static void find_lines(const uint8_t *data, size_t size, struct spans *s)
{
    for (size_t at = 0; at < size;) {
        const uint8_t *const found = memchr(data + at, '\n', size - at);
        const size_t end = found == NULL ? size : (size_t)(found - data) + 1;
        add(s, at, end);
        at = end;
    }
}

/* A malformed text gives the values and keys it has. */
static void find_json(const uint8_t *data, size_t size, struct spans *s)
{
    size_t open[DEPTH_MAX];
    size_t depth = 0;
    if (size > 0 && memchr(data, '\n', size - 1) != NULL) {
        find_lines(data, size, s);
    }
    for (size_t at = 0; at < size;) {
        const size_t start = at;
        at = data[at] == '"' ? quoted_end(data, at, size)
                             : run_end(data, at, size, "{}[],:\" \t\r\n");
        add(s, start, at);
        if (at > start) {
            continue;
        }
        if ((data[at] == '{' || data[at] == '[') && depth < DEPTH_MAX) {
            open[depth++] = at;
        } else if ((data[at] == '}' || data[at] == ']') && depth > 0) {
            add(s, open[--depth], at + 1);
        }
        at++;
    }
}

static void find_words(const uint8_t *data, size_t size, struct spans *s, const char *between)
{
    for (size_t at = 0; at < size; at++) {
        const size_t end = run_end(data, at, size, between);
        add(s, at, end);
        at = end;
    }
}

static void find_values(const uint8_t *data, size_t size, struct spans *s)
{
    find_lines(data, size, s);
    const size_t lines = s->count;
    for (size_t i = 0; i < lines; i++) {
        const struct span line = s->list[i];
        const uint8_t *const colon = memchr(data + line.start, ':', line.end - line.start);
        const size_t end = line.end - (data[line.end - 1] == '\n');
        if (colon != NULL && (size_t)(colon - data) + 2 < end) {
            add(s, (size_t)(colon - data) + 2, end);
        }
    }
    find_words(data, size, s, " \n,[]{}");
}

/* The tokens of a tag: words, quoted texts, single signs. Returns where it ends. */
static size_t find_tag(const uint8_t *data, size_t at, size_t size, struct spans *s)
{
    const size_t start = at;
    for (at += 2; at < size;) {
        const size_t from = at;
        if (data[at] == '}' && (data[at - 1] == '}' || data[at - 1] == '%')) {
            at++;
            break;
        }
        if (data[at] == '"' || data[at] == '\'') {
            at = quoted_end(data, at, size);
        } else {
            while (at < size && (isalnum(data[at]) || data[at] == '_' || data[at] == '.')) {
                at++;
            }
            at += at == from;
        }
        if (data[from] != ' ') {
            add(s, from, at);
        }
    }
    add(s, start, at);
    return at;
}

static void find_template(const uint8_t *data, size_t size, struct spans *s)
{
    for (size_t at = 0; at < size;) {
        const size_t start = at;
        if (data[at] == '{' && at + 1 < size && (data[at + 1] == '%' || data[at + 1] == '{')) {
            at = find_tag(data, at, size, s);
            continue;
        }
        at = run_end(data, at + 1, size, "{");
        add(s, start, at);
    }
}

static void find_segments(const uint8_t *data, size_t size, struct spans *s)
{
    find_words(data, size, s, "\xFF");
    find_words(data, size, s, "\xFF \n");
}

/* Finds the parts; `between` is what stands between a part and its repetition. */
static void find(enum fuzz_parts parts, const uint8_t *data, size_t size, struct spans *s,
                 const char **between)
{
    *between = "";
    switch (parts) {
    case FUZZ_JSON:
    case FUZZ_SIZED:
        find_json(data, size, s);
        *between = ",";
        break;
    case FUZZ_LINES:
        find_values(data, size, s);
        break;
    case FUZZ_TEMPLATE:
        find_template(data, size, s);
        break;
    case FUZZ_SEGMENTS:
        find_segments(data, size, s);
        *between = "\xFF";
        break;
    }
}

/* ---- changes ---- */

static unsigned draw(unsigned *state, size_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return below == 0 ? 0 : (*state >> 8) % (unsigned)below;
}

/* A text with room behind it. */
struct text {
    uint8_t *bytes;
    size_t size, most;
};

/* Puts bytes, which lie elsewhere, in the place of a span, as far as there is room. */
static void put(struct text *t, struct span span, const void *bytes, size_t count)
{
    const size_t rest = t->size - span.end;
    if (span.start + count + rest <= t->most) {
        memmove(t->bytes + span.start + count, t->bytes + span.end, rest);
        memcpy(t->bytes + span.start, bytes, count);
        t->size = span.start + count + rest;
    }
}

/* Bytes within one part, by the plain mutator. */
static void change(struct text *t, struct span span)
{
    enum { GROWTH = 64 };
    const size_t length = span.end - span.start;
    const size_t room = t->most - t->size < GROWTH ? t->most - t->size : GROWTH;
    uint8_t *const bytes = malloc(length + room);
    fuzz_require(bytes != NULL);
    memcpy(bytes, t->bytes + span.start, length);
    put(t, span, bytes, LLVMFuzzerMutate(bytes, length, length + room));
    free(bytes);
}

/* One part takes the place of another, or stands before it. */
static void copy(struct text *t, struct span from, struct span to, const char *between)
{
    uint8_t *const bytes = (uint8_t *)fuzz_exact(t->bytes + from.start, from.end - from.start);
    put(t, (struct span){to.start, to.start}, between, to.start == to.end ? strlen(between) : 0);
    put(t, to, bytes, from.end - from.start);
    free(bytes);
}

static size_t mutate(enum fuzz_parts parts, struct text t, unsigned seed)
{
    static struct spans s;
    unsigned state = seed;
    const char *between = "";
    s.count = 0;
    find(parts, t.bytes, t.size, &s, &between);
    const unsigned kind = draw(&state, 10);
    const struct word *const word = draw_word(draw(&state, WORDS_MAX * 64));
    if (s.count == 0 || kind < 2) {
        return LLVMFuzzerMutate(t.bytes, t.size, t.most);
    }
    const struct span span = s.list[draw(&state, s.count)];
    const struct span other = s.list[draw(&state, s.count)];
    const struct span before = {span.start, span.start};
    switch (kind) {
    case 2:
        put(&t, span, word->bytes, word->size);
        break;
    case 3:
        put(&t, before, between, strlen(between));
        put(&t, before, word->bytes, word->size);
        break;
    case 4:
        copy(&t, span, before, between);
        break;
    case 5:
        copy(&t, other, span, between);
        break;
    case 6:
        copy(&t, other, before, between);
        break;
    case 7:
        put(&t, span, "", 0);
        break;
    default:
        change(&t, span);
    }
    return t.size;
}

/* The JSON between a length, which follows it, and the bytes behind; what has no such length is
 * mutated as it is. */
static size_t mutate_sized(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    uint64_t length = 0;
    if (size >= LENGTH_BYTES) {
        memcpy(&length, data, LENGTH_BYTES);
    }
    if (length == 0 || length > size - LENGTH_BYTES || seed % 8 == 0) {
        return LLVMFuzzerMutate(data, size, most);
    }
    const struct span span = {LENGTH_BYTES, LENGTH_BYTES + (size_t)length};
    struct text whole = {data, size, most};
    struct text json = {malloc(most), (size_t)length, most - LENGTH_BYTES};
    fuzz_require(json.bytes != NULL);
    memcpy(json.bytes, data + span.start, json.size);
    const size_t made = mutate(FUZZ_SIZED, json, seed);
    if (made <= most - (size - (size_t)length)) {
        const uint64_t put_length = made;
        put(&whole, span, json.bytes, made);
        memcpy(data, &put_length, LENGTH_BYTES);
    }
    free(json.bytes);
    return whole.size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return FUZZ_PARTS == FUZZ_SIZED ? mutate_sized(data, size, max_size, seed)
                                    : mutate(FUZZ_PARTS, (struct text){data, size, max_size}, seed);
}
