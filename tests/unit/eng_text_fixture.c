/* Small tokenizers, files and texts for the tests of engine/text and engine/data. */
#include "eng_text_fixture.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *fixture_file(const char *text)
{
    return fixture_named_file(text, "");
}

char *fixture_named_file(const char *text, const char *end)
{
    char *const path = malloc(64 + strlen(end));
    sprintf(path, "/tmp/eng_text_XXXXXX%s", end);
    const int descriptor = mkstemps(path, (int)strlen(end));
    const size_t size = strlen(text);
    if (descriptor < 0 || write(descriptor, text, size) != (ssize_t)size) {
        abort();
    }
    close(descriptor);
    return path;
}

void fixture_remove(char *path)
{
    unlink(path);
    free(path);
}

/* The character GPT-2 writes for a byte, from the definition: bytes without a printable Latin-1
 * character follow from 256 on. */
static const char *byte_character(int byte)
{
    static char text[3];
    int code = 0;
    int moved = 256;
    for (int b = 0; b <= byte; b++) {
        const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        code = printable ? b : moved++;
    }
    if (code < 0x80) {
        text[0] = (char)code;
        text[1] = '\0';
    } else {
        text[0] = (char)(0xC0 | code >> 6);
        text[1] = (char)(0x80 | (code & 0x3F));
        text[2] = '\0';
    }
    return text;
}

char *fixture_tokenizer(const char *const *merges, const char *const *controls,
                        bool pairs_as_arrays)
{
    int next = 256;
    json_t *const vocab = json_object();
    json_t *const merge_list = json_array();
    json_t *const added = json_array();
    for (int byte = 0; byte < 256; byte++) {
        json_object_set_new(vocab, byte_character(byte), json_integer(byte));
    }
    for (size_t i = 0; merges != NULL && merges[i] != NULL; i++) {
        char left[64];
        char right[64];
        char joined[128];
        if (sscanf(merges[i], "%63s %63s", left, right) != 2) {
            abort();
        }
        snprintf(joined, sizeof joined, "%s%s", left, right);
        if (json_object_get(vocab, joined) == NULL) {
            json_object_set_new(vocab, joined, json_integer(next++));
        }
        json_array_append_new(merge_list, pairs_as_arrays ? json_pack("[s, s]", left, right)
                                                          : json_string(merges[i]));
    }
    for (size_t i = 0; controls != NULL && controls[i] != NULL; i++) {
        json_array_append_new(added, json_pack("{s:i, s:s, s:b}", "id", next++, "content",
                                               controls[i], "special", 1));
    }
    json_t *const root = json_pack("{s:o, s:{s:s}, s:{s:s, s:o, s:o}}", "added_tokens", added,
                                   "pre_tokenizer", "type", "ByteLevel", "model", "type", "BPE",
                                   "vocab", vocab, "merges", merge_list);
    char *const text = json_dumps(root, JSON_COMPACT);
    char *const path = fixture_file(text);
    free(text);
    json_decref(root);
    return path;
}

struct eng_loader_options fixture_options(const char *const *files, const char *tokenizer)
{
    return (struct eng_loader_options){.files = files,
                                       .file_count = 1,
                                       .tokenizer_path = tokenizer,
                                       .template_name = "chatml",
                                       .mask = ENG_MASK_ASSISTANT,
                                       .truncate = ENG_KEEP_START,
                                       .packing = ENG_PACK_NEXT,
                                       .shuffle = true,
                                       .pad_token = "<|pad|>",
                                       .seed = 1,
                                       .context = 64,
                                       .rows = 2,
                                       .micro_count = 2,
                                       .vocab = 2048};
}

struct eng_text fixture_text(const char *text)
{
    return (struct eng_text){text, strlen(text)};
}

uint64_t fixture_draw(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

enum eng_status fixture_count_line(const struct eng_line *line, void *context,
                                   struct eng_error *error)
{
    (void)line;
    (void)error;
    ++*(size_t *)context;
    return ENG_OK;
}
