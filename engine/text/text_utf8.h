/* UTF-8 checks and Unicode white space. Used by engine/text and engine/data; knows neither. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "messages.h"

/* Length of the well-formed sequence at bytes (1 to 4), 0 when there is none: overlong forms,
 * surrogates, code points above U+10FFFF and cut sequences are refused. size is at least 1. */
size_t eng_utf8_length(const char *bytes, size_t size);
/* Writes one code point (no surrogate); returns the bytes written, at most 4. */
size_t eng_utf8_put(char *out, unsigned code_point);
/* Python's str.strip(): white space of both edges removed. */
struct eng_text eng_text_trim(struct eng_text text);
/* Whether trimming would change the text. */
bool eng_text_has_edge_space(struct eng_text text);
bool eng_text_is_ascii(struct eng_text text);
/* How many bytes at the beginning are well-formed UTF-8: the text's size when all of them are. */
size_t eng_utf8_good_size(struct eng_text text);
/* The text in Unicode's composed form (NFC) in memory the caller frees; NULL bytes: no memory. */
struct eng_text eng_text_composed(struct eng_text text);
/* Whether composing would leave the text as it is. */
bool eng_text_is_composed(struct eng_text text);
