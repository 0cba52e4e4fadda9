/* JSON text building blocks. Called by the trace writer; must not know what a trace is. */
#include "textbuf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void eng_text_fini(struct eng_text *t)
{
    free(t->data);
    *t = (struct eng_text){.data = NULL};
}

void eng_text_clear(struct eng_text *t)
{
    t->size = 0;
}

/* Room for `more` bytes at the end, or NULL. */
static char *reserve(struct eng_text *t, size_t more)
{
    if (t->failed) {
        return NULL;
    }
    if (t->capacity - t->size < more) {
        const size_t grown = t->capacity * 2 + more + 256;
        char *data = realloc(t->data, grown);
        if (data == NULL) {
            t->failed = true;
            return NULL;
        }
        t->data = data;
        t->capacity = grown;
    }
    return t->data + t->size;
}

void eng_text_put(struct eng_text *t, const char *bytes, size_t size)
{
    char *at = reserve(t, size);
    if (at != NULL && size > 0) {
        memcpy(at, bytes, size);
        t->size += size;
    }
}

void eng_text_puts(struct eng_text *t, const char *literal)
{
    eng_text_put(t, literal, strlen(literal));
}

void eng_text_string(struct eng_text *t, const char *s)
{
    if (s == NULL) {
        eng_text_puts(t, "null");
        return;
    }
    eng_text_puts(t, "\"");
    for (; *s != '\0'; s++) {
        const unsigned char c = (unsigned char)*s;
        char escaped[8];
        if (c == '"' || c == '\\') {
            snprintf(escaped, sizeof escaped, "\\%c", c);
            eng_text_puts(t, escaped);
        } else if (c < 0x20) {
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
            eng_text_puts(t, escaped);
        } else {
            eng_text_put(t, s, 1);
        }
    }
    eng_text_puts(t, "\"");
}

/* Writes the digits of value at p, returns their number. */
static size_t digits(char *p, uint64_t value)
{
    char reversed[20];
    size_t n = 0;
    do {
        reversed[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    for (size_t i = 0; i < n; i++) {
        p[i] = reversed[n - 1 - i];
    }
    return n;
}

void eng_text_uint(struct eng_text *t, uint64_t value)
{
    char *at = reserve(t, 20);
    if (at != NULL) {
        t->size += digits(at, value);
    }
}

void eng_text_int(struct eng_text *t, int64_t value)
{
    if (value < 0) {
        eng_text_puts(t, "-");
    }
    eng_text_uint(t, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void eng_text_hash(struct eng_text *t, uint64_t value)
{
    char text[20];
    text[0] = '"';
    for (int i = 0; i < 16; i++) {
        text[1 + i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
    }
    text[17] = '"';
    eng_text_put(t, text, 18);
}

static bool put_not_finite(struct eng_text *t, double value)
{
    if (isfinite(value)) {
        return false;
    }
    eng_text_puts(t, isnan(value) ? "\"nan\"" : value > 0.0 ? "\"inf\"" : "\"-inf\"");
    return true;
}

static void put_printed(struct eng_text *t, int significant, double value)
{
    char text[40];
    const int n = snprintf(text, sizeof text, "%.*g", significant, value);
    eng_text_put(t, text, (size_t)n);
}

/* 10^k is exact in a double up to k = 22, so scaling rounds at most twice: an error below 2^-51
 * relative, far inside the half unit of the ninth digit that reading back as a float allows. */
static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { SIGNIFICANT = 9, EXPONENT_MAX = 13 };

void eng_text_float(struct eng_text *t, float value)
{
    const double magnitude = fabs((double)value);
    if (put_not_finite(t, (double)value)) {
        return;
    }
    if (magnitude == 0.0) {
        eng_text_puts(t, signbit(value) ? "-0" : "0");
        return;
    }
    if (magnitude < 1e-12 || magnitude >= 1e12) {
        put_printed(t, SIGNIFICANT, (double)value);
        return;
    }
    int exponent = 0; /* of the leading digit */
    while (exponent < EXPONENT_MAX && magnitude >= tens[exponent + 1]) {
        exponent++;
    }
    while (exponent > -EXPONENT_MAX && exponent <= 0 && magnitude * tens[-exponent] < 1.0) {
        exponent--;
    }
    const int scale = SIGNIFICANT - 1 - exponent;
    const double scaled = scale >= 0 ? magnitude * tens[scale] : magnitude / tens[-scale];
    char *at = reserve(t, 40);
    if (at == NULL) {
        return;
    }
    char *p = at;
    if (value < 0.0f) {
        *p++ = '-';
    }
    char mantissa[20];
    const size_t count = digits(mantissa, (uint64_t)(scaled + 0.5));
    /* Rounding up to 10^9 gives a tenth digit, a zero: the exponent grows instead. */
    exponent += count > SIGNIFICANT;
    *p++ = mantissa[0];
    *p++ = '.';
    memcpy(p, mantissa + 1, SIGNIFICANT - 1);
    p += SIGNIFICANT - 1;
    *p++ = 'e';
    if (exponent < 0) {
        *p++ = '-';
    }
    p += digits(p, (uint64_t)(exponent < 0 ? -exponent : exponent));
    t->size += (size_t)(p - at);
}

void eng_text_double(struct eng_text *t, double value)
{
    if (!put_not_finite(t, value)) {
        put_printed(t, 17, value);
    }
}
