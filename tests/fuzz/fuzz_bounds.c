/* Reader of calibrated bounds: what is accepted is written and read again without a change.
 * The input is their JSON. Called by libFuzzer and replay_main.c. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "orc_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = malloc(size + 1);
    fuzz_require(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    struct orc_error error = {""};
    orc_bounds *bounds = NULL;
    orc_bounds *again = NULL;
    char *written = NULL;
    char *rewritten = NULL;
    const enum orc_status status = orc_bounds_parse(text, &bounds, &error);
    fuzz_require((status == ORC_OK) == (bounds != NULL));
    if (status == ORC_OK) {
        (void)orc_bounds_runs(bounds);
        fuzz_require(orc_bounds_summary(bounds) != NULL);
        fuzz_require(orc_bounds_write(bounds, &written) == ORC_OK);
        fuzz_require(orc_bounds_parse(written, &again, &error) == ORC_OK);
        fuzz_require(orc_bounds_write(again, &rewritten) == ORC_OK);
        fuzz_require(strcmp(written, rewritten) == 0);
    } else {
        fuzz_require(error.text[0] != '\0');
    }
    free(written);
    free(rewritten);
    orc_bounds_free(bounds);
    orc_bounds_free(again);
    free(text);
    return 0;
}
