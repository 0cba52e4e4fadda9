/* faultline merge: the results of all shards as those of one campaign. */
#include <stdio.h>

#include "har_cmd.h"
#include "har_merge.h"
#include "har_report.h"

enum har_status har_cmd_merge(const struct har_options *options, struct har_error *error)
{
    const char *const dir = options->out != NULL ? options->out : "faultline.out";
    const enum har_status status =
        har_merge_shards(dir, options->operands.items, options->operands.count, error);
    return status == HAR_OK ? har_report_finish(dir, options->json, error) : status;
}
