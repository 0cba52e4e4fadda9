/* Every fault of engine/train: it is reached, it ends in order, and it is no equivalent program:
 * under some schedule its run differs from the healthy one or has a race. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "eng_train_bench.h"
#include "registry.h"

static bool of_trainer(const struct mut_fault *fault)
{
    return strncmp(mut_site_find(fault->site)->file, "engine/train/", 13) == 0;
}

static bool triggered_by(const struct mut_fault *fault, const char *feature)
{
    return strstr(fault->trigger, feature) != NULL;
}

static const char *const ways[] = {"--schedule fifo", "--schedule lazy",
                                   "--schedule pct --schedule-seed 3 --driver tasks"};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* The hash of a step's checkpoint, NULL when it has none. */
static const json_t *checkpoint_hash(const json_t *step)
{
    return json_object_get(json_array_get(json_object_get(step, "events"), 0), "hash");
}

/* Loss, evaluation loss, learning rate or a checkpoint's hash differ where both runs have them. */
static bool numbers_differ(const json_t *a, const json_t *b, size_t *compared)
{
    static const char *const keys[] = {"loss", "eval_loss", "lr"};
    for (int step = 1; step <= 6; step++) {
        const json_t *one = bench_step(a, step);
        const json_t *two = bench_step(b, step);
        for (size_t k = 0; two != NULL && k < sizeof keys / sizeof keys[0]; k++) {
            const json_t *left = json_object_get(one, keys[k]);
            const json_t *right = json_object_get(two, keys[k]);
            if (left == NULL && right == NULL) {
                continue;
            }
            ++*compared;
            if (!json_equal(left, right)) {
                return true;
            }
        }
        const json_t *hash = checkpoint_hash(two);
        if (hash != NULL && !json_equal(checkpoint_hash(one), hash)) {
            return true;
        }
    }
    return false;
}

static bool shows(struct bench *b, const struct mut_fault *fault, const json_t *healthy,
                  const char *way)
{
    const char *start = triggered_by(fault, "resumed")      ? "--resume c/step-3"
                        : triggered_by(fault, "checkpoint") ? "--weights init.safetensors "
                                                              "--no-sync --checkpoint-dir d"
                                                            : "--weights init.safetensors";
    const int status =
        bench_run(b, TRAIN_PROGRAM, "--recipe recipe.yaml --trace f.jsonl --fault %s %s %s",
                  fault->id, start, way);
    cr_expect_eq(status, 0, "%s %s ended with %d: %s", fault->id, way, status, b->errors);
    json_t *faulty = bench_trace(b, "f.jsonl");
    const json_t *reached = json_object_get(bench_end(faulty), "fault_reached");
    cr_expect(json_is_integer(reached) && json_integer_value(reached) >= 0, "%s %s: not reached",
              fault->id, way);
    size_t compared = 0;
    const bool differs = bench_difference(faulty, healthy, &compared) != 0 ||
                         numbers_differ(healthy, faulty, &compared) || bench_races(faulty) > 0;
    cr_assert_gt(compared, 0);
    json_decref(faulty);
    return differs;
}

/* Runs the healthy trainer into the bench's folder; leaves its checkpoints in c. */
static json_t *healthy_run(struct bench *b, const char *way)
{
    const int status = bench_train(b, TRAIN_PROGRAM, "--no-sync --checkpoint-dir c --trace h.jsonl %s", way);
    cr_assert_eq(status, 0, "%s: %s", way, b->errors);
    return bench_trace(b, "h.jsonl");
}

struct workplace {
    struct bench bench;
    json_t *healthy[WAYS];
};

static void open_workplace(struct workplace *w, const struct bench_recipe *recipe)
{
    bench_open(&w->bench, recipe);
    for (size_t i = 0; i < WAYS; i++) {
        w->healthy[i] = healthy_run(&w->bench, ways[i]);
    }
}

static void close_workplace(struct workplace *w)
{
    for (size_t i = 0; i < WAYS; i++) {
        json_decref(w->healthy[i]);
    }
    bench_close(&w->bench);
}

static void expect_real(struct workplace *w, const struct mut_fault *fault)
{
    bool shown = false;
    for (size_t i = 0; i < WAYS; i++) {
        shown = shows(&w->bench, fault, w->healthy[i], ways[i]) || shown;
    }
    if (fault->expect == MUT_EXPECT_EQUIVALENT) {
        cr_expect(!shown, "%s is marked equivalent and shows", fault->id);
    } else {
        cr_expect(shown, "%s never shows", fault->id);
    }
}

Test(train_fault, each_is_reached_and_real)
{
    struct workplace plain;
    struct workplace oom;
    size_t checked = 0;
    open_workplace(&plain, NULL);
    open_workplace(&oom, &(struct bench_recipe){.oom_at = 3});
    for (size_t i = 0; i < mut_fault_count(); i++) {
        const struct mut_fault *fault = mut_fault_at(i);
        if (of_trainer(fault)) {
            expect_real(triggered_by(fault, "oom_at") ? &oom : &plain, fault);
            checked++;
        }
    }
    cr_assert_gt(checked, 30);
    close_workplace(&plain);
    close_workplace(&oom);
}
