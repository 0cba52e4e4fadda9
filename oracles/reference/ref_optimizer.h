/* Learning rate, clipping and AdamW of corpus/RECIPE.md. Called by the training loop. */
#pragma once

#include "ref_params.h"
#include "ref_pool.h"
#include "ref_recipe.h"

/* Rate of a step, from 1. */
double orc_ref_schedule_rate(const struct orc_ref_recipe *recipe, size_t step);

/* L2 norm of all gradients together. */
double orc_ref_grad_norm(const struct orc_ref_params *params, struct orc_ref_pool *pool);

/* min(1, clip / (norm + 1e-6)); 1 when clip is 0. */
double orc_ref_clip_factor(double clip, double norm);

/* One step: gradients are multiplied by factor, then value, moments and update are written. */
void orc_ref_optimizer_step(const struct orc_ref_recipe *recipe, size_t step, double rate,
                            double factor, struct orc_ref_params *params,
                            struct orc_ref_pool *pool);
