/* Functions that have the same bits on every device and compiler: only + - * / fma and integer
 * operations. Included by row.h alone. Errors in ulp are measured by tests/unit/k_math_test.c. */
#pragma once

ROW_FN uint32_t row_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

ROW_FN float row_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 1 for NaN and infinities, by bit pattern. */
ROW_FN uint32_t row_nonfinite(float x)
{
    return (row_bits(x) & 0x7F800000u) == 0x7F800000u ? 1u : 0u;
}

/* The nearest number with the 8 significant bits of bf16, ties to even; NaN and infinities stay. */
ROW_FN float row_bf16(float x)
{
    const uint32_t bits = row_bits(x);
    const uint32_t half = row_nonfinite(x) != 0 ? 0 : 0x7FFFu + (bits >> 16 & 1u);
    return row_from_bits((bits + half) & 0xFFFF0000u);
}

/* e^x within 1 ulp where the result is a normal number; 0 below that, infinity above; NaN for NaN.
 * x = k ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial of degree 7; k goes into the
 * exponent. Adding 1.5 * 2^23 rounds to an integer that stands in the low bits of the mantissa. */
ROW_FN float row_exp(float x)
{
    const float smallest = -87.33654475f; /* ln 2^-126 */
    const float largest = 88.72283173f;   /* just below ln 2^128 */
    const float shifted = fmaf(x, 1.44269504088896f, 12582912.0f);
    const float k = shifted - 12582912.0f;
    float r =
        fmaf(k, -0.693359375f, x); /* ln 2 in two parts; the product with the first is exact */
    r = fmaf(k, 2.12194440e-4f, r);
    float p = 1.0f / 5040.0f;
    p = fmaf(p, r, 1.0f / 720.0f);
    p = fmaf(p, r, 1.0f / 120.0f);
    p = fmaf(p, r, 1.0f / 24.0f);
    p = fmaf(p, r, 1.0f / 6.0f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    const float scaled = row_from_bits(row_bits(p) + (row_bits(shifted) << 23));
    const float bounded = x >= smallest ? scaled : 0.0f;
    return x <= largest ? bounded : x + (float)INFINITY;
}

/* Natural logarithm within 1 ulp for positive normal x; -infinity for 0 and denormals, NaN for
 * negative x and NaN. x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); with s = f / (2 + f),
 * ln(1 + f) = 2 atanh(s) = f - s (f - R), R = 2/3 s^2 + 2/5 s^4 + ...; s only enters scaled by f.
 */
ROW_FN float row_log(float x)
{
    const uint32_t bits = row_bits(x);
    const uint32_t offset = bits - 0x3F3504F3u; /* sqrt(1/2) */
    const int k = (int)offset >> 23;
    const float f = row_from_bits((offset & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
    const float s = f / (2.0f + f);
    const float z = s * s;
    float r = 2.0f / 11.0f;
    r = fmaf(r, z, 2.0f / 9.0f);
    r = fmaf(r, z, 2.0f / 7.0f);
    r = fmaf(r, z, 2.0f / 5.0f);
    r = fmaf(r, z, 2.0f / 3.0f);
    r = r * z;
    const float e = (float)k;
    const float low = fmaf(e, -2.12194440e-4f, -(s * (f - r)));
    const float y = fmaf(e, 0.693359375f, f + low);
    const float positive = bits < 0x7F800000u ? y : x; /* +infinity and NaN stay */
    const float with_zero = x < FLT_MIN ? -(float)INFINITY : positive;
    return x < 0.0f ? (float)NAN : with_zero;
}
