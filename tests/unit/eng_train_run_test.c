/* Whole runs: what must not change their bits, and that they resume exactly. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eng_train_bench.h"

/* Runs with `arguments` and expects the plain run's hashes and no race. */
static void expect_same(struct bench *b, const json_t *plain, const char *program,
                        const char *arguments)
{
    cr_assert_eq(bench_train(b, program, "--trace other.jsonl %s", arguments), 0, "%s: %s",
                 arguments, b->errors);
    json_t *other = bench_trace(b, "other.jsonl");
    size_t compared = 0;
    cr_expect_eq(bench_difference(plain, other, &compared), 0, "%s: differs", arguments);
    cr_expect_eq(compared, 4 * 6, "%s: %zu compared", arguments, compared);
    cr_expect_eq(bench_races(other), 0, "%s: races", arguments);
    cr_expect_not_null(bench_end(other));
    json_decref(other);
}

Test(train_run, execution_does_not_change_bits)
{
    static const char *const ways[] = {
        "--schedule lazy",
        "--schedule pct --schedule-seed 1",
        "--schedule random --schedule-seed 1",
        "--schedule threads",
        "--guard",
        "--quarantine 500000",
        "--guard --schedule lazy --quarantine 500000",
        "--schedule pct --schedule-seed 2",
        "--schedule pct --schedule-seed 3 --driver tasks --threads 2",
        "--driver tasks",
        "--driver tasks --schedule lazy",
        "--threads 2",
        "--threads 3",
    };
    struct bench b;
    bench_open(&b, NULL);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--trace plain.jsonl"), 0, "%s", b.errors);
    json_t *plain = bench_trace(&b, "plain.jsonl");
    cr_expect_eq(bench_races(plain), 0);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        expect_same(&b, plain, TRAIN_PROGRAM, ways[i]);
    }
    json_decref(plain);
    bench_close(&b);
}

Test(train_run, nothing_armed_is_production)
{
    struct bench b;
    bench_open(&b, NULL);
    cr_assert_eq(bench_train(&b, TRAIN_PRODUCTION, "--trace plain.jsonl"), 0, "%s", b.errors);
    json_t *plain = bench_trace(&b, "plain.jsonl");
    expect_same(&b, plain, TRAIN_PROGRAM, "--fault none");
    expect_same(&b, plain, TRAIN_PROGRAM, "--fault none:all");
    json_t *all = bench_trace(&b, "other.jsonl");
    const json_t *reach = json_object_get(bench_end(all), "reach");
    cr_expect_gt(json_object_size(reach), 0);
    cr_expect_eq(json_integer_value(json_object_get(reach, "sched_lr")), 1);
    cr_expect_eq(json_integer_value(json_object_get(reach, "eval_feed")), 2);
    json_decref(all);
    json_decref(plain);
    bench_close(&b);
}

Test(train_run, trace_levels_do_not_change_training)
{
    struct bench b;
    bench_open(&b, NULL);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--save none"), 0, "%s", b.errors);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--save hashes --trace h.jsonl --level hashes"), 0);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--save full --trace f.jsonl --contents"), 0);
    cr_expect(bench_same_file(&b, "none/model.safetensors", "hashes/model.safetensors"));
    cr_expect(bench_same_file(&b, "none/model.safetensors", "full/model.safetensors"));
    json_t *hashes = bench_trace(&b, "h.jsonl");
    json_t *full = bench_trace(&b, "f.jsonl");
    size_t compared = 0;
    for (int step = 1; step <= 6; step++) {
        const json_t *h = json_object_get(bench_step(hashes, step), "hash");
        const json_t *f = json_object_get(bench_step(full, step), "hash");
        cr_expect(json_equal(json_object_get(h, "state"), json_object_get(f, "state")));
        cr_expect(json_equal(json_object_get(h, "input"), json_object_get(f, "input")));
        compared += json_object_size(h);
    }
    cr_expect_gt(compared, 0);
    json_decref(hashes);
    json_decref(full);
    bench_close(&b);
}

