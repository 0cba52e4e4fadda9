/* Whole files in memory. Used by template_file and tokenizer_json_members; knows no format. */
#pragma once

#include <stddef.h>

#include "eng_status.h"

/* Reads a file of at most `max` bytes into memory that the caller frees; NULL after a failure.
 * EIO: it cannot be read. EINPUT: it is longer. EHOSTMEM. Messages begin with the path. */
ENG_CHECKED enum eng_status eng_text_file_read(const char *path, size_t max, char **bytes,
                                               size_t *size, struct eng_error *error);
