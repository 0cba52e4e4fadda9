/* The tensors of a model in file order, and the safetensors file of its initial weights.
 * Used by init_main.c; must know neither YAML nor the command line. */
#pragma once

#include "cor_recipe.h"

enum { COR_NAME_MAX = 64 };

struct cor_tensor {
    char name[COR_NAME_MAX];
    size_t dims, shape[2]; /* (out, in), or one dimension */
    double deviation;      /* 0: all elements are 1 */
};

size_t cor_tensor_count(const struct cor_model *model);

/* The tensor at index < cor_tensor_count(model). */
struct cor_tensor cor_tensor_at(const struct cor_model *model, size_t index);

/* Writes path through path.tmp, so that a failure leaves an older file as it was. Tensor k takes
 * stream k of seed (cor_normal.h). Layout: safetensors; little-endian fp32 only. */
enum cor_status cor_weights_write(const struct cor_model *model, uint64_t seed, const char *path,
                                  struct cor_error *error) __attribute__((warn_unused_result));
