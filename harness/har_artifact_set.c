/* Which cached files a campaign needs, without duplicates.
 * Called by the stages of a campaign; must not know how files are made. */
#include <stdlib.h>
#include <string.h>

#include "har_artifact.h"

static bool same_artifact(const struct har_artifact *a, const struct har_artifact *b)
{
    return a->kind == b->kind && a->bench == b->bench && a->seed == b->seed &&
           a->variant.schedule == b->variant.schedule && a->variant.tasks == b->variant.tasks &&
           a->variant.also == b->variant.also &&
           (a->file == b->file ||
            (a->file != NULL && b->file != NULL && strcmp(a->file, b->file) == 0));
}

/* Texts are the built-in reference's; weights need a recipe that this program knows. */
static bool is_made(const struct har_bench *bench, enum har_artifact_kind kind)
{
    switch (kind) {
    case HAR_ARTIFACT_text:
    case HAR_ARTIFACT_eval_text:
        return bench->reference == HAR_REFERENCE_faultline;
    case HAR_ARTIFACT_reference:
        return bench->reference != HAR_REFERENCE_none;
    case HAR_ARTIFACT_weights:
        return bench->described;
    default:
        return true;
    }
}

/* Members that have no meaning for the kind are cleared, so that equal files are equal artifacts.
 */
static void add(struct har_artifacts *set, enum har_artifact_kind kind,
                const struct har_artifact *like)
{
    const struct har_variant plain = {.schedule = HAR_SCHEDULE_fifo};
    struct har_artifact fresh = *like;
    if (!is_made(like->bench, kind)) {
        return;
    }
    fresh.kind = kind;
    fresh.seed = kind == HAR_ARTIFACT_text || kind == HAR_ARTIFACT_eval_text ? 0 : like->seed;
    fresh.variant = kind == HAR_ARTIFACT_healthy ? like->variant : plain;
    fresh.variant.lanes = false; /* a healthy run has the same bits with lanes: a control */
    const bool of_build = kind == HAR_ARTIFACT_healthy || kind == HAR_ARTIFACT_lockstep;
    fresh.variant.also = of_build && like->variant.also;
    fresh.file = kind >= HAR_ARTIFACT_twin ? like->file : NULL;
    for (size_t i = 0; i < set->count; i++) {
        if (same_artifact(&set->items[i], &fresh)) {
            return;
        }
    }
    struct har_artifact *const items = realloc(set->items, (set->count + 1) * sizeof *items);
    if (items == NULL) {
        set->failed = true;
        return;
    }
    set->items = items;
    set->items[set->count++] = fresh;
}

void har_artifacts_need_run(struct har_artifacts *set, const struct har_artifact *artifact)
{
    add(set, HAR_ARTIFACT_weights, artifact);
    add(set, artifact->kind, artifact);
}

static void add_texts(struct har_artifacts *set, const struct har_artifact *artifact)
{
    add(set, HAR_ARTIFACT_text, artifact);
    if (artifact->bench->recipe.eval_count > 0) {
        add(set, HAR_ARTIFACT_eval_text, artifact);
    }
}

void har_artifacts_need(struct har_artifacts *set, const struct har_bench *bench, uint64_t seed,
                        struct har_variant variant)
{
    const struct har_artifact healthy = {
        .kind = HAR_ARTIFACT_healthy, .bench = bench, .seed = seed, .variant = variant};
    add_texts(set, &healthy);
    if (!bench->lockstep) {
        add(set, HAR_ARTIFACT_reference, &healthy);
    }
    har_artifacts_need_run(set, &healthy);
}

struct har_pair har_artifact_pair(const struct har_bench *bench)
{
    return bench->lockstep ? (struct har_pair){HAR_ARTIFACT_followed, HAR_ARTIFACT_lockstep}
                           : (struct har_pair){HAR_ARTIFACT_healthy, HAR_ARTIFACT_reference};
}

void har_artifacts_need_pair(struct har_artifacts *set, const struct har_bench *bench,
                             uint64_t seed, struct har_variant variant)
{
    const struct har_artifact lockstep = {
        .kind = HAR_ARTIFACT_lockstep, .bench = bench, .seed = seed, .variant = variant};
    if (bench->lockstep) {
        add_texts(set, &lockstep);
        har_artifacts_need_run(set, &lockstep);
    } else {
        har_artifacts_need(set, bench, seed, variant);
    }
}

void har_artifacts_fini(struct har_artifacts *set)
{
    free(set->items);
    memset(set, 0, sizeof *set);
}
