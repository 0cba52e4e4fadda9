/* What the harness needs to know of a recipe (corpus/RECIPE.md): its files, steps and size.
 * Called by har_lab.c; must not know campaigns. The trainer validates the rest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "har_status.h"

struct har_recipe {
    char *path; /* as given, relative to the current folder */
    char *name;
    char *tokenizer; /* paths below are resolved */
    char *template_name;
    char *template_path; /* of a template among several, with #NAME behind */
    char *mask;
    char *format;       /* of the data files */
    bool checks_prefix; /* the text stage is to look at prompts */
    char **train;
    size_t train_count;
    char **eval;
    size_t eval_count;
    int steps;
    int checkpoint_every;
    int vocab;
    double cost;          /* multiply-adds of a run, for choosing the cheapest */
    uint64_t file_hash;   /* of the recipe's bytes: the trace's recipe_hash */
    uint64_t inputs_hash; /* of the recipe, its tokenizer, template and data */
};

/* HAR_EUSAGE names file, line and cause. Released by har_recipe_fini. */
HAR_CHECKED enum har_status har_recipe_load(const char *path, struct har_recipe *out,
                                            struct har_error *error);
/* A file that only the user's trainers read: its name, its bytes and, where it is YAML or JSON, the
 * files it names. Runs have `steps`; all such recipes cost the same. */
HAR_CHECKED enum har_status har_recipe_load_own(const char *path, int steps, struct har_recipe *out,
                                                struct har_error *error);
void har_recipe_fini(struct har_recipe *recipe);

/* Checkpoint step a resumed run starts from: the multiple of checkpoint_every nearest below the
 * middle of `steps`, at least the first one; 0 when there is none before the last step. */
int har_recipe_middle_checkpoint(int checkpoint_every, int steps);