/* A file of the bench's folder in memory; the caller frees. */
static char *load(const struct bench *b, const char *name, size_t *bytes)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", b->dir, name);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    cr_assert_eq(fseek(f, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*bytes);
    cr_assert(data != NULL && fread(data, 1, *bytes, f) == *bytes);
    fclose(f);
    return data;
}

/* The last record holds what was saved, the first the ids of the trace. */
static void expect_states(struct bench *b, const json_t *trace, const char *name)
{
    size_t bytes = 0;
    size_t saved_bytes = 0;
    char *states = load(b, name, &bytes);
    char *saved = load(b, "saved/model.safetensors", &saved_bytes);
    const char *end = memchr(states, '\n', bytes);
    cr_assert_not_null(end);
    json_t *header = json_loadb(states, (size_t)(end - states), 0, NULL);
    const size_t micro = (size_t)json_integer_value(json_object_get(header, "micro"));
    const size_t positions = (size_t)json_integer_value(json_object_get(header, "positions"));
    const size_t batch = 4 * micro * positions * sizeof(int32_t);
    size_t parameters = 0;
    size_t index = 0;
    json_t *count = NULL;
    json_array_foreach(json_object_get(header, "elements"), index, count)
    {
        parameters += (size_t)json_integer_value(count);
    }
    cr_expect(json_equal(json_object_get(header, "tensors"),
                         json_object_get(json_array_get(trace, 0), "tensors")));
    const size_t record = 8 + batch + 3 * parameters * sizeof(float);
    const size_t start = (size_t)(end + 1 - states);
    cr_assert_gt(parameters, 0);
    cr_assert_eq(bytes, start + 6 * record + 8);
    cr_expect_eq(memcmp(states + start + 5 * record + 8 + batch,
                        saved + saved_bytes - parameters * sizeof(float),
                        parameters * sizeof(float)),
                 0);
    const json_t *contents = json_object_get(bench_step(trace, 1), "contents");
    static const char *const names[] = {"ids", "labels", "positions", "segments"};
    for (size_t i = 0; i < 4 * micro * positions; i++) {
        int32_t word = 0;
        memcpy(&word, states + start + 8 + i * sizeof word, sizeof word);
        const json_t *array = json_object_get(contents, names[i / (micro * positions)]);
        const json_t *of_micro = json_array_get(array, i % (micro * positions) / positions);
        cr_assert_eq(json_integer_value(json_array_get(of_micro, i % positions)), word);
    }
    json_decref(header);
    free(states);
    free(saved);
}

Test(train_run, states_are_those_of_the_run_and_change_nothing)
{
    static const char *const ways[] = {
        "--states s.bin --guard",
        "--states s.bin --schedule lazy",
        "--states s.bin --schedule pct --schedule-seed 3 --driver tasks --threads 2",
        "--states s.bin --schedule threads",
    };
    struct bench b;
    bench_open(&b, NULL);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--trace plain.jsonl --contents --save saved"), 0,
                 "%s", b.errors);
    json_t *plain = bench_trace(&b, "plain.jsonl");
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        expect_same(&b, plain, TRAIN_PROGRAM, ways[i]);
        expect_states(&b, plain, "s.bin");
    }
    cr_expect_eq(bench_train(&b, TRAIN_PROGRAM, "--states /nonexistent/s"), 74);
    cr_expect_not_null(strstr(b.errors, "/nonexistent/s: cannot be written"), "%s", b.errors);
    cr_expect_eq(bench_train(&b, TRAIN_PROGRAM, "--states /dev/full"), 74);
    cr_expect_eq(bench_run(&b, TRAIN_PROGRAM, "--recipe recipe.yaml --resume c --states s.bin"), 1);
    json_decref(plain);
    bench_close(&b);
}

