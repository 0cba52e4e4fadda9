/* Chat templates from files, with answers and contents as spans.
 * Called by engine/data; must not know tokens. */
#include "template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "eng_features.h"
#include "fault.h"
#include "jinja.h"
#include "layout_parts.h"
#include "template_file.h"

enum { JINJA_CLOCK = 1704067200 }; /* 2024-01-01 00:00:00 UTC: see RECIPE.md */

struct eng_template {
    enum eng_layout layout; /* ENG_LAYOUT_COUNT: of a file */
    struct eng_template_file file;
    eng_jinja *jinja;
    struct eng_jinja_renderer renderer;
};

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static enum eng_status open_file(eng_template *t, const char *name, struct eng_error *error)
{
    struct eng_jinja_limits limits = eng_jinja_usual_limits;
    limits.now_ms = now_ms;
    enum eng_status status = eng_template_file_read(name, &t->file, error);
    if (status == ENG_OK) {
        status = eng_jinja_parse(name, t->file.source, t->file.size, &t->jinja, error);
    }
    return status == ENG_OK ? eng_jinja_init(&t->renderer, &limits, error) : status;
}

enum eng_status eng_template_open(const char *name, eng_template **out, struct eng_error *error)
{
    eng_template *const t = calloc(1, sizeof *t);
    if (t == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for a template");
    }
    t->layout = ENG_LAYOUT_COUNT;
    const enum eng_status status = eng_template_is_file(name)
                                       ? open_file(t, name, error)
                                       : eng_layout_find(name, &t->layout, error);
    if (status != ENG_OK) {
        eng_template_close(t);
        return status;
    }
    *out = t;
    return ENG_OK;
}

char *eng_template_locate(const char *recipe_path, const char *name)
{
    const char *const slash = strrchr(recipe_path, '/');
    const int folder = slash == NULL ? 0 : (int)(slash + 1 - recipe_path);
    enum eng_layout layout = ENG_LAYOUT_COUNT;
    struct eng_error unknown = {""};
    char *path = NULL;
    if (eng_layout_find(name, &layout, &unknown) == ENG_OK) {
        return strdup(name);
    }
    if (asprintf(&path, "%.*s../templates/%s.jinja", folder, recipe_path, name) < 0) {
        return NULL;
    }
    if (access(path, R_OK) == 0) {
        return path;
    }
    free(path);
    return asprintf(&path, "corpus/templates/%s.jinja", name) < 0 ? NULL : path;
}

void eng_template_close(eng_template *template)
{
    if (template == NULL) {
        return;
    }
    eng_jinja_destroy(template->jinja);
    eng_jinja_fini(&template->renderer);
    eng_template_file_fini(&template->file);
    free(template);
}

uint64_t eng_template_features(const eng_template *template)
{
    if (template->jinja == NULL) {
        return eng_layout_has_start(template->layout) ? ENG_FEATURE_bos : 0;
    }
    return (eng_jinja_reads(template->jinja, "strftime_now") ? ENG_FEATURE_dated : 0) |
           (eng_jinja_has_generation(template->jinja) ? 0 : ENG_FEATURE_by_prefix);
}

const char *eng_template_end_of_turn(const eng_template *template)
{
    if (template->layout != ENG_LAYOUT_COUNT) {
        return eng_layout_end_of_turn(template->layout);
    }
    const char *const text = template->file.tokens[ENG_SPECIAL_EOS];
    return text == NULL ? "" : text;
}

/* ---- one render */

static struct jv message_value(struct jmem *m, const char *role, struct eng_text content)
{
    const struct jv dict = eng_jinja_dict(m, 2);
    eng_jinja_set(m, dict, eng_jinja_literal("role"), eng_jinja_literal(role));
    eng_jinja_set(m, dict, eng_jinja_literal("content"),
                  jv_str(content.bytes == NULL ? "" : content.bytes, content.size, JS_CONTENT));
    return dict;
}

/* The contents as the template gets them: one that trims gets them as they are. */
static struct eng_text given(const eng_template *t, struct eng_text content)
{
    return eng_jinja_trims(t->jinja) ? content : eng_layout_edges(content, false);
}

