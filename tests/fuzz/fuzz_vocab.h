/* The 256 byte tokens of a tokenizer.json, as GPT-2 writes them. Used by the targets that need a
 * tokenizer. */
#pragma once

#include <stddef.h>

/* A copy of text in which the first "@BYTES@" is replaced by the members "<character>": <byte> of
 * all bytes, or else the first "@FALLBACK@" by "<0xNN>": <byte>; the caller frees. */
char *fuzz_vocab_expand(const char *text, size_t size, size_t *whole);
