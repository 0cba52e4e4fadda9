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

/* Loss, evaluation loss or learning rate differ somewhere: faults of the metric. */
static bool numbers_differ(const json_t *a, const json_t *b, size_t *compared)
{
    static const char *const keys[] = {"loss", "eval_loss", "lr", "events"};
    for (int step = 1; step <= 6; step++) {
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            const json_t *one = json_object_get(bench_step(a, step), keys[k]);
            const json_t *two = json_object_get(bench_step(b, step), keys[k]);
            ++*compared;
            if (two != NULL && !json_equal(one, two)) {
                return true;
            }
        }
    }
    return false;
}

static bool shows(struct bench *b, const struct mut_fault *fault, const char *way)
{
    const char *start = triggered_by(fault, "resumed")
                            ? "--resume c/step-3"
                            : "--weights init.safetensors --checkpoint-dir c2";
    const char *healthy_start = triggered_by(fault, "resumed")
                                    ? "--weights init.safetensors --checkpoint-dir c3"
                                    : "--weights init.safetensors --checkpoint-dir c2";
    cr_assert_eq(bench_run(b, TRAIN_PROGRAM, "--recipe recipe.yaml --trace h.jsonl %s %s",
                           healthy_start, way),
                 0, "%s", b->errors);
    const int status =
        bench_run(b, TRAIN_PROGRAM, "--recipe recipe.yaml --trace f.jsonl --fault %s %s %s",
                  fault->id, start, way);
    cr_expect_eq(status, 0, "%s %s ended with %d: %s", fault->id, way, status, b->errors);
    json_t *healthy = bench_trace(b, "h.jsonl");
    json_t *faulty = bench_trace(b, "f.jsonl");
    const json_t *reached = json_object_get(bench_end(faulty), "fault_reached");
    cr_expect(json_is_integer(reached) && json_integer_value(reached) >= 0, "%s %s: not reached",
              fault->id, way);
    size_t compared = 0;
    const bool differs = bench_difference(faulty, healthy, &compared) != 0 ||
                         numbers_differ(healthy, faulty, &compared) || bench_races(faulty) > 0;
    cr_assert_gt(compared, 0);
    json_decref(healthy);
    json_decref(faulty);
    return differs;
}

static void expect_real(struct bench *b, const struct mut_fault *fault)
{
    bool shown = false;
    for (size_t w = 0; w < WAYS; w++) {
        shown = shows(b, fault, ways[w]) || shown;
    }
    if (fault->expect == MUT_EXPECT_EQUIVALENT) {
        cr_expect(!shown, "%s is marked equivalent and shows", fault->id);
    } else {
        cr_expect(shown, "%s never shows", fault->id);
    }
}

Test(train_fault, each_is_reached_and_real)
{
    struct bench plain;
    struct bench oom;
    size_t checked = 0;
    bench_open(&plain, NULL);
    bench_open(&oom, &(struct bench_recipe){.oom_at = 3});
    cr_assert_eq(bench_train(&plain, TRAIN_PROGRAM, "--checkpoint-dir c"), 0, "%s", plain.errors);
    for (size_t i = 0; i < mut_fault_count(); i++) {
        const struct mut_fault *fault = mut_fault_at(i);
        if (of_trainer(fault)) {
            expect_real(triggered_by(fault, "oom_at") ? &oom : &plain, fault);
            checked++;
        }
    }
    cr_assert_gt(checked, 30);
    bench_close(&plain);
    bench_close(&oom);
}
