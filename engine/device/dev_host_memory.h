/* Host memory in use by this process: the pressure signal a garbage collector would look at.
 * Used by dev_alloc.c. */
#pragma once

#include <stddef.h>

/* Bytes the process's allocator has handed out; takes some microseconds. */
size_t dev_host_memory_bytes(void);