Test(train_run, resumed_run_has_the_same_bits)
{
    struct bench b;
    bench_open(&b, NULL);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--trace plain.jsonl --checkpoint-dir c --save s"),
                 0, "%s", b.errors);
    const char *run = "--recipe recipe.yaml --resume c/step-3 --trace resumed.jsonl --save r "
                      "--driver tasks --schedule lazy";
    cr_assert_eq(bench_run(&b, TRAIN_PROGRAM, "%s", run), 0, "%s", b.errors);
    json_t *plain = bench_trace(&b, "plain.jsonl");
    json_t *resumed = bench_trace(&b, "resumed.jsonl");
    size_t compared = 0;
    cr_expect_eq(bench_difference(resumed, plain, &compared), 0);
    cr_expect_eq(compared, 4 * 3);
    cr_expect(bench_same_file(&b, "s/model.safetensors", "r/model.safetensors"));
    cr_expect(bench_same_file(&b, "s/model.safetensors", "c/step-6/model.safetensors"));
    cr_expect_eq(json_integer_value(json_object_get(json_array_get(resumed, 0), "first_step")), 4);
    json_decref(plain);
    json_decref(resumed);
    bench_close(&b);
}

static double number(const json_t *step, const char *key)
{
    return json_number_value(json_object_get(step, key));
}

static void expect_sketches(const json_t *sketch, const char *kind, size_t count)
{
    const json_t *all = json_object_get(sketch, kind);
    cr_expect_eq(json_object_size(all), count, "%s: %zu", kind, json_object_size(all));
    const char *name;
    json_t *numbers;
    json_object_foreach((json_t *)all, name, numbers)
    {
        cr_expect_eq(json_array_size(numbers), 10, "%s", name);
        cr_expect_eq(json_integer_value(json_array_get(numbers, 9)), 0, "%s", name);
    }
}

Test(train_run, trace_says_what_it_should)
{
    struct bench b;
    bench_open(&b, NULL);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--trace t.jsonl --contents"), 0, "%s", b.errors);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--trace t.jsonl.zst --contents"), 0);
    cr_assert_eq(bench_run(&b, "zstd", "-dqf t.jsonl.zst -o z.jsonl"), 0);
    json_t *t = bench_trace(&b, "t.jsonl");
    json_t *z = bench_trace(&b, "z.jsonl");
    const json_t *header = json_array_get(t, 0);
    const json_t *step = bench_step(t, 2);
    const size_t tensors = json_array_size(json_object_get(header, "tensors"));
    const json_t *sketch = json_object_get(step, "sketch");
    cr_expect_eq(tensors, 12);
    expect_sketches(sketch, "activations", json_array_size(json_object_get(header, "taps")));
    expect_sketches(sketch, "gradients", tensors);
    expect_sketches(sketch, "updates", tensors);
    expect_sketches(sketch, "parameters", tensors);
    expect_sketches(sketch, "moment1", tensors);
    expect_sketches(sketch, "moment2", tensors);
    cr_expect(number(step, "loss") > 0.0);
    cr_expect(number(step, "eval_loss") > 0.0);
    cr_expect(isnan(number(step, "grad_norm")) == 0);
    cr_expect_eq(number(step, "lr"), 3.0e-3);
    cr_expect_null(json_object_get(bench_step(t, 1), "eval_loss"));
    const json_t *contents = json_object_get(step, "contents");
    cr_expect_eq(json_array_size(json_array_get(json_object_get(contents, "ids"), 1)), 2 * 64);
    cr_expect(json_equal(sketch, json_object_get(bench_step(z, 2), "sketch")));
    cr_expect(json_equal(contents, json_object_get(bench_step(z, 2), "contents")));
    json_decref(t);
    json_decref(z);
    bench_close(&b);
}

