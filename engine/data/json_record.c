/* Records of the four formats, read straight into messages.
 * Called by documents; must not know files, layouts or tokens. */
#include "json_record.h"

#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "growth.h"

enum { ID_BYTES_MAX = 127, NO_ROLE = -1 };

/* A record on its way: what stands at its own level until all keys are read. */
struct record {
    struct eng_conversation *out;
    enum eng_format format;
    bool has_messages; /* messages, conversations, prompt */
    bool has_completion;
    struct eng_text instruction, input, output, system;
    struct eng_message_extra output_extra;
};

/* A message on its way. */
struct turn {
    struct eng_message message;
    struct eng_message_extra extra;
    bool calls; /* it has a tool call, not only a list */
};

static bool text_is(struct eng_text text, const char *literal)
{
    return text.size == strlen(literal) && memcmp(text.bytes, literal, text.size) == 0;
}

static struct eng_message *next_message(struct eng_json *j, struct eng_conversation *out)
{
    struct eng_message *const messages =
        eng_grown(out->messages, &out->message_capacity, out->message_count + 1, sizeof *messages);
    if (messages == NULL) {
        eng_json_refuse_memory(j);
        return NULL;
    }
    out->messages = messages;
    return &messages[out->message_count];
}

static bool add_message(struct eng_json *j, struct record *r, enum eng_role role,
                        struct eng_text content)
{
    struct eng_message *const message = next_message(j, r->out);
    if (message == NULL) {
        return false;
    }
    *message = (struct eng_message){role, content};
    r->out->message_count++;
    return true;
}

static bool has_extra(const struct eng_message_extra *extra)
{
    return extra->reasoning_content.bytes != NULL || extra->tool_call_id.bytes != NULL ||
           extra->name.bytes != NULL || extra->tool_calls.bytes != NULL;
}

/* Notes what the newest message has besides role and content; most records have nothing. */
static bool add_extra(struct eng_json *j, struct eng_conversation *out,
                      const struct eng_message_extra *extra)
{
    if (out->extra_count == 0 && !has_extra(extra)) {
        return true;
    }
    struct eng_message_extra *const extras =
        eng_grown(out->extra, &out->extra_capacity, out->message_count, sizeof *extras);
    if (extras == NULL) {
        return eng_json_refuse_memory(j);
    }
    out->extra = extras;
    for (; out->extra_count < out->message_count; out->extra_count++) {
        extras[out->extra_count] = (struct eng_message_extra){0};
    }
    extras[out->message_count - 1] = *extra;
    return true;
}

/* The system message of formats that keep it apart, in front of the others. */
static bool put_system_first(struct eng_json *j, struct record *r)
{
    struct eng_conversation *const out = r->out;
    if (r->system.size == 0) {
        return true;
    }
    if (!add_message(j, r, ENG_ROLE_SYSTEM, r->system)) {
        return false;
    }
    memmove(out->messages + 1, out->messages, (out->message_count - 1) * sizeof *out->messages);
    out->messages[0] = (struct eng_message){ENG_ROLE_SYSTEM, r->system};
    return true;
}

/* ---- messages ---- */

/* A name for a role, as one of the formats has it. */
struct role_name {
    const char *name;
    enum eng_role role;
};

static bool read_role(struct eng_json *j, const struct role_name *names, size_t count,
                      const char *allowed, struct eng_message *message)
{
    struct eng_text text;
    if (!eng_json_string(j, &text)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (text_is(text, names[i].name)) {
            message->role = names[i].role;
            return true;
        }
    }
    return eng_json_refuse(j, "role '%.*s' is none of %s", (int)(text.size < 80 ? text.size : 80),
                           text.bytes, allowed);
}

/* A string, or null for none. */
static bool read_optional(struct eng_json *j, int depth, struct eng_text *out)
{
    return eng_json_peek(j) == 'n' ? eng_json_skip(j, depth + 1) : eng_json_string(j, out);
}

static bool object_of_list(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    bool *const any = context;
    (void)key;
    *any = true;
    return eng_json_peek(j) == '{' ? eng_json_skip(j, depth + 1)
                                   : eng_json_refuse(j, "an element of the list is not an object");
}

/* The JSON text of a list of objects, or null for none; *any: the list is not empty. */
static bool read_objects(struct eng_json *j, const char *name, int depth, struct eng_text *out,
                         bool *any)
{
    if (eng_json_peek(j) == 'n') {
        return eng_json_skip(j, depth + 1);
    }
    const char *const from = j->at;
    if (!eng_json_array(j, name, depth + 1, object_of_list, any)) {
        return false;
    }
    *out = (struct eng_text){from, (size_t)(j->at - from)};
    return true;
}

