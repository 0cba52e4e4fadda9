/* Reader of campaigns: refuses with a message that names the file; what it accepts is in range.
 * The input is a file. Called by libFuzzer and replay_main.c. */
#include <string.h>

#include "fuzz.h"
#include "har_campaign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_file file = fuzz_file_open(data, size);
    struct har_campaign campaign = {0};
    struct har_error error = {""};
    const enum har_status status = har_campaign_load(file.path, &campaign, &error);
    if (status == HAR_OK) {
        for (size_t i = 0; i < campaign.recipe_count; i++) {
            fuzz_require(campaign.recipes[i][0] != '\0');
        }
        for (size_t i = 0; i < campaign.fault_count; i++) {
            fuzz_require(campaign.faults[i] != NULL);
        }
    } else {
        fuzz_require(status == HAR_EUSAGE);
        fuzz_require(strncmp(error.text, file.path, strlen(file.path)) == 0);
        fuzz_require(strlen(error.text) > strlen(file.path) + 2);
    }
    har_campaign_fini(&campaign);
    fuzz_file_close(&file);
    return 0;
}