Test(train_run, a_forced_allocation_failure_is_answered_and_leaves_no_mark)
{
    struct bench b;
    bench_open(&b, NULL);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--save plain"), 0, "%s", b.errors);
    bench_close(&b);
    struct bench o;
    bench_open(&o, &(struct bench_recipe){.oom_at = 3});
    cr_assert_eq(bench_train(&o, TRAIN_PROGRAM, "--save s --trace t.jsonl"), 0, "%s", o.errors);
    cr_assert_eq(bench_train(&o, TRAIN_PROGRAM, "--save l --schedule lazy"), 0, "%s", o.errors);
    json_t *t = bench_trace(&o, "t.jsonl");
    const json_t *events = json_object_get(bench_step(t, 3), "events");
    cr_expect_eq(json_array_size(events), 2);
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(events, 0), "kind")), "oom");
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(events, 1), "kind")),
                     "retry");
    cr_expect(bench_same_file(&o, "s/model.safetensors", "l/model.safetensors"));
    cr_expect_eq(bench_races(t), 0);
    json_decref(t);
    bench_close(&o);
}

Test(train_run, one_ulp_on_the_weights_changes_the_run_a_little)
{
    struct bench b;
    bench_open(&b, NULL);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--trace a.jsonl"), 0, "%s", b.errors);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--trace p.jsonl --perturb-ulp"), 0, "%s",
                 b.errors);
    json_t *a = bench_trace(&b, "a.jsonl");
    json_t *p = bench_trace(&b, "p.jsonl");
    size_t compared = 0;
    cr_expect_eq(bench_difference(a, p, &compared), 1);
    cr_expect_gt(compared, 0);
    json_decref(a);
    json_decref(p);
    bench_close(&b);
}

Test(train_run, evaluation_of_the_result_is_that_of_its_last_step)
{
    struct bench b;
    bench_open(&b, NULL);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--trace t.jsonl --save s"), 0, "%s", b.errors);
    cr_assert_eq(bench_run(&b, TRAIN_PROGRAM, "--recipe recipe.yaml --evaluate s"), 0, "%s",
                 b.errors);
    json_t *t = bench_trace(&b, "t.jsonl");
    json_t *e = bench_trace(&b, "stdout");
    cr_expect_eq(number(json_array_get(e, 0), "eval_loss"), number(bench_step(t, 6), "eval_loss"));
    cr_expect_eq(number(json_array_get(e, 0), "supervised"),
                 number(bench_step(t, 6), "eval_supervised"));
    json_decref(t);
    json_decref(e);
    bench_close(&b);
}

/* Seeds under which a racing fault changes the final weights, with the given trace arguments. */
static int wrong_runs(struct bench *b, const char *fault, const char *trace, int seeds)
{
    int wrong = 0;
    for (int seed = 1; seed <= seeds; seed++) {
        const int status = bench_train(b, TRAIN_PROGRAM,
                                       "--fault %s --schedule pct --schedule-seed %d --save w %s",
                                       fault, seed, trace);
        cr_assert_eq(status, 0, "%s: %s", fault, b->errors);
        wrong += !bench_same_file(b, "right/model.safetensors", "w/model.safetensors");
    }
    return wrong;
}

Test(train_run, tracing_does_not_hide_races)
{
    static const char *const faults[] = {"input_refill_wait.omitted",
                                         "update_adamw.zeroed_on_side"};
    enum { SEEDS = 8 };
    struct bench b;
    bench_open(&b, NULL);
    cr_assert_eq(bench_train(&b, TRAIN_PROGRAM, "--save right"), 0, "%s", b.errors);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const int untraced = wrong_runs(&b, faults[i], "", SEEDS);
        cr_expect_gt(untraced, 0, "%s", faults[i]);
        cr_expect_eq(wrong_runs(&b, faults[i], "--trace t.jsonl --level full", SEEDS), untraced,
                     "%s", faults[i]);
        cr_expect_eq(wrong_runs(&b, faults[i], "--trace t.jsonl --states s.bin", SEEDS), untraced,
                     "%s with states", faults[i]);
    }
    bench_close(&b);
}