static bool message_member(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    static const struct role_name names[] = {{"system", ENG_ROLE_SYSTEM},
                                             {"user", ENG_ROLE_USER},
                                             {"assistant", ENG_ROLE_ASSISTANT},
                                             {"tool", ENG_ROLE_TOOL}};
    struct turn *const turn = context;
    const struct {
        const char *name;
        struct eng_text *text;
    } texts[] = {{"content", &turn->message.content},
                 {"reasoning_content", &turn->extra.reasoning_content},
                 {"tool_call_id", &turn->extra.tool_call_id},
                 {"name", &turn->extra.name}};
    if (text_is(key, "role")) {
        return read_role(j, names, 4, "system, user, assistant, tool", &turn->message);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (text_is(key, texts[i].name)) {
            return read_optional(j, depth, texts[i].text);
        }
    }
    return text_is(key, "tool_calls")
               ? read_objects(j, "tool_calls", depth, &turn->extra.tool_calls, &turn->calls)
               : eng_json_skip(j, depth + 1);
}

static bool turn_member(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    static const struct role_name names[] = {{"system", ENG_ROLE_SYSTEM},
                                             {"human", ENG_ROLE_USER},
                                             {"user", ENG_ROLE_USER},
                                             {"gpt", ENG_ROLE_ASSISTANT},
                                             {"assistant", ENG_ROLE_ASSISTANT}};
    struct turn *const turn = context;
    if (text_is(key, "from")) {
        return read_role(j, names, 5, "system, human, user, gpt, assistant", &turn->message);
    }
    if (text_is(key, "value")) {
        return eng_json_string(j, &turn->message.content);
    }
    return eng_json_skip(j, depth + 1);
}

/* What a message may have depends on who says it. */
static bool check_turn(struct eng_json *j, const struct record *r, const struct turn *turn)
{
    const size_t number = r->out->message_count + 1;
    const bool sharegpt = r->format == ENG_FORMAT_SHAREGPT;
    const enum eng_role role = turn->message.role;
    if ((int)role == NO_ROLE) {
        return eng_json_refuse(j, "message %zu has no %s", number, sharegpt ? "from" : "role");
    }
    if (role != ENG_ROLE_ASSISTANT &&
        (turn->extra.tool_calls.bytes != NULL || turn->extra.reasoning_content.bytes != NULL)) {
        return eng_json_refuse(j, "message %zu has %s, but is not the assistant's", number,
                               turn->extra.tool_calls.bytes != NULL ? "tool_calls"
                                                                    : "reasoning_content");
    }
    if (role != ENG_ROLE_TOOL && turn->extra.tool_call_id.bytes != NULL) {
        return eng_json_refuse(j, "message %zu has tool_call_id, but is not a tool's", number);
    }
    return turn->message.content.bytes != NULL || turn->calls ||
           eng_json_refuse(j, "message %zu has no %s", number, sharegpt ? "value" : "content");
}

static bool read_message(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    struct record *const r = context;
    struct turn turn = {.message = {(enum eng_role)NO_ROLE, {NULL, 0}}};
    (void)key;
    return eng_json_object(j, depth + 1,
                           r->format == ENG_FORMAT_SHAREGPT ? turn_member : message_member,
                           &turn) &&
           check_turn(j, r, &turn) && add_message(j, r, turn.message.role, turn.message.content) &&
           add_extra(j, r->out, &turn.extra);
}

static bool read_messages(struct eng_json *j, const char *name, int depth, struct record *r)
{
    r->has_messages = true;
    return eng_json_array(j, name, depth + 1, read_message, r);
}

/* ---- members of a record ---- */

static bool read_id(struct eng_json *j, struct eng_conversation *out)
{
    struct eng_text id;
    if (!eng_json_string(j, &id)) {
        return false;
    }
    if (id.size > ID_BYTES_MAX) {
        return eng_json_refuse(j, "id is longer than %d bytes", ID_BYTES_MAX);
    }
    if (memchr(id.bytes, '\0', id.size) != NULL) {
        return eng_json_refuse(j, "id holds a NUL character");
    }
    out->id = id;
    return true;
}

static bool read_past_turn(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    struct record *const r = context;
    struct eng_text content;
    (void)key;
    (void)depth;
    return eng_json_string(j, &content) &&
           add_message(j, r, r->out->message_count % 2 == 0 ? ENG_ROLE_USER : ENG_ROLE_ASSISTANT,
                       content);
}

