/* Writes GPT-2's byte alphabet from its definition: the bytes that Latin-1 prints stand for
 * themselves, the others for the code points from 256 on. Used by the targets. */
#include "fuzz_vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MEMBER_BYTES_MAX = 16 };

static size_t write_members(char *out)
{
    size_t at = 0;
    int moved = 256;
    for (int byte = 0; byte < 256; byte++) {
        const bool printable =
            (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        const int code = printable ? byte : moved++;
        char text[3] = {(char)code, '\0', '\0'};
        if (code >= 0x80) {
            text[0] = (char)(0xC0 | code >> 6);
            text[1] = (char)(0x80 | (code & 0x3F));
        }
        const char *const escape = code == '"' || code == '\\' ? "\\" : "";
        at += (size_t)snprintf(out + at, MEMBER_BYTES_MAX, "%s\"%s%s\":%d", byte > 0 ? "," : "",
                               escape, text, byte);
    }
    return at;
}

char *fuzz_vocab_expand(const char *text, size_t size, size_t *whole)
{
    static const char mark[] = "@BYTES@";
    const size_t length = sizeof mark - 1;
    const char *const found = size == 0 ? NULL : memmem(text, size, mark, length);
    if (found == NULL) {
        *whole = size;
        return fuzz_exact(text, size);
    }
    char *const out = malloc(size + 256 * MEMBER_BYTES_MAX);
    fuzz_require(out != NULL);
    const size_t before = (size_t)(found - text);
    memcpy(out, text, before);
    const size_t members = write_members(out + before);
    memcpy(out + before + members, found + length, size - before - length);
    *whole = size - length + members;
    return out;
}
