/* Fibers that play the lanes of a GPU row. Used by row_emulated.h and tests; must not know
 * programs. */
#pragma once

#include <stdint.h>

enum { ROW_EMULATOR_LANES = 1024 };

typedef void row_emulator_lane_fn(const void *args, int row, int lane);

/* Runs rows [row_begin, row_end), each by `lanes` fibers of the calling thread. Ends the
 * process with a sentence: exit code 9 when some lanes of a row meet while others have ended, 70
 * when there is no memory for their stacks. */
void row_emulator_run(row_emulator_lane_fn *fn, int lanes, const void *args, int row_begin,
                      int row_end);

/* The order in which lanes run is a function of (seed, row). Set before any row runs. */
void row_emulator_seed(uint64_t seed);

/* Called by a lane: returns after every lane of the row has called it. */
void row_emulator_meet(void);

/* Called by a lane: meets, then returns the bits that each lane gave. Valid until the lane's second
 * next call. */
const uint32_t *row_emulator_share(uint32_t bits, int lane);
