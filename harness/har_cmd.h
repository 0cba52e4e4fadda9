/* The subcommands. Each takes its parsed options, prints, and returns the status that becomes the
 * exit code. Called by har_main.c. */
#pragma once

#include "har_options.h"
#include "har_status.h"

#define HAR_ROW_(name, operands, text)                                                             \
    enum har_status har_cmd_##name(const struct har_options *options, struct har_error *error);
HAR_SUBCOMMANDS(HAR_ROW_)
#undef HAR_ROW_

struct har_results;
/* What is stored in --out (faultline.out), for subcommands that look at results. The caller frees
 * it by har_results_fini. */
HAR_CHECKED enum har_status har_cmd_load(const struct har_options *options,
                                         struct har_results *results, struct har_error *error);
