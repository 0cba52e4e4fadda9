/* Normalisation of the text between control tokens, with the way back. Used by text_encode; must
 * not know tokens. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "messages.h"

enum { ENG_NORMAL_STEPS_MAX = 4, ENG_NORMAL_TEXT_MAX = 16 };

enum eng_normal_kind {
    ENG_NORMAL_COMPOSE,            /* Unicode's composed form, NFC */
    ENG_NORMAL_COMPOSE_COMPATIBLE, /* NFKC; only a fault asks for it and the next */
    ENG_NORMAL_DECOMPOSE,          /* NFD */
    ENG_NORMAL_PREPEND,            /* `with` before a text that is not empty */
    ENG_NORMAL_REPLACE             /* each `from` by `with` */
};

struct eng_normal_step {
    enum eng_normal_kind kind;
    char from[ENG_NORMAL_TEXT_MAX], with[ENG_NORMAL_TEXT_MAX]; /* NUL-terminated */
};

struct eng_normalizer {
    struct eng_normal_step steps[ENG_NORMAL_STEPS_MAX];
    size_t count;
};

/* Zero-initialise; reused by every call. */
struct eng_normal_text {
    char *bytes;
    uint32_t *origins; /* by byte of the result: the byte of the source that it comes from */
    size_t size, capacity, origin_capacity;
};
struct eng_normal_work {
    struct eng_normal_text text, other;
};
void eng_normal_work_fini(struct eng_normal_work *work);

/* Whether the steps leave the text as it is, found without doing them. False says nothing. */
bool eng_normal_is_idle(const struct eng_normalizer *normalizer, struct eng_text text);

/* Purpose: does the steps in turn on well-formed UTF-8; the result is work->text. Composition works
 * on stretches: a stretch starts at each character whose decomposition starts with a starter that
 * composes with nothing before it. A stretch that composing changes has the origin of its first
 * byte throughout; so have `with` of a replacement, and what is prepended. EHOSTMEM. */
ENG_CHECKED enum eng_status eng_normal_run(const struct eng_normalizer *normalizer,
                                           struct eng_text text, struct eng_normal_work *work,
                                           struct eng_error *error);
/* Whether a stretch starts at this character. */
bool eng_normal_starts_stretch(uint32_t character);
