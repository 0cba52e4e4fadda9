/* Errors of row_exp and row_log against double precision, and their edges. */
#include <criterion/criterion.h>
#include <math.h>

#define ROW_SUFFIX _unused
#include "row.h"

/* |got - exact| in units of the distance between floats at exact. */
static double error_ulp(float got, double exact)
{
    const float near = fabsf((float)exact);
    const double ulp = (double)nextafterf(near, INFINITY) - (double)near;
    return fabs((double)got - exact) / ulp;
}

/* The bound that row_math.h states. */
static const double bound_ulp = 1.0;

enum { STRIDE = 1009 }; /* every so many-th float */

Test(k_math, exp_is_within_the_stated_bound)
{
    size_t compared = 0;
    double worst = 0.0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {
        const float x = row_from_bits((uint32_t)bits);
        const double exact = exp((double)x);
        if (!(exact >= (double)FLT_MIN && exact <= (double)FLT_MAX)) {
            continue;
        }
        const double error = error_ulp(row_exp(x), exact);
        cr_assert(error <= bound_ulp, "row_exp(%a): %g ulp", (double)x, error);
        worst = error > worst ? error : worst;
        compared++;
    }
    cr_assert(compared > 0);
    cr_log_info("row_exp: worst of %zu arguments %g ulp", compared, worst);
}

Test(k_math, log_is_within_the_stated_bound)
{
    size_t compared = 0;
    double worst = 0.0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {
        const float x = row_from_bits((uint32_t)bits);
        if (!(x >= FLT_MIN && x <= FLT_MAX) || x == 1.0f) {
            continue;
        }
        const double error = error_ulp(row_log(x), log((double)x));
        cr_assert(error <= bound_ulp, "row_log(%a): %g ulp", (double)x, error);
        worst = error > worst ? error : worst;
        compared++;
    }
    cr_assert(compared > 0);
    cr_log_info("row_log: worst of %zu arguments %g ulp", compared, worst);
}

Test(k_math, exp_has_exact_edges)
{
    cr_assert(row_exp(0.0f) == 1.0f);
    cr_assert(row_exp(-0.0f) == 1.0f);
    cr_assert(row_exp(-INFINITY) == 0.0f);
    cr_assert(row_exp(-100.0f) == 0.0f);
    cr_assert(row_exp(INFINITY) == INFINITY);
    cr_assert(row_exp(89.0f) == INFINITY);
    cr_assert(isnan(row_exp(NAN)));
    cr_assert(isnan(row_exp(-NAN)));
    cr_assert(row_exp(88.7f) < INFINITY);
}

Test(k_math, log_has_exact_edges)
{
    cr_assert(row_log(1.0f) == 0.0f);
    cr_assert(row_log(0.0f) == -INFINITY);
    cr_assert(row_log(INFINITY) == INFINITY);
    cr_assert(isnan(row_log(-1.0f)));
    cr_assert(isnan(row_log(-INFINITY)));
    cr_assert(isnan(row_log(NAN)));
}

Test(k_math, nonfinite_is_told_by_bits)
{
    cr_assert(row_nonfinite(NAN) == 1 && row_nonfinite(-NAN) == 1);
    cr_assert(row_nonfinite(INFINITY) == 1 && row_nonfinite(-INFINITY) == 1);
    cr_assert(row_nonfinite(FLT_MAX) == 0 && row_nonfinite(0.0f) == 0);
}
