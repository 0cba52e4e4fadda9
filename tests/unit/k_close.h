/* Comparison of a float result with its value in double precision. Used by the kernel tests. */
#pragma once

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdint.h>

/* Each of `roundings` operations loses at most FLT_EPSILON / 2 of `magnitude`, the sum of the
 * absolute values of what is added; the bound is twice that, for second-order terms. */
static inline void k_assert_close(float got, double exact, double magnitude, double roundings,
                                  const char *what, long index)
{
    const double error = fabs((double)got - exact);
    const double bound = roundings * (double)FLT_EPSILON * magnitude;
    cr_assert(error <= bound, "%s[%ld]: %.9g, exactly %.9g, error %g > %g", what, index,
              (double)got, exact, error, bound);
}

/* Uniform in [-size, size), a function of (seed, index). */
static inline float k_random(uint32_t seed, uint32_t index, float size)
{
    uint64_t z = ((uint64_t)seed << 32 | index) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return size * ((float)((z ^ z >> 31) >> 40) / (float)(1 << 23) - 1.0f);
}

static inline void k_fill(float *p, size_t count, uint32_t seed, float size)
{
    for (size_t i = 0; i < count; i++) {
        p[i] = k_random(seed, (uint32_t)i, size);
    }
}
