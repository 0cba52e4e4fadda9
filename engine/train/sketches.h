/* Sketches and hashes of device tensors for the trace, kept in a device ring of two steps and read
 * back where the untraced program copies anyway: no host wait and no cross-stream order of their
 * own. Called by the loop and the optimizer; must not know the trace's format. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dev.h"
#include "eng_status.h"
#include "model.h"
#include "sketch.h"

enum eng_level { ENG_LEVEL_NONE, ENG_LEVEL_HASHES, ENG_LEVEL_FULL };

/* Which flat buffer. ENG_SKETCH_UPDATE only at ENG_LEVEL_FULL. */
enum eng_sketched {
    ENG_SKETCH_GRAD,
    ENG_SKETCH_PARAM,
    ENG_SKETCH_MOMENT1,
    ENG_SKETCH_MOMENT2,
    ENG_SKETCH_UPDATE,
    ENG_SKETCHED_COUNT
};

enum { ENG_RING_SLOTS = 2, ENG_TAP_SIZES_MAX = 8 };

/* Chunk table over one contiguous tensor of a tap's size. */
struct eng_tap_table {
    size_t elements;
    int chunk_count;
    const struct k_chunk *chunks;
    const int32_t *first_chunk;
};

struct eng_sketches {
    dev *device;
    enum eng_level level;
    const struct eng_params *params;
    size_t tensor_count, tap_count, micro_count;
    struct eng_tap_table tap[ENG_TAP_SIZES_MAX];
    size_t tap_sizes;
    struct k_sketch *part; /* scratch, on the compute stream */
    size_t part_count;
    unsigned char *ring[ENG_RING_SLOTS];
    unsigned char *host[ENG_RING_SLOTS]; /* pinned */
    size_t slot_bytes;
};

/* Device memory that sketches need beyond the model, for the plan. */
size_t eng_sketches_bytes(const struct eng_model_config *c, enum eng_level level, int micro_count);
size_t eng_sketches_pinned_bytes(const struct eng_model_config *c, enum eng_level level,
                                 int micro_count);

/* Allocates on `stream`; with ENG_LEVEL_NONE nothing is allocated and all calls below do nothing.
 */
ENG_CHECKED enum eng_status eng_sketches_open(struct eng_sketches *s, dev *d, dev_stream stream,
                                              const eng_model *model,
                                              const struct eng_model_config *config,
                                              enum eng_level level, int micro_count,
                                              struct eng_error *error);

/* Enqueue: sketches of all tensors of a flat buffer; of one tap; hash of a micro-batch's input. */
ENG_CHECKED enum eng_status eng_sketches_tensors(struct eng_sketches *s, dev_stream stream,
                                                 int slot, enum eng_sketched which,
                                                 const float *flat, struct eng_error *error);
ENG_CHECKED enum eng_status eng_sketches_tap(struct eng_sketches *s, dev_stream stream, int slot,
                                             size_t tap, const float *x, size_t elements,
                                             struct eng_error *error);
ENG_CHECKED enum eng_status eng_sketches_input(struct eng_sketches *s, dev_stream stream, int slot,
                                               int micro, const int32_t *block, size_t words,
                                               struct eng_error *error);
/* Enqueue the copy of a slot to pinned memory; later, once it has arrived, declare the host's read.
 */
ENG_CHECKED enum eng_status eng_sketches_copy(struct eng_sketches *s, dev_stream stream, int slot,
                                              struct eng_error *error);
ENG_CHECKED enum eng_status eng_sketches_host(struct eng_sketches *s, int slot,
                                              struct eng_error *error);

/* What arrived in a slot. */
const struct k_sketch *eng_sketches_tensor_at(const struct eng_sketches *s, int slot,
                                              enum eng_sketched which, size_t tensor);
const struct k_sketch *eng_sketches_tap_at(const struct eng_sketches *s, int slot, size_t tap);
const uint32_t *eng_sketches_input_at(const struct eng_sketches *s, int slot, int micro);
