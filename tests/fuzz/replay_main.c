/* Runs the target on every file of the given folders: the fuzzers' seeds as a test, with any
 * compiler. Fails when there is none. Links one target; must not know which. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

enum { SEED_BYTES_MAX = 1 << 20 };

static int is_seed(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The whole file in a block of its size; the caller frees. NULL when it cannot be read. */
static uint8_t *load(const char *path, size_t *size)
{
    FILE *const file = fopen(path, "rb");
    uint8_t *bytes = malloc(SEED_BYTES_MAX);
    if (file == NULL || bytes == NULL) {
        perror(path);
        exit(1);
    }
    *size = fread(bytes, 1, SEED_BYTES_MAX, file);
    if (ferror(file) || *size == SEED_BYTES_MAX) {
        fprintf(stderr, "%s: cannot be read, or larger than a seed may be\n", path);
        exit(1);
    }
    fclose(file);
    uint8_t *const exact = (uint8_t *)fuzz_exact(bytes, *size);
    free(bytes);
    return exact;
}

static int replay_folder(const char *folder)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_seed, alphasort);
    if (count < 0) {
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        return 0;
    }
    for (int i = 0; i < count; i++) {
        char path[4096];
        size_t size = 0;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        printf("%s\n", path);
        fflush(stdout); /* names the culprit should the target end the process */
        uint8_t *const bytes = load(path, &size);
        LLVMFuzzerTestOneInput(bytes, size);
        free(bytes);
        free(entries[i]);
    }
    free(entries);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        const int found = replay_folder(argv[i]);
        if (found == 0) {
            fprintf(stderr, "%s: no seeds\n", argv[i]);
            return 1;
        }
        count += found;
    }
    printf("%d seeds ran\n", count);
    return count > 0 ? 0 : 1;
}
