/* Normal quantile by bisection, tails by erfc, sign test by the incomplete beta function.
 * Used by the other statistics; must not know what the numbers mean. */
#include "har_stat_normal.h"

#include <float.h>
#include <math.h>

#include "har_stats.h"

/* P(Z <= x). */
static double cumulative(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

double har_stat_normal_quantile(double p)
{
    /* The lower half only: there erfc keeps its relative precision. */
    if (p > 0.5) {
        return -har_stat_normal_quantile(1.0 - p);
    }
    double low = -40.0;
    double high = 0.0;
    for (int i = 0; i < DBL_MANT_DIG + 16; i++) {
        const double middle = 0.5 * (low + high);
        if (cumulative(middle) < p) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return 0.5 * (low + high);
}

double har_stat_normal_tails(double z)
{
    return erfc(fabs(z) * M_SQRT1_2);
}

double har_stat_chi_square_tail(double x)
{
    return x > 0.0 ? erfc(sqrt(0.5 * x)) : 1.0;
}

double har_stat_sign_test(size_t wins, size_t losses)
{
    const size_t n = wins + losses;
    const size_t less = wins < losses ? wins : losses;
    if (n == 0 || 2 * less == n) {
        return 1.0;
    }
    /* P(X <= less) = 1 - I_1/2(less + 1, n - less) = I_1/2(n - less, less + 1); the other tail is
     * its mirror image. */
    const double tail = har_stats_beta((double)(n - less), (double)less + 1.0, 0.5);
    return tail < 0.5 ? 2.0 * tail : 1.0;
}
