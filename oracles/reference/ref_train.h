/* A whole run: documents in, trace out. Called by ref_main.c and by tests. */
#pragma once

#include "ref_recipe.h"
#include "ref_text.h"
#include "ref_trace.h"

struct orc_ref_options {
    const struct orc_ref_recipe *recipe;
    const struct orc_ref_documents *train, *eval; /* eval may be NULL */
    const char *weights;                          /* safetensors file */
    const char *follow; /* states of the run to follow (TRACE.md); NULL = none */
    uint64_t seed;
    size_t steps, threads;
    int32_t pad;
    bool full;     /* sketches */
    bool contents; /* arrays of ids, labels, positions, segments */
    /* Asked before each step; true ends the run with ORC_REF_INTERRUPTED. */
    bool (*interrupted)(void *context);
    void *interrupted_context;
};

enum orc_ref_status orc_ref_train(const struct orc_ref_options *options,
                                  struct orc_ref_trace *trace,
                                  struct orc_ref_error *error) ORC_REF_MUST_USE;
