/* faultline-init: initial weights from a recipe and a seed.
 * Run by people and by the harness; the rules are in corpus/RECIPE.md, section Model. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cor_weights.h"

static const char usage[] =
    "usage: faultline-init --recipe FILE.yaml --seed N --out FILE.safetensors\n"
    "Writes the initial weights of the recipe's model; the same bytes for the same seed "
    "everywhere.\n"
    "Exit codes: 0 written, 1 usage or a wrong recipe, 74 a file cannot be read or written.\n";

struct options {
    const char *recipe, *seed, *out;
};

static enum cor_status options_read(int count, char **words, struct options *options,
                                    struct cor_error *error)
{
    for (int i = 1; i < count; i += 2) {
        const char **const place = strcmp(words[i], "--recipe") == 0 ? &options->recipe
                                   : strcmp(words[i], "--seed") == 0 ? &options->seed
                                   : strcmp(words[i], "--out") == 0  ? &options->out
                                                                     : NULL;
        if (place == NULL || i + 1 == count) {
            return cor_fail(error, COR_EINPUT, "%s: %.100s (see --help)",
                            place == NULL ? "unknown option" : "option needs a value", words[i]);
        }
        *place = words[i + 1];
    }
    if (options->recipe == NULL || options->seed == NULL || options->out == NULL) {
        return cor_fail(error, COR_EINPUT, "--recipe, --seed and --out are needed (see --help)");
    }
    return COR_OK;
}

static enum cor_status run(int count, char **words, struct cor_error *error)
{
    struct options options = {0};
    struct cor_model model;
    enum cor_status status = options_read(count, words, &options, error);
    if (status != COR_OK) {
        return status;
    }
    char *end = NULL;
    errno = 0;
    const unsigned long long seed = strtoull(options.seed, &end, 10);
    if (options.seed[0] < '0' || options.seed[0] > '9' || *end != '\0' || errno != 0) {
        return cor_fail(error, COR_EINPUT,
                        "--seed must be an integer from 0 to 2^64 - 1, not %.40s", options.seed);
    }
    status = cor_recipe_read(options.recipe, &model, error);
    return status == COR_OK ? cor_weights_write(&model, seed, options.out, error) : status;
}

int main(int count, char **words)
{
    struct cor_error error = {{0}};
    if (count == 2 && strcmp(words[1], "--help") == 0) {
        return fputs(usage, stdout) < 0 || fflush(stdout) != 0 ? COR_EIO : COR_OK;
    }
    const enum cor_status status = run(count, words, &error);
    if (status != COR_OK) {
        fprintf(stderr, "faultline-init: %s\n", error.text);
    }
    return (int)status;
}
