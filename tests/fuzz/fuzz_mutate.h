/* A mutator that keeps JSON nearly JSON. Linked by targets whose input is JSON text. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's own mutator; replay_main.c has a small one. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
/* Called instead of it when a target links it. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
