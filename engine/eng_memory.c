/* Arenas of jemalloc. Called as eng_memory.h says. */
#include "eng_memory.h"

#include <jemalloc/jemalloc.h>
#include <stdint.h>

/* A thread that leaves an arena as its last one has all free pages of it given back to the system,
 * which then hands them out again, zeroed, one fault at a time. Hooks that refuse keep them. Arenas
 * stand until the process ends, and so must these. */
static extent_hooks_t *keep_pages(void)
{
    static extent_hooks_t hooks;
    extent_hooks_t *usual = NULL;
    size_t size = sizeof usual;
    if (mallctl("arena.0.extent_hooks", &usual, &size, NULL, 0) != 0) {
        return NULL;
    }
    hooks = *usual;
    hooks.dalloc = NULL;
    hooks.purge_lazy = NULL;
    hooks.purge_forced = NULL;
    hooks.decommit = NULL;
    return &hooks;
}

void eng_memory_open(struct eng_memory *out)
{
    extent_hooks_t *hooks = keep_pages();
    out->known = hooks != NULL;
    for (int c = 0; out->known && c < ENG_COMPONENT_COUNT; c++) {
        size_t size = sizeof out->arena[c];
        out->known =
            mallctl("arenas.create", &out->arena[c], &size, &hooks, sizeof hooks) == 0;
    }
}

/* A thread's cache would hand out again in one component what was freed in another. */
static unsigned switch_to(unsigned arena)
{
    bool cached = false;
    unsigned before = 0;
    size_t size = sizeof before;
    (void)mallctl("thread.tcache.enabled", NULL, NULL, &cached, sizeof cached);
    (void)mallctl("thread.arena", &before, &size, &arena, sizeof arena);
    return before;
}

unsigned eng_memory_enter(const struct eng_memory *memory, enum eng_component component)
{
    return memory != NULL && memory->known ? switch_to(memory->arena[component]) : 0;
}

void eng_memory_leave(const struct eng_memory *memory, unsigned before)
{
    if (memory != NULL && memory->known) {
        (void)switch_to(before);
    }
}

/* Bytes of one class of sizes in an arena: "small" or "large". */
static bool allocated(const char *name, unsigned arena, size_t *out)
{
    enum { LEVELS = 5, ARENA_LEVEL = 2 };
    size_t mib[LEVELS];
    size_t levels = LEVELS;
    size_t size = sizeof *out;
    if (mallctlnametomib(name, mib, &levels) != 0) {
        return false;
    }
    mib[ARENA_LEVEL] = arena;
    return mallctlbymib(mib, levels, out, &size, NULL, 0) == 0;
}

bool eng_memory_bytes(const struct eng_memory *memory, size_t bytes[ENG_COMPONENT_COUNT])
{
    uint64_t epoch = 1;
    bool known = memory != NULL && memory->known &&
                 mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0;
    for (int c = 0; known && c < ENG_COMPONENT_COUNT; c++) {
        size_t small = 0, large = 0;
        known = allocated("stats.arenas.0.small.allocated", memory->arena[c], &small) &&
                allocated("stats.arenas.0.large.allocated", memory->arena[c], &large);
        bytes[c] = small + large;
    }
    return known;
}
