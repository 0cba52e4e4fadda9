/* From a rendered chat to token ids. Used by tokenizer; must not know how a vocabulary is stored.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpe.h"
#include "eng_status.h"
#include "layout.h"
#include "text_control.h"
#include "text_normal.h"
#include "text_split.h"

struct eng_token {
    int32_t id;
    uint32_t start; /* first byte within the rendered text */
};

/* Zero-initialise; reused by every call. */
struct eng_tokens {
    struct eng_token *items;
    size_t count, capacity;
};

/* What encoding needs, all borrowed. */
struct eng_encoder {
    const struct eng_control_set *controls; /* seen where the template wrote all of them */
    const struct eng_control_set *added;    /* seen everywhere */
    const struct eng_normalizer *normalizer;
    struct eng_normal_work *work;
    const eng_splitter *splitter;
    eng_bpe *bpe;
    const uint16_t *token_bytes; /* by id: how many bytes of normalised text it stands for */
};

/* Purpose: control tokens where the template wrote their whole text, other added tokens wherever
 * they stand, leftmost and longest; byte-pair tokens elsewhere. Replaces what `out` held. */
ENG_CHECKED enum eng_status eng_encode_rendered(const struct eng_encoder *encoder,
                                                const struct eng_rendered *text,
                                                struct eng_tokens *out, struct eng_error *error);
void eng_tokens_fini(struct eng_tokens *tokens);
