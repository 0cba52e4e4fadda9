/* One training step as the host knows it: its inputs, counts, and the trace line in the making.
 * Filled by the loop from the loader's batch; kept until the line is written. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dev.h"
#include "eng_memory.h"
#include "eng_status.h"
#include "loader.h"
#include "textbuf.h"

struct eng_step {
    int number; /* training step, from 1; 0 = unused */
    int micro_count;
    size_t tokens;     /* positions of a micro-batch */
    int32_t *blocks;   /* micro_count input blocks (input.h) */
    int32_t *segments; /* (micro_count, tokens) */
    int *micro_supervised;
    int supervised;
    int previous_supervised; /* of the step before */
    uint64_t features;
    size_t skips[ENG_SKIP_COUNT]; /* records skipped, by reason */
    struct eng_position start; /* where its documents start */
    double lr;
    bool evaluated;
    struct eng_text line;   /* trace line so far */
    struct eng_text events; /* JSON objects, comma separated */
    struct dev_ledger ledger;
    bool host_known;
    size_t host_bytes[ENG_COMPONENT_COUNT];
    uint64_t mallocs;            /* of this step */
    size_t race_begin, race_end; /* entries of dev_races() found in this step */
    uint64_t race_count;
};

ENG_CHECKED enum eng_status eng_step_init(struct eng_step *s, int micro_count, size_t tokens,
                                          struct eng_error *error);
void eng_step_fini(struct eng_step *s);
/* Takes over a batch: everything that is needed after the loader's next call is copied. */
void eng_step_fill(struct eng_step *s, int number, const struct eng_step_batch *batch);
const int32_t *eng_step_block(const struct eng_step *s, int micro);
/* Appends an event: `json` is an object. */
void eng_step_event(struct eng_step *s, const struct eng_text *json);
