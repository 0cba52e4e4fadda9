/* The arena of a render, its limits, and text that grows with marks.
 * Called by jinja_*; must not know what is rendered. */
#include "jinja_value.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "growth.h"

enum { CHUNK_BYTES = 64 << 10, ALIGN = 16, STEPS_A_LOOK = 1024 };

struct jchunk {
    struct jchunk *previous;
    size_t size;
    _Alignas(ALIGN) char bytes[];
};

static void *take_chunk(struct jmem *m, size_t bytes)
{
    const size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    if (size > m->used_max || m->used > m->used_max - size) {
        eng_jinja_fail(m, "it needs more than %zu bytes of memory", m->used_max);
        return NULL;
    }
    struct jchunk *const chunk = malloc(sizeof *chunk + size);
    if (chunk == NULL) {
        eng_jinja_fail(m, "no memory");
        return NULL;
    }
    *chunk = (struct jchunk){.previous = m->chunks, .size = size};
    m->chunks = chunk;
    m->used += size;
    m->at = chunk->bytes + bytes;
    m->end = chunk->bytes + size;
    return chunk->bytes;
}

static void *take(struct jmem *m, size_t bytes)
{
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if ((size_t)(m->end - m->at) < bytes || m->at == NULL) {
        return take_chunk(m, bytes);
    }
    void *const room = m->at;
    m->at += bytes;
    return room;
}

void *eng_jinja_alloc(struct jmem *m, size_t bytes)
{
    void *const room = m->failed ? NULL : take(m, bytes);
    if (room != NULL) {
        return room;
    }
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (bytes > JINJA_RESERVE - m->reserve_used) {
        m->reserve_used = 0;
    }
    m->reserve_used += bytes;
    return m->reserve + m->reserve_used - bytes;
}

bool eng_jinja_mem_init(struct jmem *m)
{
    *m = (struct jmem){.reserve = calloc(JINJA_RESERVE, 1)};
    return m->reserve != NULL;
}

void *eng_jinja_array(struct jmem *m, size_t count, size_t item_bytes)
{
    if (count == 0 || m->failed) {
        return NULL;
    }
    if (count > m->used_max / item_bytes) {
        eng_jinja_fail(m, "it needs more than %zu bytes of memory", m->used_max);
        return NULL;
    }
    return take(m, count * item_bytes);
}

/* Keeps one chunk for the next render. */
void eng_jinja_mem_reset(struct jmem *m)
{
    while (m->chunks != NULL && m->chunks->previous != NULL) {
        struct jchunk *const chunk = m->chunks;
        m->chunks = chunk->previous;
        free(chunk);
    }
    m->used = m->chunks == NULL ? 0 : m->chunks->size;
    m->at = m->chunks == NULL ? NULL : m->chunks->bytes;
    m->end = m->chunks == NULL ? NULL : m->chunks->bytes + m->chunks->size;
    m->steps = 0;
    m->open = 0;
    m->reserve_used = 0;
    m->failed = false;
    m->line = m->column = m->at_line = m->at_column = 0;
    m->deadline_ms = 0;
}

void eng_jinja_mem_fini(struct jmem *m)
{
    eng_jinja_mem_reset(m);
    free(m->chunks);
    free(m->reserve);
    for (size_t i = 0; i < JINJA_BUFFERS_MAX; i++) {
        free(m->buffers[i].bytes);
        free(m->buffers[i].marks);
    }
    *m = (struct jmem){0};
}

void eng_jinja_fail(struct jmem *m, const char *format, ...)
{
    if (m->failed) {
        return;
    }
    m->failed = true;
    m->line = m->at_line;
    m->column = m->at_column;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(m->cause, sizeof m->cause, format, arguments);
    va_end(arguments);
}

bool eng_jinja_step(struct jmem *m)
{
    if (m->failed) {
        return false;
    }
    if (++m->steps > m->steps_max) {
        eng_jinja_fail(m, "it takes more than %llu steps", (unsigned long long)m->steps_max);
    } else if (m->steps % STEPS_A_LOOK == 0 && m->now_ms != NULL && m->now_ms() > m->deadline_ms) {
        eng_jinja_fail(m, "it takes too long");
    }
    return !m->failed;
}

