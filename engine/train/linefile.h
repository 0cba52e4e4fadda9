/* A file written line by line, zstd-compressed when its name ends in .zst.
 * Called by the trace writer; must not know what the lines say.
 *
 * Each line reaches the kernel before eng_linefile_write() returns, so that a killed process leaves
 * only whole lines and at most one cut one. */
#pragma once

#include <stddef.h>

#include "eng_status.h"

typedef struct eng_linefile eng_linefile;

ENG_CHECKED enum eng_status eng_linefile_open(const char *path, eng_linefile **out,
                                              struct eng_error *error);
/* `line` without its end; EIO names the file. */
ENG_CHECKED enum eng_status eng_linefile_write(eng_linefile *f, const char *line, size_t size,
                                               struct eng_error *error);
/* Ends the stream; the object is gone afterwards in every case. Accepts NULL. */
enum eng_status eng_linefile_close(eng_linefile *f, struct eng_error *error);
