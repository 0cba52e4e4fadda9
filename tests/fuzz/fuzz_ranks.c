/* Files of ranks, as tiktoken has them, with control tokens beside them: accepted exactly when the
 * lines are right by definition, and then a text's tokens are those of merging by rank, and a
 * control token's text is that token. First byte: the file's name; then a text, the file, in which
 * a line @BYTES@ stands for the tokens 0 to 255 of the bytes, and perhaps the file beside it, with
 * 0xFF between them. Called by libFuzzer and replay_main.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "split_twin.h"
#include "tokenizer.h"

enum { TOKENS_MAX = 400, TOKEN_BYTES_MAX = 512, RANKS = 1 << 22, PIECE_MAX = 300, FILE_MAX = 8000 };

struct token {
    char bytes[TOKEN_BYTES_MAX];
    size_t size;
    int32_t rank;
};
static struct token tokens[TOKENS_MAX];
static size_t token_count;
static struct token controls[TOKENS_MAX];
static size_t control_count;
static const struct token *of_byte[256]; /* tokens of one byte, NULL = none */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void to_base64(const char *bytes, size_t size, char *out)
{
    for (size_t at = 0; at < size; at += 3) {
        const size_t here = size - at < 3 ? size - at : 3;
        unsigned word = 0;
        for (size_t i = 0; i < 3; i++) {
            word = word << 8 | (i < here ? (unsigned char)bytes[at + i] : 0);
        }
        for (size_t i = 0; i < 4; i++) {
            *out++ = i <= here ? digits[word >> (18 - 6 * i) & 63] : '=';
        }
    }
    *out = '\0';
}

/* A token whose base64 is the text, by decoding loosely and encoding again. */
static bool from_base64(const char *text, size_t size, struct token *out)
{
    char again[TOKEN_BYTES_MAX / 3 * 4 + 8];
    unsigned word = 0;
    int bits = 0;
    out->size = 0;
    for (size_t i = 0; i < size && text[i] != '='; i++) {
        const char *const digit = text[i] == '\0' ? NULL : strchr(digits, text[i]);
        if (digit == NULL) {
            return false;
        }
        word = word << 6 | (unsigned)(digit - digits);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            if (out->size == TOKEN_BYTES_MAX) {
                return false;
            }
            out->bytes[out->size++] = (char)(word >> bits);
        }
    }
    to_base64(out->bytes, out->size, again);
    return out->size > 0 && strlen(again) == size && memcmp(again, text, size) == 0;
}

static bool read_rank(const char *text, size_t size, int32_t *out)
{
    char number[12] = "";
    char again[12];
    if (size == 0 || size > 7) {
        return false;
    }
    memcpy(number, text, size);
    *out = (int32_t)strtol(number, NULL, 10);
    snprintf(again, sizeof again, "%d", (int)*out);
    return strlen(again) == size && memcmp(again, text, size) == 0 && *out >= 0 && *out < RANKS;
}

static const struct token *find(const char *bytes, size_t size)
{
    if (size == 1) {
        return of_byte[(unsigned char)*bytes];
    }
    for (size_t i = 0; i < token_count; i++) {
        if (tokens[i].size == size && memcmp(tokens[i].bytes, bytes, size) == 0) {
            return &tokens[i];
        }
    }
    return NULL;
}

/* What a name means: the pattern, and the control tokens that come with it. */
static const struct name {
    const char *text;
    int pattern; /* of the twin; -1: no such name */
    struct {
        const char *text;
        int32_t id;
    } controls[5];
} names[] = {{"x.gpt2", 0, {{NULL, 0}}},
             {"x.cl100k", 1, {{NULL, 0}}},
             {"x.qwen2", 2, {{NULL, 0}}},
             {"x.o200k", 3, {{NULL, 0}}},
             {"x.llama3", 1, {{NULL, 0}}},
             {"r50k_base", 0, {{"<|endoftext|>", 50256}}},
             {"cl100k_base",
              1,
              {{"<|endoftext|>", 100257},
               {"<|fim_prefix|>", 100258},
               {"<|fim_middle|>", 100259},
               {"<|fim_suffix|>", 100260},
               {"<|endofprompt|>", 100276}}},
             {"gpt2", -1, {{NULL, 0}}}};
enum { NAMES = sizeof names / sizeof names[0] };

static bool read_line(const char *line, size_t size, struct token *out)
{
    const char *const blank = memchr(line, ' ', size);
    return blank != NULL && from_base64(line, (size_t)(blank - line), out) &&
           read_rank(blank + 1, size - (size_t)(blank - line) - 1, &out->rank);
}

