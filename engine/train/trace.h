/* Writes the trace of oracles/TRACE.md. Called by the loop; must not know how results are computed.
 * Lines of a step are made in two parts: what is known when its batch is read, and its results. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "eng_status.h"
#include "readback.h"
#include "sketches.h"
#include "stepdata.h"

struct eng_trainer;

struct eng_trace; /* an open trace file */

/* Opens options->trace_path and writes the header. */
ENG_CHECKED enum eng_status eng_trace_open(const struct eng_trainer *t, struct eng_trace **out,
                                           struct eng_error *error);
/* First part of a step's line: records and input hashes, contents on demand. */
void eng_trace_batch(struct eng_step *step, const struct eng_step_batch *batch, bool contents);
/* Second part: results, sketches, hashes, ledger, races, events; then the line is written. */
ENG_CHECKED enum eng_status eng_trace_step(struct eng_trace *trace, const struct eng_trainer *t,
                                           struct eng_step *step,
                                           const struct eng_step_results *results,
                                           struct eng_error *error);
/* Writes `end` with the status as a reason and closes the file; accepts NULL. `unfinished`: the
 * step the run stopped in, NULL when it stopped between steps. */
enum eng_status eng_trace_close(struct eng_trace *trace, const struct eng_trainer *t,
                                const char *status, const struct eng_step *unfinished,
                                struct eng_error *error);
