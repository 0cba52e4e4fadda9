/* FAULT(site, healthy): the only macro that code under test ever sees.
 * Used by kernels and engine; must not know who arms a fault or why.
 *
 *   const float r = FAULT(rms_rstd, 1.0f / sqrtf(ss / n + eps));   a value
 *   i < FAULT(row_end, width)                                       a bound
 *   FAULT(sum_barrier, ROW_SYNC());                                 a barrier
 *   FAULT(out, y[i] = v);                                           a statement
 *   if (FAULT(wait_copy, true)) { dev_wait(...); }                  a step that may be left out
 *
 * Without MUT_ENABLED the healthy expression is all that is compiled. With it the site becomes a
 * chain of conditionals over the rows that mutants/<file>.def lists for the site; the result is
 * cast back to the type of the healthy expression, so a wider faulty one cannot widen the healthy
 * arm. Sites are not nested and hold no comma outside parentheses. */
#pragma once

#ifdef MUT_ENABLED
#include "fault_armed.h"
#else
#define FAULT(site, healthy) (healthy)
#define MUT_ENTER_STEP(step) ((void)(step))
/* What a kernel on a device and its launch carry for the sites of a twin: nothing here. */
#define MUT_LAUNCH_PARAMETER
#define MUT_LAUNCH_ENTER
#define MUT_LAUNCH_ARGUMENT(launch)
#define MUT_LAUNCH_BYTES 0
#endif
