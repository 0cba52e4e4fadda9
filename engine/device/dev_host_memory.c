/* Host bytes from jemalloc's statistics. Called by dev_alloc.c; must not know devices. */
#include "dev_host_memory.h"

#include <jemalloc/jemalloc.h>
#include <stdint.h>

size_t dev_host_memory_bytes(void)
{
    uint64_t epoch = 1;
    size_t bytes = 0;
    size_t size = sizeof epoch;
    if (mallctl("epoch", &epoch, &size, &epoch, sizeof epoch) != 0) {
        return 0;
    }
    size = sizeof bytes;
    return mallctl("stats.allocated", &bytes, &size, NULL, 0) == 0 ? bytes : 0;
}
