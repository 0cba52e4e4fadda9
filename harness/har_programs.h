/* Finds the programs the harness drives.
 * Called by har_lab.c and doctor; must not know what they are run for. */
#pragma once

#include <stdint.h>

#include "har_options.h"
#include "har_status.h"

/* field, option and file name, environment variable, folders beside the faultline program */
#define HAR_PROGRAMS(X)                                                                            \
    X(train, "faultline-train", "FAULTLINE_TRAIN")                                                 \
    X(train_production, "faultline-train-production", "FAULTLINE_TRAIN_PRODUCTION")                \
    X(train_lanes, "faultline-train-lanes", "FAULTLINE_TRAIN_LANES")                               \
    X(ref, "faultline-ref", "FAULTLINE_REF")                                                       \
    X(init, "faultline-init", "FAULTLINE_INIT")                                                    \
    X(text_stage, "oracles/text/text_stage.py", "FAULTLINE_TEXT_STAGE")                            \
    X(python, "/usr/bin/python3", "FAULTLINE_PYTHON")

struct har_programs {
#define HAR_ROW_(field, file, variable) char *field;
    HAR_PROGRAMS(HAR_ROW_)
#undef HAR_ROW_
};

/* Option, then environment, then the build tree around this program. HAR_EUSAGE names what is
 * missing and where it was looked for. Released by har_programs_fini. */
HAR_CHECKED enum har_status har_programs_find(const struct har_options *options,
                                              struct har_programs *out, struct har_error *error);
/* A file of the source tree this program was built in, or beside it; caller frees, NULL = not
 * found. */
char *har_programs_source(const char *file);
void har_programs_fini(struct har_programs *programs);
/* Hash of all programs that take part in results: a rebuilt trainer is another experiment. Those
 * that were not looked for (NULL) take no part. */
HAR_CHECKED enum har_status har_programs_hash(const struct har_programs *programs, uint64_t *hash,
                                              struct har_error *error);
