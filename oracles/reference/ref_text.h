/* Documents: the output of the text stage, read back, and the stage itself run when needed.
 * Called once per run; knows nothing of rows. */
#pragma once

#include "ref_arena.h"
#include "ref_error.h"
#include "ref_recipe.h"

#include <stdbool.h>
#include <stdint.h>

/* Features a document's messages have, as bits; names as in corpus/RECIPE.md. */
#define ORC_REF_TEXT_FEATURES(F)                                                                   \
    F(multi_turn) F(system) F(no_system) F(edge_space) F(control_text) F(non_ascii) F(tools) \
    F(reasoning)

struct orc_ref_document {
    const char *id;
    uint64_t text_hash;
    int32_t *ids;
    uint8_t *supervised;
    size_t count;
    unsigned features; /* bit i: feature i of ORC_REF_TEXT_FEATURES */
    size_t file, line; /* where its record stands: index of the data file, line from 1 */
    bool no_prefix;    /* its prompt was looked at and is no prefix */
};

struct orc_ref_documents {
    struct orc_ref_document *list; /* in the arena */
    size_t count;
};

/* Reads a stage file; every id must be below vocab. */
enum orc_ref_status orc_ref_documents_load(const char *path, size_t vocab,
                                           struct orc_ref_arena *arena,
                                           struct orc_ref_documents *documents,
                                           struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Whether the tokenizer's file is one of ranks, by its name. */
bool orc_ref_tokenizer_is_ranks(const char *path);

/* Checks that the tokenizer's ids end at vocab - 1 and looks up the pad token's id. */
enum orc_ref_status orc_ref_tokenizer_pad(const char *path, size_t vocab, const char *pad,
                                          int32_t *pad_id,
                                          struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Path, in the folder cache, of the stage file of these data files, whether it is there or not:
 * named by a hash of data, template, tokenizer, mask and script. In the arena. */
enum orc_ref_status orc_ref_stage_name(const struct orc_ref_recipe *recipe,
                                       const struct orc_ref_paths *data, const char *cache,
                                       struct orc_ref_arena *arena, const char **path,
                                       struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Makes sure that the folder cache holds the stage file of these data files, running the text
 * stage if it does not, and writes its path (in the arena) to *path. */
enum orc_ref_status orc_ref_stage_prepare(const struct orc_ref_recipe *recipe,
                                          const struct orc_ref_paths *data, const char *cache,
                                          struct orc_ref_arena *arena, const char **path,
                                          struct orc_ref_error *error) ORC_REF_MUST_USE;
