/* Whole files and the hash of the trace. Used by recipe, weights and text preparation. */
#pragma once

#include "ref_error.h"

#include <stddef.h>
#include <stdint.h>

/* FNV-1a 64: start with ORC_REF_HASH_START and feed bytes. */
#define ORC_REF_HASH_START UINT64_C(0xCBF29CE484222325)

uint64_t orc_ref_hash(uint64_t hash, const void *data, size_t bytes);

/* Hash of an integer array as little-endian 32-bit words. */
uint64_t orc_ref_hash_ints(const int32_t *data, size_t count);

/* Reads a file into heap memory with a NUL behind; the caller frees *data. */
enum orc_ref_status orc_ref_file_read(const char *path, char **data, size_t *bytes,
                                      struct orc_ref_error *error) ORC_REF_MUST_USE;
