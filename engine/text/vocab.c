/* Texts in one block, and a table with open addressing from text to id.
 * Called by the readers of tokenizer files, bpe and tokenizer; must not know files or merges. */
#include "vocab.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "growth.h"

enum { TEXT_BYTES_MAX = UINT16_MAX };

enum eng_status eng_vocab_init(struct eng_vocab *vocab, size_t size, struct eng_error *error)
{
    if (size == 0 || size > ENG_VOCAB_IDS_MAX) {
        return eng_fail(error, ENG_EINPUT, "a vocabulary of %zu ids; 1 to %d are supported", size,
                        ENG_VOCAB_IDS_MAX);
    }
    size_t slots = 16;
    while (slots < size * 2) {
        slots *= 2;
    }
    vocab->size = (int32_t)size;
    vocab->slot_mask = slots - 1;
    vocab->texts = calloc(size, sizeof *vocab->texts);
    vocab->slots = malloc(slots * sizeof *vocab->slots);
    if (vocab->texts == NULL || vocab->slots == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for %zu tokens", size);
    }
    for (size_t i = 0; i < slots; i++) {
        vocab->slots[i] = (struct eng_vocab_slot){0, -1};
    }
    return ENG_OK;
}

void eng_vocab_fini(struct eng_vocab *vocab)
{
    free(vocab->bytes);
    free(vocab->texts);
    free(vocab->slots);
    *vocab = (struct eng_vocab){0};
}

struct eng_text eng_vocab_text(const struct eng_vocab *vocab, int32_t id)
{
    const uint32_t size = vocab->texts[id].size;
    return (struct eng_text){size == 0 ? "" : vocab->bytes + vocab->texts[id].start, size};
}

/* The slot that holds the text, or the free one where it belongs. */
static struct eng_vocab_slot *find_slot(const struct eng_vocab *vocab, const char *bytes,
                                        size_t size, uint32_t *tag)
{
    const uint64_t hash = XXH3_64bits(bytes, size);
    *tag = (uint32_t)(hash >> 32);
    for (uint64_t at = hash & vocab->slot_mask;; at = (at + 1) & vocab->slot_mask) {
        struct eng_vocab_slot *const slot = &vocab->slots[at];
        if (slot->id < 0) {
            return slot;
        }
        const struct eng_text text = eng_vocab_text(vocab, slot->id);
        if (slot->tag == *tag && text.size == size && memcmp(text.bytes, bytes, size) == 0) {
            return slot;
        }
    }
}

int32_t eng_vocab_find(const struct eng_vocab *vocab, const char *bytes, size_t size)
{
    uint32_t tag = 0;
    return size == 0 ? -1 : find_slot(vocab, bytes, size, &tag)->id;
}

enum eng_status eng_vocab_put(struct eng_vocab *vocab, int64_t id, struct eng_text text, bool found,
                              struct eng_error *error)
{
    enum { SHOWN = 60 };
    const int shown = text.size < SHOWN ? (int)text.size : SHOWN;
    if (id < 0 || id >= vocab->size) {
        return eng_fail(error, ENG_EINPUT, "token '%.*s' has id %lld, which is out of range", shown,
                        text.bytes, (long long)id);
    }
    if (text.size == 0 || text.size > TEXT_BYTES_MAX) {
        return eng_fail(error, ENG_EINPUT, "token %lld is empty or too long", (long long)id);
    }
    if (vocab->texts[id].size != 0) {
        return eng_fail(error, ENG_EINPUT, "token '%.*s' has id %lld, which another token has too",
                        shown, text.bytes, (long long)id);
    }
    uint32_t tag = 0;
    struct eng_vocab_slot *const slot = find_slot(vocab, text.bytes, text.size, &tag);
    if (found && slot->id >= 0) {
        return eng_fail(error, ENG_EINPUT, "token '%.*s' stands twice", shown, text.bytes);
    }
    char *const bytes =
        eng_grown(vocab->bytes, &vocab->byte_capacity, vocab->byte_count + text.size, 1);
    if (bytes == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for the texts of the tokens");
    }
    vocab->bytes = bytes;
    memcpy(bytes + vocab->byte_count, text.bytes, text.size);
    vocab->texts[id].start = (uint32_t)vocab->byte_count;
    vocab->texts[id].size = (uint32_t)text.size;
    vocab->byte_count += text.size;
    if (found) {
        *slot = (struct eng_vocab_slot){tag, (int32_t)id};
    }
    return ENG_OK;
}
