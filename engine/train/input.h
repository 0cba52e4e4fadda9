/* The way of micro-batches to the device: pinned staging and device slots, both double-buffered.
 * Called by the loop and the evaluation; must not know models or optimizers.
 *
 * A block is 4 * tokens words: ids, labels, positions, first. Order of use: stage one block ahead,
 * then take / release per block. Stages run on the copy stream, takers on the compute stream; the
 * events `copied` and `consumed` of a slot are the only order between them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dev.h"
#include "eng_status.h"
#include "model.h"

enum { ENG_BLOCK_ARRAYS = 4, ENG_FEED_SLOTS = 2 };

struct eng_slot {
    int32_t *staged;   /* pinned */
    int32_t *resident; /* device */
    dev_event copied, consumed;
    uint64_t uploads;
};

struct eng_feed {
    dev *device;
    size_t tokens; /* of one array */
    struct eng_slot slot[ENG_FEED_SLOTS];
    uint64_t staged, taken; /* blocks so far */
};

/* Bytes of device memory, and of pinned memory, that a feed takes. */
size_t eng_feed_bytes(size_t tokens);

/* Allocates on `copy`; `names` is a literal that tells feeds apart in reports. The memory lives
 * until dev_close(). */
ENG_CHECKED enum eng_status eng_feed_open(struct eng_feed *f, dev *d, dev_stream copy,
                                          size_t tokens, const char *name, struct eng_error *error);
ENG_CHECKED enum eng_status eng_feed_stage(struct eng_feed *f, dev_stream copy,
                                           const int32_t *block, struct eng_error *error);
/* Makes `compute` wait for the oldest block not yet taken and says where it lies. */
ENG_CHECKED enum eng_status eng_feed_take(struct eng_feed *f, dev_stream compute,
                                          struct eng_input *out, struct eng_error *error);
/* The block taken last may be overwritten once `compute` has come here. */
ENG_CHECKED enum eng_status eng_feed_release(struct eng_feed *f, dev_stream compute,
                                             struct eng_error *error);
/* Forgets blocks that were staged and not taken. */
void eng_feed_rewind(struct eng_feed *f);