struct jbuf *eng_jinja_open(struct jmem *m)
{
    if (m->open == JINJA_BUFFERS_MAX) {
        eng_jinja_fail(m, "captures are nested too deeply");
        return &m->buffers[JINJA_BUFFERS_MAX - 1];
    }
    struct jbuf *const b = &m->buffers[m->open++];
    b->size = b->mark_count = 0;
    return b;
}

void eng_jinja_drop(struct jmem *m)
{
    if (m->open > 1) {
        m->open--;
    }
}

struct jv eng_jinja_close(struct jmem *m)
{
    const struct jbuf *const b = &m->buffers[m->open - 1];
    eng_jinja_drop(m);
    if (m->failed || b->size == 0) {
        return jv_str("", 0, JS_ASCII);
    }
    const bool whole = b->mark_count == 1 && b->marks[0].kind == JMARK_CONTENT &&
                       b->marks[0].start == 0 && b->marks[0].end == b->size;
    if (b->mark_count == 0 || whole) {
        return eng_jinja_copy(m, b->bytes, b->size, whole ? JS_CONTENT : 0);
    }
    struct jmarks *const marks =
        eng_jinja_array(m, sizeof *marks + b->mark_count * sizeof marks->items[0], 1);
    char *const room = eng_jinja_array(m, sizeof marks + b->size, 1);
    if (marks == NULL || room == NULL) {
        return jv_str("", 0, JS_ASCII);
    }
    marks->count = b->mark_count;
    memcpy(marks->items, b->marks, b->mark_count * sizeof marks->items[0]);
    memcpy(room, &marks, sizeof marks);
    memcpy(room + sizeof marks, b->bytes, b->size);
    return jv_str(room + sizeof marks, b->size, JS_MIXED);
}

static bool reserve(struct jmem *m, struct jbuf *b, size_t size)
{
    if (size > m->output_max || b->size > m->output_max - size) {
        eng_jinja_fail(m, "it writes more than %zu bytes", m->output_max);
        return false;
    }
    if (b->capacity - b->size >= size) {
        return true;
    }
    char *const grown = eng_grown(b->bytes, &b->capacity, b->size + size, 1);
    if (grown == NULL) {
        eng_jinja_fail(m, "no memory");
        return false;
    }
    b->bytes = grown;
    return true;
}

void eng_jinja_put(struct jmem *m, struct jbuf *b, const char *bytes, size_t size)
{
    if (size == 0 || !reserve(m, b, size)) {
        return;
    }
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

/* An answer of no bytes is kept, content of none is not. */
void eng_jinja_mark(struct jmem *m, struct jbuf *b, size_t start, enum jmark_kind kind)
{
    if (m->failed || (kind == JMARK_CONTENT && start == b->size)) {
        return;
    }
    struct jmark *const marks =
        eng_grown(b->marks, &b->mark_capacity, b->mark_count + 1, sizeof *marks);
    if (marks == NULL) {
        eng_jinja_fail(m, "no memory");
        return;
    }
    b->marks = marks;
    struct jmark *const last = b->mark_count > 0 ? &marks[b->mark_count - 1] : NULL;
    if (kind == JMARK_CONTENT && last != NULL && last->kind == kind && last->end == start) {
        last->end = b->size;
        return;
    }
    marks[b->mark_count++] = (struct jmark){start, b->size, kind};
}

void eng_jinja_put_str(struct jmem *m, struct jbuf *b, struct jv string)
{
    const size_t start = b->size;
    eng_jinja_put(m, b, string.as.s, string.size);
    if (m->failed || (string.flags & (JS_CONTENT | JS_MIXED)) == 0) {
        return;
    }
    if (string.flags & JS_CONTENT) {
        eng_jinja_mark(m, b, start, JMARK_CONTENT);
        return;
    }
    const struct jmarks *marks;
    memcpy(&marks, string.as.s - sizeof marks, sizeof marks);
    const size_t end = b->size;
    for (size_t i = 0; i < marks->count; i++) {
        b->size = start + marks->items[i].end;
        eng_jinja_mark(m, b, start + marks->items[i].start, marks->items[i].kind);
    }
    b->size = end;
}
