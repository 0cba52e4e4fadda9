/* Memory straight from the system: the slab, pinned memory, workspaces. Used by dev_*.c; knows no
 * blocks. */
#pragma once

#include <stddef.h>

/* What a map of `bytes` takes: whole huge pages, once that is not mostly waste. */
size_t dev_map_bytes(size_t bytes);
/* dev_map_bytes(bytes) of zeroed memory, aligned to a page, in huge pages where it is large enough
 * and the system has them. NULL when there is none. */
void *dev_map_open(size_t bytes);
void dev_map_close(void *ptr, size_t bytes); /* with the same size; accepts NULL */
