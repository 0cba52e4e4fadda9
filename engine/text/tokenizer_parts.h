/* What a tokenizer file says, in one form for every kind of file. Filled by tokenizer_json and
 * tokenizer_ranks for tokenizer; knows no text to encode. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpe.h"
#include "eng_status.h"
#include "text_encode.h"
#include "text_normal.h"
#include "text_split.h"
#include "vocab.h"

struct eng_tokenizer_parts {
    struct eng_vocab vocab;
    struct eng_control_set names;  /* of all control tokens */
    struct eng_added_tokens early; /* normalized: false; as controls those with special: true */
    struct eng_added_tokens late;  /* normalized: true, with their texts normalised */
    struct eng_normalizer normalizer;
    enum eng_split split;
    bool characters;   /* tokens are made of characters, with tokens of bytes for the others */
    bool whole_pieces; /* a piece that is a token stays one, whatever the merges say */
    int32_t byte_ids[256];
    struct eng_bpe_merge *merges;
    size_t merge_count, merge_capacity;
};

/* Both fill zero-initialised parts, which the caller finishes also after a failure. EIO when the
 * file cannot be read, EINPUT when it says something that would be got wrong; messages name the
 * file, and the line or the entry. */
ENG_CHECKED enum eng_status eng_tokenizer_read_json(const char *path,
                                                    struct eng_tokenizer_parts *parts,
                                                    struct eng_error *error);
ENG_CHECKED enum eng_status eng_tokenizer_read_ranks(const char *path,
                                                     struct eng_tokenizer_parts *parts,
                                                     struct eng_error *error);
void eng_tokenizer_parts_fini(struct eng_tokenizer_parts *parts);