static struct jv messages_value(eng_template *t, const struct eng_message *messages, size_t count,
                                size_t total)
{
    struct jmem *const m = &t->renderer.mem;
    const struct jv list = eng_jinja_list(m, J_LIST, count + 1);
    const bool has_system = count > 0 && messages[0].role == ENG_ROLE_SYSTEM;
    struct eng_message room;
    const struct eng_message *const system = eng_layout_system(messages, count, &room);
    if (system != NULL) {
        eng_jinja_append(m, list, message_value(m, "system", given(t, system->content)));
    }
    for (size_t i = has_system ? 1 : 0; i < count; i++) {
        const char *const role = messages[i].role == ENG_ROLE_ASSISTANT ? "assistant" : "user";
        const struct eng_text content = eng_layout_turn(messages, total, i);
        eng_jinja_append(m, list, message_value(m, role, given(t, content)));
    }
    return list;
}

/* Renders the first `count` of `total` messages. */
static enum eng_status render_part(eng_template *t, const struct eng_message *messages,
                                   size_t count, size_t total, bool prompt,
                                   const struct jbuf **text, struct eng_error *error)
{
    struct eng_jinja_renderer *const r = &t->renderer;
    eng_jinja_begin(r);
    r->clock = FAULT(template_clock, JINJA_CLOCK);
    eng_jinja_variable(r, "messages", messages_value(t, messages, count, total));
    eng_jinja_variable(r, "tools", jv_none());
    eng_jinja_variable(r, "documents", jv_none());
    eng_jinja_variable(r, "add_generation_prompt", jv_bool(prompt));
    for (size_t i = 0; i < ENG_SPECIAL_COUNT; i++) {
        if (t->file.tokens[i] != NULL) {
            eng_jinja_variable(r, eng_special_names[i],
                               jv_str(t->file.tokens[i], strlen(t->file.tokens[i]), 0));
        }
    }
    return eng_jinja_render(r, t->jinja, text, error);
}

/* ---- the result */

/* Copies bytes from .. to - 1 of a rendering, with the contents in them. */
static void copy_range(struct eng_rendered *out, const struct jbuf *text, size_t from, size_t to)
{
    for (size_t i = 0; i < text->mark_count && from < to; i++) {
        const struct jmark *const mark = &text->marks[i];
        if (mark->kind != JMARK_CONTENT || mark->end <= from || mark->start >= to) {
            continue;
        }
        const size_t start = mark->start > from ? mark->start : from;
        const size_t end = mark->end < to ? mark->end : to;
        eng_layout_put(out, (struct eng_text){text->bytes + from, start - from});
        eng_layout_put_content(out, (struct eng_text){text->bytes + start, end - start});
        from = end;
    }
    if (from < to) {
        eng_layout_put(out, (struct eng_text){text->bytes + from, to - from});
    }
}

/* Where the last content within the range ends; its start when there is none. */
static size_t content_end(const struct jbuf *text, size_t from, size_t to)
{
    size_t end = from;
    for (size_t i = 0; i < text->mark_count; i++) {
        const struct jmark *const mark = &text->marks[i];
        if (mark->kind == JMARK_CONTENT && mark->start < to && mark->end > end) {
            end = mark->end < to ? mark->end : to;
        }
    }
    return end;
}

/* Copies up to and with one answer. */
static void copy_answer(struct eng_rendered *out, const struct jbuf *text, size_t at,
                        struct eng_span answer)
{
    copy_range(out, text, at, answer.start);
    const size_t header = answer.start - content_end(text, at, answer.start);
    const size_t start = eng_layout_answer_start(out, header);
    copy_range(out, text, answer.start,
               eng_layout_ends_turn() ? answer.end : content_end(text, answer.start, answer.end));
    eng_layout_put_answer(out, (struct eng_span){start, out->size});
}

/* Answers that {% generation %} marked, in order; overlapping ones are refused. */
static enum eng_status take_marked(struct eng_rendered *out, const struct jbuf *text,
                                   struct eng_error *error)
{
    size_t at = 0;
    for (size_t i = 0; i < text->mark_count; i++) {
        const struct jmark *const mark = &text->marks[i];
        if (mark->kind != JMARK_ANSWER) {
            continue;
        }
        if (mark->start < at) {
            return eng_fail(error, ENG_EINPUT, "a generation block lies within another");
        }
        copy_answer(out, text, at, (struct eng_span){mark->start, mark->end});
        at = mark->end;
    }
    copy_range(out, text, at, text->size);
    return ENG_OK;
}

