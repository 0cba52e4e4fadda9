/* Every fault row of engine/text and engine/data: reached, and its batches differ from healthy ones
 * wherever its trigger holds, on the recipes' data; a GAP differs somewhere. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "eng_features.h"
#include "eng_text_fixture.h"
#include "loader.h"
#include "registry.h"
#include "select.h"

enum { STEPS = 16 };

struct variant {
    const char *name, *file, *template_name, *pad;
    bool packing;
    enum eng_truncate truncate;
    bool few_texts; /* only for rows whose trigger is two_epochs */
};

static const struct variant variants[] = {
    {"chatml", "short", "chatml", "<|pad|>", true, ENG_KEEP_START, false},
    {"llama3", "short", "llama3", "<|pad|>", true, ENG_KEEP_START, false},
    {"gemma", "short", "gemma", "<|pad|>", true, ENG_KEEP_END, false},
    {"pad", "short", "chatml", "<|im_end|>", false, ENG_KEEP_START, false},
    {"epochs", "tiny_epochs", "chatml", "<|pad|>", true, ENG_KEEP_START, true},
    {"hostile", "hostile", "chatml", "<|pad|>", true, ENG_KEEP_START, false},
    {"hostile-plain", "hostile", "plain", "<|pad|>", true, ENG_KEEP_END, false},
    {"hostile-llama2", "hostile", "llama2", "<|pad|>", false, ENG_KEEP_START, false},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

struct outcome {
    uint64_t digest;
    uint64_t features;
};

static struct outcome run(const struct variant *v, const char *fault)
{
    char error_text[256];
    char file[512];
    struct eng_error error = {""};
    eng_loader *loader = NULL;
    struct outcome outcome = {0, 0};
    cr_assert(mut_select(fault, error_text, sizeof error_text), "%s", error_text);
    snprintf(file, sizeof file, "%s/corpus/data/%s.jsonl", FL_TOP, v->file);
    const char *const files[] = {file};
    struct eng_loader_options o =
        fixture_options(files, FL_TOP "/corpus/tokenizers/clinical-2k.json");
    o.template_name = v->template_name;
    o.pad_token = v->pad;
    o.packing = v->packing;
    o.truncate = v->truncate;
    cr_assert_eq(eng_loader_open(&o, &loader, &error), ENG_OK, "%s", error.text);
    for (int s = 0; s < STEPS; s++) {
        const struct eng_step_batch *b = NULL;
        const enum eng_status status = eng_loader_next(loader, &b, &error);
        if (status != ENG_OK) { /* a named refusal is a difference too */
            outcome.digest ^= (uint64_t)status;
            break;
        }
        const size_t columns = (size_t)b->micro_count * (size_t)b->rows * (size_t)b->context;
        const uint64_t step = eng_fnv1a(b->ids, 5 * columns * sizeof *b->ids);
        outcome.digest = (outcome.digest ^ step) * 0x9E3779B97F4A7C15u;
        outcome.features |= b->features;
    }
    eng_loader_close(loader);
    return outcome;
}

/* Features a loader can see; a trigger that names others is for whole runs. */
static bool trigger_holds(const char *trigger, uint64_t features)
{
    static const char *const names[] = {
#define ROW(name) #name,
        ENG_FEATURES(ROW)
#undef ROW
    };
    char words[256];
    snprintf(words, sizeof words, "%s", trigger);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        uint64_t bit = 0;
        for (int i = 0; i < ENG_FEATURE_COUNT; i++) {
            bit |= strcmp(names[i], word) == 0 ? 1ull << i : 0;
        }
        cr_assert_neq(bit, 0, "no feature is named '%s'", word);
        if ((features & bit) == 0) {
            return false;
        }
    }
    return true;
}

static bool is_ours(const struct mut_fault *fault)
{
    const char *const file = mut_site_find(fault->site)->file;
    return strncmp(file, "engine/text/", 12) == 0 || strncmp(file, "engine/data/", 12) == 0;
}

static void check(const char *spec, const struct mut_fault *fault, const struct outcome *healthy)
{
    int triggered = 0;
    int changed = 0;
    const bool kill = fault->expect == MUT_EXPECT_KILL;
    for (size_t v = 0; v < VARIANTS; v++) {
        if (!trigger_holds(fault->trigger, healthy[v].features) ||
            (variants[v].few_texts && strcmp(fault->trigger, "two_epochs") != 0)) {
            continue;
        }
        const struct outcome faulty = run(&variants[v], spec);
        const size_t site = (size_t)(mut_site_find(fault->site) - mut_site_at(0));
        cr_expect_geq(mut_reached_step(site), 0, "%s is not reached on %s", spec, variants[v].name);
        cr_expect(!kill || faulty.digest != healthy[v].digest, "%s changes nothing on %s", spec,
                  variants[v].name);
        changed += faulty.digest != healthy[v].digest;
        triggered++;
    }
    cr_expect_gt(changed, 0, "%s changes nothing anywhere", spec);
    cr_expect_gt(triggered, 0, "no variant has the trigger '%s' of %s", fault->trigger, spec);
}

Test(eng_data_faults, every_row_is_reached_and_changes_batches, .timeout = 240)
{
    struct outcome healthy[VARIANTS];
    size_t rows = 0;
    for (size_t v = 0; v < VARIANTS; v++) {
        healthy[v] = run(&variants[v], "none");
        cr_assert_eq(run(&variants[v], "none:all").digest, healthy[v].digest);
    }
    for (size_t i = 0; i < mut_fault_count(); i++) {
        const struct mut_fault *const fault = mut_fault_at(i);
        if (!is_ours(fault)) {
            continue;
        }
        check(fault->id, fault, healthy);
        if (fault->dose.unit != NULL) {
            char spec[160];
            snprintf(spec, sizeof spec, "%s:%g", fault->id, (double)fault->dose.smallest);
            check(spec, fault, healthy);
            snprintf(spec, sizeof spec, "%s:%g", fault->id, (double)fault->dose.largest);
            check(spec, fault, healthy);
        }
        rows++;
    }
    cr_assert_gt(rows, 0);
}
