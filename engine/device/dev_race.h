/* The happens-before checker: vector clocks per actor, accesses per address range.
 * Used by dev_*.c; must not know queues or the allocator.
 *
 * It judges when an operation is issued, so a race is found in every schedule. Ranges are kept by
 * address for device and pinned memory and survive free and reuse of blocks: a block reused too
 * early is a pair like any other. */
#pragma once

#include "dev.h"
#include "dev_clock.h"

enum { DEV_REGIONS = 3, DEV_RACES_MAX = 256 };

/* The last access of one kind; clock 0 = none. */
struct dev_access {
    uint64_t clock;
    const char *what, *where;
    uint64_t op;
    int step;
};

/* Accesses that are the same over a whole address range. */
struct dev_segment {
    struct dev_access write;
    int writer;
    unsigned readers; /* bit a: read[a] is set; cleared by each write */
    struct dev_access read[DEV_ACTORS];
    int spare_next;
};

/* A region cut into ranges: entry i covers [lo of i, lo of i + 1), the last one ends at hi. */
struct dev_range {
    uintptr_t lo;
    int segment;
};
struct dev_region {
    uintptr_t lo, hi;
    struct dev_range *ranges;
    size_t count, capacity;
};

struct dev_checker {
    struct dev_clock clock[DEV_ACTORS];
    const char *actor_name[DEV_ACTORS];
    struct dev_region region[DEV_REGIONS];
    struct dev_segment *segments;
    int segment_capacity, spare;
    struct dev_race *found;
    size_t found_count, found_capacity;
    struct dev_aim *pairs;
    size_t pair_count, pair_capacity;
    uint64_t total;
};

/* One access about to be judged. */
struct dev_use {
    int actor;
    const void *ptr;
    size_t bytes;
    enum dev_mode mode;
    const char *what, *where, *buffer;
    uint64_t op;
    int step;
};

void dev_checker_init(struct dev_checker *c);
void dev_checker_fini(struct dev_checker *c); /* accepts a zeroed checker */
/* Adds a stretch of memory to watch. Returns false when host memory is exhausted. */
bool dev_checker_watch(struct dev_checker *c, const void *ptr, size_t bytes);

/* Reports each earlier access that is not ordered before this one, then remembers it. Memory that
 * is not watched is ignored. Returns false when host memory is exhausted. */
bool dev_checker_access(struct dev_checker *c, const struct dev_use *use);

/* The allocator saw that `actor` had finished everything up to `clock`: its accesses to this range
 * alone are ordered before whatever comes. */
bool dev_checker_forget(struct dev_checker *c, const void *ptr, size_t bytes, int actor,
                        uint64_t clock);
