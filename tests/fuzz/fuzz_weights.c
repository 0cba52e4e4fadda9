/* Readers of safetensors: what the trainer takes, the reference takes with the same values, and
 * what the trainer writes back it reads again. The input is a file for the model below. Called by
 * libFuzzer and replay_main.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "model.h"
#include "ref_params.h"

static const struct eng_model_config config = {.layers = 1,
                                               .width = 2,
                                               .heads = 1,
                                               .kv_heads = 1,
                                               .ffn = 2,
                                               .context = 2,
                                               .vocab = 3,
                                               .tied = true,
                                               .norm_eps = 1e-5f,
                                               .rope_theta = 100.0,
                                               .rows = 1};
static const struct orc_ref_shape shape = {.layers = 1,
                                           .width = 2,
                                           .heads = 1,
                                           .kv_heads = 1,
                                           .ffn = 2,
                                           .context = 2,
                                           .vocab = 3,
                                           .tied = true,
                                           .norm_eps = 1e-5,
                                           .rope_theta = 100.0};

struct world {
    dev *device;
    dev_stream stream;
    eng_model *model;
    struct orc_ref_params given, written;
};

static void open_world(struct world *w)
{
    const struct dev_conf conf = {.heap_bytes = 1 << 20,
                                  .pinned_bytes = ENG_MODEL_PINNED_BYTES + 4096,
                                  .sched = DEV_SCHED_FIFO,
                                  .threads = 1,
                                  .check_races = false,
                                  .poison = false};
    struct eng_error error = {""};
    fuzz_require(dev_open(&conf, &w->device) == DEV_OK);
    fuzz_require(dev_stream_create(w->device, "compute", &w->stream) == DEV_OK);
    fuzz_require(eng_model_create(w->device, w->stream, &config, &w->model, &error) == ENG_OK);
    fuzz_require(orc_ref_params_init(&w->given, &shape, NULL) == ORC_REF_OK);
    fuzz_require(orc_ref_params_init(&w->written, &shape, NULL) == ORC_REF_OK);
}

/* Written back, read by the reference, compared with what the reference read from the input. */
static void check_values(struct world *w)
{
    struct fuzz_file out = fuzz_file_open("", 0);
    const float *const values = eng_model_params(w->model)->param;
    fuzz_require(eng_model_save(w->model, w->stream, out.path, values, NULL) == ENG_OK);
    fuzz_require(orc_ref_weights_load(out.path, &w->written, NULL) == ORC_REF_OK);
    const size_t bytes = w->given.total * sizeof *w->given.value;
    fuzz_require(bytes > 0);
    fuzz_require(memcmp(w->given.value, w->written.value, bytes) == 0);
    fuzz_require(eng_model_load(w->model, w->stream, out.path, eng_model_params(w->model)->param,
                                NULL) == ENG_OK);
    fuzz_file_close(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world w;
    if (w.device == NULL) {
        open_world(&w);
    }
    struct fuzz_file file = fuzz_file_open(data, size);
    struct eng_error error = {""};
    struct orc_ref_error reference_error = {""};
    const enum eng_status status =
        eng_model_load(w.model, w.stream, file.path, eng_model_params(w.model)->param, &error);
    const enum orc_ref_status reference =
        orc_ref_weights_load(file.path, &w.given, &reference_error);
    fuzz_require(status == ENG_OK || status == ENG_EINPUT);
    fuzz_require(reference == ORC_REF_OK || reference == ORC_REF_BAD);
    if (status != ENG_OK) {
        fuzz_require(strncmp(error.text, file.path, strlen(file.path)) == 0);
    } else if (reference != ORC_REF_OK) {
        /* The only thing the reference asks beyond the trainer. */
        fuzz_require(strstr(reference_error.text, "not finite") != NULL);
    } else {
        check_values(&w);
    }
    fuzz_file_close(&file);
    return 0;
}
