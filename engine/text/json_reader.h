/* Strict JSON, read forward without a tree: RFC 8259 with UTF-8, no duplicate key, no lone
 * surrogate, a limit on nesting. Called by json_record and tokenizer_json_members; must not know
 * what the values are for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "messages.h"

/* Memory of a reader, kept from text to text. Zero-initialise. */
struct eng_json_memory {
    char *decoded; /* strings that had escapes, and what the caller takes */
    size_t decoded_capacity;
    struct eng_json_key {
        uint64_t hash;
        struct eng_text text;
    } * keys; /* of the objects that are open */
    size_t key_capacity;
};

/* A text being read. The functions below return false when they have refused it; then status and
 * cause say why, and nothing more may be read. */
struct eng_json {
    const char *start, *at, *end;
    struct eng_json_memory *memory;
    size_t decoded_size;
    size_t key_count;
    struct eng_error *cause;
    enum eng_status status;
};

/* Called at the value of a member, or at an element (key.bytes is NULL); reads exactly that. depth
 * is that of the object or array around it. */
typedef bool eng_json_visit(struct eng_json *j, struct eng_text key, int depth, void *context);

/* Begins at `text`, which must stand as long as the strings read from it. false: no memory. */
bool eng_json_begin(struct eng_json *j, const char *text, size_t size,
                    struct eng_json_memory *memory, struct eng_error *cause);
/* Whether nothing but white space is left. */
bool eng_json_end(struct eng_json *j);
void eng_json_memory_fini(struct eng_json_memory *memory);

/* Strings point into the text, or into memory when they had escapes. */
bool eng_json_string(struct eng_json *j, struct eng_text *out);
/* A whole number, without point or exponent, of 64 bits. */
bool eng_json_whole(struct eng_json *j, int64_t *out);
bool eng_json_object(struct eng_json *j, int depth, eng_json_visit *member, void *context);
/* An object of any number of keys, in one pass: that none of them stands twice the caller sees. */
bool eng_json_table(struct eng_json *j, int depth, eng_json_visit *member, void *context);
/* `name` is for the message when there is no array. */
bool eng_json_array(struct eng_json *j, const char *name, int depth, eng_json_visit *element,
                    void *context);
/* Checks a value that nobody asks for as strictly as the others. depth is its own. */
bool eng_json_skip(struct eng_json *j, int depth);
/* The next byte that is not white space, '\0' at the end. */
char eng_json_peek(struct eng_json *j);

/* Room for a string the caller makes: at most as many bytes as the text has, all calls together. */
char *eng_json_take(struct eng_json *j, size_t size);
bool eng_json_refuse(struct eng_json *j, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool eng_json_refuse_memory(struct eng_json *j);
