/* Memory maps of the host device. Called by dev_*.c; must not know what the memory is for. */
#include "dev_map.h"

#include <stdint.h>
#include <sys/mman.h>

/* A product walks down columns of matrices whose rows lie kilobytes apart: with small pages nearly
 * each line is in a page of its own, and the processor looks up more addresses than it can hold. */
enum { HUGE_PAGE = 2 << 20, PAGE = 4096 };

static size_t margin(size_t bytes)
{
    return bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
}

void *dev_map_open(size_t bytes)
{
    const size_t mapped = bytes + margin(bytes);
    char *ptr = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ptr == MAP_FAILED) {
        return NULL;
    }
    if (mapped == bytes) {
        return ptr;
    }
    /* Gives back what lies before the first whole huge page, and what the rest has too much. */
    const size_t before = -(uintptr_t)ptr & (HUGE_PAGE - 1);
    const size_t end = (before + bytes + PAGE - 1) / PAGE * PAGE;
    (void)munmap(ptr, before);
    (void)munmap(ptr + end, mapped - end);
    (void)madvise(ptr + before, bytes, MADV_HUGEPAGE); /* a refusal costs speed, nothing else */
    return ptr + before;
}

void dev_map_close(void *ptr, size_t bytes)
{
    if (ptr != NULL) {
        (void)munmap(ptr, bytes);
    }
}
