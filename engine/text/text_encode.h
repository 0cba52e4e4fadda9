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

/* Added tokens that are sought in one form of the text. */
struct eng_added_tokens {
    struct eng_control_set controls; /* seen where the template wrote all of them */
    struct eng_control_set others;   /* seen everywhere */
};

/* Zero-initialise; reused by every call. */
struct eng_encode_work {
    struct eng_normal_work normal;
    struct eng_span *contents; /* of a normalised text */
    size_t content_capacity;
};
void eng_encode_work_fini(struct eng_encode_work *work);

/* What encoding needs, all borrowed. */
struct eng_encoder {
    const struct eng_control_set *controls; /* seen where the template wrote all of them */
    const struct eng_control_set *added;    /* seen everywhere */
    const struct eng_added_tokens *late;    /* sought in what the normalizer made of the text
                                               between the former; NULL: there are none */
    const struct eng_normalizer *normalizer;
    struct eng_encode_work *work;
    const eng_splitter *splitter;
    eng_bpe *bpe;
    const uint16_t *token_bytes; /* by id: how many bytes of normalised text it stands for */
};

/* Purpose: control tokens where the template wrote their whole text, other added tokens wherever
 * they stand, leftmost and longest; then late ones likewise in the normalised text between them, of
 * which a byte is content when the byte that it comes from is; byte-pair tokens elsewhere. Replaces
 * what `out` held. */
ENG_CHECKED enum eng_status eng_encode_rendered(const struct eng_encoder *encoder,
                                                const struct eng_rendered *text,
                                                struct eng_tokens *out, struct eng_error *error);
void eng_tokens_fini(struct eng_tokens *tokens);