/* The size of the rendering of the first messages, which must begin `whole`. */
static enum eng_status prefix_size(eng_template *t, const struct eng_message *messages,
                                   size_t count, size_t total, bool prompt,
                                   const struct jbuf *whole, size_t *size, struct eng_error *error)
{
    const struct jbuf *part = NULL;
    const enum eng_status status = render_part(t, messages, count, total, prompt, &part, error);
    if (status != ENG_OK) {
        return status;
    }
    if (part->size > whole->size ||
        (part->size > 0 && memcmp(part->bytes, whole->bytes, part->size) != 0)) {
        return eng_fail(error, ENG_EINPUT,
                        "the template has no generation block, and what it writes for the first "
                        "%zu messages%s does not begin what it writes for all",
                        count, prompt ? " and a generation prompt" : "");
    }
    *size = part->size;
    return ENG_OK;
}

/* Answers by rendering the chat up to each of them. `whole` is a copy that outlives renders. */
static enum eng_status take_by_prefix(eng_template *t, const struct eng_message *messages,
                                      size_t count, const struct jbuf *whole,
                                      struct eng_rendered *out, struct eng_error *error)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        struct eng_span answer = {0, whole->size};
        if (messages[i].role != ENG_ROLE_ASSISTANT) {
            continue;
        }
        const bool prompt = FAULT(template_prompt, true);
        enum eng_status status =
            prefix_size(t, messages, i, count, prompt, whole, &answer.start, error);
        if (status == ENG_OK && i + 1 < count) {
            status = prefix_size(t, messages, i + 1, count, false, whole, &answer.end, error);
        }
        if (status == ENG_OK && (answer.start < at || answer.end < answer.start)) {
            status = eng_fail(error, ENG_EINPUT, "the answer of message %zu has no place", i + 1);
        }
        if (status != ENG_OK) {
            return status;
        }
        copy_answer(out, whole, at, answer);
        at = answer.end;
    }
    copy_range(out, whole, at, whole->size);
    return ENG_OK;
}

/* A rendering that later renders do not change; bytes is NULL when memory is refused. */
static struct jbuf kept(const struct jbuf *text)
{
    struct jbuf copy = *text;
    copy.bytes = malloc(text->size + 1);
    copy.marks = malloc((text->mark_count + 1) * sizeof *copy.marks);
    if (copy.bytes == NULL || copy.marks == NULL) {
        free(copy.bytes);
        free(copy.marks);
        return (struct jbuf){0};
    }
    memcpy(copy.bytes, text->size > 0 ? text->bytes : "", text->size);
    if (text->mark_count > 0) {
        memcpy(copy.marks, text->marks, text->mark_count * sizeof *copy.marks);
    }
    return copy;
}

static enum eng_status render_file(eng_template *t, const struct eng_message *messages,
                                   size_t count, struct eng_rendered *out, struct eng_error *error)
{
    const struct jbuf *text = NULL;
    enum eng_status status = render_part(t, messages, count, count, false, &text, error);
    if (status != ENG_OK) {
        return status;
    }
    out->size = out->answer_count = out->content_count = 0;
    out->out_of_memory = false;
    if (eng_jinja_has_generation(t->jinja)) {
        status = take_marked(out, text, error);
    } else {
        struct jbuf whole = kept(text);
        status = whole.bytes == NULL
                     ? eng_fail(error, ENG_EHOSTMEM, "no memory for a rendered chat")
                     : take_by_prefix(t, messages, count, &whole, out, error);
        free(whole.bytes);
        free(whole.marks);
    }
    return status == ENG_OK && out->out_of_memory
               ? eng_fail(error, ENG_EHOSTMEM, "no memory for a rendered chat")
               : status;
}

enum eng_status eng_template_render(eng_template *template, const struct eng_message *messages,
                                    size_t count, struct eng_rendered *out, struct eng_error *error)
{
    const enum eng_layout layout = eng_layout_chosen(template->layout);
    return layout == ENG_LAYOUT_COUNT ? render_file(template, messages, count, out, error)
                                      : eng_layout_render(layout, messages, count, out, error);
}
