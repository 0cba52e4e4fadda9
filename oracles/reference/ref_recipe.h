/* Recipes: strict reader of the YAML of corpus/RECIPE.md. Called once per run; knows nothing of
 * what the values are for. */
#pragma once

#include "ref_arena.h"
#include "ref_error.h"
#include "ref_params.h"

#include <stdint.h>

/* In the order of the words in the key table. */
enum orc_ref_mask { ORC_REF_ASSISTANT, ORC_REF_LAST, ORC_REF_COMPLETION, ORC_REF_ALL };
enum orc_ref_truncate { ORC_REF_KEEP_START, ORC_REF_KEEP_END, ORC_REF_DROP };
enum orc_ref_packing { ORC_REF_ONE_A_ROW, ORC_REF_NEXT_FIT, ORC_REF_FIRST_FIT, ORC_REF_WRAPPED };
enum orc_ref_format { ORC_REF_MESSAGES, ORC_REF_SHAREGPT, ORC_REF_ALPACA, ORC_REF_PROMPTS };
enum orc_ref_order { ORC_REF_PERMUTATION, ORC_REF_CIPHER };
enum orc_ref_unlearned { ORC_REF_SKIP_UNLEARNED, ORC_REF_REFUSE_UNLEARNED };
enum orc_ref_prefix { ORC_REF_ANY_PREFIX, ORC_REF_SKIP_PREFIX, ORC_REF_REFUSE_PREFIX };

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
        /* template_path names the template for the text stage; template_file is its file, which a
         * name of one of several templates (#NAME) may follow in template_path. */
        const char *template_path, *template_file;
        enum orc_ref_mask mask;
    } text;
    struct {
        struct orc_ref_paths train, eval;
        enum orc_ref_packing packing;
        enum orc_ref_truncate truncate;
        const char *pad;
        enum orc_ref_format format;
        enum orc_ref_order order;
        enum orc_ref_unlearned on_unlearned;
        enum orc_ref_prefix on_prefix;
        const size_t *weights; /* one of each training file; NULL = all 1 */
        size_t weight_count;
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

/* The words of an enumeration, as recipes have them. */
const char *orc_ref_mask_word(enum orc_ref_mask mask);
const char *orc_ref_format_word(enum orc_ref_format format);