static bool read_past(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    struct record *const r = context;
    const size_t before = r->out->message_count;
    (void)key;
    if (!eng_json_array(j, "an element of history", depth + 1, read_past_turn, r)) {
        return false;
    }
    return r->out->message_count == before + 2 ||
           eng_json_refuse(j, "an element of history has %zu strings, not 2",
                           r->out->message_count - before);
}

static bool alpaca_member(struct eng_json *j, struct eng_text key, int depth, struct record *r)
{
    const struct {
        const char *name;
        struct eng_text *text;
    } texts[] = {{"instruction", &r->instruction},
                 {"input", &r->input},
                 {"output", &r->output},
                 {"system", &r->system}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (text_is(key, texts[i].name)) {
            return eng_json_string(j, texts[i].text);
        }
    }
    if (text_is(key, "history")) {
        return eng_json_array(j, "history", depth + 1, read_past, r);
    }
    return eng_json_skip(j, depth + 1);
}

/* `prompt` gives messages, `completion` the last one, in whatever order the keys come. */
static bool completion_member(struct eng_json *j, struct eng_text key, int depth, struct record *r)
{
    struct eng_conversation *const out = r->out;
    const bool text = eng_json_peek(j) == '"';
    if (text_is(key, "prompt")) {
        r->has_messages = true;
        return text ? eng_json_string(j, &r->instruction) : read_messages(j, "prompt", depth, r);
    }
    if (!text_is(key, "completion")) {
        return eng_json_skip(j, depth + 1);
    }
    r->has_completion = true;
    if (text) {
        return eng_json_string(j, &r->output);
    }
    const size_t before = out->message_count;
    const bool had_messages = r->has_messages;
    if (!read_messages(j, "completion", depth, r)) {
        return false;
    }
    r->has_messages = had_messages;
    if (out->message_count != before + 1 || out->messages[before].role != ENG_ROLE_ASSISTANT) {
        return eng_json_refuse(j, "completion is not one message of the assistant");
    }
    r->output = out->messages[before].content;
    if (out->extra_count > before) {
        r->output_extra = out->extra[before];
        out->extra_count = before;
    }
    out->message_count = before;
    return true;
}

/* tools and documents, of the formats that are lists of messages. */
static bool is_list_beside(const struct record *r, struct eng_text key)
{
    const bool has = r->format == ENG_FORMAT_MESSAGES || r->format == ENG_FORMAT_COMPLETION;
    return has && (text_is(key, "tools") || text_is(key, "documents"));
}

static bool record_member(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    struct record *const r = context;
    bool any = false;
    if (text_is(key, "id")) {
        return read_id(j, r->out);
    }
    if (is_list_beside(r, key)) {
        const bool tools = key.bytes[0] == 't';
        return read_objects(j, tools ? "tools" : "documents", depth,
                            tools ? &r->out->tools : &r->out->documents, &any);
    }
    switch (r->format) {
    case ENG_FORMAT_ALPACA:
        return alpaca_member(j, key, depth, r);
    case ENG_FORMAT_COMPLETION:
        return completion_member(j, key, depth, r);
    case ENG_FORMAT_SHAREGPT:
        if (text_is(key, "system")) {
            return eng_json_string(j, &r->system);
        }
        return text_is(key, "conversations") ? read_messages(j, "conversations", depth, r)
                                             : eng_json_skip(j, depth + 1);
    case ENG_FORMAT_MESSAGES:
        break;
    }
    return text_is(key, "messages") ? read_messages(j, "messages", depth, r)
                                    : eng_json_skip(j, depth + 1);
}

/* ---- the whole record ---- */

/* instruction, line feed, input. */
static struct eng_text joined(struct eng_json *j, struct eng_text first, struct eng_text second)
{
    char *const bytes = eng_json_take(j, first.size + 1 + second.size);
    memcpy(bytes, first.bytes, first.size);
    bytes[first.size] = '\n';
    memcpy(bytes + first.size + 1, second.bytes, second.size);
    return (struct eng_text){bytes, first.size + 1 + second.size};
}

static bool finish_alpaca(struct eng_json *j, struct record *r)
{
    if (r->instruction.bytes == NULL || r->output.bytes == NULL) {
        return eng_json_refuse(j, "no key '%s'",
                               r->instruction.bytes == NULL ? "instruction" : "output");
    }
    struct eng_text user = r->instruction;
    if (FAULT(record_input, r->input.size > 0)) {
        r->out->added_input = true;
        user = joined(j, r->instruction, r->input);
    }
    return add_message(j, r, ENG_ROLE_USER, user) &&
           add_message(j, r, ENG_ROLE_ASSISTANT, r->output) && put_system_first(j, r);
}

