/* The log of a child: what it prints goes through a pipe into a file of bounded size.
 * Used by har_spawn.c and har_pool.c; must not know what a child is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "har_status.h"

/* The first HAR_LOG_BYTES_MAX bytes are kept and the last HAR_LOG_TAIL of the rest, which name the
 * cause; a program that prints for ever fills no disk. */
enum { HAR_LOG_BYTES_MAX = 1 << 20, HAR_LOG_TAIL = 4096 };

/* Descriptors are 0 when there is none: standard input is never one of them. */
struct har_log {
    int read_fd, write_fd; /* of the pipe; the child gets the second */
    int file_fd;
    size_t written, left_out;
    char tail[HAR_LOG_TAIL]; /* a ring: the byte left out as number n stands at n modulo its size */
};

/* Opens the file (truncated) and the pipe; path NULL discards. HAR_EIO names the path. */
HAR_CHECKED enum har_status har_log_open(const char *path, struct har_log *out,
                                         struct har_error *error);
/* Closes the end that the child writes to, once the child has it. */
void har_log_close_writer(struct har_log *log);
/* Takes what is there without waiting. A full disk loses the log, not the run. */
void har_log_drain(struct har_log *log);
/* Takes the rest, adds the tail if something was left out, closes. Accepts a zeroed log. */
void har_log_close(struct har_log *log);
