/* Recipes: strict reader of the YAML of corpus/RECIPE.md. Called once per run; knows nothing of
 * what the values are for. */
#pragma once

#include "ref_arena.h"
#include "ref_error.h"
#include "ref_params.h"

#include <stdint.h>

enum orc_ref_truncate { ORC_REF_KEEP_START, ORC_REF_KEEP_END, ORC_REF_DROP };

struct orc_ref_paths {
    const char **list;
    size_t count;
};

struct orc_ref_recipe {
    const char *name;
    uint64_t hash; /* of the file's bytes */
    struct orc_ref_shape model;
    struct {
        const char *tokenizer; /* paths are made relative to the working directory */
        const char *template_name, *template_path;
        bool mask_all;
    } text;
    struct {
        struct orc_ref_paths train, eval;
        bool packing;
        enum orc_ref_truncate truncate;
        const char *pad;
    } data;
    struct {
        uint64_t seed;
        size_t steps, rows, grad_accum, warmup, schedule_steps;
        double lr, lr_min, beta1, beta2, eps, weight_decay, clip;
        size_t eval_every, eval_rows, checkpoint_every;
    } train;
    struct {
        size_t budget, oom_at;
    } device; /* read and checked, of no meaning here */
};

/* Reads and checks a recipe; strings live in the arena. */
enum orc_ref_status orc_ref_recipe_load(const char *path, struct orc_ref_arena *arena,
                                        struct orc_ref_recipe *recipe,
                                        struct orc_ref_error *error) ORC_REF_MUST_USE;
