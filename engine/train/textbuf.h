/* A growing text for JSON lines, with fast numbers.
 * Called by the trace writer and the trainer; must not know what a trace is.
 *
 * Errors are sticky: after a failed growth `failed` is set and every put does nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eng_text {
    char *data; /* not terminated */
    size_t size, capacity;
    bool failed;
};

void eng_text_fini(struct eng_text *t);  /* frees; t is empty afterwards */
void eng_text_clear(struct eng_text *t); /* keeps the capacity */
void eng_text_put(struct eng_text *t, const char *bytes, size_t size);
void eng_text_puts(struct eng_text *t, const char *literal);
void eng_text_string(struct eng_text *t, const char *s); /* quoted and escaped; NULL = null */
void eng_text_int(struct eng_text *t, int64_t value);
void eng_text_uint(struct eng_text *t, uint64_t value);
void eng_text_hash(struct eng_text *t, uint64_t value); /* quoted, 16 hexadecimal digits */
/* Nine significant digits: reads back as the same float. Not finite: "nan", "inf", "-inf". */
void eng_text_float(struct eng_text *t, float value);
void eng_text_double(struct eng_text *t, double value); /* 17 significant digits */
