/* Training files as a list of lines. Used by documents and loader; must not know JSON. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"

/* A line without its line end, within the mapped file. */
struct eng_line {
    const char *bytes;
    uint32_t size;
    uint32_t file; /* index into files */
};

struct eng_data_file {
    const char *path; /* borrowed from the caller of open */
    const char *bytes;
    size_t size;
    size_t first_line; /* index of its first line in the whole list */
};

struct eng_data_files {
    struct eng_data_file *files;
    size_t file_count;
    struct eng_line *lines; /* of all files, one after another */
    size_t line_count, line_capacity;
};

/* Purpose: maps the files and indexes their lines; a final line end is optional, and of "\r\n" both
 * are dropped. Zero-initialise `out`; after a failure it can be closed. EIO when a file cannot be
 * read, EINPUT for a byte order mark. */
ENG_CHECKED enum eng_status eng_data_files_open(struct eng_data_files *out,
                                                const char *const *paths, size_t count,
                                                struct eng_error *error);
void eng_data_files_close(struct eng_data_files *files);
/* Number of a line within its own file, from 1. */
size_t eng_data_files_line_number(const struct eng_data_files *files, size_t line);
