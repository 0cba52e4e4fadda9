/* Vector clocks over the host and the streams. Used by dev_*.c; knows nothing else. */
#pragma once

#include <stdint.h>

enum {
    DEV_STREAMS_MAX = 7,
    DEV_ACTORS = DEV_STREAMS_MAX + 1, /* actor 0 is the host, actor s is stream s */
    DEV_HOST = 0
};

struct dev_clock {
    uint64_t at[DEV_ACTORS];
};

static inline void dev_clock_join(struct dev_clock *clock, const struct dev_clock *other)
{
    for (int i = 0; i < DEV_ACTORS; i++) {
        clock->at[i] = clock->at[i] > other->at[i] ? clock->at[i] : other->at[i];
    }
}
