/* One epoch from file to packed steps: time and peak memory. Run by run.sh; never a test.
 *   data_bench FILE TOKENIZER TEMPLATE VOCAB CONTEXT [first_fit|wrapped|true] [cipher|permutation]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "loader.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum eng_packing packing_of(const char *word)
{
    return strcmp(word, "first_fit") == 0 ? ENG_PACK_FIRST_FIT
           : strcmp(word, "wrapped") == 0 ? ENG_PACK_WRAPPED
                                          : ENG_PACK_NEXT;
}

int main(int argc, char **argv)
{
    if (argc < 8) {
        fprintf(stderr, "usage: data_bench FILE TOKENIZER TEMPLATE VOCAB CONTEXT PACKING ORDER\n");
        return 1;
    }
    const char *const files[] = {argv[1]};
    const struct eng_loader_options options = {
        .files = files,
        .file_count = 1,
        .tokenizer_path = argv[2],
        .template_name = argv[3],
        .vocab = atoi(argv[4]),
        .context = atoi(argv[5]),
        .packing = packing_of(argv[6]),
        .order = strcmp(argv[7], "cipher") == 0 ? ENG_ORDER_CIPHER : ENG_ORDER_PERMUTATION,
        .shuffle = true,
        .pad_token = "<|pad|>",
        .seed = 1,
        .rows = 8,
        .micro_count = 1};
    struct eng_error error = {""};
    eng_loader *loader = NULL;
    struct rusage usage;
    double records = 0;
    double tokens = 0;
    double used = 0;
    const double start = now();
    enum eng_status status = eng_loader_open(&options, &loader, &error);
    const double opened = now();
    while (status == ENG_OK && eng_loader_position(loader).epoch == 0) {
        const struct eng_step_batch *batch = NULL;
        status = eng_loader_next(loader, &batch, &error);
        for (size_t i = 0; status == ENG_OK && i < batch->record_count; i++) {
            records++;
            used += batch->records[i].count;
        }
        tokens += status == ENG_OK ? (double)batch->rows * batch->context : 0;
    }
    if (status != ENG_OK) {
        fprintf(stderr, "data_bench: %s\n", error.text);
        return 1;
    }
    const double seconds = now() - start;
    getrusage(RUSAGE_SELF, &usage);
    printf(
        "  %9.0f records  %7.0f pairs/s (checked at open in %.2f s), %5.1f %% of the columns used, "
        "peak %.1f MiB\n",
        records, records / seconds, opened - start, 100.0 * used / tokens,
        (double)usage.ru_maxrss / 1024.0);
    eng_loader_close(loader);
    return 0;
}
