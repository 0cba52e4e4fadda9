/* Row programs: one kernel source for the host, CUDA and emulated lanes.
 * Included by kernels/<file>.cu alone; must not know who launches a program.
 *
 * A program runs once per row by a group of ROW_L lanes (32, 64, ... 1024, fixed per program),
 * written in the common subset of C11 and CUDA C++. Inside, `a` is the argument struct and `row`
 * the row.
 *
 *   ROW_KERNEL(name, lanes) { ... }     defines program `name` with arguments struct k_<name>_args
 *   ROW_FN type helper(...) { ... }     a function that programs of this file call
 *   ROW_FOR(i, n) { ... }               0 <= i < n, lane i % ROW_L runs i
 *   ROW_SUM(out, i, n, expr)            out = sum of expr; every lane gets it
 *   ROW_DOT(out, i, n, u, v)            out = sum of u * v, fused
 *   ROW_MAX(out, i, n, expr)            out = largest expr, -FLT_MAX for n = 0
 *   ROW_ONE { ... }                     one lane runs it
 *   ROW_SYNC()                          all lanes meet and see what the others wrote
 *
 * and below them, for several sums in one pass:
 *   ROW_LANES(type, v)                  one v per lane, used as v[ROW_MINE]; v may be w[3]
 *   ROW_EACH { ... }                    every lane runs it
 *   ROW_WALK(i, n, { ... })             ROW_FOR in increasing i for each lane; may use v[ROW_MINE]
 *   ROW_FOLD_SUM(out, v)                out = sum over lanes of float v
 *   ROW_FOLD_MAX(out, v)                out = largest v
 *   ROW_FOLD_WORDS(out, v)              out = sum over lanes of uint32_t v modulo 2^32
 *   ROW_LANE                            number of this lane, in ROW_EACH and ROW_WALK
 *
 * Order of a reduction, on every back end: element i goes to lane i % ROW_L in increasing i; each
 * warp of 32 lanes folds by halves (16, 8, 4, 2, 1: lane l takes lane l + half); warp results are
 * added from left to right. So bits depend on neither vector width, threads, compiler nor device.
 *
 * Rules: after ROW_FOR a lane may read only what it wrote itself, until ROW_SYNC. Reductions and
 * ROW_SYNC stand where all lanes of the row come by. No restrict on pointers that may alias. */
#pragma once

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fault.h"
#include "kernel.h"

#define ROW_UNUSED __attribute__((unused))

/* Lanes of the running program, an integer constant expression. */
#define ROW_L ((int)sizeof *row_lanes_)

#if defined(__CUDACC__)
#include "row_cuda.h"
#elif defined(ROW_EMULATED)
#include "row_emulated.h"
#else
#include "row_host.h"
#endif

#include "row_math.h"

#define ROW_SUM(out, i, n, ...)                                                                    \
    do {                                                                                           \
        ROW_LANES(float, acc_);                                                                    \
        ROW_EACH { acc_[ROW_MINE] = 0.0f; }                                                        \
        ROW_WALK(i, n, acc_[ROW_MINE] += (__VA_ARGS__))                                            \
        ROW_FOLD_SUM(out, acc_);                                                                   \
    } while (0)

#define ROW_DOT(out, i, n, u, v)                                                                   \
    do {                                                                                           \
        ROW_LANES(float, acc_);                                                                    \
        ROW_EACH { acc_[ROW_MINE] = 0.0f; }                                                        \
        ROW_WALK(i, n, acc_[ROW_MINE] = fmaf((u), (v), acc_[ROW_MINE]))                            \
        ROW_FOLD_SUM(out, acc_);                                                                   \
    } while (0)

#define ROW_MAX(out, i, n, ...)                                                                    \
    do {                                                                                           \
        ROW_LANES(float, acc_);                                                                    \
        ROW_EACH { acc_[ROW_MINE] = -FLT_MAX; }                                                    \
        ROW_WALK(i, n, acc_[ROW_MINE] = row_max(acc_[ROW_MINE], (__VA_ARGS__)))                    \
        ROW_FOLD_MAX(out, acc_);                                                                   \
    } while (0)
