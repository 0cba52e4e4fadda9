/* Control tokens, kept longest first.
 * Called by tokenizer and text_encode; must not know vocabularies or spans. */
#include "text_control.h"

#include <stdlib.h>
#include <string.h>

#include "growth.h"

enum eng_status eng_control_add(struct eng_control_set *set, const char *text, size_t size,
                                int32_t id, struct eng_error *error)
{
    if (size == 0) {
        return eng_fail(error, ENG_EINPUT, "a control token has an empty text");
    }
    size_t place = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i].size == size && memcmp(set->items[i].text, text, size) == 0) {
            return eng_fail(error, ENG_EINPUT, "control token '%s' stands twice", text);
        }
        place += set->items[i].size >= size;
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
    memmove(items + place + 1, items + place, (set->count - place) * sizeof *items);
    items[place] = (struct eng_control){copy, size, id};
    set->count++;
    set->starts[(unsigned char)text[0]] = true;
    return ENG_OK;
}

void eng_control_fini(struct eng_control_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free(set->items[i].text);
    }
    free(set->items);
    *set = (struct eng_control_set){0};
}

const struct eng_control *eng_control_match(const struct eng_control_set *set, const char *bytes,
                                            size_t size)
{
    if (size == 0 || !set->starts[(unsigned char)bytes[0]]) {
        return NULL;
    }
    for (size_t i = 0; i < set->count; i++) {
        const struct eng_control *const item = &set->items[i];
        if (item->size <= size && memcmp(item->text, bytes, item->size) == 0) {
            return item;
        }
    }
    return NULL;
}

const struct eng_control *eng_control_find(const struct eng_control_set *set, const char *text)
{
    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->items[i].text, text) == 0) {
            return &set->items[i];
        }
    }
    return NULL;
}

const struct eng_control *eng_control_search(const struct eng_control_set *set, const char *bytes,
                                             size_t size, size_t *at)
{
    for (size_t i = 0; i < size; i++) {
        if (!set->starts[(unsigned char)bytes[i]]) {
            continue;
        }
        const struct eng_control *const found = eng_control_match(set, bytes + i, size - i);
        if (found != NULL) {
            *at = i;
            return found;
        }
    }
    return NULL;
}
