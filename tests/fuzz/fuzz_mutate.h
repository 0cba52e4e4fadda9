/* A mutator that keeps the structure of a text: parts of it are replaced, repeated, swapped,
 * removed, or changed within. fuzz.cmake compiles it into the targets that name how their input
 * falls into parts (MUTATES); the words that it puts in are those of the target's dictionary. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* How a text falls into parts. */
enum fuzz_parts {
    FUZZ_JSON,  /* values and keys; of several lines also these */
    FUZZ_SIZED, /* JSON behind its length in 8 bytes, which is put right, and other bytes behind it
                 */
    FUZZ_LINES, /* lines, what stands behind a key, and words */
    FUZZ_TEMPLATE, /* tags, the tokens in them, texts between them */
    FUZZ_SEGMENTS  /* what 0xFF borders, and words */
};

/* libFuzzer's own mutator; replay_main.c has a small one. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
/* Called instead of it when a target links it. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
