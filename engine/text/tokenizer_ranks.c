/* Reads a file of ranks as tiktoken has them: a line "base64 rank" a token, and beside it perhaps
 * the control tokens. Called by tokenizer; must not know JSON or texts to encode. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "growth.h"
#include "tokenizer_parts.h"

enum { TOKEN_BYTES_MAX = 512, CONTROLS_MAX = 5 };

/* Encodings that are known by name, with the control tokens that tiktoken gives them. */
static const struct encoding {
    const char *name;
    enum eng_split split;
    struct {
        const char *text;
        int32_t id;
    } controls[CONTROLS_MAX];
} encodings[] = {
    {"r50k_base", ENG_SPLIT_GPT2, {{"<|endoftext|>", 50256}}},
    {"p50k_base", ENG_SPLIT_GPT2, {{"<|endoftext|>", 50256}}},
    {"cl100k_base",
     ENG_SPLIT_CL100K,
     {{"<|endoftext|>", 100257},
      {"<|fim_prefix|>", 100258},
      {"<|fim_middle|>", 100259},
      {"<|fim_suffix|>", 100260},
      {"<|endofprompt|>", 100276}}},
    {"o200k_base", ENG_SPLIT_O200K, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
    /* Any other file says its pattern before the ending: NAME.PATTERN.tiktoken. */
    {"gpt2", ENG_SPLIT_GPT2, {{NULL, 0}}},
    {"cl100k", ENG_SPLIT_CL100K, {{NULL, 0}}},
    {"llama3", ENG_SPLIT_CL100K, {{NULL, 0}}},
    {"qwen2", ENG_SPLIT_QWEN2, {{NULL, 0}}},
    {"o200k", ENG_SPLIT_O200K, {{NULL, 0}}},
};

struct entry {
    char *bytes;
    size_t size, line;
    int32_t id;
};

struct entries {
    struct entry *items;
    size_t count, capacity;
};

struct reader {
    const char *path;
    size_t line;
    struct eng_error *error;
};

#define LINE_FAIL(reader, ...) line_fail((reader), ENG_EINPUT, __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static enum eng_status
line_fail(const struct reader *reader, enum eng_status status, const char *format, ...)
{
    char cause[300];
    va_list args;
    va_start(args, format);
    vsnprintf(cause, sizeof cause, format, args);
    va_end(args);
    return eng_fail(reader->error, status, "%s:%zu: %s", reader->path, reader->line, cause);
}

static bool has_word(const char *at, const char *end, const char *word)
{
    return (size_t)(end - at) == strlen(word) && memcmp(at, word, strlen(word)) == 0;
}

static enum eng_status find_encoding(const char *path, const struct encoding **out,
                                     struct eng_error *error)
{
    const char *const slash = strrchr(path, '/');
    const char *const name = slash == NULL ? path : slash + 1;
    const char *const end = name + strlen(name) - strlen(".tiktoken");
    const char *word = end;
    while (word > name && word[-1] != '.') {
        word--;
    }
    for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++) {
        const bool whole = encodings[i].controls[0].text != NULL;
        if (has_word(whole ? name : word, end, encodings[i].name) && (whole || word > name)) {
            *out = &encodings[i];
            return ENG_OK;
        }
    }
    return eng_fail(error, ENG_EINPUT,
                    "%s: the name gives no split pattern; known are r50k_base, p50k_base, "
                    "cl100k_base, o200k_base and NAME.PATTERN.tiktoken with gpt2, cl100k, llama3, "
                    "qwen2, o200k",
                    path);
}

static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *const found = c == '\0' ? NULL : strchr(digits, c);
    return found == NULL ? -1 : (int)(found - digits);
}

/* Decodes padded base64 in its only form; false for anything else. */
static bool decode_base64(const char *text, size_t size, char *out, size_t *out_size)
{
    *out_size = 0;
    if (size == 0 || size % 4 != 0) {
        return false;
    }
    const size_t padding = (size_t)(text[size - 1] == '=') + (size_t)(text[size - 2] == '=');
    for (size_t at = 0; at < size; at += 4) {
        const size_t digits = at + 4 == size ? 4 - padding : 4;
        uint32_t word = 0;
        for (size_t i = 0; i < 4; i++) {
            const int value = i < digits ? base64_value(text[at + i]) : 0;
            if (value < 0 || (i >= digits && text[at + i] != '=')) {
                return false;
            }
            word = word << 6 | (uint32_t)value;
        }
        const size_t bytes = digits - 1;
        if ((word & ((1u << (8 * (3 - bytes))) - 1)) != 0) {
            return false;
        }
        for (size_t i = 0; i < bytes; i++) {
            out[(*out_size)++] = (char)(word >> (16 - 8 * i) & 0xFF);
        }
    }
    return true;
}

