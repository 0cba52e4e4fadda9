/* The insides of reading a tokenizer.json. Shared by tokenizer_json.c and
 * tokenizer_json_settings.c alone. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tokenizer_parts.h"

enum { TOKENIZER_ALPHABET = 0x144 };

/* What reading needs; messages begin with the path. */
struct reader {
    const char *path;
    struct eng_tokenizer_parts *parts;
    json_t *root, *model, *vocab;
    int16_t byte_of[TOKENIZER_ALPHABET]; /* GPT-2's: the byte a character stands for, or -1 */
    struct eng_error *error;
};

#define READER_FAIL(reader, ...) eng_tokenizer_json_fail((reader), ENG_EINPUT, __VA_ARGS__)

/* Puts the path and the formatted cause into the reader's error; returns status. */
__attribute__((format(printf, 3, 4))) enum eng_status
eng_tokenizer_json_fail(const struct reader *reader, enum eng_status status, const char *format,
                        ...);

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
           (json_is_number(value) && !(json_number_value(value) > 0.0)) ||
           (json_is_string(value) && json_string_length(value) == 0);
}
