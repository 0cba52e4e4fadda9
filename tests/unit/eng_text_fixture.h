/* Small tokenizers, files and texts for the tests of engine/text and engine/data. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "data_files.h"
#include "loader.h"
#include "messages.h"

/* Writes text to a new file and returns its path; removed by fixture_remove. */
char *fixture_file(const char *text);
/* The same; the path ends as given. */
char *fixture_named_file(const char *text, const char *end);
void fixture_remove(char *path);

/* A tokenizer of the 256 bytes (id = byte), then one token a merge, then the control tokens. Merges
 * are pairs of plain ASCII texts without blanks "a b", NULL-terminated; pairs_as_arrays writes
 * ["a", "b"]. */
char *fixture_tokenizer(const char *const *merges, const char *const *controls,
                        bool pairs_as_arrays);

/* Options of a small loader over one file: chatml, packed, shuffled, seed 1. */
struct eng_loader_options fixture_options(const char *const *files, const char *tokenizer);

struct eng_text fixture_text(const char *text);

/* SplitMix64 of a state, for tests that draw. */
uint64_t fixture_draw(uint64_t *state);
/* A visitor of lines that counts them in the size_t behind context. */
enum eng_status fixture_count_line(const struct eng_line *line, void *context,
                                   struct eng_error *error);
