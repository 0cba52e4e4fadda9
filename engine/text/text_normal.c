/* NFC by utf8proc, stretch by stretch, and the two text steps of SentencePiece-like tokenizers.
 * Called by text_encode; must not know tokens or files. */
#include "text_normal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "growth.h"
#include "text_utf8.h"

void eng_normal_work_fini(struct eng_normal_work *work)
{
    free(work->text.bytes);
    free(work->text.origins);
    free(work->other.bytes);
    free(work->other.origins);
    *work = (struct eng_normal_work){0};
}

bool eng_normal_is_idle(const struct eng_normalizer *normalizer, struct eng_text text)
{
    for (size_t i = 0; i < normalizer->count; i++) {
        const enum eng_normal_kind kind = normalizer->steps[i].kind;
        if (kind == ENG_NORMAL_PREPEND || kind == ENG_NORMAL_REPLACE || !eng_text_is_ascii(text)) {
            return false;
        }
    }
    return true;
}

/* Appends bytes: each with its own origin from `origins`, or all with *origins. */
static bool append(struct eng_normal_text *out, const char *bytes, size_t size,
                   const uint32_t *origins, bool own)
{
    const size_t needed = out->size + size;
    char *const grown =
        needed > UINT32_MAX ? NULL : eng_grown(out->bytes, &out->capacity, needed, 1);
    if (grown == NULL) {
        return false;
    }
    out->bytes = grown;
    uint32_t *const places = eng_grown(out->origins, &out->origin_capacity, needed, sizeof *places);
    if (places == NULL) {
        return false;
    }
    out->origins = places;
    memcpy(grown + out->size, bytes, size);
    for (size_t i = 0; i < size; i++) {
        places[out->size + i] = own ? origins[i] : origins[0];
    }
    out->size = needed;
    return true;
}

/* Jamo vowels and finals join the syllable before them; utf8proc composes them by rule, not by
 * table. */
static bool joins_syllable(utf8proc_int32_t c)
{
    return (c >= 0x1161 && c <= 0x1175) || (c >= 0x11A8 && c <= 0x11C2);
}

bool eng_normal_starts_stretch(uint32_t character)
{
    enum { SECOND = 0x8000, NO_PAIR = UINT16_MAX };
    utf8proc_int32_t first[4] = {0};
    int last_class = UTF8PROC_BOUNDCLASS_START;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char((utf8proc_int32_t)character, first, sizeof first / sizeof first[0],
                                UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &last_class);
    if (count < 1) {
        return true;
    }
    const utf8proc_property_t *const property = utf8proc_get_property(first[0]);
    const bool second = property->comb_index != NO_PAIR && (property->comb_index & SECOND) != 0;
    return property->combining_class == 0 && !second && !joins_syllable(first[0]);
}

static uint32_t character_at(const char *bytes, size_t size, size_t *length)
{
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t found =
        utf8proc_iterate((const utf8proc_uint8_t *)bytes, (utf8proc_ssize_t)size, &character);
    *length = found < 1 ? 1 : (size_t)found;
    return (uint32_t)character;
}

/* Below U+0300 every character starts a stretch and is composed. */
static bool is_plain(const char *bytes)
{
    return (unsigned char)bytes[0] < 0xCC;
}

static size_t stretch_end(const char *bytes, size_t size, size_t at)
{
    size_t length = 0;
    (void)character_at(bytes + at, size - at, &length);
    at += length;
    while (at < size && !is_plain(bytes + at) &&
           !eng_normal_starts_stretch(character_at(bytes + at, size - at, &length))) {
        at += length;
    }
    return at;
}

static bool compose(const struct eng_normal_text *in, enum eng_normal_kind kind,
                    struct eng_normal_text *out)
{
    const utf8proc_option_t options =
        UTF8PROC_STABLE | (kind == ENG_NORMAL_DECOMPOSE ? UTF8PROC_DECOMPOSE : UTF8PROC_COMPOSE) |
        (kind == ENG_NORMAL_COMPOSE_COMPATIBLE ? UTF8PROC_COMPAT : 0);
    for (size_t at = 0; at < in->size;) {
        const char *const bytes = in->bytes + at;
        const size_t end = stretch_end(in->bytes, in->size, at);
        const size_t size = end - at;
        bool good = false;
        if (is_plain(bytes) && kind == ENG_NORMAL_COMPOSE && eng_utf8_length(bytes, size) == size) {
            good = append(out, bytes, size, in->origins + at, true);
        } else {
            utf8proc_uint8_t *made = NULL;
            const utf8proc_ssize_t made_size = utf8proc_map((const utf8proc_uint8_t *)bytes,
                                                            (utf8proc_ssize_t)size, &made, options);
            const bool same = made_size == (utf8proc_ssize_t)size && memcmp(made, bytes, size) == 0;
            good = made_size >= 0 &&
                   append(out, (const char *)made, (size_t)made_size, in->origins + at, same);
            free(made);
        }
        if (!good) {
            return false;
        }
        at = end;
    }
    return true;
}

static bool prepend(const struct eng_normal_text *in, const char *with, struct eng_normal_text *out)
{
    return in->size == 0 || (append(out, with, strlen(with), in->origins, false) &&
                             append(out, in->bytes, in->size, in->origins, true));
}

static bool replace(const struct eng_normal_text *in, const struct eng_normal_step *step,
                    struct eng_normal_text *out)
{
    const size_t from = strlen(step->from);
    size_t at = 0;
    while (at < in->size) {
        const char *const found = memmem(in->bytes + at, in->size - at, step->from, from);
        const size_t end = found == NULL ? in->size : (size_t)(found - in->bytes);
        if (end > at && !append(out, in->bytes + at, end - at, in->origins + at, true)) {
            return false;
        }
        if (found != NULL &&
            !append(out, step->with, strlen(step->with), in->origins + end, false)) {
            return false;
        }
        at = found == NULL ? end : end + from;
    }
    return true;
}

static bool run_step(const struct eng_normal_step *step, const struct eng_normal_text *in,
                     struct eng_normal_text *out)
{
    switch (step->kind) {
    case ENG_NORMAL_COMPOSE:
    case ENG_NORMAL_COMPOSE_COMPATIBLE:
    case ENG_NORMAL_DECOMPOSE:
        return compose(in, step->kind, out);
    case ENG_NORMAL_PREPEND:
        return prepend(in, step->with, out);
    default:
        return replace(in, step, out);
    }
}

/* The source with each byte its own origin. */
static bool start(struct eng_text text, struct eng_normal_text *out)
{
    static const uint32_t none = 0;
    out->size = 0;
    if (!append(out, text.bytes, text.size, &none, false)) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        out->origins[i] = (uint32_t)i;
    }
    return true;
}

enum eng_status eng_normal_run(const struct eng_normalizer *normalizer, struct eng_text text,
                               struct eng_normal_work *work, struct eng_error *error)
{
    bool good = start(text, &work->text);
    for (size_t i = 0; good && i < normalizer->count; i++) {
        work->other.size = 0;
        good = run_step(&normalizer->steps[i], &work->text, &work->other);
        const struct eng_normal_text made = work->other;
        work->other = work->text;
        work->text = made;
    }
    return good ? ENG_OK : eng_fail(error, ENG_EHOSTMEM, "no memory for a normalised text");
}
