/* Root mean square of the final hidden state, per token, beside the running pass.
 * Called by the loop; must not know the model's insides. */
#include "stats.h"

#include <string.h>

#include "devstatus.h"
#include "fault.h"
#include "trainer.h"

enum eng_status eng_stats_open(struct eng_trainer *t, struct eng_error *error)
{
    return eng_train_device(
        t->device, dev_event_create(t->device, "hidden state ready", &t->stats_ready), error);
}

/* The pass frees x on its own stream; the side stream says that it reads it, too. */
static enum dev_status launch_rms(struct eng_trainer *t, const float *x, int rows, int width)
{
    const size_t count = (size_t)rows;
    const struct k_row_rms_args args = {.x = x, .out = t->hidden_rms, .width = width};
    const struct dev_span spans[] = {{x, count * (size_t)width * sizeof *x, DEV_READ},
                                     {t->hidden_rms, count * sizeof(float), DEV_WRITE}};
    enum dev_status status = dev_record(t->device, t->stats_ready, 0);
    if (status == DEV_OK && FAULT(stats_wait, true)) {
        status = dev_wait(t->device, t->side, t->stats_ready);
    }
    if (status == DEV_OK) {
        status = dev_launch(t->device, t->side, K_ID_row_rms, rows, &args, spans, 2, "hidden rms");
    }
    if (status == DEV_OK && FAULT(stats_used_on, true)) {
        status = dev_used_on(t->device, x, t->side);
    }
    return status;
}

static enum eng_status hidden_rms(struct eng_trainer *t, const float *x, int rows, int width,
                                  struct eng_error *error)
{
    enum dev_status status = DEV_OK;
    if (t->hidden_rms == NULL) {
        status = dev_malloc(t->device, t->compute, (size_t)rows * sizeof(float), "hidden rms",
                            (void **)&t->hidden_rms);
    }
    if (status == DEV_OK) {
        status = launch_rms(t, x, rows, width);
    }
    return eng_train_device(t->device, status, error);
}

enum eng_status eng_stats_tap(void *context, const char *name, const float *x, int rows, int width,
                              struct eng_error *error)
{
    struct eng_trainer *t = context;
    const int slot = t->pass.step->number % ENG_RING_SLOTS;
    const bool last = strcmp(name, "norm") == 0;
    const enum eng_status status = last ? hidden_rms(t, x, rows, width, error) : ENG_OK;
    if (status != ENG_OK) {
        return status;
    }
    return eng_sketches_tap(&t->sketches, FAULT(stats_sketch_stream, 0), slot, t->pass.tap++, x,
                            (size_t)rows * (size_t)width, error);
}

enum eng_status eng_stats_release(struct eng_trainer *t, struct eng_error *error)
{
    enum dev_status status = DEV_OK;
    if (t->hidden_rms != NULL) {
        status = dev_used_on(t->device, t->hidden_rms, t->side);
        if (status == DEV_OK) {
            status = dev_free_deferred(t->device, t->hidden_rms);
        }
        t->hidden_rms = NULL;
    }
    if (status == DEV_OK) {
        status = dev_sweep(t->device);
    }
    return eng_train_device(t->device, status, error);
}
