/* Host bytes from the C library or the address sanitizer, for builds that cannot have jemalloc.
 * Called by dev_alloc.c; must not know devices. */
#include "dev_host_memory.h"

#include <malloc.h>

/* Only there when the address sanitizer is linked; mallinfo2() then says nothing. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

size_t dev_host_memory_bytes(void)
{
    if (__sanitizer_get_current_allocated_bytes != NULL) {
        return __sanitizer_get_current_allocated_bytes();
    }
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}
