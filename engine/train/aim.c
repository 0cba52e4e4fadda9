/* The first run of an aimed one. Called by train_main; must not know how a step goes. */
#include "aim.h"

#include <string.h>

static enum eng_status run_under(enum dev_sched sched, const struct eng_recipe *recipe,
                                 const struct eng_train_options *options, struct dev_aim *aims,
                                 size_t *count, struct eng_error *error)
{
    struct eng_train_options first = *options;
    struct eng_trainer *t = NULL;
    /* The trace's level and the states stay: what they add are operations of the program. */
    first.sched = sched;
    first.trace_path = NULL;
    first.timeline_path = NULL;
    first.states_path = options->states_path != NULL ? "/dev/null" : NULL;
    enum eng_status status = eng_trainer_create(recipe, &first, &t, error);
    if (status != ENG_OK) {
        return status;
    }
    struct eng_error cause = {.text = ""};
    const enum eng_status ended = eng_trainer_run(t, NULL, NULL, NULL, &cause);
    const struct dev_aim *found = dev_race_aims(t->device, count);
    if (*count > 0) {
        memcpy(aims, found, *count * sizeof *aims);
    }
    eng_trainer_destroy(t);
    if (ended == ENG_EUSAGE || ended == ENG_EINPUT) {
        *error = cause;
        return ended;
    }
    return ENG_OK;
}

enum eng_status eng_aim_find(const struct eng_recipe *recipe,
                             const struct eng_train_options *options, struct dev_aim *aims,
                             size_t *count, struct eng_error *error)
{
    enum eng_status status = run_under(DEV_SCHED_FIFO, recipe, options, aims, count, error);
    if (status == ENG_OK && *count == 0) {
        status = run_under(DEV_SCHED_LAZY, recipe, options, aims, count, error);
    }
    return status;
}