static bool finish_completion(struct eng_json *j, struct record *r)
{
    if (!r->has_messages || !r->has_completion) {
        return eng_json_refuse(j, "no key '%s'", r->has_messages ? "completion" : "prompt");
    }
    if (r->instruction.bytes != NULL && !add_message(j, r, ENG_ROLE_USER, r->instruction)) {
        return false;
    }
    return add_message(j, r, ENG_ROLE_ASSISTANT, r->output) &&
           add_extra(j, r->out, &r->output_extra);
}

static bool finish(struct eng_json *j, struct record *r)
{
    switch (r->format) {
    case ENG_FORMAT_ALPACA:
        return finish_alpaca(j, r);
    case ENG_FORMAT_COMPLETION:
        return finish_completion(j, r);
    case ENG_FORMAT_SHAREGPT:
        return (r->has_messages || eng_json_refuse(j, "no key 'conversations'")) &&
               put_system_first(j, r);
    case ENG_FORMAT_MESSAGES:
        break;
    }
    return r->has_messages || eng_json_refuse(j, "no key 'messages'");
}

/* Whether a message calls tools; a list of objects that is not empty holds a brace. */
static bool calls_tools(const struct eng_conversation *out, size_t i)
{
    const struct eng_text calls =
        i < out->extra_count ? out->extra[i].tool_calls : (struct eng_text){NULL, 0};
    return calls.bytes != NULL && memchr(calls.bytes, '{', calls.size) != NULL;
}

/* Who may speak behind message i - 1, as words. */
static const char *expected(const struct eng_conversation *out, size_t first, size_t i)
{
    if (i == first) {
        return "user";
    }
    switch (out->messages[i - 1].role) {
    case ENG_ROLE_USER:
        return "assistant";
    case ENG_ROLE_TOOL:
        return "tool or assistant";
    case ENG_ROLE_ASSISTANT:
        return calls_tools(out, i - 1) ? "tool" : "user or tool";
    case ENG_ROLE_SYSTEM:
        break;
    }
    return "user";
}

/* system only first; then user and assistant in turn, from user on, with a tool's messages behind
 * the assistant's; an assistant last. */
static bool check_roles(struct eng_json *j, const struct eng_conversation *out)
{
    static const char *const names[] = {"system", "user", "assistant", "tool"};
    if (out->message_count == 0) {
        return eng_json_refuse(j, "messages is empty");
    }
    const size_t first = out->messages[0].role == ENG_ROLE_SYSTEM ? 1 : 0;
    for (size_t i = first; i < out->message_count; i++) {
        const char *const role = names[out->messages[i].role];
        const char *const wanted = expected(out, first, i);
        if (out->messages[i].role == ENG_ROLE_SYSTEM) {
            return eng_json_refuse(j, "message %zu: system may only come first", i + 1);
        }
        if (strstr(wanted, role) == NULL) {
            return eng_json_refuse(j, "message %zu: %s is expected, not %s", i + 1, wanted, role);
        }
    }
    if (out->messages[out->message_count - 1].role != ENG_ROLE_ASSISTANT) {
        return eng_json_refuse(j, "the last message is not the assistant's");
    }
    return true;
}

enum eng_status eng_record_parse(enum eng_format format, const char *line, size_t size,
                                 struct eng_conversation *out, struct eng_error *cause)
{
    struct eng_json j;
    struct record r = {.out = out, .format = format};
    out->message_count = out->extra_count = 0;
    out->tools = out->documents = (struct eng_text){NULL, 0};
    out->added_input = false;
    out->id = (struct eng_text){NULL, 0};
    if (size == 0) {
        return eng_fail(cause, ENG_EINPUT, "empty line");
    }
    const bool good = eng_json_begin(&j, line, size, &out->memory, cause) &&
                      eng_json_object(&j, 1, record_member, &r) && eng_json_end(&j) &&
                      finish(&j, &r) && check_roles(&j, out);
    return good ? ENG_OK : j.status;
}

void eng_conversation_fini(struct eng_conversation *conversation)
{
    free(conversation->messages);
    free(conversation->extra);
    eng_json_memory_fini(&conversation->memory);
    *conversation = (struct eng_conversation){0};
}

struct eng_extras eng_conversation_extras(const struct eng_conversation *conversation)
{
    return (struct eng_extras){.tools = conversation->tools,
                               .documents = conversation->documents,
                               .messages =
                                   conversation->extra_count > 0 ? conversation->extra : NULL};
}
