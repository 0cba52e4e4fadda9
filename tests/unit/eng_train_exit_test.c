/* How runs end: exit codes, messages, and what stays behind. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "eng_train_bench.h"

static void expect_exit(struct bench *b, int code, const char *says, const char *arguments)
{
    const int got = bench_train(b, TRAIN_PROGRAM, "%s", arguments);
    cr_expect_eq(got, code, "'%s' ended with %d: %s", arguments, got, b->errors);
    cr_expect_not_null(strstr(b->errors, says), "'%s' said: %s", arguments, b->errors);
}

Test(train_exit, usage)
{
    struct bench b;
    bench_open(&b, NULL);
    expect_exit(&b, 1, "--stepz", "--stepz 3");
    expect_exit(&b, 1, "--steps", "--steps many");
    expect_exit(&b, 1, "--steps", "--steps");
    expect_exit(&b, 1, "--level", "--level most");
    expect_exit(&b, 1, "more", "more");
    expect_exit(&b, 1, "--resume", "--resume x");
    expect_exit(&b, 1, "no.such", "--fault no.such");
    expect_exit(&b, 1, "sched_lr.scaled", "--fault sched_lr.scaled:7");
    expect_exit(&b, 1, "@step", "--fault model_rope_angle.bf16_angle@3");
    cr_expect_eq(bench_train(&b, TRAIN_PRODUCTION, "--fault sched_lr.scaled"), 1);
    cr_expect_not_null(strstr(b.errors, "production"));
    cr_expect_eq(bench_run(&b, TRAIN_PROGRAM, "--weights init.safetensors"), 1);
    cr_expect_not_null(strstr(b.errors, "--recipe"));
    cr_expect_eq(bench_run(&b, TRAIN_PROGRAM, "--help"), 0);
    cr_expect_eq(bench_run(&b, TRAIN_PROGRAM, "--version"), 0);
    bench_close(&b);
}

Test(train_exit, the_environment_arms_and_the_flag_wins)
{
    struct bench b;
    bench_open(&b, NULL);
    cr_expect_eq(bench_run(&b, "env", "FAULTLINE_FAULT=no.such %s --recipe recipe.yaml --plan",
                           TRAIN_PROGRAM),
                 1);
    cr_expect_not_null(strstr(b.errors, "no.such"));
    cr_expect_eq(bench_run(&b, "env",
                           "FAULTLINE_FAULT=no.such %s --recipe recipe.yaml --plan --fault none",
                           TRAIN_PROGRAM),
                 0);
    bench_close(&b);
}

Test(train_exit, unreadable_and_mismatched_files)
{
    struct bench b;
    bench_open(&b, NULL);
    cr_expect_eq(bench_run(&b, TRAIN_PROGRAM, "--recipe none.yaml --weights init.safetensors"), 74);
    cr_expect_not_null(strstr(b.errors, "none.yaml"));
    const int missing = bench_run(&b, TRAIN_PROGRAM, "--recipe recipe.yaml --weights none.st");
    cr_expect(missing == 1 || missing == 74, "%d", missing);
    cr_expect_not_null(strstr(b.errors, "none.st"));
    bench_close(&b);

    static const struct {
        const char *from, *to, *says;
    } changes[] = {{"vocab: 2048", "vocab: 4096", "vocab"},
                   {"template: chatml", "template: nolayout", "nolayout"},
                   {"pad: \"<|pad|>\"", "pad: \"<|none|>\"", "<|none|>"},
                   {"layers: 1", "layers: 2", "layers.1"},
                   {"width: 16", "breadth: 16", "breadth"}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        bench_open(&b, &(struct bench_recipe){.replace = {changes[i].from, changes[i].to}});
        expect_exit(&b, 1, changes[i].says, "--quiet");
        bench_close(&b);
    }
}

Test(train_exit, bad_data_line_is_named)
{
    struct bench b;
    bench_open(&b, &(struct bench_recipe){.train = "bad.jsonl"});
    char path[128];
    snprintf(path, sizeof path, "%s/bad.jsonl", b.dir);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
          "{\"role\":\"assistant\",\"content\":\"b\"}]}\n{\"messages\":[}\n",
          f);
    cr_assert_eq(fclose(f), 0);
    expect_exit(&b, 1, "bad.jsonl:2:", "--quiet");
    bench_close(&b);
}

Test(train_exit, too_little_memory_is_a_clean_refusal)
{
    struct bench b;
    bench_open(&b, NULL);
    expect_exit(&b, 8, "", "--budget 100000 --trace t.jsonl");
    /* Enough for the model, not for a pass. */
    cr_assert_eq(bench_run(&b, TRAIN_PROGRAM, "--recipe recipe.yaml --plan"), 0);
    json_t *plan = bench_trace(&b, "stdout");
    const json_int_t need =
        json_integer_value(json_object_get(json_array_get(plan, 0), "plan_bytes"));
    char arguments[96];
    snprintf(arguments, sizeof arguments, "--budget %lld --trace t.jsonl --level hashes",
             (long long)(need / 256 * 3 / 4 * 256));
    json_decref(plan);
    expect_exit(&b, 8, "", arguments);
    json_t *t = bench_trace(&b, "t.jsonl");
    const json_t *end = bench_end(t);
    cr_assert_not_null(end);
    cr_expect_str_neq(json_string_value(json_object_get(end, "status")), "ok");
    json_decref(t);
    bench_close(&b);
}

Test(train_exit, a_full_disk_names_the_file)
{
    struct bench b;
    bench_open(&b, NULL);
    if (access("/dev/full", W_OK) == 0) {
        expect_exit(&b, 74, "/dev/full", "--trace /dev/full");
    }
    expect_exit(&b, 74, "no/such", "--trace no/such/t.jsonl");
    expect_exit(&b, 74, "init.safetensors/c", "--checkpoint-dir init.safetensors/c");
    /* A limit on the file's size: complete lines written before it stay. */
    const int status = bench_run(&b, "sh",
                                 "-c 'ulimit -f 40; exec %s --recipe recipe.yaml --weights "
                                 "init.safetensors --trace t.jsonl'",
                                 TRAIN_PROGRAM);
    cr_expect_eq(status, 74, "%d: %s", status, b.errors);
    cr_expect_not_null(strstr(b.errors, "t.jsonl"));
    bench_close(&b);
}

Test(train_exit, a_signal_ends_the_run_after_its_step)
{
    struct bench b;
    bench_open(&b, &(struct bench_recipe){.steps = 1000000});
    const int status = bench_run(&b, "sh",
                                 "-c '%s --recipe recipe.yaml --weights init.safetensors --trace "
                                 "t.jsonl --level hashes & sleep 1; kill -TERM $!; wait $!'",
                                 TRAIN_PROGRAM);
    cr_expect_eq(status, 130, "%d: %s", status, b.errors);
    json_t *t = bench_trace(&b, "t.jsonl");
    const json_t *end = bench_end(t);
    cr_assert_not_null(end);
    cr_expect_str_eq(json_string_value(json_object_get(end, "status")), "interrupted");
    cr_expect_gt(json_integer_value(json_object_get(end, "steps")), 0);
    cr_expect_eq(json_array_size(t), (size_t)json_integer_value(json_object_get(end, "steps")) + 2);
    json_decref(t);
    bench_close(&b);
}
