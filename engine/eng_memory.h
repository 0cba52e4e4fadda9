/* Host memory by component. Called by engine/train and engine/data; must not know what they keep.
 *
 * Each component has a jemalloc arena. What a thread allocates belongs to the component it is in,
 * also inside a library; a free is booked where the allocation was. Builds without jemalloc
 * (eng_memory_libc.c) know nothing of components. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* text: templates and tokenizer. data: files, documents, batches. trace: its lines. train: all
 * else, the host's part of the device included. */
#define ENG_COMPONENTS(X) X(text) X(data) X(train) X(trace)
enum eng_component {
#define ENG_ROW_(name) ENG_COMPONENT_##name,
    ENG_COMPONENTS(ENG_ROW_)
#undef ENG_ROW_
        ENG_COMPONENT_COUNT
};

/* One per process, for arenas are never given back. Zero: nothing is told apart. */
struct eng_memory {
    bool known;
    unsigned arena[ENG_COMPONENT_COUNT];
};

void eng_memory_open(struct eng_memory *out);

/* The calling thread allocates for the component until leave() gets what enter() returned. memory
 * may be NULL: then both do nothing. */
unsigned eng_memory_enter(const struct eng_memory *memory, enum eng_component component);
void eng_memory_leave(const struct eng_memory *memory, unsigned before);

/* Bytes in use by each component, rounded up as the allocator rounds; false: not known. */
bool eng_memory_bytes(const struct eng_memory *memory, size_t bytes[ENG_COMPONENT_COUNT]);
