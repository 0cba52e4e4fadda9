/* The trainer's command line. Called by train_main and tests; must not know how a run goes. */
#pragma once

#include <stdbool.h>

#include "eng_status.h"
#include "trainer.h"

enum eng_command {
    ENG_COMMAND_TRAIN,
    ENG_COMMAND_EVALUATE,
    ENG_COMMAND_PLAN,
    ENG_COMMAND_VERSION,
    ENG_COMMAND_HELP
};

enum { ENG_DATA_FILES_MAX = 64 };

struct eng_command_line {
    enum eng_command command;
    const char *recipe;
    const char *data[ENG_DATA_FILES_MAX]; /* instead of the recipe's training files */
    unsigned data_count;                  /* 0 = the recipe's */
    const char *save;
    struct dev_aim aims[DEV_AIMS_MAX]; /* of --aim */
    size_t aim_count;
    bool quiet;
    struct eng_train_options train; /* texts point into argv or the environment */
};

/* Reads argv; `environment_fault` is FAULTLINE_FAULT or NULL, used when --fault is not given.
 * EUSAGE names the option. */
ENG_CHECKED enum eng_status eng_options_read(int argc, char **argv, const char *environment_fault,
                                             struct eng_command_line *out, struct eng_error *error);
/* Usage as text, and a list of options for --help. */
const char *eng_options_help(void);
