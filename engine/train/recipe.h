/* A recipe: what a training run is (corpus/RECIPE.md), read strictly from YAML.
 * Called by train_main and tests; must not know devices, models or traces. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "loader.h"

struct eng_recipe_model {
    char *arch;
    int layers, width, heads, kv_heads, ffn, context, vocab;
    int tied;
    double norm_eps, rope_theta;
};

struct eng_recipe_text {
    char *tokenizer, *template_name;
    char *template_source; /* a layout's name or the path of a template */
    enum eng_mask mask;
};

struct eng_recipe_data {
    char **train, **eval;
    unsigned train_count, eval_count;
    unsigned *weights; /* one a training file; NULL = all 1 */
    enum eng_format format;
    enum eng_packing packing;
    enum eng_truncate truncate;
    enum eng_order order;
    enum eng_breach on_unlearned, on_prefix;
    char *pad;
};

struct eng_recipe_train {
    uint64_t seed;
    int steps, rows, grad_accum, warmup, schedule_steps, eval_every, eval_rows, checkpoint_every;
    double lr, lr_min, beta1, beta2, eps, weight_decay, clip;
};

struct eng_recipe_device {
    uint64_t budget;
    int oom_at;
};

/* File names in text and data are resolved against the recipe's folder. */
struct eng_recipe {
    char *name;
    struct eng_recipe_model model;
    struct eng_recipe_text text;
    struct eng_recipe_data data;
    struct eng_recipe_train train;
    struct eng_recipe_device device;
    uint64_t hash; /* FNV-1a 64 of the file's bytes */
};

/* Reads `path`. An unknown, missing, repeated or ill-typed key or a value out of range is EUSAGE
 * with file, line and key; an unreadable file is EIO. The caller frees with eng_recipe_free(). */
ENG_CHECKED enum eng_status eng_recipe_read(const char *path, struct eng_recipe **out,
                                            struct eng_error *error);
/* Takes copies of other training file names, relative to the current folder (--data); their weights
 * are 1. */
ENG_CHECKED enum eng_status eng_recipe_replace_train(struct eng_recipe *recipe,
                                                     const char *const *files, unsigned count,
                                                     struct eng_error *error);
void eng_recipe_free(struct eng_recipe *recipe); /* accepts NULL */
/* The options of a loader that the recipe alone decides: all but seed, shuffling, files, rows,
 * micro-batches and lender. They borrow from the recipe. */
struct eng_loader_options eng_recipe_loader_options(const struct eng_recipe *recipe);
