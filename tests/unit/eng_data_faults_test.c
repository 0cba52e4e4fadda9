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
    enum eng_packing packing;
    enum eng_truncate truncate;
    /* NULL, or features: then the variant is for rows whose trigger has one of them. */
    const char *only;
    enum eng_format format;
    enum eng_mask mask;
    enum eng_order order;
    enum eng_breach on_prefix;
    const char *other_file; /* NULL, or a second one that counts twice */
    const char *tokenizer;  /* NULL: clinical-2k.json */
};

static const struct variant variants[] = {
    {"chatml", "short.jsonl", "chatml", "<|pad|>", ENG_PACK_NEXT, ENG_KEEP_START, .only = NULL},
    {"llama3", "short.jsonl", "llama3", "<|pad|>", ENG_PACK_NEXT, ENG_KEEP_START, .only = NULL},
    {"gemma", "short.jsonl", "gemma", "<|pad|>", ENG_PACK_NEXT, ENG_KEEP_END, .only = NULL},
    {"pad", "short.jsonl", "chatml", "<|im_end|>", ENG_PACK_NONE, ENG_KEEP_START, .only = NULL},
    {"epochs", "tiny_epochs.jsonl", "chatml", "<|pad|>", ENG_PACK_NEXT, ENG_KEEP_START,
     .only = "two_epochs"},
    {"hostile", "hostile.jsonl", "chatml", "<|pad|>", ENG_PACK_NEXT, ENG_KEEP_START, .only = NULL},
    {"dated", "short.jsonl", FL_TOP "/corpus/templates/dated_turns.jinja", "<|pad|>", ENG_PACK_NEXT,
     ENG_KEEP_START, .only = "dated by_prefix"},
    {"hostile-plain", "hostile.jsonl", "plain", "<|pad|>", ENG_PACK_NEXT, ENG_KEEP_END,
     .only = NULL},
    {"hostile-llama2", "hostile.jsonl", "llama2", "<|pad|>", ENG_PACK_NONE, ENG_KEEP_START,
     .only = NULL},
    {"composed", "hostile.jsonl", "chatml", "<|pad|>", ENG_PACK_NEXT, ENG_KEEP_START, .only = NULL,
     .tokenizer = "clinical-composed.json"},
    {"wrapped", "formats/turns.jsonl", "chatml", "<|pad|>", ENG_PACK_WRAPPED, ENG_KEEP_START,
     .only = "split weighted masked_last", .format = ENG_FORMAT_SHAREGPT, .mask = ENG_MASK_LAST,
     .other_file = "formats/more_turns.zst"},
    {"fit", "formats/tasks.jsonl.gz", "chatml", "<|pad|>", ENG_PACK_FIRST_FIT, ENG_KEEP_END,
     .only = "refit masked_completion cipher alpaca_input members", .format = ENG_FORMAT_ALPACA,
     .mask = ENG_MASK_COMPLETION, .order = ENG_ORDER_CIPHER},
    {"prompts", "formats/prompts.jsonl", "llama2", "<|pad|>", ENG_PACK_NEXT, ENG_DROP,
     .only = "prefix_broken", .format = ENG_FORMAT_COMPLETION, .on_prefix = ENG_BREACH_SKIP},
    {"tools", "formats/tools.jsonl", FL_TOP "/corpus/templates/tool_turns.jinja", "<|pad|>",
     ENG_PACK_WRAPPED, ENG_KEEP_START, .only = "tools"},
    {"reasoning", "reasoning.jsonl", "chatml", "<|pad|>", ENG_PACK_NEXT, ENG_KEEP_START,
     .only = "reasoning"},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

struct outcome {
    uint64_t digest;
    uint64_t features;
};

static struct outcome run(const struct variant *v, const char *fault)
{
    char error_text[256];
    char file[2][512];
    static const unsigned weights[] = {1, 2};
    char tokenizer[512];
    struct eng_error error = {""};
    eng_loader *loader = NULL;
    struct outcome outcome = {0, 0};
    cr_assert(mut_select(fault, error_text, sizeof error_text), "%s", error_text);
    snprintf(file[0], sizeof file[0], "%s/corpus/data/%s", FL_TOP, v->file);
    snprintf(file[1], sizeof file[1], "%s/corpus/data/%s", FL_TOP,
             v->other_file == NULL ? "" : v->other_file);
    const char *const files[] = {file[0], file[1]};
    snprintf(tokenizer, sizeof tokenizer, "%s/corpus/tokenizers/%s", FL_TOP,
             v->tokenizer == NULL ? "clinical-2k.json" : v->tokenizer);
    struct eng_loader_options o = fixture_options(files, tokenizer);
    o.file_count = v->other_file == NULL ? 1 : 2;
    o.weights = v->other_file == NULL ? NULL : weights;
    o.format = v->format;
    o.mask = v->mask;
    o.order = v->order;
    o.on_prefix = v->on_prefix;
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

/* Whether the two lists of words have one in common. */
static bool share_a_word(const char *a, const char *b)
{
    char words[256];
    char *rest = NULL;
    snprintf(words, sizeof words, "%s", a);
    for (char *word = strtok_r(words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        const char *const found = strstr(b, word);
        const size_t end = strlen(word);
        if (found != NULL && (found == b || found[-1] == ' ') &&
            (found[end] == ' ' || found[end] == '\0')) {
            return true;
        }
    }
    return false;
}

/* A leak changes no batch: tests/fault/leaks.sh. */
static bool is_ours(const struct mut_fault *fault)
{
    const char *const file = mut_site_find(fault->site)->file;
    return fault->class_ != MUT_CLASS_MEMORY &&
           (strncmp(file, "engine/text/", 12) == 0 || strncmp(file, "engine/data/", 12) == 0);
}

static void check(const char *spec, const struct mut_fault *fault, const struct outcome *healthy)
{
    int triggered = 0;
    int changed = 0;
    const bool kill = fault->expect == MUT_EXPECT_KILL;
    for (size_t v = 0; v < VARIANTS; v++) {
        if (!trigger_holds(fault->trigger, healthy[v].features) ||
            (variants[v].only != NULL && !share_a_word(variants[v].only, fault->trigger))) {
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
