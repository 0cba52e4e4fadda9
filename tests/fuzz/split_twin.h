/* The split patterns as corpus/RECIPE.md gives them, run by PCRE2: what the trainer's splitter must
 * do by definition. Used by a fuzz target and a unit test; links nothing of the trainer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { TWIN_GPT2, TWIN_CL100K, TWIN_QWEN2, TWIN_O200K, TWIN_PATTERNS };

/* Size of the piece at bytes + at. */
size_t twin_piece(int pattern, const char *bytes, size_t size, size_t at);
/* Whether PCRE2 and utf8proc, which know different versions of Unicode, agree on the classes of
 * all characters. */
bool twin_agrees(const char *bytes, size_t size);
