/* The 64-bit FNV-1a hash that names recipes, plans and cached files.
 * Used by every harness module; must not know what is hashed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "har_status.h"

/* FNV-1a 64 over the bytes of a file, continued from `hash` (start with HAR_HASH_START). */
#define HAR_HASH_START 0xCBF29CE484222325u
uint64_t har_hash_bytes(uint64_t hash, const void *bytes, size_t count);
uint64_t har_hash_string(uint64_t hash, const char *string); /* the terminator is hashed as well */
HAR_CHECKED enum har_status har_hash_file(const char *path, uint64_t *hash,
                                          struct har_error *error);