static bool is_taken(int32_t id)
{
    bool taken = false;
    for (size_t i = 0; i < token_count; i++) {
        taken = taken || tokens[i].rank == id;
    }
    for (size_t i = 0; i < control_count; i++) {
        taken = taken || controls[i].rank == id;
    }
    return taken;
}

static bool add_token(const struct token *token)
{
    if (is_taken(token->rank) || find(token->bytes, token->size) != NULL) {
        return false;
    }
    tokens[token_count] = *token;
    if (token->size == 1) {
        of_byte[(unsigned char)*token->bytes] = &tokens[token_count];
    }
    token_count++;
    return true;
}

static bool add_control(const struct token *token)
{
    bool good = !is_taken(token->rank) && memchr(token->bytes, '\0', token->size) == NULL;
    for (size_t i = 0; i < control_count; i++) {
        good = good && (controls[i].size != token->size ||
                        memcmp(controls[i].bytes, token->bytes, token->size) != 0);
    }
    controls[control_count++] = *token;
    return good;
}

/* Whether all lines are right; too many for the tables make the caller give up first. */
static bool read_lines(const char *bytes, size_t size, bool (*add)(const struct token *))
{
    for (size_t at = 0; at < size;) {
        const char *const end = memchr(bytes + at, '\n', size - at);
        const size_t length = end == NULL ? size - at : (size_t)(end - bytes) - at;
        struct token token;
        if (!read_line(bytes + at, length, &token) || !add(&token)) {
            return false;
        }
        at += length + 1;
    }
    return size > 0;
}

static bool read_by_definition(const struct name *name, const char *bytes, size_t size)
{
    token_count = control_count = 0;
    memset(of_byte, 0, sizeof of_byte);
    if (name->pattern < 0 || !read_lines(bytes, size, add_token)) {
        return false;
    }
    for (int byte = 0; byte < 256; byte++) {
        if (of_byte[byte] == NULL) {
            return false;
        }
    }
    for (size_t i = 0; i < 5 && name->controls[i].text != NULL; i++) {
        struct token token = {.size = strlen(name->controls[i].text), .rank = name->controls[i].id};
        memcpy(token.bytes, name->controls[i].text, token.size);
        if (!add_control(&token)) {
            return false;
        }
    }
    return true;
}

/* tiktoken's rule: of all neighbours that together are a token, the pair of the lowest rank, the
 * leftmost among equals, again and again. */
static size_t merge_by_definition(const char *piece, size_t size, int32_t *ids)
{
    size_t borders[PIECE_MAX + 1];
    size_t count = size;
    const struct token *const whole = find(piece, size);
    if (whole != NULL) {
        ids[0] = whole->rank;
        return 1;
    }
    for (size_t i = 0; i <= size; i++) {
        borders[i] = i;
    }
    for (bool merged = true; merged;) {
        size_t best = count;
        int32_t rank = RANKS;
        for (size_t i = 0; i + 1 < count; i++) {
            const struct token *const both = find(piece + borders[i], borders[i + 2] - borders[i]);
            if (both != NULL && both->rank < rank) {
                rank = both->rank;
                best = i;
            }
        }
        merged = best < count;
        if (merged) {
            memmove(&borders[best + 1], &borders[best + 2], (count - best - 1) * sizeof *borders);
            count--;
        }
    }
    for (size_t i = 0; i < count; i++) {
        ids[i] = find(piece + borders[i], borders[i + 1] - borders[i])->rank;
    }
    return count;
}

static void check_text(eng_tokenizer *tokenizer, int pattern, const char *bytes, size_t size)
{
    static int32_t wanted[PIECE_MAX];
    char *const text = fuzz_exact(bytes, size);
    struct eng_tokens made = {0};
    size_t count = 0;
    fuzz_require(eng_tokenizer_encode_text(tokenizer, (struct eng_text){text, size},
                                           ENG_CONTROLS_AS_TEXT, &made, NULL) == ENG_OK);
    for (size_t at = 0; at < size;) {
        const size_t piece = twin_piece(pattern, text, size, at);
        count += merge_by_definition(text + at, piece, &wanted[count]);
        at += piece;
    }
    fuzz_require(made.count == count);
    for (size_t i = 0; i < count; i++) {
        fuzz_require(made.items[i].id == wanted[i]);
    }
    eng_tokens_fini(&made);
    free(text);
}

