/* How the phases of a step reach a processor: on the calling thread, or as tasks on a pool of two
 * threads among which successive tasks migrate, as an asynchronous runtime would do it.
 * Called by the loop; must not know what the phases do. Both drivers give the same bits.
 *
 * The device keeps its current stream per thread. A task states the stream its operations go to;
 * the driver binds it before the task starts. */
#pragma once

#include "dev.h"
#include "eng_memory.h"
#include "eng_status.h"

enum eng_driver_kind { ENG_DRIVER_SINGLE, ENG_DRIVER_TASKS };
enum eng_phase {
    ENG_PHASE_INPUT,
    ENG_PHASE_PASS,
    ENG_PHASE_UPDATE,
    ENG_PHASE_READBACK,
    ENG_PHASE_OTHER
};

struct eng_task {
    enum eng_phase phase;
    dev_stream stream;
    enum eng_status (*run)(void *context, struct eng_error *error);
    void *context;
};

typedef struct eng_driver eng_driver;

ENG_CHECKED enum eng_status eng_driver_open(dev *d, const struct eng_memory *memory,
                                             enum eng_driver_kind kind, eng_driver **out,
                                            struct eng_error *error);
void eng_driver_close(eng_driver *driver); /* joins the threads; accepts NULL */
/* Runs a task to its end. */
ENG_CHECKED enum eng_status eng_driver_run(eng_driver *driver, const struct eng_task *task,
                                           struct eng_error *error);
