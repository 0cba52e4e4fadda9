/* Writes GPT-2's byte alphabet from its definition: the bytes that Latin-1 prints stand for
 * themselves, the others for the code points from 256 on. Used by the targets. */
#include "fuzz_vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MEMBER_BYTES_MAX = 16 };

static size_t write_fallback(char *out)
{
    size_t at = 0;
    for (int byte = 0; byte < 256; byte++) {
        at += (size_t)snprintf(out + at, MEMBER_BYTES_MAX, "%s\"<0x%02X>\":%d", byte > 0 ? "," : "",
                               (unsigned)byte, byte);
    }
    return at;
}

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
    static const char *const marks[] = {"@BYTES@", "@FALLBACK@"};
    const char *found = NULL;
    size_t which = 0;
    for (size_t i = 0; i < 2 && found == NULL && size > 0; i++) {
        found = memmem(text, size, marks[i], strlen(marks[i]));
        which = i;
    }
    if (found == NULL) {
        *whole = size;
        return fuzz_exact(text, size);
    }
    char *const out = malloc(size + 256 * MEMBER_BYTES_MAX);
    fuzz_require(out != NULL);
    const size_t before = (size_t)(found - text);
    const size_t length = strlen(marks[which]);
    memcpy(out, text, before);
    const size_t members = which == 0 ? write_members(out + before) : write_fallback(out + before);
    memcpy(out + before + members, found + length, size - before - length);
    *whole = size - length + members;
    return out;
}
