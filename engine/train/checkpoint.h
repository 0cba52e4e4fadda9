/* Checkpoints: DIR/step-N/ with model.safetensors, moment1.safetensors, moment2.safetensors and
 * state.json, written beside and renamed into place. A run resumed from one goes on bit for bit.
 * Called by the loop; must not know the passes. */
#pragma once

#include <stdint.h>

#include "eng_status.h"
#include "loader.h"

struct eng_trainer;

/* `next` is where the data of the following step starts. Fills path (of the folder) and the FNV-1a
 * hash over the bytes of its four files in the order above. */
ENG_CHECKED enum eng_status eng_checkpoint_save(struct eng_trainer *t, struct eng_position next,
                                                char *path, size_t path_size, uint64_t *hash,
                                                struct eng_error *error);
/* A checkpoint's state.json. */
struct eng_checkpoint {
    char folder[4096];
    uint64_t recipe_hash, seed;
    int step, optimizer_t, schedule_step;
    struct eng_position next;
};
/* `dir` is a step-N folder, or a folder of such, of which the last is taken. */
ENG_CHECKED enum eng_status eng_checkpoint_find(const char *dir, struct eng_checkpoint *out,
                                                struct eng_error *error);
/* Restores parameters, moments, counters and the data position. */
ENG_CHECKED enum eng_status eng_checkpoint_restore(struct eng_trainer *t,
                                                   const struct eng_checkpoint *c,
                                                   struct eng_error *error);