/* A decimal number without leading zeros below ENG_VOCAB_IDS_MAX; -1 for anything else. */
static int32_t decode_rank(const char *text, size_t size)
{
    int32_t rank = 0;
    if (size == 0 || size > 7 || (size > 1 && text[0] == '0')) {
        return -1;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return -1;
        }
        rank = rank * 10 + (text[i] - '0');
    }
    return rank < ENG_VOCAB_IDS_MAX ? rank : -1;
}

static enum eng_status read_line(const struct reader *reader, const char *line, size_t size,
                                 struct entries *entries)
{
    enum { TEXT_MAX = (TOKEN_BYTES_MAX + 2) / 3 * 4 };
    char bytes[TOKEN_BYTES_MAX + 4];
    size_t byte_count = 0;
    const char *const blank = memchr(line, ' ', size);
    if (blank == NULL) {
        return LINE_FAIL(reader, "expected a token in base64, a blank and its rank");
    }
    const size_t text = (size_t)(blank - line);
    if (text > TEXT_MAX) {
        return LINE_FAIL(reader, "a token of more than %d bytes", TOKEN_BYTES_MAX);
    }
    if (!decode_base64(line, text, bytes, &byte_count)) {
        return LINE_FAIL(reader, "'%.40s' is no base64", line);
    }
    if (byte_count > TOKEN_BYTES_MAX) {
        return LINE_FAIL(reader, "a token of more than %d bytes", TOKEN_BYTES_MAX);
    }
    const int32_t id = decode_rank(blank + 1, size - text - 1);
    if (id < 0) {
        return LINE_FAIL(reader, "'%.20s' is no rank below %d", blank + 1, ENG_VOCAB_IDS_MAX);
    }
    struct entry *const items =
        eng_grown(entries->items, &entries->capacity, entries->count + 1, sizeof *items);
    if (items == NULL) {
        return line_fail(reader, ENG_EHOSTMEM, "no memory for the tokens");
    }
    entries->items = items;
    items[entries->count] = (struct entry){malloc(byte_count), byte_count, reader->line, id};
    if (items[entries->count].bytes == NULL) {
        return line_fail(reader, ENG_EHOSTMEM, "no memory for the tokens");
    }
    memcpy(items[entries->count++].bytes, bytes, byte_count);
    return ENG_OK;
}

static void entries_fini(struct entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        free(entries->items[i].bytes);
    }
    free(entries->items);
}

static enum eng_status read_lines(const char *path, bool may_be_absent, struct entries *entries,
                                  struct eng_error *error)
{
    struct reader reader = {path, 0, error};
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size = 0;
    enum eng_status status = ENG_OK;
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        const bool fine = may_be_absent && errno == ENOENT;
        return fine ? ENG_OK : eng_fail(error, ENG_EIO, "%s: %s", path, strerror(errno));
    }
    while (status == ENG_OK && (size = getline(&line, &capacity, file)) > 0) {
        reader.line++;
        size -= line[size - 1] == '\n' ? 1 : 0;
        line[size] = '\0';
        status = read_line(&reader, line, (size_t)size, entries);
    }
    if (status == ENG_OK && !feof(file)) {
        status = eng_fail(error, ENG_EIO, "%s: %s", path, strerror(errno));
    }
    if (status == ENG_OK && entries->count == 0) {
        status = eng_fail(error, ENG_EINPUT, "%s: no tokens", path);
    }
    fclose(file);
    free(line);
    return status;
}

static enum eng_status put_entries(const char *path, const struct entries *entries,
                                   struct eng_tokenizer_parts *parts, struct eng_error *error)
{
    for (size_t i = 0; i < entries->count; i++) {
        const struct entry *const entry = &entries->items[i];
        struct eng_error cause = {""};
        const enum eng_status status = eng_vocab_put(
            &parts->vocab, entry->id, (struct eng_text){entry->bytes, entry->size}, true, &cause);
        if (status != ENG_OK) {
            return eng_fail(error, status, "%s:%zu: %.200s", path, entry->line, cause.text);
        }
    }
    for (int byte = 0; byte < 256; byte++) {
        const char text = (char)byte;
        parts->byte_ids[byte] = eng_vocab_find(&parts->vocab, &text, 1);
        if (parts->byte_ids[byte] < 0) {
            return eng_fail(error, ENG_EINPUT, "%s: no token for byte 0x%02x", path,
                            (unsigned)byte);
        }
    }
    return ENG_OK;
}

static enum eng_status put_control(const char *place, struct eng_text text, int32_t id,
                                   struct eng_tokenizer_parts *parts, struct eng_error *error)
{
    struct eng_error cause = {""};
    enum eng_status status = eng_vocab_put(&parts->vocab, id, text, false, &cause);
    if (status == ENG_OK) {
        status = eng_control_add(&parts->early.controls, text.bytes, text.size, id, 0, &cause);
    }
    if (status == ENG_OK) {
        status = eng_control_add(&parts->names, text.bytes, text.size, id, 0, &cause);
    }
    return status == ENG_OK ? ENG_OK : eng_fail(error, status, "%s: %.200s", place, cause.text);
}

