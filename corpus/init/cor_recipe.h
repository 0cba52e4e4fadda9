/* The model section of a recipe, as far as initial weights need it.
 * Used by faultline-init; must know neither engine nor oracles: both read recipes with code of
 * their own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes of faultline-init are the values. */
enum cor_status { COR_OK = 0, COR_EINPUT = 1, COR_EIO = 74 };

struct cor_error {
    char text[512];
};

struct cor_model {
    size_t layers, width, heads, kv_heads, ffn, vocab;
    bool tied;
};

/* Writes the message into error and returns status. */
enum cor_status cor_fail(struct cor_error *error, enum cor_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads path. Checks the whole model section and the names of the other sections, nothing in them.
 * On failure model is untouched and error names file, line and cause. */
enum cor_status cor_recipe_read(const char *path, struct cor_model *model, struct cor_error *error)
    __attribute__((warn_unused_result));
