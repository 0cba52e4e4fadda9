/* Workplace of the trainer's tests. */
#include "eng_train_bench.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char recipe_text[] =
    "name: bench\n"
    "model: {arch: llama, layers: 1, width: 16, heads: 4, kv_heads: 2, ffn: 40, context: 64,\n"
    "        vocab: 2048, tied: false, norm_eps: 1.0e-5, rope_theta: 10000.0}\n"
    "text: {tokenizer: %s/tokenizers/clinical-2k.json, template: chatml, mask: assistant}\n"
    "data: {train: [%s], eval: [%s/data/clinical_eval.jsonl], packing: true,\n"
    "       truncate: keep_start, pad: \"<|pad|>\"}\n"
    "train: {seed: 1, steps: %d, rows: 2, grad_accum: 2, lr: 3.0e-3, lr_min: 3.0e-4, warmup: 2,\n"
    "        schedule_steps: 8, beta1: 0.9, beta2: 0.95, eps: 1.0e-8, weight_decay: 0.1, clip: "
    "1.0,\n"
    "        eval_every: 2, eval_rows: 3, checkpoint_every: 3}\n"
    "device: {budget: 0, oom_at: %d}\n";

static void write_recipe(const struct bench *b, const struct bench_recipe *r)
{
    char text[4096];
    char out[4096];
    snprintf(text, sizeof text, recipe_text, CORPUS_DIR,
             r->train != NULL ? r->train : CORPUS_DIR "/data/clinical.jsonl", CORPUS_DIR,
             r->steps > 0 ? r->steps : 6, r->oom_at);
    snprintf(out, sizeof out, "%s", text);
    if (r->replace[0] != NULL) {
        const char *at = strstr(text, r->replace[0]);
        cr_assert_not_null(at, "'%s' is not in the recipe", r->replace[0]);
        snprintf(out, sizeof out, "%.*s%s%s", (int)(at - text), text, r->replace[1],
                 at + strlen(r->replace[0]));
    }
    FILE *f = fopen(b->recipe, "w");
    cr_assert_not_null(f);
    fputs(out, f);
    cr_assert_eq(fclose(f), 0);
}

void bench_open(struct bench *b, const struct bench_recipe *r)
{
    static const struct bench_recipe plain = {.steps = 0};
    strcpy(b->dir, "/tmp/eng_train_XXXXXX");
    cr_assert_not_null(mkdtemp(b->dir));
    snprintf(b->recipe, sizeof b->recipe, "%s/recipe.yaml", b->dir);
    snprintf(b->weights, sizeof b->weights, "%s/init.safetensors", b->dir);
    write_recipe(b, &plain);
    cr_assert_eq(bench_run(b, INIT_PROGRAM, "--recipe recipe.yaml --seed 1 --out %s", b->weights),
                 0, "%s", b->errors);
    write_recipe(b, r != NULL ? r : &plain);
}

void bench_close(struct bench *b)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", b->dir);
    cr_assert_eq(system(command), 0);
}

static void read_errors(struct bench *b)
{
    char path[128];
    snprintf(path, sizeof path, "%s/stderr", b->dir);
    FILE *f = fopen(path, "r");
    const size_t n = f == NULL ? 0 : fread(b->errors, 1, sizeof b->errors - 1, f);
    b->errors[n] = '\0';
    if (f != NULL) {
        fclose(f);
    }
}

static int run(struct bench *b, const char *program, const char *before, const char *format,
               va_list args)
{
    char arguments[1024];
    char command[2048];
    vsnprintf(arguments, sizeof arguments, format, args);
    snprintf(command, sizeof command, "cd %s && exec timeout 60 %s %s %s >stdout 2>stderr", b->dir,
             program, before, arguments);
    const int status = system(command);
    read_errors(b);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int bench_run(struct bench *b, const char *program, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int status = run(b, program, "", format, args);
    va_end(args);
    return status;
}

int bench_train(struct bench *b, const char *program, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int status = run(
        b, program, "--recipe recipe.yaml --weights init.safetensors --threads 1", format, args);
    va_end(args);
    return status;
}

json_t *bench_trace(struct bench *b, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", b->dir, name);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s is missing", path);
    json_t *lines = json_array();
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, f) > 0) {
        json_error_t cause;
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &cause);
        cr_assert_not_null(object, "%s: %s", path, cause.text);
        json_array_append_new(lines, object);
    }
    free(line);
    fclose(f);
    return lines;
}

static bool has_type(const json_t *line, const char *type)
{
    return strcmp(json_string_value(json_object_get(line, "type")), type) == 0;
}

const json_t *bench_step(const json_t *trace, int step)
{
    for (size_t i = 0; i < json_array_size(trace); i++) {
        const json_t *line = json_array_get(trace, i);
        if (has_type(line, "step") && json_integer_value(json_object_get(line, "step")) == step) {
            return line;
        }
    }
    return NULL;
}

const json_t *bench_end(const json_t *trace)
{
    const json_t *last = json_array_get(trace, json_array_size(trace) - 1);
    return last != NULL && has_type(last, "end") ? last : NULL;
}

int bench_difference(const json_t *a, const json_t *b, size_t *compared)
{
    static const char *const names[] = {"input", "state", "output", "ledger"};
    for (size_t i = 0; i < json_array_size(a); i++) {
        const json_t *line = json_array_get(a, i);
        if (!has_type(line, "step")) {
            continue;
        }
        const int step = (int)json_integer_value(json_object_get(line, "step"));
        const json_t *other = bench_step(b, step);
        for (size_t k = 0; other != NULL && k < sizeof names / sizeof names[0]; k++) {
            const json_t *one = json_object_get(json_object_get(line, "hash"), names[k]);
            const json_t *two = json_object_get(json_object_get(other, "hash"), names[k]);
            ++*compared;
            if (!json_is_string(one) || !json_equal(one, two)) {
                return step;
            }
        }
    }
    return 0;
}

size_t bench_races(const json_t *trace)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(trace); i++) {
        count += json_array_size(json_object_get(json_array_get(trace, i), "races"));
    }
    return count;
}

bool bench_same_file(struct bench *b, const char *one, const char *other)
{
    char command[512];
    snprintf(command, sizeof command, "cd %s && test -s %s && cmp -s %s %s", b->dir, one, one,
             other);
    return system(command) == 0;
}
