/* Reader of traces and the judges behind it: whatever is accepted can be judged against itself
 * without a difference. The input is a trace, zstd-compressed when it begins like one. Links
 * nothing of the trainer. Called by libFuzzer and replay_main.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "orc_check.h"

static void check_accessors(const orc_trace *trace)
{
    const char *const *features = NULL;
    const char *which = NULL;
    const int first = orc_trace_first_step(trace);
    const int last = orc_trace_last_step(trace);
    fuzz_require(first >= 1 && last >= 0);
    for (int step = first; step <= last && step - first < 8; step++) {
        (void)orc_trace_loss(trace, step);
        (void)orc_trace_eval_loss(trace, step);
    }
    (void)orc_trace_ended(trace);
    fuzz_require(orc_trace_fault_reached(trace) >= -1);
    (void)orc_trace_site_reached(trace, "norm_rstd");
    const size_t count = orc_trace_features(trace, &features);
    for (size_t i = 0; i < count; i++) {
        fuzz_require(features[i] != NULL);
    }
    fuzz_require(orc_trace_first_difference(trace, trace, &which) == 0);
}

static void check_judges(const orc_trace *trace, const orc_trace *again)
{
    struct orc_verdict verdicts[ORC_CHECK_COUNT];
    struct orc_error error = {""};
    struct orc_divergence divergence = {.found = false};
    const struct orc_case c = {.subject = trace, .reference = again, .repeat = again};
    if (orc_judge(&c, NULL, verdicts, &error) == ORC_OK) {
        for (int i = 0; i < ORC_CHECK_COUNT; i++) {
            const struct orc_verdict *const v = &verdicts[i];
            fuzz_require(!v->fired || v->applicable);
            fuzz_require(!v->applicable || v->compared > 0);
        }
        fuzz_require(!verdicts[ORC_CHECK_text].fired && !verdicts[ORC_CHECK_tokens].fired);
        fuzz_require(!verdicts[ORC_CHECK_repeat].fired);
    }
    if (orc_diff(trace, again, NULL, &divergence, &error) == ORC_OK) {
        fuzz_require(!divergence.found);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_file file = fuzz_file_open(data, size);
    char path[80];
    snprintf(path, sizeof path, "%s", file.path);
    const bool compressed = size >= 4 && memcmp(data, "\x28\xB5\x2F\xFD", 4) == 0;
    if (compressed) { /* readers go by the name */
        snprintf(path, sizeof path, "/tmp/fuzz_trace_%d.jsonl.zst", (int)getpid());
        fuzz_require(symlink(file.path, path) == 0);
    }
    struct orc_error error = {""};
    orc_trace *trace = NULL;
    orc_trace *again = NULL;
    const enum orc_status status = orc_trace_read(path, &trace, &error);
    fuzz_require((status == ORC_OK) == (trace != NULL));
    if (status == ORC_OK) {
        fuzz_require(orc_trace_read(path, &again, &error) == ORC_OK);
        check_accessors(trace);
        check_judges(trace, again);
    } else {
        fuzz_require(strncmp(error.text, path, strlen(path)) == 0);
        fuzz_require(strlen(error.text) > strlen(path) + 2);
    }
    orc_trace_free(trace);
    orc_trace_free(again);
    if (compressed) {
        unlink(path);
    }
    fuzz_file_close(&file);
    return 0;
}
