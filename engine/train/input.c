/* Staging, upload and hand-over of micro-batches. Called by the loop and the evaluation; must not
 * know what they do with them. */
#include "input.h"

#include <stdbool.h>
#include <string.h>

#include "devstatus.h"
#include "fault.h"

static size_t block_bytes(size_t tokens)
{
    return ENG_BLOCK_ARRAYS * tokens * sizeof(int32_t);
}

size_t eng_feed_bytes(size_t tokens)
{
    enum { GRANULE = 256 };
    return ENG_FEED_SLOTS * ((block_bytes(tokens) + GRANULE - 1) / GRANULE * GRANULE);
}

enum eng_status eng_feed_open(struct eng_feed *f, dev *d, dev_stream copy, size_t tokens,
                              const char *name, struct eng_error *error)
{
    const size_t bytes = block_bytes(tokens);
    enum dev_status status = DEV_OK;
    *f = (struct eng_feed){.device = d, .tokens = tokens};
    for (size_t i = 0; status == DEV_OK && i < ENG_FEED_SLOTS; i++) {
        struct eng_slot *slot = &f->slot[i];
        status = dev_pinned(d, bytes, name, (void **)&slot->staged);
        if (status == DEV_OK) {
            status = dev_malloc(d, copy, bytes, name, (void **)&slot->resident);
        }
        if (status == DEV_OK) {
            status = dev_fill(d, copy, slot->resident, 0, bytes, name);
        }
        if (status == DEV_OK) {
            status = dev_event_create(d, "input copied", &slot->copied);
        }
        if (status == DEV_OK) {
            status = dev_event_create(d, "input consumed", &slot->consumed);
        }
    }
    return eng_train_device(d, status, error);
}

/* Slot of the nth block. */
static struct eng_slot *slot_of(struct eng_feed *f, uint64_t nth)
{
    return &f->slot[FAULT(input_slot, nth % ENG_FEED_SLOTS)];
}

/* Fills the pinned buffer once its former copy has left it. */
static enum dev_status fill_staging(struct eng_feed *f, struct eng_slot *slot, const int32_t *block)
{
    enum dev_status status = DEV_OK;
    if (FAULT(input_refill_wait, true)) {
        status = dev_sync_event(f->device, slot->copied);
    }
    if (status == DEV_OK) {
        status = dev_host(f->device, slot->staged, block_bytes(f->tokens), DEV_WRITE,
                          "fill input staging");
    }
    if (status == DEV_OK) {
        memcpy(slot->staged, block, block_bytes(f->tokens));
    }
    return status;
}

enum eng_status eng_feed_stage(struct eng_feed *f, dev_stream copy, const int32_t *block,
                               struct eng_error *error)
{
    struct eng_slot *slot = slot_of(f, f->staged++);
    enum dev_status status = fill_staging(f, slot, block);
    if (status == DEV_OK && FAULT(input_consumed_wait, true)) {
        status = dev_wait(f->device, copy, slot->consumed);
    }
    if (status == DEV_OK && FAULT(input_upload, true)) {
        status = dev_copy(f->device, copy, slot->resident, slot->staged, block_bytes(f->tokens),
                          "input to device");
    }
    slot->uploads++;
    if (status == DEV_OK) {
        status = dev_record(f->device, slot->copied, copy);
    }
    return eng_train_device(f->device, status, error);
}

enum eng_status eng_feed_take(struct eng_feed *f, dev_stream compute, struct eng_input *out,
                              struct eng_error *error)
{
    const struct eng_slot *slot = slot_of(f, f->taken++);
    const struct eng_slot *other = &f->slot[slot == &f->slot[0]];
    enum dev_status status = DEV_OK;
    (void)other; /* a fault waits for the wrong slot */
    if (FAULT(input_copied_wait, true)) {
        status = dev_wait(f->device, compute, FAULT(input_copied_event, slot->copied));
    }
    *out = (struct eng_input){.ids = slot->resident,
                              .labels = slot->resident + f->tokens,
                              .positions = slot->resident + 2 * f->tokens,
                              .first = slot->resident + 3 * f->tokens};
    return eng_train_device(f->device, status, error);
}

enum eng_status eng_feed_release(struct eng_feed *f, dev_stream compute, struct eng_error *error)
{
    struct eng_slot *slot = slot_of(f, f->taken - 1);
    return eng_train_device(f->device, dev_record(f->device, slot->consumed, compute), error);
}

void eng_feed_rewind(struct eng_feed *f)
{
    f->taken = f->staged;
}
