/* Byte-pair merging of one piece. Used by text_encode; must not know where pieces come from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "vocab.h"

typedef struct eng_bpe eng_bpe;

/* Tokens left and right, side by side, become result. Lower ranks first; pairs of one rank are
 * merged from the left. */
struct eng_bpe_merge {
    int32_t left, right, result, rank;
};

/* All borrowed: merges for the call of create, vocabularies as long as the bpe lives. */
struct eng_bpe_rules {
    const int32_t *byte_ids;            /* the token of each of the 256 bytes */
    const struct eng_bpe_merge *merges; /* ranks ascend and are at least 0 */
    size_t merge_count;
    const struct eng_vocab *characters; /* merging starts from the tokens of characters, and from
                                           those of bytes where there is none; NULL: from bytes */
    const struct eng_vocab *whole;      /* a piece that is a token stays one; NULL: merged like
                                           any other */
};

/* EINPUT when a pair stands twice: the message names both merges by their place in the list. */
ENG_CHECKED enum eng_status eng_bpe_create(const struct eng_bpe_rules *rules, eng_bpe **out,
                                           struct eng_error *error);
void eng_bpe_destroy(eng_bpe *bpe); /* accepts NULL */

/* Purpose: merges the piece, lowest rank first, leftmost among equals, until no pair is left. Near
 * linear in size, which is at least 1. The ids are owned by bpe and valid until its next call. One
 * thread at a time. */
ENG_CHECKED enum eng_status eng_bpe_encode(eng_bpe *bpe, const char *piece, size_t size,
                                           const int32_t **ids, size_t *count,
                                           struct eng_error *error);
/* The same for a piece within a text of which `room` bytes, at least size, may be read from the
 * piece's first on: a piece that is not at the text's end is looked up faster. */
ENG_CHECKED enum eng_status eng_bpe_encode_within(eng_bpe *bpe, const char *piece, size_t size,
                                                  size_t room, const int32_t **ids, size_t *count,
                                                  struct eng_error *error);
