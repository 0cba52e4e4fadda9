/* Box-Muller over SplitMix64 with series of our own instead of libm's, whose bits differ by
 * version. Called by cor_weights.c; must know nothing of models. */
#include "cor_normal.h"

#include <math.h>
#include <string.h>

static const uint64_t golden = 0x9E3779B97F4A7C15u;

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

struct cor_normal cor_normal_start(uint64_t seed, uint64_t stream)
{
    const struct cor_normal normal = {mix(seed * golden + (stream + 1) * 0xD1B54A32D192ED03u)};
    return normal;
}

/* ln u for u in (0, 1]: u = m 2^e with m in [1/sqrt 2, sqrt 2), ln m = 2 artanh((m - 1) / (m + 1)).
 * |s| < 0.172, so the first term left out is below 2^-60 of the sum. */
static double natural_log(double u)
{
    const uint64_t half_root = 0x3FE6A09E667F3BCDu; /* the bits of 1 / sqrt 2 */
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    const int64_t exponent = (int64_t)(bits - half_root) >> 52;
    bits -= (uint64_t)exponent << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    const double s = (m - 1.0) / (m + 1.0);
    const double t = s * s;
    double sum = 1.0 / 23.0;
    sum = sum * t + 1.0 / 21.0;
    sum = sum * t + 1.0 / 19.0;
    sum = sum * t + 1.0 / 17.0;
    sum = sum * t + 1.0 / 15.0;
    sum = sum * t + 1.0 / 13.0;
    sum = sum * t + 1.0 / 11.0;
    sum = sum * t + 1.0 / 9.0;
    sum = sum * t + 1.0 / 7.0;
    sum = sum * t + 1.0 / 5.0;
    sum = sum * t + 1.0 / 3.0;
    sum = sum * t + 1.0;
    return (double)exponent * 0x1.62e42fefa39efp-1 + 2.0 * s * sum;
}

/* Sine and cosine of x, |x| <= pi / 4, by their Taylor series up to x^17 and x^18. */
static double small_sin(double x)
{
    const double t = x * x;
    double sum = 1.0 - t / (16.0 * 17.0);
    sum = 1.0 - t / (14.0 * 15.0) * sum;
    sum = 1.0 - t / (12.0 * 13.0) * sum;
    sum = 1.0 - t / (10.0 * 11.0) * sum;
    sum = 1.0 - t / (8.0 * 9.0) * sum;
    sum = 1.0 - t / (6.0 * 7.0) * sum;
    sum = 1.0 - t / (4.0 * 5.0) * sum;
    sum = 1.0 - t / (2.0 * 3.0) * sum;
    return x * sum;
}

static double small_cos(double x)
{
    const double t = x * x;
    double sum = 1.0 - t / (17.0 * 18.0);
    sum = 1.0 - t / (15.0 * 16.0) * sum;
    sum = 1.0 - t / (13.0 * 14.0) * sum;
    sum = 1.0 - t / (11.0 * 12.0) * sum;
    sum = 1.0 - t / (9.0 * 10.0) * sum;
    sum = 1.0 - t / (7.0 * 8.0) * sum;
    sum = 1.0 - t / (5.0 * 6.0) * sum;
    sum = 1.0 - t / (3.0 * 4.0) * sum;
    return 1.0 - t / 2.0 * sum;
}

static void make_pair(uint64_t a, uint64_t b, double deviation, float out[2])
{
    const double u = (double)((a >> 11) + 1) * 0x1p-53;
    const double f = (double)(b >> 11 & 0x7FFFFFFFFFFFFu) * 0x1p-51 - 0.5;
    const double x = f * 0x1.921fb54442d18p+0;
    const double radius = sqrt(-2.0 * natural_log(u)) * deviation;
    const double sine = radius * small_sin(x);
    const double cosine = radius * small_cos(x);
    const uint64_t quarter = b >> 62;
    const double across = quarter & 1 ? -sine : cosine;
    const double up = quarter & 1 ? cosine : sine;
    out[0] = (float)(quarter & 2 ? -across : across);
    out[1] = (float)(quarter & 2 ? -up : up);
}

void cor_normal_fill(struct cor_normal *normal, double deviation, float *out, size_t count)
{
    const uint64_t state = normal->state;
    const size_t pairs = (count + 1) / 2;
    for (size_t j = 0; j < count / 2; j++) {
        const uint64_t at = state + 2 * j * golden;
        make_pair(mix(at + golden), mix(at + 2 * golden), deviation, out + 2 * j);
    }
    if (count % 2 != 0) {
        float last[2];
        const uint64_t at = state + 2 * (pairs - 1) * golden;
        make_pair(mix(at + golden), mix(at + 2 * golden), deviation, last);
        out[count - 1] = last[0];
    }
    normal->state = state + 2 * pairs * golden;
}
