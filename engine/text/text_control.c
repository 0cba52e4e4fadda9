/* Control tokens, grouped by length, longest first, and sorted within a group.
 * Called by tokenizer and text_encode; must not know vocabularies or spans. */
#include "text_control.h"

#include <stdlib.h>
#include <string.h>

#include "growth.h"

enum eng_status eng_control_add(struct eng_control_set *set, const char *text, size_t size,
                                int32_t id, unsigned flags, struct eng_error *error)
{
    if (size == 0) {
        return eng_fail(error, ENG_EINPUT, "a control token has an empty text");
    }
    struct eng_control *const items =
        eng_grown(set->items, &set->capacity, set->count + 1, sizeof *items);
    if (items == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for control tokens");
    }
    set->items = items;
    char *const copy = malloc(size + 1);
    if (copy == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for control tokens");
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    items[set->count++] = (struct eng_control){copy, size, id, flags};
    bool *const starts = &set->starts[(unsigned char)text[0]];
    set->start_count += *starts ? 0 : 1;
    *starts = true;
    return ENG_OK;
}

static int by_size_and_text(const void *left, const void *right)
{
    const struct eng_control *const a = left;
    const struct eng_control *const b = right;
    if (a->size != b->size) {
        return a->size > b->size ? -1 : 1;
    }
    return memcmp(a->text, b->text, a->size);
}

enum eng_status eng_control_seal(struct eng_control_set *set, struct eng_error *error)
{
    if (set->count > 0) {
        qsort(set->items, set->count, sizeof *set->items, by_size_and_text);
    }
    for (size_t i = 0; i < set->count; i++) {
        if (i > 0 && by_size_and_text(&set->items[i - 1], &set->items[i]) == 0) {
            return eng_fail(error, ENG_EINPUT, "control token '%s' stands twice",
                            set->items[i].text);
        }
        if (i == 0 || set->items[i - 1].size != set->items[i].size) {
            struct eng_control_group *const groups =
                eng_grown(set->groups, &set->group_capacity, set->group_count + 1, sizeof *groups);
            if (groups == NULL) {
                return eng_fail(error, ENG_EHOSTMEM, "no memory for control tokens");
            }
            set->groups = groups;
            groups[set->group_count++] = (struct eng_control_group){i, 0};
        }
        set->groups[set->group_count - 1].count++;
    }
    return ENG_OK;
}

void eng_control_fini(struct eng_control_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free(set->items[i].text);
    }
    free(set->items);
    free(set->groups);
    *set = (struct eng_control_set){0};
}

/* The member of a group that has this text, NULL when there is none. */
static const struct eng_control *find_in(const struct eng_control_set *set,
                                         const struct eng_control_group *group, const char *text)
{
    size_t low = group->first;
    size_t high = group->first + group->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct eng_control *const item = &set->items[middle];
        const int order = memcmp(item->text, text, item->size);
        if (order == 0) {
            return item;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

const struct eng_control *eng_control_match(const struct eng_control_set *set, const char *bytes,
                                            size_t size)
{
    if (size == 0 || !set->starts[(unsigned char)bytes[0]]) {
        return NULL;
    }
    for (size_t i = 0; i < set->group_count; i++) {
        const struct eng_control_group *const group = &set->groups[i];
        const struct eng_control *const found =
            set->items[group->first].size <= size ? find_in(set, group, bytes) : NULL;
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

const struct eng_control *eng_control_find(const struct eng_control_set *set, struct eng_text text)
{
    for (size_t i = 0; i < set->group_count; i++) {
        const struct eng_control_group *const group = &set->groups[i];
        if (set->items[group->first].size == text.size) {
            return find_in(set, group, text.bytes);
        }
    }
    return NULL;
}

/* The first place at or behind `at` where some text may begin: most sets have texts of one first
 * byte. */
static size_t next_start(const struct eng_control_set *set, const char *bytes, size_t size,
                         size_t at)
{
    if (set->start_count == 1) {
        const char *const found = memchr(bytes + at, set->items[0].text[0], size - at);
        return found == NULL ? size : (size_t)(found - bytes);
    }
    while (at < size && !set->starts[(unsigned char)bytes[at]]) {
        at++;
    }
    return at;
}

const struct eng_control *eng_control_search(const struct eng_control_set *set, const char *bytes,
                                             size_t size, size_t *at)
{
    for (size_t i = 0; i < size && set->count > 0; i++) {
        i = next_start(set, bytes, size, i);
        const struct eng_control *const found = eng_control_match(set, bytes + i, size - i);
        if (found != NULL) {
            *at = i;
            return found;
        }
    }
    return NULL;
}
