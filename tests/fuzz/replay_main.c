/* Runs the target on every file of the given folders: the fuzzers' seeds as a test, with any
 * compiler. Fails when there is none. Links one target; must not know which. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

enum { SEED_BYTES_MAX = 1 << 20, MUTATIONS = 3000, GROWTH = 256 };

/* Targets with a mutator of their own link one. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
    __attribute__((weak));
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* What libFuzzer has instead: a byte changed, inserted or removed. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    const size_t at = size == 0 ? 0 : (state >> 8) % size;
    if (state >> 30 == 0 && size > 0) {
        memmove(data + at, data + at + 1, size - at - 1);
        return size - 1;
    }
    if (state >> 30 == 1 && size < max_size) {
        memmove(data + at + 1, data + at, size - at);
        size++;
    }
    if (size > 0) {
        data[at] = (uint8_t)(state >> 20);
    }
    return size;
}

/* Mutations of a seed, eight times one upon the other; the same in every run. */
static void run_mutations(const uint8_t *seed, size_t size, unsigned count)
{
    const size_t max_size = size + GROWTH;
    size_t now = size;
    uint8_t *const bytes = malloc(max_size);
    if (bytes == NULL) {
        exit(1);
    }
    for (unsigned i = 0; i < count; i++) {
        if (i % 8 == 0) {
            memcpy(bytes, seed, size);
        }
        now = LLVMFuzzerCustomMutator(bytes, i % 8 == 0 ? size : now, max_size, i * 2654435761u);
        uint8_t *const exact = (uint8_t *)fuzz_exact(bytes, now);
        LLVMFuzzerTestOneInput(exact, now);
        free(exact);
    }
    free(bytes);
}

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
        if (LLVMFuzzerCustomMutator != NULL) {
            run_mutations(bytes, size, MUTATIONS / (unsigned)count);
        }
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
