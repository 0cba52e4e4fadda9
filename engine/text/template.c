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
#include "jinja_json.h"
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
    char label[512]; /* lines of a template in a configuration are not those of the file */
    const bool jinja = name[eng_template_path_size(name) - 1] == 'a';
    snprintf(label, sizeof label, "%s%s", name, jinja ? "" : ": chat_template");
    if (status == ENG_OK) {
        status = eng_jinja_parse(label, t->file.source, t->file.size, &t->jinja, error);
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
    if (eng_template_is_file(name)) {
        return asprintf(&path, "%.*s%s", name[0] == '/' ? 0 : folder, recipe_path, name) < 0 ? NULL
                                                                                             : path;
    }
    if (asprintf(&path, "%.*s../templates/%s.jinja", folder, recipe_path, name) < 0) {
        return NULL;
    }
    if (access(path, R_OK) == 0) {
        return path;
    }
    free(path);
    return asprintf(&path, "%s/%s.jinja", ENG_TEMPLATES, name) < 0 ? NULL : path;
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

/* A chat to render. */
struct chat {
    const struct eng_message *messages;
    size_t count;
    const struct eng_extras *extras;
};

static const struct eng_message_extra no_extra;

static const struct eng_message_extra *extra_of(const struct chat *chat, size_t i)
{
    return chat->extras->messages == NULL ? &no_extra : &chat->extras->messages[i];
}

static void set_text(struct jmem *m, struct jv dict, const char *key, struct eng_text text)
{
    if (text.bytes != NULL) {
        eng_jinja_set(m, dict, eng_jinja_literal(key), jv_str(text.bytes, text.size, JS_CONTENT));
    }
}

/* The value of a JSON text that the caller has checked but for its numbers; none without one. */
static struct jv json_value(struct jmem *m, const char *name, struct eng_text text)
{
    json_error_t cause;
    if (text.bytes == NULL) {
        return jv_none();
    }
    json_t *const json = json_loadb(text.bytes, text.size, JSON_ALLOW_NUL, &cause);
    if (json == NULL) {
        eng_jinja_fail(m, "%s: %.150s", name, cause.text);
        return jv_none();
    }
    const struct jv value = eng_jinja_from_json(m, json, JS_CONTENT);
    json_decref(json);
    return value;
}

/* Calls whose arguments are texts of JSON; right only in a fault. */
__attribute__((unused)) static struct jv with_text_arguments(struct jmem *m, struct jv calls)
{
    const struct jinja_json how = {.indent = jv_none(),
                                   .item_separator = eng_jinja_literal(", "),
                                   .key_separator = eng_jinja_literal(": ")};
    for (size_t i = 0; calls.type == J_LIST && i < calls.as.list->count; i++) {
        const struct jv *const function =
            eng_jinja_get_text(calls.as.list->items[i].as.dict, "function", 8);
        const struct jv *const arguments =
            function == NULL || function->type != J_DICT
                ? NULL
                : eng_jinja_get_text(function->as.dict, "arguments", 9);
        if (arguments != NULL && arguments->type != J_STR) {
            eng_jinja_set(m, *function, eng_jinja_literal("arguments"),
                          eng_jinja_json(m, *arguments, &how));
        }
    }
    return calls;
}

static struct jv message_value(struct jmem *m, const char *role, struct eng_text content,
                               const struct eng_message_extra *extra)
{
    const struct jv dict = eng_jinja_dict(m, 4);
    eng_jinja_set(m, dict, eng_jinja_literal("role"), eng_jinja_literal(role));
    if (content.bytes == NULL) {
        eng_jinja_set(m, dict, eng_jinja_literal("content"), jv_none());
    }
    set_text(m, dict, "content", content);
    set_text(m, dict, "reasoning_content", extra->reasoning_content);
    if (extra->tool_calls.bytes != NULL) {
        eng_jinja_set(m, dict, eng_jinja_literal("tool_calls"),
                      FAULT(template_calls, json_value(m, "tool_calls", extra->tool_calls)));
    }
    set_text(m, dict, "tool_call_id", extra->tool_call_id);
    set_text(m, dict, "name", extra->name);
    return dict;
}

/* The contents as the template gets them: one that trims gets them as they are. */
static struct eng_text given(const eng_template *t, struct eng_text content)
{
    return content.bytes == NULL || eng_jinja_trims(t->jinja) ? content
                                                              : eng_layout_edges(content, false);
}

/* The first `count` messages. */
static struct jv messages_value(eng_template *t, const struct chat *chat, size_t count)
{
    static const char *const roles[] = {[ENG_ROLE_SYSTEM] = "system",
                                        [ENG_ROLE_USER] = "user",
                                        [ENG_ROLE_ASSISTANT] = "assistant",
                                        [ENG_ROLE_TOOL] = "tool"};
    struct jmem *const m = &t->renderer.mem;
    const struct jv list = eng_jinja_list(m, J_LIST, count + 1);
    const struct eng_message *const messages = chat->messages;
    const bool has_system = count > 0 && messages[0].role == ENG_ROLE_SYSTEM;
    struct eng_message room;
    const struct eng_message *const system = eng_layout_system(messages, count, &room);
    if (system != NULL) {
        const struct eng_message_extra *const extra = has_system ? extra_of(chat, 0) : &no_extra;
        eng_jinja_append(m, list, message_value(m, "system", given(t, system->content), extra));
    }
    for (size_t i = has_system ? 1 : 0; i < count; i++) {
        const struct eng_text content = eng_layout_turn(messages, chat->count, i);
        const char *const role = FAULT(template_role, roles[messages[i].role]);
        eng_jinja_append(m, list, message_value(m, role, given(t, content), extra_of(chat, i)));
    }
    return list;
}

static void set_special_tokens(struct eng_jinja_renderer *r, const struct eng_template_file *file)
{
    for (size_t i = 0; i < ENG_SPECIAL_COUNT; i++) {
        if (file->tokens[i] != NULL) {
            eng_jinja_variable(r, eng_special_names[i],
                               jv_str(file->tokens[i], strlen(file->tokens[i]), 0));
        }
    }
    if (file->more_count > 0) {
        const struct jv list = eng_jinja_list(&r->mem, J_LIST, file->more_count);
        for (size_t i = 0; i < file->more_count; i++) {
            eng_jinja_append(&r->mem, list, jv_str(file->more[i], strlen(file->more[i]), 0));
        }
        eng_jinja_variable(r, "additional_special_tokens", list);
    }
}

/* Renders the first `count` messages. */
static enum eng_status render_part(eng_template *t, const struct chat *chat, size_t count,
                                   bool prompt, const struct jbuf **text, struct eng_error *error)
{
    struct eng_jinja_renderer *const r = &t->renderer;
    eng_jinja_begin(r);
    r->clock = FAULT(template_clock, JINJA_CLOCK);
    eng_jinja_variable(r, "messages", messages_value(t, chat, count));
    const struct eng_text tools = FAULT(template_tools, chat->extras->tools);
    eng_jinja_variable(r, "tools", json_value(&r->mem, "tools", tools));
    eng_jinja_variable(r, "documents", json_value(&r->mem, "documents", chat->extras->documents));
    eng_jinja_variable(r, "add_generation_prompt", jv_bool(prompt));
    set_special_tokens(r, &t->file);
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
static enum eng_status prefix_size(eng_template *t, const struct chat *chat, size_t count,
                                   bool prompt, const struct jbuf *whole, size_t *size,
                                   struct eng_error *error)
{
    const struct jbuf *part = NULL;
    const enum eng_status status = render_part(t, chat, count, prompt, &part, error);
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
static enum eng_status take_by_prefix(eng_template *t, const struct chat *chat,
                                      const struct jbuf *whole, struct eng_rendered *out,
                                      struct eng_error *error)
{
    size_t at = 0;
    for (size_t i = 0; i < chat->count; i++) {
        struct eng_span answer = {0, whole->size};
        if (chat->messages[i].role != ENG_ROLE_ASSISTANT) {
            continue;
        }
        const bool prompt = FAULT(template_prompt, true);
        enum eng_status status = prefix_size(t, chat, i, prompt, whole, &answer.start, error);
        if (status == ENG_OK && i + 1 < chat->count) {
            status = prefix_size(t, chat, i + 1, false, whole, &answer.end, error);
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

static enum eng_status render_file(eng_template *t, const struct chat *chat,
                                   struct eng_rendered *out, struct eng_error *error)
{
    const struct jbuf *text = NULL;
    enum eng_status status = render_part(t, chat, chat->count, false, &text, error);
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
                     : take_by_prefix(t, chat, &whole, out, error);
        free(whole.bytes);
        free(whole.marks);
    }
    return status == ENG_OK && out->out_of_memory
               ? eng_fail(error, ENG_EHOSTMEM, "no memory for a rendered chat")
               : status;
}

/* What a chat has must be a word of the template's text; layouts have none of these words. */
static enum eng_status require_word(const eng_template *t, bool has, const char *word,
                                    struct eng_error *error)
{
    const bool named =
        t->file.source != NULL && memmem(t->file.source, t->file.size, word, strlen(word)) != NULL;
    return !has || named ? ENG_OK
                         : eng_fail(error, ENG_EINPUT,
                                    "the record has %s%s, which the template does not name",
                                    strcmp(word, "tool") == 0 ? "messages of role " : "", word);
}

static enum eng_status check_named(const eng_template *t, const struct chat *chat,
                                   struct eng_error *error)
{
    bool tool = false, calls = false, reasoning = false;
    for (size_t i = 0; i < chat->count; i++) {
        const struct eng_message_extra *const extra = extra_of(chat, i);
        tool |= chat->messages[i].role == ENG_ROLE_TOOL;
        calls |= extra->tool_calls.bytes != NULL;
        reasoning |= extra->reasoning_content.bytes != NULL;
    }
    const struct {
        bool has;
        const char *word;
    } words[] = {{chat->extras->tools.bytes != NULL, "tools"},
                 {chat->extras->documents.bytes != NULL, "documents"},
                 {calls, "tool_calls"},
                 {reasoning, "reasoning_content"},
                 {tool, "tool"}};
    enum eng_status status = ENG_OK;
    for (size_t i = 0; status == ENG_OK && i < sizeof words / sizeof words[0]; i++) {
        status = require_word(t, words[i].has, words[i].word, error);
    }
    return status;
}

enum eng_status eng_template_accepts(const eng_template *template,
                                     const struct eng_message *messages, size_t count,
                                     const struct eng_extras *extras, struct eng_error *error)
{
    const struct chat chat = {messages, count, extras};
    return check_named(template, &chat, error);
}

enum eng_status eng_template_render(eng_template *template, const struct eng_message *messages,
                                    size_t count, const struct eng_extras *extras,
                                    struct eng_rendered *out, struct eng_error *error)
{
    static const struct eng_extras none;
    const struct chat chat = {messages, count, extras == NULL ? &none : extras};
    const enum eng_layout layout = eng_layout_chosen(template->layout);
    const enum eng_status status = check_named(template, &chat, error);
    if (status != ENG_OK) {
        return status;
    }
    return layout == ENG_LAYOUT_COUNT ? render_file(template, &chat, out, error)
                                      : eng_layout_render(layout, messages, count, out, error);
}
