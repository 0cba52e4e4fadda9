/* Memory maps of the host device. Called by dev_*.c; must not know what the memory is for. */
#include "dev_map.h"

#include <stdint.h>
#include <sys/mman.h>

/* A product walks down columns of matrices whose rows lie kilobytes apart: with small pages nearly
 * each line is in a page of its own, and the processor looks up more addresses than it can hold. */
enum { HUGE_PAGE = 2 << 20 };

/* The first touch of a page is an interrupt: a huge one has one, as much in small ones has 512. */
size_t dev_map_bytes(size_t bytes)
{
    return bytes < HUGE_PAGE / 2 ? bytes : (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

void *dev_map_open(size_t bytes)
{
    const size_t kept = dev_map_bytes(bytes);
    const size_t margin = kept >= HUGE_PAGE ? HUGE_PAGE : 0;
    char *ptr = mmap(NULL, kept + margin, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ptr == MAP_FAILED) {
        return NULL;
    }
    if (margin == 0) {
        return ptr;
    }
    /* Gives back what lies before the first whole huge page, and what the rest has too much. */
    const size_t before = -(uintptr_t)ptr & (HUGE_PAGE - 1);
    (void)munmap(ptr, before);
    (void)munmap(ptr + before + kept, margin - before);
    (void)madvise(ptr + before, kept, MADV_HUGEPAGE); /* a refusal costs speed, nothing else */
    return ptr + before;
}

void dev_map_close(void *ptr, size_t bytes)
{
    if (ptr != NULL) {
        (void)munmap(ptr, dev_map_bytes(bytes));
    }
}
