/* List of parameters. See ref_params.h; the names are those of corpus/RECIPE.md. */
#include "ref_params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN_ELEMENTS = 8 };

size_t orc_ref_params_layer(size_t layer, enum orc_ref_layer_param which)
{
    return 1 + layer * ORC_REF_LAYER_PARAMS + (size_t)which;
}

size_t orc_ref_params_norm(const struct orc_ref_shape *shape)
{
    return 1 + shape->layers * ORC_REF_LAYER_PARAMS;
}

size_t orc_ref_params_head(const struct orc_ref_shape *shape)
{
    return shape->tied ? 0 : orc_ref_params_norm(shape) + 1;
}

size_t orc_ref_param_size(const struct orc_ref_param *param)
{
    return param->rows * param->cols;
}

/* Gives the next parameter its shape and place; the name is already there. */
static void place(struct orc_ref_params *params, size_t dims, size_t rows, size_t cols)
{
    struct orc_ref_param *const param = &params->list[params->count++];
    param->dims = dims;
    param->rows = rows;
    param->cols = cols;
    param->offset = params->total;
    params->total += (rows * cols + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
}

static void place_named(struct orc_ref_params *params, const char *name, size_t dims, size_t rows,
                        size_t cols)
{
    struct orc_ref_param *const param = &params->list[params->count];
    (void)snprintf(param->name, sizeof param->name, "%s", name);
    place(params, dims, rows, cols);
}

static void place_layer(struct orc_ref_params *params, const struct orc_ref_shape *shape,
                        size_t layer)
{
    const size_t width = shape->width, kv = width / shape->heads * shape->kv_heads;
    const struct {
        const char *name;
        size_t dims, rows, cols;
    } rows[ORC_REF_LAYER_PARAMS] = {
        [ORC_REF_INPUT_NORM] = {"input_layernorm", 1, 1, width},
        [ORC_REF_Q] = {"self_attn.q_proj", 2, width, width},
        [ORC_REF_K] = {"self_attn.k_proj", 2, kv, width},
        [ORC_REF_V] = {"self_attn.v_proj", 2, kv, width},
        [ORC_REF_O] = {"self_attn.o_proj", 2, width, width},
        [ORC_REF_POST_NORM] = {"post_attention_layernorm", 1, 1, width},
        [ORC_REF_GATE] = {"mlp.gate_proj", 2, shape->ffn, width},
        [ORC_REF_UP] = {"mlp.up_proj", 2, shape->ffn, width},
        [ORC_REF_DOWN] = {"mlp.down_proj", 2, width, shape->ffn},
    };
    for (size_t i = 0; i < ORC_REF_LAYER_PARAMS; i++) {
        struct orc_ref_param *const param = &params->list[params->count];
        (void)snprintf(param->name, sizeof param->name, "model.layers.%zu.%s.weight", layer,
                       rows[i].name);
        place(params, rows[i].dims, rows[i].rows, rows[i].cols);
    }
}

/* All arrays lie in one piece, so that those of a small model share huge pages as well. */
static bool make_arrays(struct orc_ref_params *params)
{
    double **const arrays[] = {&params->value, &params->grad, &params->moment1, &params->moment2,
                               &params->update};
    const size_t count = sizeof arrays / sizeof *arrays;
    params->memory = orc_ref_arena_create(0);
    double *const all = params->memory == NULL ? NULL
                                               : orc_ref_arena_take(params->memory, params->total,
                                                                    count * sizeof *all);
    if (all == NULL)
        return false;
    memset(all, 0, params->total * count * sizeof *all);
    for (size_t i = 0; i < count; i++)
        *arrays[i] = all + i * params->total;
    return true;
}

enum orc_ref_status orc_ref_params_init(struct orc_ref_params *params,
                                        const struct orc_ref_shape *shape,
                                        struct orc_ref_error *error)
{
    *params = (struct orc_ref_params){0};
    params->list = calloc(shape->layers * ORC_REF_LAYER_PARAMS + 3, sizeof *params->list);
    if (params->list == NULL)
        return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory for the list of parameters");
    place_named(params, "model.embed_tokens.weight", 2, shape->vocab, shape->width);
    for (size_t layer = 0; layer < shape->layers; layer++)
        place_layer(params, shape, layer);
    place_named(params, "model.norm.weight", 1, 1, shape->width);
    if (!shape->tied)
        place_named(params, "lm_head.weight", 2, shape->vocab, shape->width);
    if (!make_arrays(params))
        return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory for %zu parameters", params->total);
    return ORC_REF_OK;
}

void orc_ref_params_fini(struct orc_ref_params *params)
{
    free(params->list);
    orc_ref_arena_destroy(params->memory);
    *params = (struct orc_ref_params){0};
}