static enum eng_status put_controls(const char *path, const struct encoding *encoding,
                                    const char *beside, const struct entries *special,
                                    struct eng_tokenizer_parts *parts, struct eng_error *error)
{
    enum eng_status status = ENG_OK;
    for (size_t i = 0; status == ENG_OK && i < CONTROLS_MAX; i++) {
        const char *const text = encoding->controls[i].text;
        if (text != NULL) {
            status = put_control(path, (struct eng_text){text, strlen(text)},
                                 encoding->controls[i].id, parts, error);
        }
    }
    for (size_t i = 0; status == ENG_OK && i < special->count; i++) {
        const struct entry *const entry = &special->items[i];
        char place[400];
        snprintf(place, sizeof place, "%.380s:%zu", beside, entry->line);
        if (memchr(entry->bytes, '\0', entry->size) != NULL) {
            return eng_fail(error, ENG_EINPUT, "%s: a control token holds a NUL", place);
        }
        status = put_control(place, (struct eng_text){entry->bytes, entry->size}, entry->id, parts,
                             error);
    }
    struct eng_error cause = {""};
    if (status == ENG_OK) {
        status = eng_control_seal(&parts->early.controls, &cause);
        status = status == ENG_OK ? eng_control_seal(&parts->names, &cause) : status;
        if (status != ENG_OK) {
            eng_fail(error, status, "%s: %.200s", path, cause.text);
        }
    }
    return status;
}

/* Every two tokens that make a third merge into it, with its rank. */
static enum eng_status derive_merges(struct eng_tokenizer_parts *parts, struct eng_error *error)
{
    const struct eng_vocab *const vocab = &parts->vocab;
    for (int32_t id = 0; id < vocab->size; id++) {
        const struct eng_text text = eng_vocab_text(vocab, id);
        if (eng_vocab_find(vocab, text.bytes, text.size) != id) {
            continue; /* a control token */
        }
        for (size_t cut = 1; cut < text.size; cut++) {
            const int32_t left = eng_vocab_find(vocab, text.bytes, cut);
            const int32_t right =
                left < 0 ? -1 : eng_vocab_find(vocab, text.bytes + cut, text.size - cut);
            if (right < 0) {
                continue;
            }
            struct eng_bpe_merge *const merges = eng_grown(parts->merges, &parts->merge_capacity,
                                                           parts->merge_count + 1, sizeof *merges);
            if (merges == NULL) {
                return eng_fail(error, ENG_EHOSTMEM, "no memory for the merges");
            }
            parts->merges = merges;
            merges[parts->merge_count++] = (struct eng_bpe_merge){left, right, id, id};
        }
    }
    return ENG_OK;
}

static size_t size_of(const struct encoding *encoding, const struct entries *ranks,
                      const struct entries *special)
{
    int32_t last = 0;
    for (size_t i = 0; i < CONTROLS_MAX; i++) {
        last = encoding->controls[i].id > last ? encoding->controls[i].id : last;
    }
    for (size_t i = 0; i < ranks->count; i++) {
        last = ranks->items[i].id > last ? ranks->items[i].id : last;
    }
    for (size_t i = 0; i < special->count; i++) {
        last = special->items[i].id > last ? special->items[i].id : last;
    }
    return (size_t)last + 1;
}

enum eng_status eng_tokenizer_read_ranks(const char *path, struct eng_tokenizer_parts *parts,
                                         struct eng_error *error)
{
    struct entries ranks = {0};
    struct entries special = {0};
    const struct encoding *encoding = NULL;
    char beside[4096];
    const int length = snprintf(beside, sizeof beside, "%s.special", path);
    enum eng_status status = find_encoding(path, &encoding, error);
    if (status == ENG_OK && (size_t)length >= sizeof beside) {
        status = eng_fail(error, ENG_EINPUT, "%.200s...: the path is too long", path);
    }
    if (status == ENG_OK) {
        status = read_lines(path, false, &ranks, error);
    }
    if (status == ENG_OK) {
        status = read_lines(beside, true, &special, error);
    }
    if (status == ENG_OK) {
        status = eng_vocab_init(&parts->vocab, size_of(encoding, &ranks, &special), error);
    }
    if (status == ENG_OK) {
        status = put_entries(path, &ranks, parts, error);
    }
    if (status == ENG_OK) {
        status = put_controls(path, encoding, beside, &special, parts, error);
    }
    if (status == ENG_OK) {
        parts->split = encoding->split;
        parts->whole_pieces = true;
        status = derive_merges(parts, error);
    }
    entries_fini(&ranks);
    entries_fini(&special);
    return status;
}
