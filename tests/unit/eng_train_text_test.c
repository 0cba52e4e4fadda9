/* JSON text: numbers read back as what was written, strings are escaped. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "textbuf.h"

static const char *text_of(struct eng_text *t)
{
    eng_text_put(t, "", 1);
    cr_assert(!t->failed);
    return t->data;
}

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

Test(train_text, floats_read_back_exactly)
{
    struct eng_text t = {.data = NULL};
    size_t compared = 0;
    uint32_t bits = 1;
    for (int i = 0; i < 300000; i++) {
        bits = bits * 1664525u + 1013904223u;
        const float f = float_of(bits ^ bits >> 7);
        if (!isfinite(f)) {
            continue;
        }
        eng_text_clear(&t);
        eng_text_float(&t, f);
        const char *text = text_of(&t);
        const float back = strtof(text, NULL);
        cr_assert(memcmp(&back, &f, sizeof f) == 0, "%a became '%s'", (double)f, text);
        compared++;
    }
    cr_assert_gt(compared, 0);
    eng_text_fini(&t);
}

Test(train_text, floats_near_powers_of_ten_read_back_exactly)
{
    struct eng_text t = {.data = NULL};
    size_t compared = 0;
    for (int e = -45; e <= 38; e++) {
        const float power = strtof((char[8]){'1', 'e', (char)(e < 0 ? '-' : '+'),
                                             (char)('0' + abs(e) / 10), (char)('0' + abs(e) % 10)},
                                   NULL);
        const float around[] = {power, nextafterf(power, 0.0f), nextafterf(power, INFINITY)};
        for (size_t i = 0; i < 3; i++) {
            eng_text_clear(&t);
            eng_text_float(&t, -around[i]);
            const float back = strtof(text_of(&t), NULL);
            cr_assert_eq(back, -around[i]);
            compared++;
        }
    }
    cr_assert_gt(compared, 0);
    eng_text_fini(&t);
}

Test(train_text, doubles_read_back_exactly)
{
    struct eng_text t = {.data = NULL};
    size_t compared = 0;
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double d;
        memcpy(&d, &bits, sizeof d);
        if (!isfinite(d)) {
            continue;
        }
        eng_text_clear(&t);
        eng_text_double(&t, d);
        const double back = strtod(text_of(&t), NULL);
        cr_assert(memcmp(&back, &d, sizeof d) == 0);
        compared++;
    }
    cr_assert_gt(compared, 0);
    eng_text_fini(&t);
}

Test(train_text, special_values_and_strings)
{
    struct eng_text t = {.data = NULL};
    eng_text_float(&t, NAN);
    eng_text_puts(&t, " ");
    eng_text_float(&t, -INFINITY);
    eng_text_puts(&t, " ");
    eng_text_double(&t, INFINITY);
    eng_text_puts(&t, " ");
    eng_text_float(&t, -0.0f);
    eng_text_puts(&t, " ");
    eng_text_int(&t, INT64_MIN);
    eng_text_puts(&t, " ");
    eng_text_hash(&t, 0xCBF29CE484222325u);
    eng_text_puts(&t, " ");
    eng_text_string(&t, "a\"\\\n\x01z");
    eng_text_puts(&t, " ");
    eng_text_string(&t, NULL);
    cr_assert_str_eq(text_of(&t), "\"nan\" \"-inf\" \"inf\" -0 -9223372036854775808 "
                                  "\"cbf29ce484222325\" \"a\\\"\\\\\\u000a\\u0001z\" null");
    eng_text_fini(&t);
}
