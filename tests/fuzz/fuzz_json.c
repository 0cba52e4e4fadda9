/* One record of each format against jansson and the rules of corpus/RECIPE.md. The first byte of
 * the input chooses the format, the rest is the line. Called by libFuzzer and replay_main.c. */
#include "fuzz.h"
#include "record_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct eng_conversation chat = {
        0}; /* grown anew for every record, so that a read behind shows */
    if (size >= 2) {
        record_check((enum eng_format)(data[0] % 4), (const char *)data + 1, size - 1, &chat);
    }
    eng_conversation_fini(&chat);
    return 0;
}
