/* check_run TRACE...: which checks that need no second run and no bounds fire on each trace, one line each: path, check,
 * step, what it says; "-" for none. Exit 1: a trace cannot be read or has no step. Used by tests of the device's faults;
 * must not know the trainer. */
#include <stdio.h>
#include <stdlib.h>

#include "orc_check.h"

static bool judge(const char *path)
{
    struct orc_error error = {""};
    struct orc_verdict verdicts[ORC_CHECK_COUNT];
    orc_trace *trace = NULL;
    enum orc_status status = orc_trace_read(path, &trace, &error);
    if (status == ORC_OK) {
        const struct orc_case c = {.subject = trace};
        status = orc_judge(&c, NULL, verdicts, &error);
    }
    int fired = 0;
    for (int i = 0; status == ORC_OK && i < ORC_CHECK_COUNT; i++) {
        const struct orc_verdict *v = &verdicts[i];
        if (v->applicable && v->fired) {
            printf("%s\t%s\t%d\t%s\n", path, orc_check_name((enum orc_check_id)i), v->step,
                   v->detail);
            fired++;
        }
    }
    if (status == ORC_OK && fired == 0) {
        printf("%s\t-\n", path);
    } else if (status != ORC_OK) {
        fprintf(stderr, "check_run: %s: %s\n", path, error.text);
    }
    orc_trace_free(trace);
    return status == ORC_OK;
}

int main(int argc, char **argv)
{
    bool good = argc > 1;
    for (int i = 1; i < argc; i++) {
        good = judge(argv[i]) && good;
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
