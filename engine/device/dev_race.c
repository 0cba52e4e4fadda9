/* Happens-before over address ranges. Called at issue by dev_*.c; must not know the schedule. */
#include "dev_race.h"

#include <stdlib.h>
#include <string.h>

#include "eng_assert.h"

void dev_checker_init(struct dev_checker *c)
{
    memset(c, 0, sizeof *c);
    c->spare = -1;
    c->actor_name[DEV_HOST] = "host";
}

void dev_checker_fini(struct dev_checker *c)
{
    for (int i = 0; i < DEV_REGIONS; i++) {
        free(c->region[i].ranges);
    }
    free(c->segments);
    free(c->found);
    free(c->pairs);
    memset(c, 0, sizeof *c);
}

static bool reserve_segment(struct dev_checker *c)
{
    if (c->spare >= 0) {
        return true;
    }
    const int capacity = c->segment_capacity == 0 ? 128 : 2 * c->segment_capacity;
    struct dev_segment *grown = realloc(c->segments, (size_t)capacity * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    for (int i = c->segment_capacity; i < capacity; i++) {
        grown[i].spare_next = i + 1 < capacity ? i + 1 : -1;
    }
    c->spare = c->segment_capacity;
    c->segments = grown;
    c->segment_capacity = capacity;
    return true;
}

static int take_segment(struct dev_checker *c)
{
    const int segment = c->spare;
    c->spare = c->segments[segment].spare_next;
    return segment;
}

static void put_segment(struct dev_checker *c, int segment)
{
    c->segments[segment].spare_next = c->spare;
    c->spare = segment;
}

static bool reserve_range(struct dev_region *r)
{
    if (r->count < r->capacity) {
        return true;
    }
    const size_t capacity = r->capacity == 0 ? 128 : 2 * r->capacity;
    struct dev_range *grown = realloc(r->ranges, capacity * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    r->ranges = grown;
    r->capacity = capacity;
    return true;
}

bool dev_checker_watch(struct dev_checker *c, const void *ptr, size_t bytes)
{
    int index = 0;
    while (index < DEV_REGIONS && c->region[index].hi != 0) {
        index++;
    }
    eng_assert(index < DEV_REGIONS);
    struct dev_region *r = &c->region[index];
    if (bytes == 0 || !reserve_range(r) || !reserve_segment(c)) {
        return bytes == 0;
    }
    const int segment = take_segment(c);
    memset(&c->segments[segment], 0, sizeof c->segments[segment]);
    *r->ranges = (struct dev_range){(uintptr_t)ptr, segment};
    r->count = 1;
    r->lo = (uintptr_t)ptr;
    r->hi = r->lo + bytes;
    return true;
}

static struct dev_region *region_of(struct dev_checker *c, const void *ptr, size_t bytes)
{
    const uintptr_t lo = (uintptr_t)ptr;
    for (int i = 0; i < DEV_REGIONS; i++) {
        struct dev_region *r = &c->region[i];
        if (bytes > 0 && lo >= r->lo && lo < r->hi && bytes <= r->hi - lo) {
            return r;
        }
    }
    return NULL;
}

/* Index of the range that holds `at`. */
static size_t find_range(const struct dev_region *r, uintptr_t at)
{
    size_t low = 0;
    size_t high = r->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (r->ranges[middle].lo <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Splits range i at `at`, an address inside it. */
static bool split_range(struct dev_checker *c, struct dev_region *r, size_t i, uintptr_t at)
{
    if (!reserve_range(r) || !reserve_segment(c)) {
        return false;
    }
    memmove(&r->ranges[i + 2], &r->ranges[i + 1], (r->count - i - 1) * sizeof *r->ranges);
    r->count++;
    const int segment = take_segment(c);
    c->segments[segment] = c->segments[r->ranges[i].segment];
    r->ranges[i + 1] = (struct dev_range){at, segment};
    return true;
}

/* Makes ranges [*begin, *end) cover exactly the bytes asked for. */
static bool cut_out(struct dev_checker *c, struct dev_region *r, const void *ptr, size_t bytes,
                    size_t *begin, size_t *end)
{
    const uintptr_t lo = (uintptr_t)ptr;
    const uintptr_t hi = lo + bytes;
    size_t i = find_range(r, lo);
    if (r->ranges[i].lo < lo) {
        if (!split_range(c, r, i, lo)) {
            return false;
        }
        i++;
    }
    *begin = i;
    while (i < r->count && r->ranges[i].lo < hi) {
        i++;
    }
    *end = i;
    const uintptr_t last_hi = i < r->count ? r->ranges[i].lo : r->hi;
    return last_hi == hi || split_range(c, r, i - 1, hi);
}

/* The other side of a pair. */
struct other {
    const struct dev_access *access;
    int actor;
    enum dev_mode mode;
};

static bool is_known(const struct dev_checker *c, const struct dev_race *race)
{
    for (size_t i = 0; i < c->found_count; i++) {
        const struct dev_race *k = &c->found[i];
        if (strcmp(k->first_what, race->first_what) == 0 &&
            strcmp(k->second_what, race->second_what) == 0 &&
            strcmp(k->buffer, race->buffer) == 0) {
            return true;
        }
    }
    return false;
}

static void keep_pair(struct dev_checker *c, struct dev_aim pair)
{
    if (c->pair_count == c->pair_capacity) {
        const size_t capacity = c->pair_capacity == 0 ? 16 : 2 * c->pair_capacity;
        struct dev_aim *grown =
            capacity > DEV_AIMS_MAX ? NULL : realloc(c->pairs, capacity * sizeof *grown);
        if (grown == NULL) {
            return;
        }
        c->pairs = grown;
        c->pair_capacity = capacity;
    }
    c->pairs[c->pair_count++] = pair;
}

static void report(struct dev_checker *c, const struct dev_use *use, struct other other)
{
    const struct dev_race race = {
        .first_what = other.access->what,
        .second_what = use->what,
        .first_stream = c->actor_name[other.actor],
        .second_stream = c->actor_name[use->actor],
        .first_mode = other.mode,
        .second_mode = use->mode,
        .buffer = use->buffer,
        .first_step = other.access->step,
        .second_step = use->step,
        .first_where = other.access->where,
        .second_where = use->where,
        .first_op = other.access->op,
        .second_op = use->op,
    };
    c->total++;
    keep_pair(c, (struct dev_aim){race.first_op, race.second_op});
    if (c->found_count >= DEV_RACES_MAX || is_known(c, &race)) {
        return;
    }
    if (c->found_count == c->found_capacity) {
        const size_t capacity = c->found_capacity == 0 ? 8 : 2 * c->found_capacity;
        struct dev_race *grown = realloc(c->found, capacity * sizeof *grown);
        if (grown == NULL) {
            return; /* still counted in total */
        }
        c->found = grown;
        c->found_capacity = capacity;
    }
    c->found[c->found_count++] = race;
}

/* One access may cover many ranges with the same earlier access: `last` keeps the pair from being
 * counted once for each. */
static void judge_one(struct dev_checker *c, const struct dev_use *use, struct other other,
                      uint64_t last[DEV_ACTORS])
{
    if (other.actor == use->actor || other.access->clock <= c->clock[use->actor].at[other.actor] ||
        last[other.actor] == other.access->clock) {
        return;
    }
    last[other.actor] = other.access->clock;
    report(c, use, other);
}

static void judge(struct dev_checker *c, const struct dev_use *use, const struct dev_segment *s,
                  uint64_t last[DEV_ACTORS])
{
    if (s->write.clock != 0) {
        judge_one(c, use, (struct other){&s->write, s->writer, DEV_WRITE}, last);
    }
    if ((use->mode & DEV_WRITE) == 0) {
        return;
    }
    for (unsigned left = s->readers; left != 0; left &= left - 1) {
        const int actor = __builtin_ctz(left);
        judge_one(c, use, (struct other){&s->read[actor], actor, DEV_READ}, last);
    }
}

static struct dev_access access_of(const struct dev_checker *c, const struct dev_use *use)
{
    return (struct dev_access){.clock = c->clock[use->actor].at[use->actor],
                               .what = use->what,
                               .where = use->where,
                               .op = use->op,
                               .step = use->step};
}

static void remember_write(struct dev_checker *c, struct dev_region *r, const struct dev_use *use,
                           size_t begin, size_t end)
{
    struct dev_segment *s = &c->segments[r->ranges[begin].segment];
    s->write = access_of(c, use);
    s->writer = use->actor;
    s->readers = 0;
    if (end - begin == 1) {
        return;
    }
    for (size_t i = begin + 1; i < end; i++) {
        put_segment(c, r->ranges[i].segment);
    }
    memmove(&r->ranges[begin + 1], &r->ranges[end], (r->count - end) * sizeof *r->ranges);
    r->count -= end - begin - 1;
}

static void remember_read(struct dev_checker *c, const struct dev_region *r,
                          const struct dev_use *use, size_t begin, size_t end)
{
    const struct dev_access access = access_of(c, use);
    for (size_t i = begin; i < end; i++) {
        struct dev_segment *s = &c->segments[r->ranges[i].segment];
        s->read[use->actor] = access;
        s->readers |= 1u << use->actor;
    }
}

bool dev_checker_access(struct dev_checker *c, const struct dev_use *use)
{
    struct dev_region *r = region_of(c, use->ptr, use->bytes);
    size_t begin = 0;
    size_t end = 0;
    if (r == NULL) {
        return true;
    }
    if (!cut_out(c, r, use->ptr, use->bytes, &begin, &end)) {
        return false;
    }
    uint64_t last[DEV_ACTORS] = {0};
    for (size_t i = begin; i < end; i++) {
        judge(c, use, &c->segments[r->ranges[i].segment], last);
    }
    if ((use->mode & DEV_WRITE) != 0) {
        remember_write(c, r, use, begin, end);
    } else {
        remember_read(c, r, use, begin, end);
    }
    return true;
}

bool dev_checker_forget(struct dev_checker *c, const void *ptr, size_t bytes, int actor,
                        uint64_t clock)
{
    struct dev_region *r = region_of(c, ptr, bytes);
    size_t begin = 0;
    size_t end = 0;
    if (r == NULL) {
        return true;
    }
    if (!cut_out(c, r, ptr, bytes, &begin, &end)) {
        return false;
    }
    for (size_t i = begin; i < end; i++) {
        struct dev_segment *s = &c->segments[r->ranges[i].segment];
        if (s->writer == actor && s->write.clock <= clock) {
            s->write.clock = 0;
        }
        if ((s->readers >> actor & 1u) != 0 && s->read[actor].clock <= clock) {
            s->readers &= ~(1u << actor);
        }
    }
    return true;
}
