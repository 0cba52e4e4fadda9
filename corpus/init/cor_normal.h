/* Normal numbers that are the same bits on every compiler and machine with IEEE doubles.
 * Used by cor_weights.c; must know nothing of models.
 *
 * Stream k of seed s is SplitMix64 started at mix(s * 0x9E3779B97F4A7C15 + (k + 1) *
 * 0xD1B54A32D192ED03) (modulo 2^64; mix is SplitMix64's output function). Pair j of a stream takes
 * outputs 2j and 2j + 1, a and b: u = ((a >> 11) + 1) / 2^53                      in (0, 1] quarter
 * = b >> 62, f = ((b >> 11) mod 2^51) / 2^51 - 1/2     in [-1/2, 1/2) radius = sqrt(-2 ln u), angle
 * = (quarter + f) pi / 2 numbers 2j and 2j + 1 = radius cos(angle), radius sin(angle) ln, sin and
 * cos are the series in the source, of + - * / only, without contraction. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cor_normal {
    uint64_t state; /* of SplitMix64 */
};

struct cor_normal cor_normal_start(uint64_t seed, uint64_t stream);

/* Writes the next count numbers times deviation, each rounded once to float, to out. An odd count
 * drops the second number of its last pair, so all calls but the last of a stream should take even
 * counts. */
void cor_normal_fill(struct cor_normal *normal, double deviation, float *out, size_t count);
