/* What stands beside a place in a text: white space and characters of words, as regular expressions
 * of Hugging Face tokenizers see them (\s and \w of Unicode). Used by text_encode; must not know
 * tokens. Texts are well-formed UTF-8. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Where the white space begins that ends at `at`, but not before `from`. */
size_t eng_text_space_start(const char *bytes, size_t from, size_t at);
/* Where the white space ends that begins at `at`. */
size_t eng_text_space_end(const char *bytes, size_t size, size_t at);
/* Whether no character of a word touches bytes start .. end - 1. */
bool eng_text_stands_alone(const char *bytes, size_t size, size_t start, size_t end);
