/* faultline fuzz: how many executions the fuzzers need to notice a fault. */
#include <stdio.h>

#include "har_cmd.h"
#include "har_fuzz.h"

/* A healthy target that alarms, then runs that say nothing. */
static enum har_status judge(const struct har_fuzz *fuzz, struct har_error *error)
{
    enum har_status status = HAR_OK;
    for (size_t c = 0; c < fuzz->cell_count; c++) {
        const struct har_fuzz_cell *const cell = &fuzz->cells[c];
        for (int r = 0; r < fuzz->repeats; r++) {
            const struct har_fuzz_run *const run = &cell->runs[r];
            enum har_status here = HAR_OK;
            if (run->done && run->end == HAR_FUZZ_no_verdict) {
                here = HAR_EINCOMPLETE;
            } else if (run->done && cell->fault == NULL && run->end != HAR_FUZZ_quiet) {
                here = HAR_EALARM;
            }
            if (here != HAR_OK && har_status_worse(here, status) == here && here != status) {
                status = har_fail(error, here, "%s %s seed %llu: %s", cell->target->name,
                                  cell->fault == NULL ? "with nothing armed" : cell->spec,
                                  (unsigned long long)run->seed, run->by);
            }
        }
    }
    return status;
}

enum har_status har_cmd_fuzz(const struct har_options *options, struct har_error *error)
{
    struct har_fuzz fuzz;
    enum har_status status = har_fuzz_open(options, &fuzz, error);
    if (status == HAR_OK) {
        status = har_fuzz_run_all(&fuzz, error);
    }
    if (status == HAR_OK || status == HAR_EINTERRUPTED) {
        struct har_error print_error;
        const enum har_status printed = options->json ? har_fuzz_print_json(&fuzz, &print_error)
                                                      : har_fuzz_print_text(&fuzz, &print_error);
        if (status == HAR_OK && printed != HAR_OK) {
            status = printed;
            *error = print_error;
        }
    }
    if (status == HAR_OK) {
        status = judge(&fuzz, error);
    }
    har_fuzz_close(&fuzz);
    return status;
}
