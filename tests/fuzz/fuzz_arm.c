/* Arms the fault that FAULTLINE_FAULT names, as `faultline fuzz` asks, and says at the end which
 * watched sites ran. Linked into fuzzers of the engine; must not know which target runs. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fault.h"
#include "fuzz.h"
#include "registry.h"
#include "select.h"

enum { CANNOT_ARM = 2 };

int LLVMFuzzerInitialize(int *argc, char ***argv);

/* One line a watched site that ran. Written without buffers: a finding ends the process. */
void fuzz_at_end(void)
{
    for (size_t i = 0; i < mut_site_count(); i++) {
        if (mut_reached_step(i) >= 0) {
            dprintf(STDERR_FILENO, "fuzz: reached %s\n", mut_site_at(i)->site);
        }
    }
}

static _Noreturn void refuse(const char *spec, const char *cause)
{
    fprintf(stderr, "fuzz: FAULTLINE_FAULT=%s: %s\n", spec, cause);
    _exit(CANNOT_ARM);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *const spec = getenv("FAULTLINE_FAULT");
    char error[MUT_ERROR_MAX] = "";
    (void)argc;
    (void)argv;
    if (spec == NULL) {
        return 0;
    }
    if (!mut_select(spec, error, sizeof error)) {
        refuse(spec, error);
    }
    if (mut_armed_from_step() != 0) {
        refuse(spec, "a fuzzer has no steps");
    }
    fprintf(stderr, "fuzz: armed %s\n", spec);
    fprintf(stderr, "fuzz: judges %s\n", FUZZ_JUDGES);
    if (atexit(fuzz_at_end) != 0) {
        refuse(spec, "no memory");
    }
    return 0;
}
