/* Asynchronous read-back of a step's results. Called by the loop; must not know the trace's format.
 */
#include "readback.h"

#include "devstatus.h"
#include "fault.h"
#include "trainer.h"

enum { GRANULE = 256 };

size_t eng_results_bytes(void)
{
    return ENG_RESULT_SLOTS * GRANULE;
}

size_t eng_results_pinned_bytes(size_t tokens)
{
    const size_t rms = (tokens * sizeof(float) + GRANULE - 1) / GRANULE * GRANULE;
    return ENG_RESULT_SLOTS * (GRANULE + rms);
}

enum eng_status eng_results_open(struct eng_trainer *t, struct eng_error *error)
{
    struct eng_results *r = &t->results;
    const size_t bytes = ENG_RESULT_COUNT * sizeof(float);
    enum dev_status status = dev_event_create(t->device, "step computed", &r->ready);
    for (size_t i = 0; status == DEV_OK && i < ENG_RESULT_SLOTS; i++) {
        status = dev_malloc(t->device, t->compute, bytes, "step results", (void **)&r->device[i]);
        if (status == DEV_OK) {
            status = dev_fill(t->device, t->compute, r->device[i], 0, bytes, "step results");
        }
        if (status == DEV_OK) {
            status = dev_pinned(t->device, bytes, "results on host", (void **)&r->host[i]);
        }
        if (status == DEV_OK) {
            status = dev_pinned(t->device, t->tokens * sizeof(float), "hidden rms on host",
                                (void **)&r->rms[i]);
        }
        if (status == DEV_OK) {
            status = dev_event_create(t->device, "results arrived", &r->arrived[i]);
        }
    }
    return eng_train_device(t->device, status, error);
}

static int slot_of(const struct eng_step *step)
{
    return step->number % ENG_RESULT_SLOTS;
}

/* The buffer on the device that a step's results are made in. */
float *eng_results_slot(struct eng_trainer *t, const struct eng_step *step)
{
    return t->results.device[FAULT(readback_ring, slot_of(step))];
}

enum eng_status eng_results_enqueue(struct eng_trainer *t, const struct eng_step *step,
                                    struct eng_error *error)
{
    struct eng_results *r = &t->results;
    const int slot = slot_of(step);
    const size_t rms_bytes = t->tokens * sizeof(float);
    enum dev_status status = dev_record(t->device, r->ready, t->compute);
    if (status == DEV_OK && FAULT(readback_wait, true)) {
        status = dev_wait(t->device, 0, r->ready);
    }
    if (status == DEV_OK) {
        status = dev_copy(t->device, 0, r->host[slot], eng_results_slot(t, step),
                          ENG_RESULT_COUNT * sizeof(float), "results to host");
    }
    if (status == DEV_OK && t->hidden_rms != NULL) {
        status =
            dev_copy(t->device, 0, r->rms[slot], t->hidden_rms, rms_bytes, "hidden rms to host");
    }
    enum eng_status result = eng_train_device(t->device, status, error);
    if (result == ENG_OK) {
        result = eng_sketches_copy(&t->sketches, 0, slot, error);
    }
    if (result == ENG_OK) {
        result = eng_train_device(t->device, dev_record(t->device, r->arrived[slot], 0), error);
    }
    return result;
}

enum eng_status eng_results_collect(struct eng_trainer *t, const struct eng_step *step,
                                    struct eng_step_results *out, struct eng_error *error)
{
    struct eng_results *r = &t->results;
    const int slot = slot_of(step);
    enum dev_status status = DEV_OK;
    if (FAULT(readback_sync, true)) {
        status = dev_sync_event(t->device, r->arrived[slot]);
    }
    if (status == DEV_OK) {
        status = dev_host(t->device, r->host[slot], ENG_RESULT_COUNT * sizeof(float), DEV_READ,
                          "read results");
    }
    if (status == DEV_OK) {
        status = dev_host(t->device, r->rms[slot], t->tokens * sizeof(float), DEV_READ,
                          "read hidden rms");
    }
    if (status != DEV_OK) {
        return eng_train_device(t->device, status, error);
    }
    const float *host = r->host[slot];
    *out = (struct eng_step_results){.loss_sum = host[ENG_RESULT_LOSS],
                                     .grad_norm = host[ENG_RESULT_NORM],
                                     .clip = host[ENG_RESULT_COEF],
                                     .eval_sum = host[ENG_RESULT_EVAL]};
    for (size_t i = 0; i < t->tokens; i++) {
        out->hidden_rms += (double)r->rms[slot][i] / (double)t->tokens;
    }
    return eng_sketches_host(&t->sketches, slot, error);
}

double eng_step_loss(const struct eng_step *step, const struct eng_step_results *r)
{
    return (double)r->loss_sum / (double)FAULT(readback_loss_count, step->supervised);
}
