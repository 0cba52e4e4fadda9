/* States for a reference that follows. Called by the loop; must not know who reads them. */
#include "states.h"

#include <errno.h>
#include <string.h>

#include "devstatus.h"
#include "trainer.h"

enum { BUFFERS = 3 };

/* The format is little-endian, and so are all machines this runs on. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "states are written as they lie");

size_t eng_states_pinned_bytes(size_t parameters)
{
    enum { GRANULE = 256 };
    const size_t bytes = BUFFERS * parameters * sizeof(float);
    return ENG_RESULT_SLOTS * ((bytes + GRANULE - 1) / GRANULE * GRANULE);
}

static size_t buffer_elements(const struct eng_trainer *t)
{
    return (size_t)t->params->elements;
}

static enum eng_status write_failed(const struct eng_trainer *t, struct eng_error *error)
{
    return eng_fail(error, ENG_EIO, "%s: cannot be written: %s", t->options->states_path,
                    strerror(errno));
}

static void header(const struct eng_trainer *t, struct eng_text *h)
{
    const struct eng_params *p = t->params;
    eng_text_puts(h, "{\"type\":\"states\",\"states_version\":1,\"stack\":\"faultline-train\"");
    eng_text_puts(h, ",\"recipe_hash\":");
    eng_text_hash(h, t->recipe->hash);
    eng_text_puts(h, ",\"seed\":");
    eng_text_uint(h, t->seed);
    eng_text_puts(h, ",\"steps\":");
    eng_text_int(h, t->last_step);
    eng_text_puts(h, ",\"micro\":");
    eng_text_int(h, t->recipe->train.grad_accum);
    eng_text_puts(h, ",\"positions\":");
    eng_text_uint(h, t->tokens);
    eng_text_puts(h, ",\"tensors\":[");
    for (int i = 0; i < p->tensor_count; i++) {
        eng_text_puts(h, i > 0 ? "," : "");
        eng_text_string(h, p->tensors[i].name);
    }
    eng_text_puts(h, "],\"elements\":[");
    for (int i = 0; i < p->tensor_count; i++) {
        eng_text_puts(h, i > 0 ? "," : "");
        eng_text_int(h, p->tensors[i].elements);
    }
    eng_text_puts(h, "]}\n");
}

static enum eng_status open_file(struct eng_trainer *t, struct eng_error *error)
{
    struct eng_text h = {.data = NULL};
    enum eng_status status = ENG_OK;
    t->states.file = fopen(t->options->states_path, "wbe");
    if (t->states.file == NULL) {
        return write_failed(t, error);
    }
    header(t, &h);
    if (h.failed) {
        status = eng_fail(error, ENG_EHOSTMEM, "states: host memory exhausted");
    } else if (fwrite(h.data, 1, h.size, t->states.file) != h.size || fflush(t->states.file) != 0) {
        status = write_failed(t, error);
    }
    eng_text_fini(&h);
    return status;
}

enum eng_status eng_states_open(struct eng_trainer *t, struct eng_error *error)
{
    if (t->options->states_path == NULL) {
        return ENG_OK;
    }
    const size_t bytes = BUFFERS * buffer_elements(t) * sizeof(float);
    enum dev_status status = DEV_OK;
    for (size_t i = 0; status == DEV_OK && i < ENG_RESULT_SLOTS; i++) {
        status = dev_pinned(t->device, bytes, "states on host", (void **)&t->states.host[i]);
    }
    const enum eng_status result = eng_train_device(t->device, status, error);
    return result == ENG_OK ? open_file(t, error) : result;
}

/* Slot n is written again only by step n + 2, which is enqueued after the host has read it. */
static float *slot_of(const struct eng_trainer *t, const struct eng_step *step)
{
    return t->states.host[step->number % ENG_RESULT_SLOTS];
}

enum eng_status eng_states_enqueue(struct eng_trainer *t, const struct eng_step *step,
                                   struct eng_error *error)
{
    const float *const buffers[BUFFERS] = {t->params->param, t->params->moment1,
                                           t->params->moment2};
    const size_t count = buffer_elements(t);
    enum dev_status status = DEV_OK;
    for (size_t i = 0; t->states.file != NULL && status == DEV_OK && i < BUFFERS; i++) {
        status = dev_copy(t->device, 0, slot_of(t, step) + i * count, buffers[i],
                          count * sizeof(float), "states to host");
    }
    return eng_train_device(t->device, status, error);
}

static bool write_batch(const struct eng_step *step, FILE *file)
{
    enum { IN_BLOCK = ENG_BLOCK_ARRAYS - 1 }; /* ids, labels, positions; segments lie apart */
    bool ok = true;
    for (size_t a = 0; ok && a < IN_BLOCK; a++) {
        for (int m = 0; ok && m < step->micro_count; m++) {
            ok = fwrite(eng_step_block(step, m) + a * step->tokens, sizeof(int32_t), step->tokens,
                        file) == step->tokens;
        }
    }
    const size_t all = (size_t)step->micro_count * step->tokens;
    return ok && fwrite(step->segments, sizeof(int32_t), all, file) == all;
}

enum eng_status eng_states_write(struct eng_trainer *t, const struct eng_step *step,
                                 struct eng_error *error)
{
    FILE *const file = t->states.file;
    if (file == NULL) {
        return ENG_OK;
    }
    const size_t count = BUFFERS * buffer_elements(t);
    const float *const host = slot_of(t, step);
    const uint64_t number = (uint64_t)step->number;
    const enum eng_status status = eng_train_device(
        t->device, dev_host(t->device, host, count * sizeof *host, DEV_READ, "read states"), error);
    if (status != ENG_OK) {
        return status;
    }
    const bool ok = fwrite(&number, sizeof number, 1, file) == 1 && write_batch(step, file) &&
                    fwrite(host, sizeof *host, count, file) == count && fflush(file) == 0;
    return ok ? ENG_OK : write_failed(t, error);
}

enum eng_status eng_states_finish(struct eng_trainer *t, struct eng_error *error)
{
    const uint64_t end = 0;
    FILE *const file = t->states.file;
    if (file == NULL) {
        return ENG_OK;
    }
    t->states.file = NULL;
    const bool ok = fwrite(&end, sizeof end, 1, file) == 1;
    return fclose(file) == 0 && ok ? ENG_OK : write_failed(t, error);
}

void eng_states_close(struct eng_states *s)
{
    if (s->file != NULL) {
        fclose(s->file);
        s->file = NULL;
    }
}
