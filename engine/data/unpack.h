/* gzip and zstd files as plain files. Called by data_files; must not know lines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"

struct eng_unpacked {
    int descriptor; /* of the content: an unnamed scratch file, or the file itself when plain */
    bool compressed;
    uint64_t members; /* gzip members or zstd frames */
};

/* Purpose: if the file behind `descriptor` is gzip or zstd by its first bytes, replaces it by a
 * scratch file (in TMPDIR, else /tmp; gone when closed) with the content of all members or frames.
 * Closes `descriptor` unless it is returned. EINPUT names path, byte and cause for a damaged or cut
 * file and for bytes behind the last member; EIO when a file cannot be read or written. */
ENG_CHECKED enum eng_status eng_unpack(const char *path, int descriptor, struct eng_unpacked *out,
                                       struct eng_error *error);