/* The rest of the input with the tokens of the bytes in the place of the mark. */
static char *expand(const char *bytes, size_t size, size_t *whole)
{
    static const char mark[] = "@BYTES@\n";
    const size_t length = sizeof mark - 1;
    const char *const found = size == 0 ? NULL : memmem(bytes, size, mark, length);
    const size_t before = found == NULL ? size : (size_t)(found - bytes);
    char *const out = malloc(size + 256 * 10);
    fuzz_require(out != NULL);
    memcpy(out, bytes, before);
    *whole = before;
    for (int byte = 0; found != NULL && byte < 256; byte++) {
        const char text = (char)byte;
        to_base64(&text, 1, out + *whole);
        *whole += 4;
        *whole += (size_t)sprintf(out + *whole, " %d\n", byte);
    }
    if (found != NULL) {
        memcpy(out + *whole, found + length, size - before - length);
        *whole += size - before - length;
    }
    return out;
}

/* The text of a control token is that token where control tokens are asked for. */
static void check_controls(eng_tokenizer *tokenizer)
{
    struct eng_tokens made = {0};
    for (size_t i = 0; i < control_count; i++) {
        char text[TOKEN_BYTES_MAX + 1];
        memcpy(text, controls[i].bytes, controls[i].size);
        text[controls[i].size] = '\0';
        fuzz_require(eng_tokenizer_control_id(tokenizer, text) == controls[i].rank);
        if (fuzz_is_utf8(text, controls[i].size)) {
            const struct eng_text whole = {text, controls[i].size};
            fuzz_require(eng_tokenizer_encode_text(tokenizer, whole, ENG_CONTROLS_SEEN, &made,
                                                   NULL) == ENG_OK);
            fuzz_require(made.count == 1 && made.items[0].id == controls[i].rank);
        }
    }
    eng_tokens_fini(&made);
}

static size_t lines_of(const char *bytes, size_t size)
{
    size_t lines = 1;
    for (size_t i = 0; i < size; i++) {
        lines += bytes[i] == '\n';
    }
    return lines;
}

/* Opens the files under a name in a folder of their own; a finding would leave what is not removed
 * at once. */
static enum eng_status open_named(const struct name *name, const struct fuzz_file *file,
                                  const struct fuzz_file *beside, eng_tokenizer **out)
{
    char folder[40];
    char path[80];
    char special[96];
    struct eng_error error = {""};
    snprintf(folder, sizeof folder, "/tmp/fuzz_ranks_%d", (int)getpid());
    snprintf(path, sizeof path, "%s/%s.tiktoken", folder, name->text);
    snprintf(special, sizeof special, "%s.special", path);
    fuzz_require(mkdir(folder, 0700) == 0);
    fuzz_require(symlink(file->path, path) == 0);
    fuzz_require(beside == NULL || symlink(beside->path, special) == 0);
    const enum eng_status status = eng_tokenizer_open(path, out, &error);
    unlink(special);
    unlink(path);
    rmdir(folder);
    if (status != ENG_OK) {
        fuzz_require(status == ENG_EINPUT);
        fuzz_require(strncmp(error.text, path, strlen(path)) == 0);
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    const struct name *const name = &names[fuzz_byte(&in) % NAMES];
    const char *text = NULL;
    const char *lines = "";
    const char *more = "";
    size_t text_size = 0;
    size_t lines_size = 0;
    size_t more_size = 0;
    size_t whole = 0;
    if (size > FILE_MAX || !fuzz_segment(&in, &text, &text_size)) {
        return 0;
    }
    (void)fuzz_segment(&in, &lines, &lines_size);
    const bool beside = fuzz_segment(&in, &more, &more_size);
    char *const bytes = expand(lines, lines_size, &whole);
    if (lines_of(bytes, whole) > TOKENS_MAX || lines_of(more, more_size) > TOKENS_MAX - 5) {
        free(bytes);
        return 0;
    }
    struct fuzz_file file = fuzz_file_open(bytes, whole);
    struct fuzz_file special = fuzz_file_open(more, more_size);
    eng_tokenizer *tokenizer = NULL;
    const enum eng_status status = open_named(name, &file, beside ? &special : NULL, &tokenizer);
    fuzz_require((status == ENG_OK) == (read_by_definition(name, bytes, whole) &&
                                        (!beside || read_lines(more, more_size, add_control))));
    if (status == ENG_OK) {
        check_controls(tokenizer);
        if (text_size <= PIECE_MAX && fuzz_is_utf8(text, text_size) &&
            twin_agrees(text, text_size)) {
            check_text(tokenizer, name->pattern, text, text_size);
        }
    }
    eng_tokenizer_close(tokenizer);
    fuzz_file_close(&special);
    fuzz_file_close(&file);
    free(bytes);
    return 0;
}
