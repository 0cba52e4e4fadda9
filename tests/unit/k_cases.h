/* Seeded inputs for every row program, in several variants that together trigger every fault of the
 * kernels. Used by the kernel tests; must not know what they compare. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"

enum { K_CASE_VARIANTS = 2 };

/* What a run of a program left behind. */
struct k_case_result {
    uint64_t hash; /* FNV-1a over all bytes of all outputs */
    size_t bytes;  /* how many */
};

/* Fills fresh inputs for (id, variant), which depend on nothing else, runs fn on them in `pieces`
 * ranges of rows, last range first, and hashes what it wrote. */
struct k_case_result k_case_run(enum k_id id, int variant, k_rows_fn *fn, int pieces);
/* The same in memory of the caller's: K_CASE_POOL_BYTES, 64-byte aligned, overwritten. */
enum { K_CASE_POOL_BYTES = 1 << 20 };
struct k_case_result k_case_run_in(enum k_id id, int variant, k_rows_fn *fn, int pieces,
                                   void *pool);
