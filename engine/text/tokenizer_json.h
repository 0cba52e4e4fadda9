/* The insides of reading a tokenizer.json. Shared by tokenizer_json.c, tokenizer_json_members.c and
 * tokenizer_json_settings.c alone. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "json_reader.h"
#include "tokenizer_parts.h"
#include "vocab.h"

enum { TOKENIZER_ALPHABET = 0x144 };

/* A member of model.vocab. */
struct file_token {
    struct eng_text text;
    int64_t id;
};

/* An element of model.merges; empty halves: it is no pair. */
struct file_merge {
    struct eng_text half[2];
};

/* What reading needs; messages begin with the path. Texts stand in the file or in memory. */
struct reader {
    const char *path;
    struct eng_tokenizer_parts *parts;
    json_t *root, *model; /* without model, and without vocab and merges */
    bool has_vocab, has_merges;
    struct file_token *tokens;
    size_t token_count, token_capacity;
    struct file_merge *merges;
    size_t merge_count, merge_capacity;
    struct eng_vocab names; /* model.vocab by its texts */
    char *file;
    struct eng_json_memory memory;
    int16_t byte_of[TOKENIZER_ALPHABET]; /* GPT-2's: the byte a character stands for, or -1 */
    struct eng_error *error;
};

#define READER_FAIL(reader, ...) eng_tokenizer_json_fail((reader), ENG_EINPUT, __VA_ARGS__)

/* Puts the path and the formatted cause into the reader's error; returns status. */
__attribute__((format(printf, 3, 4))) enum eng_status
eng_tokenizer_json_fail(const struct reader *reader, enum eng_status status, const char *format,
                        ...);

/* Reads the file: root, model, tokens and merges. EIO; EINPUT where it is no JSON, with file and
 * line. The caller gives back what was read, also after a failure. */
enum eng_status eng_tokenizer_json_members(struct reader *reader);
void eng_tokenizer_json_members_fini(struct reader *reader);

/* All but vocabulary, added tokens and merges: kind of model, normaliser, split pattern. Fills
 * those of the parts; what could not be followed is refused by name. */
enum eng_status eng_tokenizer_json_settings(const struct reader *reader);

static inline bool is_absent(const json_t *value)
{
    return value == NULL || json_is_null(value);
}

/* Absent, null, false, zero or an empty string: the option is off. */
static inline bool is_off(const json_t *value)
{
    return is_absent(value) || json_is_false(value) ||
           (json_is_number(value) && json_number_value(value) == 0.0) ||
           (json_is_string(value) && json_string_length(value) == 0);
}
