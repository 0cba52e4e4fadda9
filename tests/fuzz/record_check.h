/* One record against jansson and the rules of corpus/RECIPE.md. Used by the targets whose input
 * holds records. */
#pragma once

#include <stddef.h>

#include "json_record.h"

/* Parses a line with the engine and by definition: accepted by both or by none, with the same
 * contents. `chat` is reused; fuzz_require fails where they differ. */
void record_check(enum eng_format format, const char *bytes, size_t size,
                  struct eng_conversation *chat);
