/* Training files as records and items: lines read when asked for, in constant memory. Used by
 * documents and loader; must not know JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"

/* A line without its line end. Its bytes stand until the next line is asked for. */
struct eng_line {
    const char *bytes;
    size_t size;
    const char *path;
    size_t number; /* within its file, from 1 */
};

struct eng_data_file {
    const char *path; /* borrowed from the caller of open */
    int descriptor;   /* of the content, unpacked; -1 = closed */
    uint64_t size;    /* of the content */
    unsigned weight;  /* how often its records come in an epoch */
    size_t record_count;
    uint64_t *marks; /* where every stride-th line begins */
    size_t mark_count, mark_capacity, stride;
};

struct eng_data_files {
    struct eng_data_file *files;
    size_t file_count;
    size_t record_count;                /* lines of all files */
    size_t item_count;                  /* records of an epoch, by the weights */
    bool compressed, members, weighted; /* features */
    char *window;                       /* bytes of one file */
    size_t window_capacity, window_size;
    uint64_t window_start;
    size_t window_file;
};

/* Purpose: opens the files and unpacks what is compressed. `weights` is NULL or as long as paths.
 * Zero-initialise `out`; after a failure it can be closed. EIO when a file cannot be read or
 * changes while it is read, EINPUT for a byte order mark and for damaged compression. */
ENG_CHECKED enum eng_status eng_data_files_open(struct eng_data_files *out,
                                                const char *const *paths, const unsigned *weights,
                                                size_t count, struct eng_error *error);
void eng_data_files_close(struct eng_data_files *files);

typedef enum eng_status eng_line_visit(const struct eng_line *line, void *context,
                                       struct eng_error *error);
/* Purpose: reads every file once, from start to end; indexes its lines and shows each to `visit`.
 * A final line end is optional, and of "\r\n" both are dropped. The index has a fixed size: the
 * longer a file, the fewer of its lines are marked. Ends with the first status that is not OK. */
ENG_CHECKED enum eng_status eng_data_files_scan(struct eng_data_files *files, eng_line_visit *visit,
                                                void *context, struct eng_error *error);
/* Purpose: the line of a record, 0 .. record_count - 1, after the scan. */
ENG_CHECKED enum eng_status eng_data_files_line(struct eng_data_files *files, size_t record,
                                                struct eng_line *out, struct eng_error *error);
/* The record of an item: each file's records in order, its weight times. */
size_t eng_data_files_record(const struct eng_data_files *files, size_t item);
