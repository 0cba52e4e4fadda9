/* Alarms on the loss of a run against a second stack's, step after step: an e-process, which may be
 * read at any time, and CUSUM for comparison. Used by the reports; must not know faults.
 *
 * The numbers are d_s = (loss - loss of the second stack) / |loss of the second stack|. Healthy
 * runs of other seeds give a scale for each step.
 *
 * The e-process E_t is the mean of two, each with expectation at most 1 on a healthy run at every
 * stopping time, so that P(E_t >= 1/alpha at any t) <= alpha (Ville 1939; Markov for the first):
 *  - size: sum over s <= t of e_s / (s (s + 1)). The weights add up to 1 over all steps and the sum
 *    never falls, so this holds under any dependence between steps. e_s is a likelihood ratio of
 *    |d_s|: Student's t with 3 degrees of freedom, 10 to 10^6 times as wide (equal weights),
 * against the t at the step's scale. Needs that healthy |d_s| has no heavier a tail than that t.
 *  - bias: (1 + V)^-1/2 exp(S^2 / (2 (1 + V))) with z = d_s / scale, S = sum of z, V = sum of z^2:
 *    the normal mixture of exp(l z - l^2 z^2 / 2) (de la Pena 1999; Howard, Ramdas and others
 * 2021). Needs that d_s is symmetric around 0 given the past; no scale, no tail.
 *
 * CUSUM (Page 1954): the larger of the two one-sided sums of
 * z with the usual allowance of half a scale. Its limit is the largest it reached in the
 * calibration runs, each left out of its own scale, so a new healthy run of the same length exceeds
 * it with probability about 1 / (runs + 1). Its alarm has no guarantee beyond that length. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct har_alarm_null {
    size_t runs, steps;
    double *scales; /* root mean square of d_s over the runs, by step; owned */
    double widen; /* factor on the scales of the size part: the smallest, in steps of a tenth, that
                     keeps the mean of e_s over calibration runs, each left out, at most 1 */
    double cusum_limit;
};

/* differences: runs x steps, row-major, finite or NaN (a step without both losses). At least two
 * runs and a step. False when there are fewer or memory is exhausted. Release by _fini. */
bool har_stat_alarm_calibrate(const double *differences, size_t runs, size_t steps,
                              struct har_alarm_null *out);
void har_stat_alarm_fini(struct har_alarm_null *null);

struct har_alarm_times {
    size_t e_step, cusum_step; /* from 1; 0 = no alarm */
    double e_largest;
};
/* Judges a run of `steps` differences; a difference that is infinite raises both alarms at once,
 * NaN is skipped: what a loss that is not finite means is for the caller to say. Steps beyond the
 * null's are not looked at. */
void har_stat_alarm_run(const struct har_alarm_null *null, const double *differences, size_t steps,
                        double alpha, struct har_alarm_times *out);
