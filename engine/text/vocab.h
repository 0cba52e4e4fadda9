/* Tokens of a vocabulary: texts by id, ids by text. Filled by the readers of tokenizer files, asked
 * by bpe, text_encode and tokenizer; knows no file format. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "messages.h"

enum { ENG_VOCAB_IDS_MAX = 1 << 22 };

struct eng_vocab_slot {
    uint32_t tag;
    int32_t id; /* -1 = free */
};

/* Zero-initialise, init, put, then ask. */
struct eng_vocab {
    int32_t size; /* ids are 0 .. size - 1; some may have no text */
    char *bytes;
    size_t byte_count, byte_capacity;
    struct {
        uint32_t start, size; /* within bytes; size 0 = no such token */
    } * texts;
    struct eng_vocab_slot *slots;
    uint64_t slot_mask;
};

/* Room for ids 0 .. size - 1. EINPUT when size is not 1 .. ENG_VOCAB_IDS_MAX. */
ENG_CHECKED enum eng_status eng_vocab_init(struct eng_vocab *vocab, size_t size,
                                           struct eng_error *error);
void eng_vocab_fini(struct eng_vocab *vocab);
/* Copies the text. found: eng_vocab_find is to see it. EINPUT when the id is out of range or taken,
 * when the text is empty, longer than 65535 bytes or, with found, already there. */
ENG_CHECKED enum eng_status eng_vocab_put(struct eng_vocab *vocab, int64_t id, struct eng_text text,
                                          bool found, struct eng_error *error);
/* The id of the token with exactly these bytes, -1 when there is none. */
int32_t eng_vocab_find(const struct eng_vocab *vocab, const char *bytes, size_t size);
/* The text of an id in range; size 0 when it has none. */
struct eng_text eng_vocab_text(const struct eng_vocab *vocab, int32_t id);
