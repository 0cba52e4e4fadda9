/* One pass over a tokenizer.json: tokens and merges become lists, all else the trees of jansson.
 * Called by tokenizer_json.c; must not know what tokens and settings mean. */
#include "tokenizer_json.h"

#include <stdlib.h>

#include "growth.h"
#include "text_file.h"

enum { FILE_BYTES_MAX = 1 << 28, SHOWN = 60 };

static bool is_key(struct eng_text key, const char *name)
{
    return key.size == strlen(name) && memcmp(key.bytes, name, key.size) == 0;
}

static int shown(struct eng_text text)
{
    return text.size < SHOWN ? (int)text.size : SHOWN;
}

static bool has_nul(struct eng_text text)
{
    return memchr(text.bytes, '\0', text.size) != NULL;
}

/* Puts a member into a tree. */
static bool keep_member(struct eng_json *j, json_t *object, struct eng_text key, int depth)
{
    json_error_t cause;
    if (has_nul(key)) {
        return eng_json_refuse(j, "a key holds a NUL");
    }
    eng_json_peek(j);
    const char *const start = j->at;
    if (!eng_json_skip(j, depth + 1)) {
        return false;
    }
    json_t *const value = json_loadb(start, (size_t)(j->at - start),
                                     JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &cause);
    if (value == NULL) {
        j->at = start + cause.position;
        return eng_json_refuse(j, "%s", cause.text);
    }
    return json_object_setn_new(object, key.bytes, key.size, value) == 0 ||
           eng_json_refuse_memory(j);
}

static bool read_token(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    struct reader *const reader = context;
    struct file_token token = {.text = key};
    (void)depth;
    if (has_nul(key)) {
        return eng_json_refuse(j, "model.vocab: token '%.*s' holds a NUL", shown(key), key.bytes);
    }
    if (!eng_json_whole(j, &token.id)) {
        return eng_json_refuse(j, "model.vocab: token '%.*s' has no whole number", shown(key),
                               key.bytes);
    }
    struct file_token *const tokens =
        eng_grown(reader->tokens, &reader->token_capacity, reader->token_count + 1, sizeof *tokens);
    if (tokens == NULL) {
        return eng_json_refuse_memory(j);
    }
    reader->tokens = tokens;
    tokens[reader->token_count++] = token;
    return true;
}

/* The halves of a merge as far as they are there; `count` counts all elements. */
struct halves {
    struct file_merge merge;
    size_t count;
};

static bool read_half(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    struct halves *const halves = context;
    (void)key;
    const size_t at = halves->count++;
    return at < 2 && eng_json_peek(j) == '"' ? eng_json_string(j, &halves->merge.half[at])
                                             : eng_json_skip(j, depth + 1);
}

/* A merge is "a b" or ["a", "b"], its halves without blanks in the former. What is neither gets
 * empty halves. */
static bool read_pair(struct eng_json *j, int depth, struct file_merge *out)
{
    struct halves halves = {0};
    struct eng_text text;
    switch (eng_json_peek(j)) {
    case '"': {
        if (!eng_json_string(j, &text)) {
            return false;
        }
        const char *const end = text.bytes + text.size;
        const char *const blank = memchr(text.bytes, ' ', text.size);
        if (blank != NULL && memchr(blank + 1, ' ', (size_t)(end - blank - 1)) == NULL) {
            out->half[0] = (struct eng_text){text.bytes, (size_t)(blank - text.bytes)};
            out->half[1] = (struct eng_text){blank + 1, (size_t)(end - blank - 1)};
        }
        return true;
    }
    case '[':
        if (!eng_json_array(j, "a merge", depth, read_half, &halves)) {
            return false;
        }
        *out = halves.count == 2 ? halves.merge : *out;
        return true;
    default:
        return eng_json_skip(j, depth);
    }
}

static bool read_merge(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    struct reader *const reader = context;
    (void)key;
    struct file_merge *const merges =
        eng_grown(reader->merges, &reader->merge_capacity, reader->merge_count + 1, sizeof *merges);
    if (merges == NULL) {
        return eng_json_refuse_memory(j);
    }
    reader->merges = merges;
    merges[reader->merge_count] = (struct file_merge){{{NULL, 0}}};
    return read_pair(j, depth + 1, &merges[reader->merge_count++]);
}

static bool model_member(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    struct reader *const reader = context;
    const char first = eng_json_peek(j);
    if (is_key(key, "vocab") && first == '{') {
        reader->has_vocab = true;
        return eng_json_table(j, depth + 1, read_token, reader);
    }
    if (is_key(key, "merges") && first == '[') {
        reader->has_merges = true;
        return eng_json_array(j, "model.merges", depth + 1, read_merge, reader);
    }
    return keep_member(j, reader->model, key, depth);
}

static bool root_member(struct eng_json *j, struct eng_text key, int depth, void *context)
{
    struct reader *const reader = context;
    if (!is_key(key, "model") || eng_json_peek(j) != '{') {
        return keep_member(j, reader->root, key, depth);
    }
    return eng_json_object(j, depth + 1, model_member, reader);
}

static size_t line_of(const struct eng_json *j)
{
    size_t line = 1;
    for (const char *at = j->start; at < j->at; at++) {
        line += *at == '\n';
    }
    return line;
}

enum eng_status eng_tokenizer_json_members(struct reader *reader)
{
    struct eng_json j;
    struct eng_error cause = {""};
    size_t size = 0;
    const enum eng_status status =
        eng_text_file_read(reader->path, FILE_BYTES_MAX, &reader->file, &size, reader->error);
    if (status != ENG_OK) {
        return status;
    }
    reader->root = json_object();
    reader->model = json_object();
    if (reader->root == NULL || reader->model == NULL) {
        return eng_tokenizer_json_fail(reader, ENG_EHOSTMEM, "no memory");
    }
    const bool good = eng_json_begin(&j, reader->file, size, &reader->memory, &cause) &&
                      eng_json_object(&j, 1, root_member, reader) && eng_json_end(&j);
    return good ? ENG_OK
                : eng_fail(reader->error, j.status, "%s:%zu: %.400s", reader->path, line_of(&j),
                           cause.text);
}

void eng_tokenizer_json_members_fini(struct reader *reader)
{
    json_decref(reader->root);
    json_decref(reader->model);
    free(reader->tokens);
    free(reader->merges);
    free(reader->file);
    eng_json_memory_fini(&reader->memory);
}
