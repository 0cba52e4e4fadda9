/* FNV-1a over bytes, strings and files.
 * Called by every harness module; must not know what is hashed. */
#include "har_hash.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

uint64_t har_hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *const p = bytes;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ p[i]) * 0x100000001B3u;
    }
    return hash;
}

uint64_t har_hash_string(uint64_t hash, const char *string)
{
    return har_hash_bytes(hash, string, strlen(string) + 1);
}

enum har_status har_hash_file(const char *path, uint64_t *hash, struct har_error *error)
{
    unsigned char block[65536];
    FILE *const file = fopen(path, "rbe");
    if (file == NULL) {
        return har_fail(error, HAR_EUSAGE, "%s: %s", path, strerror(errno));
    }
    size_t count;
    while ((count = fread(block, 1, sizeof block, file)) > 0) {
        *hash = har_hash_bytes(*hash, block, count);
    }
    const bool failed = ferror(file) != 0;
    fclose(file);
    return failed ? har_fail(error, HAR_EIO, "%s: cannot be read", path) : HAR_OK;
}
