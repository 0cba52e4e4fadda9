/* Byte-pair merging of one piece. Used by text_encode; must not know where pieces come from. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"

typedef struct eng_bpe eng_bpe;

/* Tokens left and right, side by side, become result. Rank = place in the list. */
struct eng_bpe_merge {
    int32_t left, right, result;
};

/* Copies what it needs. EINPUT when a pair stands twice: the message names both ranks. */
ENG_CHECKED enum eng_status eng_bpe_create(const int32_t byte_ids[256],
                                           const struct eng_bpe_merge *merges, size_t count,
                                           eng_bpe **out, struct eng_error *error);
void eng_bpe_destroy(eng_bpe *bpe); /* accepts NULL */

/* Purpose: merges the piece's bytes, lowest rank first, leftmost among equals, until no pair is
 * left. Near linear in size. The ids are owned by bpe and valid until its next call. One thread at
 * a time. */
ENG_CHECKED enum eng_status eng_bpe_encode(eng_bpe *bpe, const char *piece, size_t size,
                                           const int32_t **ids, size_t *count,
                                           struct eng_error *error);
