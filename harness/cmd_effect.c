/* faultline effect: the case study's headline, measured. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_cmd.h"
#include "har_effect.h"
#include "har_run.h"

static const char default_recipe[] = "corpus/recipes/pico-llama3.yaml";
static const char default_template[] = "layout_choice.generic";
enum { SEEDS_LEAST = 5 };

/* Numerics, loss, optimizer and schedule faults at their usual dose, and the template swap. */
static enum har_status choose_faults(struct har_lab *lab, const struct har_options *options,
                                     const char *template_id, struct har_error *error)
{
    static const enum mut_family families[] = {MUT_FAMILY_NUMERICS, MUT_FAMILY_LOSS,
                                               MUT_FAMILY_OPTIMIZER, MUT_FAMILY_SCHEDULE};
    struct har_campaign *const c = &lab->campaign;
    c->dose_smallest = c->dose_largest = false;
    c->dose_usual = true;
    memset(c->families, 0, sizeof c->families);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        c->families[families[i]] = true;
    }
    enum har_status status = har_run_plan(lab, true, error);
    if (status != HAR_OK) {
        return status;
    }
    struct har_plan *const plan = &lab->plan;
    size_t kept = 0;
    for (size_t i = 0; i < plan->count; i++) {
        struct har_entry *const e = &plan->entries[i];
        if (e->place >= 0 && e->fault->expect == MUT_EXPECT_KILL) {
            const struct har_entry entry = *e;
            plan->entries[kept++] = entry;
        } else {
            free(e->id);
        }
    }
    plan->count = kept;
    const struct mut_fault *const swap = mut_fault_find(template_id);
    struct har_entry *const entries =
        realloc(plan->entries, (plan->count + 1) * sizeof *plan->entries);
    if (entries == NULL || swap == NULL) {
        return har_fail(error, swap == NULL ? HAR_EUSAGE : HAR_EMEMORY, "unknown fault '%s'",
                        template_id);
    }
    (void)options;
    plan->entries = entries;
    struct har_entry *const last = &entries[plan->count];
    memset(last, 0, sizeof *last);
    last->fault = swap;
    last->id = strdup(swap->id);
    plan->count += last->id != NULL;
    return last->id != NULL ? HAR_OK : har_fail(error, HAR_EMEMORY, "no memory");
}

static void print_text(const struct har_lab *lab, const struct har_effect *e)
{
    printf("recipe %s, %d steps, evaluated every %d, %zu seeds from %llu\n",
           lab->benches[0].recipe.name, lab->benches[0].steps,
           lab->benches[0].recipe.checkpoint_every, e->seeds,
           (unsigned long long)lab->campaign.seed);
    printf("area between the faulty and the healthy loss curve, nats x steps, mean over seeds:\n");
    for (size_t i = 0; i < e->count; i++) {
        if (e->rows[i].finite) {
            printf("  %-44s %12.6g\n", e->rows[i].entry->id, e->rows[i].mean);
        } else {
            printf("  %-44s not finite, left out\n", e->rows[i].entry->id);
        }
    }
    if (e->has_ratio) {
        printf("template swap over the mean of %zu other faults: %.3g (95 %% bootstrap interval "
               "over seeds %.3g to %.3g)\n",
               e->others, e->ratio.value, e->ratio.low, e->ratio.high);
    } else {
        printf("no ratio: the template swap or every other fault is not finite\n");
    }
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void print_json(const struct har_lab *lab, const struct har_effect *e)
{
    json_t *const root = json_object();
    json_t *const rows = json_array();
    json_object_set_new(root, "recipe", json_string(lab->benches[0].recipe.name));
    json_object_set_new(root, "seeds", json_integer((json_int_t)e->seeds));
    for (size_t i = 0; i < e->count; i++) {
        json_t *const o = json_object();
        json_t *const areas = json_array();
        for (size_t s = 0; s < e->rows[i].area_count; s++) {
            json_array_append_new(areas, number_or_null(e->rows[i].areas[s]));
        }
        json_object_set_new(o, "id", json_string(e->rows[i].entry->id));
        json_object_set_new(o, "template_swap", json_boolean(e->rows[i].template_swap));
        json_object_set_new(o, "mean", number_or_null(e->rows[i].mean));
        json_object_set_new(o, "areas", areas);
        json_array_append_new(rows, o);
    }
    json_object_set_new(root, "faults", rows);
    json_object_set_new(root, "ratio", e->has_ratio ? json_real(e->ratio.value) : json_null());
    json_object_set_new(root, "ratio_low", e->has_ratio ? json_real(e->ratio.low) : json_null());
    json_object_set_new(root, "ratio_high", e->has_ratio ? json_real(e->ratio.high) : json_null());
    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    fputc('\n', stdout);
    json_decref(root);
}

enum har_status har_cmd_effect(const struct har_options *options, struct har_error *error)
{
    struct har_lab lab;
    struct har_effect effect;
    const char *const template_id =
        options->template_fault != NULL ? options->template_fault : default_template;
    const int seeds = options->seeds >= 0 ? options->seeds : SEEDS_LEAST;
    if (seeds < SEEDS_LEAST) {
        return har_fail(error, HAR_EUSAGE, "--seeds must be at least %d", SEEDS_LEAST);
    }
    enum har_status status =
        har_lab_open_recipe(options, default_recipe,
                            options->out != NULL ? options->out : "faultline.out", &lab, error);
    if (status != HAR_OK) {
        return status;
    }
    status = choose_faults(&lab, options, template_id, error);
    if (status == HAR_OK) {
        status = har_effect_run(&lab, template_id, (size_t)seeds, &effect, error);
    }
    if (status == HAR_OK) {
        if (options->json) {
            print_json(&lab, &effect);
        } else {
            print_text(&lab, &effect);
        }
        har_effect_fini(&effect);
    }
    har_lab_close(&lab);
    return status;
}
